"""`LangfuseTracer`, with the real client, and a service on this machine that reads what the client sends."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from effectful_agents import (
    Agent,
    NotHandled,
    Skill,
    Tool,
    acall,
    fwd,
    handler,
    harness,
    propagate,
    steps,
)
from effectful_agents.errors import MissingDependencyError, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.observability.langfuse import LangfuseTracer
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.testing import ScriptedModel, batch, calls, says

langfuse = pytest.importorskip("langfuse", reason="not installed: langfuse; `uv sync` brings it")


class Service(http.server.ThreadingHTTPServer):
    """Where a client of Langfuse sends its spans to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiving)
        self.bodies: list[bytes] = []
        self.status = 200

    def observations(self) -> list[dict[str, Any]]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    found += [_as_dict(span) for span in scope.spans]
        return sorted(found, key=lambda one: one["start"])


def _as_dict(span: Any) -> dict[str, Any]:
    values = {}
    for pair in span.attributes:
        value = getattr(pair.value, pair.value.WhichOneof("value"))
        values[pair.key.removeprefix("langfuse.observation.")] = value
    return {
        "name": span.name,
        "id": span.span_id,
        "parent": span.parent_span_id,
        "trace": span.trace_id,
        "start": span.start_time_unix_nano,
        **values,
    }


class _Receiving(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/otel/v1/traces"):
            server.bodies.append(body)
        self.send_response(server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Any]:
    from opentelemetry.sdk.trace import TracerProvider

    provider = TracerProvider()
    made = langfuse.Langfuse(
        public_key="pk-lf-test",
        secret_key="sk-lf-test",
        base_url=f"http://127.0.0.1:{service.server_port}",
        tracer_provider=provider,  # its own, so that nothing else of the tests is recorded
        flush_interval=3600,
    )
    yield made
    made.shutdown()
    provider.shutdown()


@pytest.fixture
def recorded(client: Any, service: Service) -> Any:
    client.flush()
    service.bodies.clear()

    def observations() -> list[dict[str, Any]]:
        client.flush()
        return service.observations()

    return observations


def tree(observations: list[dict[str, Any]]) -> list[str]:
    """Each observation, indented below the one in which it lies."""
    depths: dict[bytes, int] = {}
    lines = []
    for one in observations:
        depth = depths[one["id"]] = depths.get(one["parent"], -1) + 1
        lines.append("  " * depth + f"{one['type']} {one['name']}")
    return lines


@Tool.define
def look_up(word: str) -> str:
    """Look a word up."""
    if word == "nothing":
        raise LookupError("no such word")
    return f"{word} is a word"


@Tool.define
async def search(word: str) -> str:
    """Search for a word."""
    await asyncio.sleep(0)
    return "found"


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


class Clerk(Agent):
    """A clerk."""

    @Skill.define
    def explain(self, word: str) -> str:
        """Explain {word}."""
        raise NotHandled


clerk = Clerk()


def test_a_call_is_an_agent_with_its_requests_and_tools(client, recorded):
    model = ScriptedModel(
        calls("look_up", word="tea"),
        calls("clerk__explain", word="tea"),
        calls("look_up", word="it"),
        "A drink.",
        "Tea is a drink.",
    )
    with handler(model), handler(harness(model="gpt-5-mini", temperature=0.5)), handler(LangfuseTracer(client)):
        assert ask("What is tea?") == "Tea is a drink."
    observations = recorded()
    assert tree(observations) == [
        "agent ask",
        "  generation gpt-5-mini",
        "  tool look_up",
        "  generation gpt-5-mini",
        "  tool clerk__explain",
        "    agent clerk__explain",
        "      generation gpt-5-mini",
        "      tool look_up",
        "      generation gpt-5-mini",
        "  generation gpt-5-mini",
    ]
    assert len({one["trace"] for one in observations}) == 1
    call, request, tool, *_ = observations
    assert json.loads(call["input"]) == {"question": "What is tea?"}
    assert call["output"] == "Tea is a drink."
    assert json.loads(tool["input"]) == {"word": "tea"}
    assert tool["output"] == "tea is a word"
    given = json.loads(request["input"])
    assert [one["role"] for one in given["messages"]] == ["system", "user"]
    assert "look_up" in [one["function"]["name"] for one in given["tools"]]
    assert json.loads(request["output"])["tool_calls"][0]["function"]["name"] == "look_up"
    assert request["model.name"] == "gpt-5-mini"
    assert json.loads(request["usage_details"]) == {"input": 100, "output": 20}


def test_settings_are_recorded_and_keys_are_not(client, recorded):
    options = {"temperature": 0.5, "api_key": "sk-secret-secret-secret", "extra_headers": {"X-Key": "secret"}}
    request: Any = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "?"}], "stop": ["."], **options}
    with handler(ScriptedModel("A drink.")), handler(LangfuseTracer(client)):
        completion(**request)
    (one,) = recorded()
    assert json.loads(one["model.parameters"]) == {"temperature": 0.5, "stop": '["."]'}
    assert json.loads(one["input"]) == [{"role": "user", "content": "?"}]
    assert "secret" not in str(one)


