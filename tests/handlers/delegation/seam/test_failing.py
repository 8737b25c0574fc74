"""A gateway that fails, goes away, comes back, and one that is none: typed errors, and nothing that hangs."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import threading
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import (
    AgentsError,
    ConfigurationError,
    ContextLengthError,
    Denied,
    GovernanceRefused,
    LimitExceeded,
    ModelAccessError,
    NetworkError,
    OptionError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    SeamVersionError,
)
from effectful_agents.handlers.delegation import HttpGateway, RemoteOperations
from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.failures import read_error, write_error
from effectful_agents.messages import TextDelta
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Decision, Disposition
from effectful_agents.operations.steps import emit
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import bridged, fwd
from effectful_agents.testing import ScriptedModel, says
from tests.handlers.delegation.seam.serving import served
from tests.handlers.provision.http.server import Server, begin_stream, send_piece, whole

HI: Any = [{"role": "user", "content": "hi"}]
RUNNERS = {"asyncio": anyio.run, "trio": trio.run}


@Skill.define
def ask(question: str) -> str:
    """Answer {question}."""
    raise NotHandled


@Tool.define
def here(name: str) -> str:
    """Say who is here."""
    return name


# --- errors cross as what they are ------------------------------------------------------------------------------------

ERRORS = [
    ProviderError("busy", status=503, provider="openai", retry_after=2.0),
    ProviderError("no", status=418, retryable=False),
    RequestTimeoutError("late", provider="openai"),
    NetworkError("gone"),
    RefusalError("I would rather not", status=400),
    ContextLengthError("long", prompt_tokens=9, limit=8),
    LimitExceeded("tokens", 100),
    GovernanceRefused("secrets", "It has a key in it."),
    Denied(Decision(Disposition.TERMINATE_RUN, "fraud", "Enough.", rule="rules")),
]
FIELDS = ("status", "provider", "retryable", "retry_after", "prompt_tokens", "limit", "value", "rule")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_crosses_with_its_fields(error):
    with served(ScriptedModel(error)) as gateway, handler(gateway.remote()), pytest.raises(type(error)) as caught:
        completion(messages=HI)
    assert type(caught.value) is type(error)
    for field in FIELDS:
        assert getattr(caught.value, field, None) == getattr(error, field, None)


def test_what_is_no_error_of_ours_is_not_told():
    secret = "sk-123"
    with served(ScriptedModel(KeyError(secret))) as gateway, handler(gateway.remote()):
        with pytest.raises(ProviderError, match="its log says why") as caught:
            completion(messages=HI)
    assert caught.value.status == 500
    assert not caught.value.retryable
    assert secret not in str(caught.value)


def test_that_no_model_is_there_is_not_told_in_full():
    with served(harness()) as gateway, handler(gateway.remote()), pytest.raises(AgentsError) as caught:
        completion(messages=HI)
    assert "litellm" not in str(caught.value).lower()


@given(st.text(), st.none() | st.integers(100, 599), st.booleans(), st.none() | st.floats(0, 1e6))
def test_errors_of_providers_are_read_as_they_were_written(message, status, retryable, after):
    error = ProviderError(message, status=status, retryable=retryable, retry_after=after)
    back: Any = read_error(json.loads(json.dumps(write_error(error))))
    assert (back.status, back.retryable, back.retry_after) == (status, retryable, after)
    assert "\n" not in str(back)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
parts = st.dictionaries(
    st.sampled_from(
        [
            *("kind", "message", "status", "decision", "disposition", "limit", "value", "rule", "retry_after"),
            *("version", "tools", "tool_refs", "content", "error", "name", "arguments", "definition", "index"),
            *("choices", "text"),
        ]
    ),
    json_values,
    max_size=6,
)
READERS = [
    *(wire.read_welcome, wire.read_hello, wire.read_decision, wire.read_effect, wire.read_call),
    *(wire.read_outcome, wire.read_response, wire.read_event, read_error),
]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@settings(max_examples=60)
@given(data=parts)
def test_whatever_comes_is_read_or_refused(read, data):
    with contextlib.suppress(ValueError):
        read(data)


# --- gateways that are none -------------------------------------------------------------------------------------------


@pytest.fixture
def peer():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def welcome(**more: Any) -> dict[str, Any]:
    return {"reply": {"version": "0.1", **more}}


def remote_of(peer: Server, **options: Any) -> RemoteOperations:
    return RemoteOperations(HttpGateway(peer.url, token="t", timeout=5, **options), num_retries=0)


BAD = {
    "html": (b"<html>Welcome to the hotel</html>", 200, ProviderError, "cannot be read"),
    "no object": (b"[1]", 200, ProviderError, "cannot be read"),
    "deep": (b'{"reply":' * 9_000 + b"1" + b"}" * 9_000, 200, ProviderError, "cannot be read"),
    "not a number": (b'{"reply": NaN}', 200, ProviderError, "cannot be read"),
    "nothing": (b"", 200, NetworkError, "broke off"),
    "no choices": (b'{"reply": {"choices": []}}', 200, ProviderError, "no choices"),
    "no message": (b'{"reply": {"choices": [{}]}}', 200, ProviderError, "without a message"),
    "error of no kind": (b'{"error": {"kind": "SystemExit"}}', 500, ProviderError, "status 500"),
    "permission without words": (b'{"error": {"kind": "Denied", "decision": {}}}', 403, ModelAccessError, "token"),
    "proxy": (b"Unauthorized", 401, ModelAccessError, "`token` is missing or was refused"),
    "no address": (b"Not Found", 404, ModelAccessError, "no gateway at this address"),
    "too large": (b"", 413, ConfigurationError, "larger than it takes"),
    "busy": (b"slow down", 429, ProviderError, "status 429"),
    "moved": (b"", 302, ProviderError, "status 302"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_is_none_is_an_error_of_ours(peer, name):
    body, status, kind, said = BAD[name]
    peer.will(welcome(), whole(body, status))
    with handler(remote_of(peer)), pytest.raises(kind, match=said) as caught:
        completion(messages=HI)
    assert "hotel" not in str(caught.value)


def test_a_pause_that_is_asked_for_is_kept(peer):
    peer.will(welcome(), whole(b"", 503, retry_after="3"), {"reply": says("Hi")})
    paused: list[float] = []
    remote = RemoteOperations(HttpGateway(peer.url, timeout=5), num_retries=1)
    with handler(remote), handler({sleep: paused.append}):
        completion(messages=HI)
    assert paused == [3.0]


def test_an_answer_that_is_too_large_is_not_read(peer):
    def endless(request: Any) -> None:
        begin_stream(request)
        while True:
            send_piece(request, b'{"event": {}}\n' * 1_000)

    peer.will(welcome(), endless)
    with handler(remote_of(peer, max_bytes=100_000)), pytest.raises(ProviderError, match="larger than 100,000 bytes"):
        completion(messages=HI)


def test_nothing_is_waited_for_longer_than_the_timeout(peer):
    peer.will(welcome(), peer.wait_until_gone())
    remote = RemoteOperations(HttpGateway(peer.url, timeout=0.2), num_retries=0)
    with handler(remote), pytest.raises(RequestTimeoutError, match=r"nothing came for 0\.2 s"):
        completion(messages=HI)


def test_a_gateway_that_nobody_runs_is_named():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with handler(RemoteOperations(f"http://127.0.0.1:{port}", num_retries=0)):
        with pytest.raises(NetworkError, match=f"127.0.0.1:{port} cannot be reached"):
            completion(messages=HI)


def test_a_version_that_was_not_offered_is_refused(peer):
    peer.will({"reply": {"version": "9.9"}})
    with handler(remote_of(peer)), pytest.raises(ProviderError, match="was not offered"):
        completion(messages=HI)


def test_a_gateway_that_speaks_another_version_says_so_at_the_opening(peer):
    peer.will(whole({"error": {"kind": "SeamVersionError", "message": "this one speaks 2.0"}}, 400))
    with handler(remote_of(peer)), pytest.raises(SeamVersionError, match=r"2\.0"):
        completion(messages=HI)


def test_a_gateway_that_gives_another_reference_is_not_believed(peer):
    tool: Any = {"type": "function", "function": {"name": "send", "description": "", "parameters": {}}}
    peer.will(welcome(tool_refs={"send": "delete@00"}))
    with handler(remote_of(peer)), pytest.raises(ProviderError, match="another reference"):
        completion(messages=HI, tools=[tool])


def test_tools_that_are_none_are_left_out(peer, caplog):
    def declared(name: str, **function: Any) -> dict[str, Any]:
        definition = {
            "type": "function",
            "function": {"name": name, "description": "Do.", "parameters": {}, **function},
        }
        return {"definition": definition, "effect": "once"}

    good, bad = declared("good"), declared("bad", parameters={"type": "nonsense"})
    nameless, silent = declared("../../etc"), declared("silent", description="")
    peer.will(welcome(tools=[bad, good, nameless, silent]))
    names = [tool.__name__ for tool in remote_of(peer).tools]
    assert "good" in names
    assert "silent" not in names
    assert "bad" not in names


def test_a_redirection_takes_no_token_elsewhere(peer):
    other = Server()
    try:
        peer.will(whole(b"", 307, location=other.url + "/seam/hello"))
        with handler(remote_of(peer)), pytest.raises(ProviderError):
            completion(messages=HI)
        assert other.paths == []
    finally:
        other.http.shutdown()
        other.http.server_close()


@pytest.mark.parametrize("url", ["", "gateway", "ftp://x", "http://", "http://a b", "http://u:p@x", "http://x?k=1"])
def test_an_address_that_is_none_is_refused_at_once(url):
    with pytest.raises(OptionError, match="address of a gateway"):
        RemoteOperations(url)


@pytest.mark.parametrize(
    "options", [{"gateway": 3}, {"gateway": "http://x", "num_retries": -1}, {"gateway": "http://x", "token": "a\nb"}]
)
def test_options_are_checked(options):
    with pytest.raises(OptionError):
        RemoteOperations(**options)


# --- going away and coming back ---------------------------------------------------------------------------------------


def test_a_gateway_that_was_started_anew_is_greeted_again():
    model = ScriptedModel("One", "Two")
    with served(model) as gateway, handler(harness()), handler(gateway.remote()):
        assert ask("it") == "One"
        gateway.stop()
        gateway.start()
        assert ask("it") == "Two"
    assert model.requests[0]["tools"] == model.requests[1]["tools"]


def test_a_gateway_that_goes_away_in_the_middle_of_a_reply_is_an_error_and_leaves_no_history():
    started = threading.Event()

    def slow(request: Any) -> Any:
        emit(TextDelta("Once"))
        started.set()
        sleep(60)

    gone: list[Any] = []
    with served({completion: lambda **request: slow(request)}) as gateway:
        stopper = threading.Thread(target=lambda: (started.wait(), gateway.stop(at_once=True)))
        stopper.start()
        with handler(harness()), handler(gateway.remote()), handler({emit: lambda event: gone.append(event)}):
            with pytest.raises(NetworkError):
                ask("it")
        stopper.join()
    assert any(event == TextDelta("Once") for event in gone)


@pytest.mark.parametrize("way", RUNNERS)
def test_cancelling_closes_the_request_and_ends_it_there(way):
    started, ended = threading.Event(), threading.Event()

    def slow(**request: Any) -> Any:
        started.set()
        try:
            sleep(60)
        finally:
            ended.set()

    async def main() -> None:
        with handler(harness()), handler(gateway.remote(offer_tools=False)):
            async with anyio.create_task_group() as group:
                group.start_soon(acall, ask, "it")
                while not started.is_set():
                    await anyio.sleep(0.005)
                group.cancel_scope.cancel()

    with served({completion: slow}) as gateway:
        RUNNERS[way](main)
        assert ended.wait(10)
    gc.collect()


def test_whether_a_tool_was_run_is_not_known_when_the_gateway_goes_away_meanwhile():
    started, runs = threading.Event(), []

    @Tool.define
    def pay(amount: int) -> str:
        """Pay."""
        runs.append(amount)
        started.set()
        sleep(60)
        return "paid"

    with served(harness(eval_provider="none"), tools=[pay]) as gateway:
        remote = gateway.remote(num_retries=3)
        (there,) = remote.tools
        stopper = threading.Thread(target=lambda: (started.wait(), gateway.stop(at_once=True)))
        stopper.start()
        with handler(remote), pytest.raises(ProviderError, match="whether the tool was run is not known") as caught:
            there(amount=3)
        stopper.join()
    assert not caught.value.retryable
    assert runs == [3]


def test_a_tool_is_called_again_where_no_connection_was_made():
    with served(harness(eval_provider="none"), tools=[here]) as gateway:
        remote = gateway.remote(num_retries=1)
        (there,) = remote.tools
        gateway.stop()
        with handler(remote), handler({sleep: lambda seconds: gateway.start()}):
            assert there(name="Ann") == "Ann"


def test_signs_of_life_keep_a_slow_request_alive():
    turn = threading.Event()

    def slow(**request: Any) -> Any:
        for _ in range(4):
            sleep(0.1)
        turn.set()
        return says("At last.")

    with served({completion: slow}, heartbeat=0.05) as gateway:
        remote = RemoteOperations(HttpGateway(gateway.url, token="a token for tests", timeout=0.25), num_retries=0)
        with handler(remote):
            assert completion(messages=HI)["choices"][0]["message"]["content"] == "At last."
    assert turn.is_set()


# --- what crosses -----------------------------------------------------------------------------------------------------


def test_the_trace_is_carried():
    trace = CallContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1")
    seen: list[CallContext] = []

    def look(**request: Any) -> Any:
        seen.append(current_call_context())
        return fwd()

    with served(ScriptedModel("Hi"), {completion: look}) as gateway:
        with handler(gateway.remote()), handler({current_call_context: lambda: trace}):
            completion(messages=HI)
    assert seen == [trace]


def test_keys_and_addresses_of_services_do_not_cross():
    model = ScriptedModel("Hi")
    with served(model) as gateway, handler(gateway.remote()):
        completion(messages=HI, model="m", api_key="sk-1", base_url="http://elsewhere", temperature=0)
    assert model.requests == [{"messages": HI, "model": "m", "temperature": 0}]


def test_other_models_are_for_others():
    there, here = ScriptedModel("There"), {}
    from effectful_agents.operations.loop import send_request

    here[send_request] = lambda **request: says("Here")
    with served(there) as gateway, handler(here), handler(gateway.remote(model="theirs")):
        assert completion(messages=HI, model="ours") == says("Here")
        assert completion(messages=HI, model="theirs") == says("There")
        assert completion(messages=HI) is not None if there.remaining else True
    assert there.requests[0]["model"] == "theirs"


def test_many_requests_are_on_their_way_at_once():
    count = 20

    async def main() -> list[Any]:
        replies: list[Any] = []

        async def one() -> None:
            replies.append(await bridged(completion, messages=HI))

        with handler(gateway.remote()):
            async with anyio.create_task_group() as group:
                for _ in range(count):
                    group.start_soon(one)
        return replies

    with served(ScriptedModel(*["Hi"] * count)) as gateway:
        assert len(anyio.run(main)) == count
