"""Which spans there are, and what they say."""

from __future__ import annotations

import contextlib
import json

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, handler, harness, usage
from effectful_agents.errors import Cancelled, DecodingError, Denied, ProviderError, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.loop import CallControl
from effectful_agents.handlers.observability.opentelemetry.conventions import SCHEMA_URL, SECONDS, TOKENS
from effectful_agents.handlers.policy import GrantEffects, RiskPolicy
from effectful_agents.handlers.policy.manifest import composition_manifest
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import ToolChoice
from effectful_agents.operations import code
from effectful_agents.operations.journal import perform_step
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.operations.policy import Answer, Decision, Disposition, decide, request_approval
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import interpretation
from effectful_agents.testing import ScriptedModel, calls, says

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 64, "cache_creation_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    if city.startswith("Atl"):
        raise LookupError(f"{city} is under water")
    return f"rain in {city}"


@Tool.define(risk=Risk.HARD_WRITE)
def book(city: str) -> str:
    """Book a hotel."""
    return "booked"


@Skill.define
def advise(city: str) -> str:
    """What to wear in {city}. Use `weather`."""
    raise NotHandled


@Skill.define
def travel(city: str) -> str:
    """Plan a journey to {city}. Use `advise` and `book`."""
    raise NotHandled


class Desk(Agent):
    """You answer briefly."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def test_a_call_its_requests_and_its_tools(traced):
    with handler(harness()), handler(ScriptedModel(calls("weather", city="Oslo"), "A coat.")):
        with handler(traced.tracer()):
            assert advise("Oslo") == "A coat."
    assert traced.tree() == "invoke_agent advise\n  chat\n  execute_tool weather\n  chat"
    call, request, tool, _ = traced.spans
    assert call.kind is SpanKind.INTERNAL
    assert call.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert call.attributes["gen_ai.agent.name"] == "advise"
    assert request.kind is SpanKind.CLIENT
    assert request.attributes["gen_ai.operation.name"] == "chat"
    assert request.attributes["effectful_agents.step_id"] == "000001-model"
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.attributes["gen_ai.tool.name"] == "weather"
    assert tool.attributes["gen_ai.tool.call.id"]
    assert tool.attributes["effectful_agents.step_id"] == "000002-tool"
    assert {span.status.status_code for span in traced.spans} == {StatusCode.UNSET}
    assert {span.instrumentation_scope.schema_url for span in traced.spans} == {SCHEMA_URL}


def test_a_skill_that_is_called_as_a_tool_has_its_call_inside(traced):
    model = ScriptedModel(calls("advise", city="Rome"), "A hat.", "Go to Rome with a hat.")
    with handler(harness()), handler(model), handler(traced.tracer()):
        travel("Rome")
    assert traced.tree() == (
        "invoke_agent travel\n  chat\n  execute_tool advise\n    invoke_agent advise\n      chat\n  chat"
    )


def test_a_method_of_an_agent_is_told_with_its_class_and_the_agent(traced):
    with handler(harness()), handler(ScriptedModel("4")), handler(traced.tracer()):
        Desk(__agent_id__="ann").ask("2+2?")
    assert traced["invoke_agent Desk.ask"].attributes["gen_ai.agent.id"] == "ann"


def test_the_request_is_told_as_it_goes_out_and_the_reply_as_it_came(traced):
    reply = {**says("Hi."), "model": "gpt-5-mini-2026", "id": "r1", "usage": USAGE}
    with handler(harness(model="openai/gpt-5-mini")), handler(ScriptedModel(reply)), handler(traced.tracer()):
        advise("Oslo")
    told = traced["chat openai/gpt-5-mini"].attributes
    assert told["gen_ai.provider.name"] == "openai"
    assert told["gen_ai.request.model"] == "openai/gpt-5-mini"
    assert told["gen_ai.response.model"] == "gpt-5-mini-2026"
    assert told["gen_ai.response.id"] == "r1"
    assert told["gen_ai.response.finish_reasons"] == ("stop",)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (100, 20)
    assert told["gen_ai.usage.cache_read.input_tokens"] == 64
    assert told["gen_ai.usage.cache_creation.input_tokens"] == 0
    assert told["gen_ai.usage.reasoning.output_tokens"] == 5


def test_settings_that_handlers_fill_in_are_told(traced):
    with handler(harness(model="m", temperature=0.5, max_tokens=9, stop="END", seed=3)):
        with handler({send_request: lambda **_: says("ok")}), handler(traced.tracer()):
            advise("Oslo")
    told = traced["chat m"].attributes
    assert told["gen_ai.request.temperature"] == 0.5
    assert told["gen_ai.request.max_tokens"] == 9
    assert told["gen_ai.request.seed"] == 3
    assert told["gen_ai.request.stop_sequences"] == ("END",)


def test_nothing_that_was_said_is_written_down_unless_asked_for(traced):
    model = ScriptedModel(calls("weather", city="Atlantis"), ProviderError("the key sk-secret is refused"))
    with handler(harness(num_retries=3)), handler(model), handler(traced.tracer()), pytest.raises(ProviderError):
        advise("Utopia")
    written = "".join(span.to_json() for span in traced.spans)
    assert "LookupError" in written
    for text in ("Utopia", "Atlantis", "sk-secret"):
        assert text not in written


def test_lines_of_code_of_a_model_are_not_written_down_unless_asked_for(traced):
    code = "x = 'MARY of the patients'\nraise LookupError(x + ' is gone')"
    model = ScriptedModel(calls("exec_code", code=code), "ok")
    with handler(harness(eval_provider="builtin", type_checker="none")), handler(model), handler(traced.tracer()):
        advise("Oslo")
    written = "".join(span.to_json() for span in traced.spans)
    assert "LookupError" in written
    assert "<generated " in written
    assert "is gone" not in written
    assert "MARY" not in written


@pytest.mark.parametrize("content", [False, True])
def test_keys_and_addresses_among_the_settings_are_never_written_down(traced, content):
    settings = {
        "api_key": "hunter2-key",
        "api_base": "http://hunter2-base",
        "client_secret": "hunter2-azure",
        "proxy": "http://u:hunter2-proxy@host",
        "default_headers": {"Authorization": "Bearer hunter2-header"},
        "extra_body": {"token": "hunter2-body"},
    }
    # The other prompt has the source of this module in it.
    with handler(harness(model="m", system_prompt="brief", **settings)):
        with handler({send_request: lambda **_: says("ok")}), handler(traced.tracer(content=content)):
            advise("Oslo")
    assert "hunter2" not in "".join(span.to_json() for span in traced.spans)


def test_messages_of_decisions_and_questions_are_not_written_down_unless_asked_for(traced):
    def refuse(effect):
        return Decision(Disposition.DENY_STEP, "hosts", "the address of MARY is not allowed")

    model = ScriptedModel(calls("weather", city="Oslo"), "ok")
    with handler(harness()), handler(model), handler({decide: refuse}), handler(traced.tracer()):
        with contextlib.suppress(Denied):
            advise("Oslo")
    written = "".join(span.to_json() for span in traced.spans)
    assert "deny_step" in written
    assert "MARY" not in written


def test_texts_are_written_down_where_they_are_asked_for(traced):
    with handler(harness()), handler(ScriptedModel(calls("weather", city="Oslo"), "A coat.")):
        with handler(traced.tracer(content=True)):
            advise("Oslo")
    _, first, tool, last = traced.spans
    messages = json.loads(first.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "What to wear in Oslo" in messages[1]["parts"][0]["content"]
    (reply,) = json.loads(first.attributes["gen_ai.output.messages"])
    assert reply["finish_reason"] == "tool_calls"
    assert reply["parts"][0]["name"] == "weather"
    assert reply["parts"][0]["arguments"] == {"city": "Oslo"}
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"]) == {"city": "Oslo"}
    assert tool.attributes["gen_ai.tool.call.result"] == "rain in Oslo"
    response = json.loads(last.attributes["gen_ai.input.messages"])[-1]["parts"][0]
    assert response["type"] == "tool_call_response"
    assert response["response"] == "rain in Oslo"
    assert "weather" in first.attributes["gen_ai.tool.definitions"]


def test_an_error_is_told_where_it_was_and_in_what_it_ended(traced):
    with handler(harness(num_retries=0)), handler(ScriptedModel(ProviderError("down"))), handler(traced.tracer()):
        with pytest.raises(ProviderError):
            advise("Oslo")
    for span in traced.spans:
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"].endswith("ProviderError")
        assert span.events[0].name == "exception"
        assert "exception.message" not in span.events[0].attributes


def test_a_tool_that_raises_is_an_error_though_the_call_goes_on(traced):
    with handler(harness()), handler(ScriptedModel(calls("weather", city="Atlantis"), "None.")):
        with handler(traced.tracer(content=True)):
            assert advise("Atlantis") == "None."
    tool = traced["execute_tool weather"]
    assert tool.attributes["error.type"] == "LookupError"
    assert tool.status.description == "Atlantis is under water"
    assert tool.events[0].attributes["exception.message"] == "Atlantis is under water"
    assert traced["invoke_agent advise"].status.status_code is StatusCode.UNSET


def test_a_cancelled_call_is_no_error(traced):
    control = CallControl()

    @Tool.define
    def stop() -> str:
        """Stop."""
        control.cancel("enough")
        return "stopped"

    @Skill.define
    def go() -> str:
        """Go on until you `stop`."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("stop"))), handler(control), handler(traced.tracer()):
        with pytest.raises(Cancelled):
            go()
    for name in ("invoke_agent go", "execute_tool stop"):
        assert traced[name].attributes["effectful_agents.outcome"] == "cancelled"
        assert traced[name].status.status_code is StatusCode.UNSET
        assert "error.type" not in traced[name].attributes