def test_tokens_are_counted_once_and_cost_what_they_cost(client, recorded):
    usage = Usage(input=100, output=20, reasoning=5, cache_read=60)
    with handler(ScriptedModel(says("A drink.", usage=usage))), handler({cost_of: lambda model, used: 0.25}):
        with handler(harness(model="gpt-5-mini")), handler(LangfuseTracer(client)):
            ask("?")
    request = recorded()[1]
    assert json.loads(request["usage_details"]) == {
        "input": 40,
        "input_cached_tokens": 60,
        "output": 15,
        "output_reasoning_tokens": 5,
    }
    assert json.loads(request["cost_details"]) == {"total": 0.25}


def test_what_fails_says_so(client, recorded):
    model = ScriptedModel(calls("look_up", word="nothing"), ConnectionError("no route"))
    with handler(model), handler(harness(model="m")), handler(LangfuseTracer(client)):
        with pytest.raises(ConnectionError):
            ask("?")
    told = {one["type"] + " " + one["name"]: one.get("status_message") for one in recorded() if "level" in one}
    assert told == {
        "agent ask": "ConnectionError: no route",
        "generation m": "ConnectionError: no route",
        "tool look_up": "LookupError: no such word",
    }


def test_a_signal_is_no_error(client, recorded):
    def suspend(**_: Any) -> Any:
        raise Suspended("until tomorrow")

    with handler({completion: suspend}), handler(harness(model="m")), handler(LangfuseTracer(client)):
        with pytest.raises(Suspended):
            ask("?")
    assert {one["level"] for one in recorded()} == {"WARNING"}


def test_each_attempt_is_a_generation(client, recorded):
    @Skill.define
    def count(thing: str) -> int:
        """How many {thing} are there?"""
        raise NotHandled

    with handler(ScriptedModel(says("Many."), 3)), handler(harness(model="m")), handler(LangfuseTracer(client)):
        assert count("bears") == 3
    assert tree(recorded()) == ["agent count", "  generation m", "  generation m"]


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("never")


def test_what_has_no_json_is_shown_as_python_does_and_ends_no_call(client, recorded):
    @Skill.define
    def look(one: object, other: object) -> str:
        """Look."""
        raise NotHandled

    with handler(ScriptedModel("Seen.")), handler(harness(model="m")), handler(LangfuseTracer(client)):
        assert look(Unshowable(), {1, 2}.__iter__) == "Seen."
    given = json.loads(recorded()[0]["input"])
    assert given["one"] == "<Unshowable>"
    assert given["other"].startswith("<method-wrapper")


