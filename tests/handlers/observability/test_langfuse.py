"""What Langfuse gets: its own client, and a server on this machine that reads what that sends."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import json
import logging
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from langfuse import Langfuse
from langfuse._client.resource_manager import LangfuseResourceManager
from opentelemetry.sdk.trace import TracerProvider

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import MissingDependencyError, ProviderError, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.loop import acall
from effectful_agents.handlers.observability.langfuse import LangfuseTracer
from effectful_agents.handlers.provision import litellm
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.observability.collecting import Collector, attributes


class Unwritable:
    """Has no form in JSON, and says nothing of itself."""

    def __repr__(self):
        raise RuntimeError("no")


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    if city.startswith("Atl"):
        raise LookupError("under water")
    return "rain"


@Skill.define
def advise(city: str) -> str:
    """What to wear in {city}. Use `weather`."""
    raise NotHandled


@Skill.define
def travel(city: str) -> str:
    """Plan a journey to {city}. Use `advise`."""
    raise NotHandled


@Skill.define(tools=False)
def greet(thing: object) -> str:
    """Greet it."""
    raise NotHandled


class Ingestion:
    """A client and the server that it sends to."""

    def __init__(self, collector: Collector, **options: Any) -> None:
        self.collector = collector
        self.key = f"pk-{uuid.uuid4().hex}"
        self.client = Langfuse(
            public_key=self.key,
            secret_key="sk-1",
            base_url=collector.url,
            tracer_provider=TracerProvider(shutdown_on_exit=False),
            **options,
        )

    def observations(self) -> list[dict[str, Any]]:
        """What has come, in the order in which it began."""
        self.client.flush()
        spans = sorted(self.collector.spans(), key=lambda span: span.start_time_unix_nano)
        named = {span.span_id: span.name for span in spans}
        prefix = "langfuse.observation."
        return [
            {
                "name": span.name,
                "above": named.get(span.parent_span_id),
                **{
                    key.removeprefix(prefix): value for key, value in attributes(span).items() if key.startswith(prefix)
                },
            }
            for span in spans
        ]


@pytest.fixture
def ingestion(request: pytest.FixtureRequest) -> Iterator[Ingestion]:
    """A parameter of it is the options of the client."""
    before = set(threading.enumerate())
    with Collector() as collector:
        kept = Ingestion(collector, **getattr(request, "param", {}))
        yield kept
        kept.client.shutdown()
        resources = LangfuseResourceManager._instances.pop(kept.key)
        resources.tracer_provider.shutdown()
        # Of all its threads this one alone is left to the end of the program.
        resources.prompt_cache._task_manager.shutdown()
    # Those that serve a connection end with it.
    left = [thread for thread in threading.enumerate() if thread not in before and "request_thread" not in thread.name]
    assert left == []


def test_a_call_its_requests_and_its_tools(ingestion):
    model = ScriptedModel(calls("advise", city="Oslo"), calls("weather", city="Oslo"), "A coat.", "Take a coat.")
    with handler(harness()), handler(model), handler(LangfuseTracer(ingestion.client)):
        assert travel("Oslo") == "Take a coat."
    told = ingestion.observations()
    assert [(one["type"], one["name"], one["above"]) for one in told] == [
        ("agent", "travel", None),
        ("generation", "completion", "travel"),
        ("tool", "advise", "travel"),
        ("agent", "advise", "advise"),
        ("generation", "completion", "advise"),
        ("tool", "weather", "advise"),
        ("generation", "completion", "advise"),
        ("generation", "completion", "travel"),
    ]
    assert json.loads(told[0]["input"]) == {"city": "Oslo"}
    assert told[0]["output"] == "Take a coat."
    assert json.loads(told[5]["input"]) == {"city": "Oslo"}
    assert told[5]["output"] == "rain"
    path, headers, _ = ingestion.collector.requests[0]
    assert path == "/api/public/otel/v1/traces"
    assert headers["authorization"].startswith("Basic ")


def test_a_request_with_its_settings_tokens_and_cost(ingestion):
    usage = Usage(input=1000, output=200, cache_read=400, reasoning=50)
    reply = {**says("Hi.", usage=usage), "model": "gpt-4o-mini"}
    with handler(ScriptedModel(reply)), handler(LangfuseTracer(ingestion.client)):
        completion(model="gpt-4o-mini", temperature=0.5, max_tokens=9, messages=[{"role": "user", "content": "Hello"}])
    (told,) = ingestion.observations()
    assert json.loads(told["input"]) == [{"role": "user", "content": "Hello"}]
    assert json.loads(told["output"])["content"] == "Hi."
    assert told["model.name"] == "gpt-4o-mini"
    assert json.loads(told["model.parameters"]) == {"temperature": 0.5, "max_tokens": 9}
    assert json.loads(told["usage_details"]) == {
        "input": 600,
        "output": 150,
        "total": 1200,
        "cache_read_input_tokens": 400,
        "output_reasoning_tokens": 50,
    }
    assert json.loads(told["cost_details"])["total"] == pytest.approx(cost_of("gpt-4o-mini", usage))


def test_tools_are_in_the_input_of_requests_that_have_some(ingestion):
    with handler(harness(eval_provider="none")), handler(ScriptedModel("A coat.", "Hello.")):
        with handler(LangfuseTracer(ingestion.client)):
            advise("Oslo")
            greet("you")
    with_tools, without = [one for one in ingestion.observations() if one["type"] == "generation"]
    assert set(json.loads(with_tools["input"])) == {"messages", "tools"}
    assert isinstance(json.loads(without["input"]), list)


def test_errors_are_told_and_signals_are_none(ingestion):
    model = ScriptedModel(calls("weather", city="Atlantis"), "None.", ProviderError("down"), Suspended("later"))
    with handler(harness(num_retries=2)), handler(model), handler(LangfuseTracer(ingestion.client)):
        advise("Atlantis")
        with pytest.raises(ProviderError):
            advise("Oslo")
        with pytest.raises(Suspended):
            advise("Oslo")
    told = ingestion.observations()
    levels = [(one["name"], one.get("level"), one.get("status_message")) for one in told]
    assert ("weather", "ERROR", "under water") in levels
    assert levels[0] == ("advise", None, None)
    assert levels[4:6] == [("advise", "ERROR", "down"), ("completion", "ERROR", "down")]
    assert levels[6:] == [("advise", None, "suspended"), ("completion", None, "suspended")]


def _fails(text: str) -> Any:
    def fail(**_: Any) -> Any:
        raise ProviderError(text)

    return fail


def test_the_text_of_an_error_is_told_in_short_and_without_secrets(ingestion):
    said = f"Incorrect API key provided: sk-abcdefghijklmnop1234, password=hunter2 {'x' * 100_000}"
    with handler({completion: _fails(said)}), handler(LangfuseTracer(ingestion.client)), pytest.raises(ProviderError):
        completion(messages=[])
    (told,) = ingestion.observations()
    assert told["status_message"].startswith("Incorrect API key provided: [TOKEN], password=[secret] xxx")
    assert len(told["status_message"]) <= 1001


@pytest.mark.parametrize(
    ("ingestion", "told"),
    [({"mask": lambda data, **_: "MASKED"}, "MASKED"), ({"mask": lambda data, **_: 1 / 0}, "ProviderError")],
    ids=["masked", "a mask that fails"],
    indirect=["ingestion"],
)
def test_the_mask_of_the_client_has_the_texts_of_errors_too(ingestion, told):
    with handler({completion: _fails("no user Mary")}), handler(LangfuseTracer(ingestion.client)):
        with pytest.raises(ProviderError):
            completion(messages=[{"role": "user", "content": "Mary"}])
    assert "Mary" not in json.dumps(ingestion.observations())
    assert ingestion.observations()[0]["status_message"] == told


def test_an_error_that_cannot_be_shown_is_named(ingestion):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def fail(**_):
        raise Mute

    with handler({completion: fail}), handler(LangfuseTracer(ingestion.client)), pytest.raises(Mute):
        completion(messages=[])
    (told,) = ingestion.observations()
    assert (told["level"], told["status_message"]) == ("ERROR", "Mute")


def test_the_standard_stack_tells_the_settings_that_are_sent_and_no_keys(ingestion, monkeypatch):
    monkeypatch.setattr(litellm, "_send", lambda request: says("Hello."))
    settings: dict[str, Any] = {
        "client_secret": "hunter2-azure",
        "proxy": "http://u:hunter2-proxy@host",
        "default_headers": {"Authorization": "Bearer hunter2-header"},
        "extra_body": {"token": "hunter2-body"},
        "hf_token": "hunter2-hf",
    }
    # The other prompt has the source of this module in it.
    settings |= {"langfuse": True, "system_prompt": "brief"}
    with handler(harness(model="azure/gpt-5-mini", temperature=0.5, max_tokens=9, **settings)):
        greet("you")
    told = [one for one in ingestion.observations() if one["type"] == "generation"]
    assert json.loads(told[0]["model.parameters"]) == {"temperature": 0.5, "max_tokens": 9}
    assert told[0]["model.name"] == "azure/gpt-5-mini"
    assert "hunter2" not in json.dumps(ingestion.observations())


def test_what_comes_from_a_journal_is_marked_and_costs_nothing(ingestion):
    store = MemoryCheckpointer()

    def run(*replies):
        with handler(harness()), handler(ScriptedModel(*replies)), handler(Journal("r", store)):
            with handler(LangfuseTracer(ingestion.client)):
                advise("Oslo")

    with pytest.raises(ProviderError):
        run(calls("weather", city="Oslo"), ProviderError("down"))
    seen = len(ingestion.observations())
    run("A coat.")
    again = [one for one in ingestion.observations()[seen:] if one.get("metadata.replayed")]
    assert [one["name"] for one in again] == ["completion", "weather"]
    assert not [one for one in again if "usage_details" in one or "cost_details" in one]
    assert json.loads(again[0]["metadata.run_id"]) == "r"


def test_what_cannot_be_written_does_not_fail_the_call(ingestion):
    with handler(harness()), handler(ScriptedModel("Hello.")), handler(LangfuseTracer(ingestion.client)):
        with handler({completion: lambda **_: {**says("Hello."), "usage": ["?"]}}):
            assert greet(Unwritable) == "Hello."
    assert len(ingestion.observations()) >= 1


def test_the_standard_stack_uses_the_client_of_the_program(ingestion):
    with handler(harness(langfuse=True)), handler(ScriptedModel("Hello.")):
        assert greet("you") == "Hello."
    assert [one["name"] for one in ingestion.observations()] == ["greet"]


def test_calls_of_several_tasks_are_each_a_trace_of_their_own(ingestion):
    async def main() -> None:
        with handler(harness()), handler(ScriptedModel("1", "2")), handler(LangfuseTracer(ingestion.client)):
            await asyncio.gather(acall(greet, "you"), acall(greet, "me"))

    asyncio.run(main())
    told = ingestion.observations()
    assert sorted((one["name"], one["above"]) for one in told if one["type"] == "generation") == [
        *[("completion", "greet")] * 2
    ]
    assert len({span.trace_id for span in ingestion.collector.spans()}) == 2


def test_a_client_that_raises_does_not_fail_the_call(caplog):
    class Broken:
        def start_as_current_observation(self, **_):
            raise RuntimeError("no")

    with handler(harness()), handler(ScriptedModel("ok")), handler(LangfuseTracer(Broken())):
        with caplog.at_level(logging.WARNING, "effectful_agents"):
            assert greet("you") == "ok"
    assert "could not be begun" in caplog.text


def test_without_the_package_the_extra_is_named(monkeypatch):
    name = "effectful_agents.handlers.observability.langfuse"
    real = builtins.__import__

    def refuse(module, *args, **kwargs):
        if module == "langfuse":
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"effectful-agents\[langfuse\]"):
        importlib.import_module(name)
    with pytest.raises(MissingDependencyError, match=r"harness\(langfuse=True\)"):
        harness(langfuse=True)