def test_decisions_and_approvals_have_spans(traced):
    def approve(question):
        return Answer(approved=True, by="ann")

    model = ScriptedModel(calls("book", city="Oslo"), "Done.")
    with handler(harness()), handler(model), handler(RiskPolicy()):
        with handler({request_approval: approve}), handler(traced.tracer()):
            travel("Oslo")
    assert traced.tree() == (
        "invoke_agent travel\n  decide model_call\n  chat\n  decide book\n  request_approval book\n"
        "  execute_tool book\n  decide model_call\n  chat"
    )
    decision = traced["decide book"].attributes
    assert decision["effectful_agents.disposition"] == "require_approval"
    assert decision["effectful_agents.effect"] == "tool_call"
    assert decision["effectful_agents.risk"] == "HARD_WRITE"
    approval = traced["request_approval book"].attributes
    assert approval["effectful_agents.approved"] is True
    assert approval["effectful_agents.by"] == "ann"


def test_a_denied_call_has_a_decision_and_no_execution(traced):
    with handler(harness()), handler(ScriptedModel(calls("book", city="Oslo"), "No.")):
        with handler(GrantEffects("model_call")), handler(traced.tracer()):
            travel("Oslo")
    assert traced["decide book"].attributes["effectful_agents.disposition"] == "deny_step"
    assert not [span for span in traced.spans if span.name.startswith("execute_tool")]