def test_a_client_that_fails_ends_no_call(caplog):
    class Failing:
        def start_observation(self, **_: Any) -> Any:
            raise OSError("no room")

    broken: Any = Failing()
    with handler(ScriptedModel("Tea.")), handler(harness()), handler(LangfuseTracer(broken)):
        assert ask("?") == "Tea."
    assert "no room" in caplog.text


def test_calls_at_once_are_traces_of_their_own(client, recorded):
    def reply(request: Any) -> Any:
        return says("Tea.") if request["messages"][-1]["role"] == "tool" else calls("look_up", word="tea")

    with handler(ScriptedModel(*[reply] * 16)), handler(harness(model="m")), handler(LangfuseTracer(client)):
        threads = [threading.Thread(target=propagate(ask), args=(str(n),)) for n in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

        async def several() -> None:
            await asyncio.gather(*(acall(ask, str(n)) for n in range(4)))

        asyncio.run(several())
    observations = recorded()
    assert len({one["trace"] for one in observations}) == 8
    for trace in {one["trace"] for one in observations}:
        assert tree([one for one in observations if one["trace"] == trace]) == [
            "agent ask",
            "  generation m",
            "  tool look_up",
            "  generation m",
        ]


def test_tools_at_once_lie_beside_each_other(client, recorded):
    model = ScriptedModel(batch(*(calls("search", id=f"c{n}", word=str(n)) for n in range(3))), "Done.")
    with handler(model), handler(harness(model="m")), handler(LangfuseTracer(client)):
        asyncio.run(acall(ask, "?"))
    assert tree(recorded()) == ["agent ask", "  generation m", *["  tool search"] * 3, "  generation m"]


def test_a_program_between_two_steps_is_not_inside_of_the_call(client, recorded):
    from opentelemetry import trace

    model = ScriptedModel(calls("look_up", word="tea"), "Tea.")
    with handler(model), handler(harness(model="m")), handler(LangfuseTracer(client)):
        for _ in steps(ask, "?"):
            assert not trace.get_current_span().get_span_context().is_valid
        for _ in steps(ask, "?"):
            break
    assert not trace.get_current_span().get_span_context().is_valid
    assert tree(recorded())[:4] == ["agent ask", "  generation m", "  tool look_up", "  generation m"]


def test_what_a_tool_records_lies_inside_of_it(client, recorded):
    @Tool.define
    def measure(text: str) -> int:
        """Measure a text."""
        with client.start_as_current_observation(name="inner", as_type="span"):
            return len(text)

    @Skill.define
    def long(text: str) -> int:
        """How long is {text}?"""
        raise NotHandled

    with handler(ScriptedModel(calls("measure", text="abc"), 3)), handler(harness(model="m")):
        with handler(LangfuseTracer(client)):
            assert long("abc") == 3
    assert tree(recorded()) == ["agent long", "  generation m", "  tool measure", "    span inner", "  generation m"]


def test_what_a_journal_gives_again_is_not_recorded_again(client, recorded):
    store = MemoryCheckpointer()
    for replies in (["Tea."], []):
        with handler(ScriptedModel(*replies)), handler(harness(model="m")), handler(LangfuseTracer(client)):
            with handler(Journal("monday", store)):
                assert ask("?") == "Tea."
    (call, request) = recorded()
    assert (call["type"], request["type"]) == ("agent", "generation")
    assert json.loads(call["metadata.run_id"]) == "monday"


def test_the_first_piece_of_a_reply_has_its_time(client, recorded):
    with handler(ScriptedModel("Tea.")), handler(harness(model="m")), handler(LangfuseTracer(client)):
        with handler({completion: lambda **request: fwd()}):
            ask("?")
    assert "completion_start_time" in recorded()[1]


def test_the_harness_takes_the_client_of_the_process(client, recorded):
    with handler(ScriptedModel("Tea.")), handler(harness(model="m", langfuse=True)):
        ask("?")
    assert tree(recorded()) == ["agent ask", "  generation m"]


def test_without_langfuse_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"effectful-agents\[langfuse\]"):
        LangfuseTracer()
