"""The gateway behind a connection: who is let in, limits, hostile clients, and what the log says."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import httpx
import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import ConfigurationError, Denied, ModelAccessError, ProviderError
from effectful_agents.handlers.delegation import RemoteOperations
from effectful_agents.harness.serving.gateway.clients import Client, token_hash
from effectful_agents.harness.serving.gateway.spending import Ledger
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.world import sleep
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.delegation.seam.serving import TOKEN, Served, served

HI: Any = [{"role": "user", "content": "hi"}]
HEADERS = {"authorization": f"Bearer {TOKEN}", "effectful-seam": "0.1"}


@Tool.define
def here(name: str) -> str:
    """Say who is here."""
    return name


@Skill.define
def summarize(text: str) -> str:
    """Summarize {text}."""
    raise NotHandled


def post(gateway: Served, what: str, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{gateway.url}/seam/{what}", content=content, headers={**HEADERS, **headers})


def error(response: httpx.Response) -> Any:
    return json.loads(response.content)["error"]


# --- who is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x"])
def test_who_has_no_token_is_not_let_in(token):
    model = ScriptedModel("never")
    with served(model) as gateway, handler(gateway.remote(token=token)):
        with pytest.raises(ModelAccessError, match="does not know the token"):
            completion(messages=HI)
    assert model.requests == []


@pytest.mark.parametrize("value", ["", "Bearer", "Basic eDp5", "Bearer wrong", "bearer"])
def test_what_is_no_token_is_not_let_in(value):
    with served(ScriptedModel()) as gateway:
        response = post(gateway, "completion", {"request": {"messages": HI}}, authorization=value)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_clients_have_models_tools_and_references_of_their_own():
    clients = [
        Client(name="ann", token_sha256=token_hash("a"), models=("small",)),
        Client(name="bob", token_sha256=token_hash("b"), tools=()),
    ]
    model = ScriptedModel("Hi", "Hi")
    tool: Any = {"type": "function", "function": {"name": "t", "description": "T.", "parameters": {}}}
    with served(model, clients=clients, tools=[here]) as gateway:
        ann, bob = (RemoteOperations(gateway.url, token=token, num_retries=0) for token in "ab")
        with handler(ann):
            completion(messages=HI, model="small", tools=[tool])
            for name in ("large", ""):
                with pytest.raises(Denied, match="may not ask the model"):
                    completion(messages=HI, model=name)
        with handler(bob):
            completion(messages=HI, model="large")
        assert ([one.__name__ for one in ann.tools], bob.tools) == (["here"], ())
        # A reference that another client has registered is none of this one's.
        (ref,) = ann._opening._known
        body = {"request": {"messages": HI, "tools": [{"ref": ref}]}}
        refused = post(gateway, "completion", body, authorization="Bearer b")
        assert (refused.status_code, error(refused)["kind"]) == (409, "UnknownToolRef")
        (held,) = ann._held._made
        assert post(gateway, "tool", {"ref": held}, authorization="Bearer b").status_code == 409
    assert model.remaining == 0


# --- limits -----------------------------------------------------------------------------------------------------------


def test_one_request_too_many_says_when_to_come_back():
    with served(ScriptedModel("Hi", "Hi"), limits={"requests_per_minute": 2}) as gateway:
        with handler(gateway.remote()):
            completion(messages=HI)
            with pytest.raises(ProviderError, match="requests_per_minute") as caught:
                completion(messages=HI)
        response = post(gateway, "completion", {"request": {"messages": HI}})
    assert caught.value.status == 429
    assert 0 < (caught.value.retry_after or 0) <= 60
    assert 0 < int(response.headers["retry-after"]) <= 60


def test_a_budget_in_tokens_ends_and_survives_a_restart(tmp_path):
    model = ScriptedModel("One", "Two", "Three")
    ledger = Ledger(tmp_path / "spent.db")
    with served(model, ledger=ledger, limits={"budget_tokens": 200}) as gateway:
        remote = gateway.remote()
        with handler(remote):
            completion(messages=HI)
            gateway.stop()
            gateway.start()
            completion(messages=HI)
            with pytest.raises(Denied, match="budget") as caught:
                completion(messages=HI)
    assert caught.value.decision.disposition.name == "TERMINATE_RUN"
    assert ledger.spent("ann") == (240, 0.0)
    ledger.close()


def test_a_budget_in_money_is_spent_by_prices_and_not_without():
    prices = {cost_of: lambda model, usage: 0.001 * (usage.total or 0) if model == "dear" else None}
    ledger = Ledger()
    with served(ScriptedModel("Hi", "Hi"), prices, ledger=ledger, limits={"budget_usd": 0.1}) as gateway:
        with handler(gateway.remote()):
            with pytest.raises(Denied, match="price of this model is not known"):
                completion(messages=HI, model="free of charge?")
            completion(messages=HI, model="dear")
            with pytest.raises(Denied, match="used up"):
                completion(messages=HI, model="dear")
    assert ledger.spent("ann") == (120, pytest.approx(0.12))


def test_what_a_skill_of_the_gateway_uses_is_spent_too():
    ledger = Ledger()
    model = ScriptedModel("Short.")
    with served(harness(eval_provider="none"), model, tools=[summarize], ledger=ledger) as gateway:
        remote = gateway.remote()
        with handler(remote):
            assert remote.tools[0](text="a book") == "Short."
    assert ledger.spent("ann")[0] == 120


def test_who_goes_away_in_the_middle_has_used_something():
    ledger, started, ended = Ledger(), threading.Event(), threading.Event()

    def slow(**request: Any) -> Any:
        started.set()
        try:
            sleep(60)
        finally:
            ended.set()

    with served({completion: slow}, ledger=ledger) as gateway:
        with httpx.Client() as client:
            body = json.dumps({"request": {"messages": HI}, "stream": True})
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"{gateway.url}/seam/completion", content=body, headers=HEADERS, timeout=0.2)
        assert ended.wait(10)
        gateway.stop()
    assert ledger.spent("ann")[0] > 0


def test_a_reply_without_usage_is_estimated():
    ledger, reply = Ledger(), dict(says("Hi"))
    del reply["usage"]
    with served(ScriptedModel(reply), ledger=ledger) as gateway, handler(gateway.remote()):
        completion(messages=[{"role": "user", "content": "x" * 4_000}])
    assert 1_000 < ledger.spent("ann")[0] < 1_100


def test_the_price_of_nothing_is_not_asked_for():
    with (
        served(ScriptedModel("Hi"), {cost_of: lambda model, usage: float("nan")}) as gateway,
        handler(gateway.remote()),
    ):
        completion(messages=HI)
    assert gateway.ledger.spent("ann") == (Usage(100, 20).total, 0.0)


# --- hostile clients --------------------------------------------------------------------------------------------------


def test_a_giant_body_is_refused_whether_it_says_so_or_not():
    def pieces() -> Any:
        for _ in range(100):
            yield b"x" * 1_000

    with served(ScriptedModel(), max_body=5_000) as gateway:
        said = post(gateway, "completion", b"x" * 6_000)
        kept = httpx.post(f"{gateway.url}/seam/completion", content=pieces(), headers=HEADERS)
        with handler(gateway.remote()), pytest.raises(ConfigurationError, match="larger than the 5,000 bytes"):
            completion(messages=[{"role": "user", "content": "x" * 6_000}])
    assert said.status_code == kept.status_code == 413


BODIES: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "deep": b'{"request":' * 50_000,
    "not a number": b'{"request": {"messages": NaN}}',
    "no request": {},
    "request is text": {"request": "hi"},
    "no messages": {"request": {}},
    "messages are none": {"request": {"messages": [1]}},
    "permit is none": {"request": {"messages": HI}, "permit": 3},
    "tools are none": {"request": {"messages": HI, "tools": "all"}},
    "model is none": {"request": {"messages": HI, "model": ["m"]}},
    "address of a service": {"request": {"messages": HI, "api_base": "http://evil"}},
    "key": {"request": {"messages": HI, "api_key": "sk"}},
    "other models": {"request": {"messages": HI, "fallbacks": [{"model": "m", "api_base": "http://evil"}]}},
    "headers": {"request": {"messages": HI, "extra_headers": {"x": "y"}}},
    "options": {"request": {"messages": HI, "provider_options": {"api_base": "http://evil"}}},
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_no_request_is_refused(name):
    model = ScriptedModel("never")
    with served(model) as gateway:
        response = post(gateway, "completion", BODIES[name])
    assert response.status_code == 400
    assert error(response)["kind"] == "ConfigurationError"
    assert "Traceback" not in response.text
    assert model.requests == []


FORGED: dict[str, Any] = {
    "unknown": {"ref": "here@00"},
    "none": {"ref": None},
    "number": {"ref": 3},
    "list": {"ref": ["x"]},
    "name": {"ref": "here"},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_reference_is_none(name):
    with served(ScriptedModel("never"), tools=[here]) as gateway:
        asked = post(gateway, "completion", {"request": {"messages": HI, "tools": [FORGED[name]]}})
        called = post(gateway, "tool", FORGED[name])
    assert asked.status_code in (400, 409) or name == "none"
    assert called.status_code in (400, 409)


def test_greeting_again_and_again_changes_nothing():
    tool = {"type": "function", "function": {"name": "t", "description": "T.", "parameters": {}}}
    hello = {"versions": ["0.1"], "tools": [tool]}
    with served(ScriptedModel()) as gateway:
        answers = [post(gateway, "hello", hello).json() for _ in range(5)]
    assert all(answer == answers[0] for answer in answers)


HELLOS: dict[str, Any] = {
    "no version": ({}, "SeamVersionError"),
    "another version": ({"versions": ["9.0"]}, "SeamVersionError"),
    "versions are none": ({"versions": "0.1"}, "ConfigurationError"),
    "tool is none": ({"versions": ["0.1"], "tools": [1]}, "ConfigurationError"),
    "name twice": (
        {"versions": ["0.1"], "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}] * 2},
        "ConfigurationError",
    ),
    "too large": (
        {
            "versions": ["0.1"],
            "tools": [{"type": "function", "function": {"name": "t", "description": "x" * 10**6, "parameters": {}}}],
        },
        "ConfigurationError",
    ),
    "too many": ({"versions": ["0.1"], "tools": [{}] * 1_001}, "ConfigurationError"),
}


@pytest.mark.parametrize("name", HELLOS)
def test_a_greeting_that_is_none_is_refused(name):
    body, kind = HELLOS[name]
    with served(ScriptedModel()) as gateway:
        response = post(gateway, "hello", body)
    assert (response.status_code, error(response)["kind"]) == (400, kind)


def test_a_request_in_another_version_is_refused():
    with served(ScriptedModel()) as gateway:
        response = post(gateway, "completion", {"request": {"messages": HI}}, **{"effectful-seam": "9.9"})
    assert error(response)["kind"] == "SeamVersionError"


def test_other_addresses_and_methods_lead_nowhere():
    with served(ScriptedModel()) as gateway:
        assert post(gateway, "exec", {}).status_code == 400
        assert httpx.get(f"{gateway.url}/seam/hello", headers=HEADERS).status_code == 405
        assert httpx.post(f"{gateway.url}/", headers=HEADERS).status_code == 404


def test_who_greets_for_ever_fills_nothing():
    def tool(name: str) -> dict[str, Any]:
        text = "Do something. " * 300
        return {"type": "function", "function": {"name": name, "description": text, "parameters": {}}}

    with served(ScriptedModel("Hi")) as gateway:
        remote = gateway.remote()
        remote._opening.referring({"tools": [tool("first")]})
        for turn in range(5):
            post(gateway, "hello", {"versions": ["0.1"], "tools": [tool(f"t{turn}_{one}") for one in range(1_000)]})
        (ref,) = remote._opening._known
        forgotten = post(gateway, "completion", {"request": {"messages": HI, "tools": [{"ref": ref}]}})
        assert forgotten.status_code == 409
        with handler(remote):
            completion(messages=HI, tools=[tool("first")])  # it greets again


# --- the log ----------------------------------------------------------------------------------------------------------


def test_a_request_is_one_line_without_what_it_says(caplog):
    caplog.set_level(logging.INFO, "effectful_agents.gateway")
    secret = "the password is swordfish"
    model = ScriptedModel(calls("here", name=secret), secret, KeyError("nothing"))
    with served(harness(eval_provider="none"), model, tools=[here]) as gateway:
        remote = gateway.remote()
        with handler(harness(eval_provider="none")), handler(remote):
            completion(messages=[{"role": "user", "content": secret}])
            remote.tools[0](name=secret)
        post(gateway, "completion", b"{", authorization="Bearer wrong")
    lines = [record.getMessage() for record in caplog.records if record.name == "effectful_agents.gateway"]
    assert [line.split(" ms=")[0] for line in lines] == [
        "client=ann op=hello outcome=200",
        "client=ann op=completion outcome=200",
        "client=ann op=tool outcome=200",
        "client=- op=completion outcome=401 ModelAccessError",
    ]
    assert "tokens=120" in lines[1]
    assert not any("swordfish" in line or TOKEN in line for line in lines)