def test_a_suspended_run_is_no_error_and_a_resumed_one_is_told_as_what_it_is(traced):
    store = MemoryCheckpointer()
    answers = []

    def ask(question):
        if not answers:
            raise Suspended("later")
        return answers[0]

    def run(*replies):
        with handler(harness()), handler(ScriptedModel(*replies)), handler(RiskPolicy()):
            with handler({request_approval: ask}), handler(Journal("r", store)), handler(traced.tracer()):
                return travel("Oslo")

    with pytest.raises(Suspended):
        run(calls("book", city="Oslo"))
    assert traced["request_approval book"].attributes["effectful_agents.outcome"] == "suspended"
    assert traced["invoke_agent travel"].attributes["effectful_agents.outcome"] == "suspended"
    assert traced["invoke_agent travel"].status.status_code is StatusCode.UNSET
    seen = len(traced.spans)
    measured = _count(traced, "gen_ai.client.operation.duration")
    answers.append(Answer(by="ann"))
    assert run("Done.") == "Done."
    again = [span for span in traced.spans[seen:] if span.attributes.get("effectful_agents.replayed")]
    assert [span.name for span in again] == ["chat"]
    assert again[0].attributes["effectful_agents.run_id"] == "r"
    assert again[0].attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert _count(traced, "gen_ai.client.operation.duration") == measured + 1


def test_a_run_that_is_over_is_told_again_without_requests(traced):
    store = MemoryCheckpointer()

    def run(*replies):
        with handler(harness()), handler(ScriptedModel(*replies)), handler(Journal("r", store)):
            with handler(traced.tracer()):
                return advise("Oslo")

    run(calls("weather", city="Oslo"), "A coat.")
    first = [span for span in traced.spans if span.attributes.get("effectful_agents.replayed")]
    seen = len(traced.spans)
    assert not first
    assert run() == "A coat."
    assert {span.attributes.get("effectful_agents.replayed") for span in traced.spans[seen:]} == {True}
    assert _count(traced, "gen_ai.client.operation.duration") == 2


def test_code_of_a_model_has_spans(traced):
    model = ScriptedModel(calls("exec_code", code="print(1 + 1)"), "2")
    with handler(harness(eval_provider="builtin", type_checker="none")), handler(model), handler(traced.tracer()):
        advise("Oslo")
    assert "  execute_tool exec_code\n    execute_code\n" in traced.tree()


def test_a_tracer_does_not_pass_for_what_decides_or_runs_code_or_listens(traced):
    seen = []

    @Tool.define
    def look() -> str:
        """Look."""
        seen.append({code.exec, code.eval, decide, emit, perform_step} & set(interpretation()))
        return "looked"

    @Skill.define
    def find() -> str:
        """Find it, with `look`."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel(calls("look"), "ok")), handler(traced.tracer()):
        find()
    assert seen == [set()]


def test_the_manifest_of_a_stack_says_what_is_written_down(traced):
    with handler(harness(eval_provider="none")), handler(traced.tracer(content=True)):
        manifest = composition_manifest()
    assert manifest.versions["semantic conventions"] == "1.41.0"
    assert manifest.handlers[-1]["states"]["content"] is True
    assert (manifest.code, manifest.enforcement) == ("none", "nothing decides")


def test_tokens_and_durations_are_measured_by_model(traced):
    reply = {**says("Hi."), "model": "gpt-5-mini-2026", "usage": USAGE}
    with handler(harness()), handler(ScriptedModel(reply, ProviderError("down"))), handler(traced.tracer()):
        completion(model="gpt-5-mini", messages=[])
        with pytest.raises(ProviderError):
            completion(model="gpt-5-mini", messages=[])
    points = traced.points()
    tokens = {point.attributes["gen_ai.token.type"]: point for point in points["gen_ai.client.token.usage"]}
    assert (tokens["input"].sum, tokens["output"].sum) == (100, 20)
    assert tokens["input"].explicit_bounds == TOKENS
    durations = points["gen_ai.client.operation.duration"]
    assert durations[0].explicit_bounds == SECONDS
    assert [point.attributes.get("error.type", "").rpartition(".")[2] for point in durations] == ["", "ProviderError"]
    assert durations[0].attributes["gen_ai.response.model"] == "gpt-5-mini-2026"
    assert durations[0].attributes["gen_ai.provider.name"] == "openai"
    assert "gen_ai.client.operation.time_to_first_chunk" not in points


def test_a_reply_that_was_refused_has_its_tokens(traced):
    reply = {**says("No."), "model": "gpt-5-mini-2026", "usage": USAGE}
    enforcing = LiteLLMConfigurer(tool_choice=ToolChoice("required"))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    with handler({completion: lambda **_: reply}), handler(enforcing), usage() as used, handler(traced.tracer()):
        with pytest.raises(DecodingError) as raised:
            completion(model="gpt-5-mini", messages=[], tools=tools)
    span = traced["chat gpt-5-mini"]
    assert span.attributes["error.type"].endswith(type(raised.value).__name__)
    counts = (span.attributes["gen_ai.usage.input_tokens"], span.attributes["gen_ai.usage.output_tokens"])
    points = {point.attributes["gen_ai.token.type"]: point for point in traced.points()["gen_ai.client.token.usage"]}
    assert counts == (used.input, used.output) == (points["input"].sum, points["output"].sum) == (100, 20)
    assert points["input"].attributes["error.type"] == span.attributes["error.type"]
    assert "gen_ai.output.messages" not in span.attributes


def test_a_reply_in_pieces_tells_when_the_first_came_and_nobody_asks_for_pieces_because_of_the_tracer(traced):
    heard = []
    with handler(harness()), handler(ScriptedModel("Hello", "Hello")):
        with handler(traced.tracer()):
            advise("Oslo")
            assert "gen_ai.request.stream" not in traced["chat"].attributes
            with handler({emit: heard.append}):
                advise("Oslo")
    streamed = traced.spans[-1].attributes
    assert streamed["gen_ai.request.stream"] is True
    assert streamed["gen_ai.response.time_to_first_chunk"] >= 0
    assert len(traced.points()["gen_ai.client.operation.time_to_first_chunk"]) == 1
    assert heard


def _count(traced, metric):
    return sum(point.count for point in traced.points().get(metric, ()))
