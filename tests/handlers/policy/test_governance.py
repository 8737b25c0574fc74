"""`Governance`: rules for what is said, asked of tools, and answered."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness, run, steps, stream
from effectful_agents.errors import AgentsError, GovernanceRefused, LimitExceeded, OptionError, StepDenied
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.policy import DecisionLog, Governance, GrantEffects, Limits
from effectful_agents.handlers.policy.rules import Redaction, Refuse, Rule, UntrustedContent
from effectful_agents.messages import TextDelta
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Decision, Disposition
from effectful_agents.operations.steps import FinalStep, ModelStep, Phase
from effectful_agents.testing import ScriptedModel, batch, calls, says
from effectful_agents.types import Risk
from tests.handlers.policy.routes import ROUTES, TO, assistant, in_body, in_repl, read_mail, send, sent, taking

STACK = {"eval_provider": "none", "type_checker": "none"}


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


def amending(stage: str) -> Rule:
    return Rule("softer", **{stage: lambda text: text.replace("damn", "d***")})


def refusing(stage: str) -> Rule:
    return Rule("polite", **{stage: lambda text: Refuse("Mind your words.") if "damn" in text else None})


# --- ingress ----------------------------------------------------------------------------------------------------------


def test_what_the_user_says_is_amended_before_the_model_and_the_history_have_it():
    model = ScriptedModel("ok")
    with handler(harness(**STACK)), handler(model), handler(Governance([amending("ingress")])):
        result = run(assistant, "damn it")
    assert "damn" not in str(model.requests)
    assert "d*** it" in str(model.requests)
    assert "damn" not in str(result.messages)


def test_what_the_user_says_is_refused_and_nothing_is_asked():
    class Bot(Agent):
        """You help."""

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    bot, model = Bot(), ScriptedModel("ok")
    with handler(harness(**STACK)), handler(model), handler(Governance([refusing("ingress")])):
        with pytest.raises(GovernanceRefused, match="Mind your words") as refused:
            bot.ask("damn it")
    assert refused.value.rule == "polite"
    assert model.requests == []
    assert list(bot.__history__) == []


def test_what_is_said_meanwhile_and_the_system_message_are_ingress():
    secret = "damn"

    class Bot(Agent):
        """You say damn."""

        @Tool.define
        def wait(self) -> str:
            """Wait."""
            control.say("damn again")
            return secret

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    from effectful_agents import CallControl

    control, model = CallControl(), ScriptedModel(calls("wait"), "ok")
    rule = Rule("softer", ingress=lambda text: text.replace("damn", "d***"))
    with handler(harness(**STACK)), handler(model), handler(control), handler(Governance([rule])):
        Bot().ask("?")
    assert "You say d***" in str(model.requests[0]["messages"][0])
    assert model.requests[1]["messages"][-1]["content"] == "d*** again"


# --- tool calls -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
def test_a_refused_call_does_not_happen_by_any_way_and_names_its_rule(route):
    rule = Rule("no eve", tool_call=lambda effect: Disposition.DENY_STEP if effect.arguments.get("to") == TO else None)
    with taking(route) as model, handler(Governance([rule])), contextlib.suppress(AgentsError):
        assistant("Send it.")
    assert sent == []
    assert "no eve" in str(model.requests)


@pytest.mark.parametrize("route", ROUTES)
def test_an_amended_call_happens_as_amended_by_any_way(route):
    rule = Rule("to ann", tool_call=lambda effect: Decision(arguments={"to": "ann"}) if effect.tool == send else None)
    with taking(route), handler(Governance([rule])), contextlib.suppress(AgentsError):
        assistant("Send it.")
    assert sent == ["ann"]


def test_the_next_rule_sees_what_the_one_before_amended():
    first = Rule("first", tool_call=lambda effect: Decision(arguments={"to": effect.arguments["to"].lower()}))
    seen: list[str] = []
    second = Rule("second", tool_call=lambda effect: seen.append(effect.arguments["to"]))
    with handler(Governance([first, second])):
        send("ANN")
    assert set(seen) == {"ann"}
    assert sent == ["ann"]


# --- results of tools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "told"), [(amending, "sent to d***"), (refusing, "(Withheld: Mind your words.")])
def test_results_of_tools_are_amended_or_withheld(rule, told):
    model = ScriptedModel(calls("send", to="damn"), "ok")
    with handler(harness(**STACK)), handler(model), handler(Governance([rule("tool_result")])):
        result = run(assistant, "?")
    assert model.requests[1]["messages"][-1]["content"].startswith(told)
    assert "sent to damn" not in str(result.messages)


# --- egress -----------------------------------------------------------------------------------------------------------


def test_a_draft_is_amended_everywhere_before_it_leaves():
    model = ScriptedModel("Well, damn.", chunk_size=2)
    with handler(harness(**STACK)), handler(model), handler(Governance([amending("egress")])):
        result = run(assistant, "?")
    assert result.value == "Well, d***."
    assert "damn" not in str(result.messages)


@pytest.mark.parametrize("rule", [amending("egress"), refusing("egress")])
def test_no_stream_and_no_step_tells_what_does_not_pass(rule):
    told: list[Any] = []
    model = ScriptedModel("Well, damn.", chunk_size=2)
    with handler(harness(**STACK)), handler(model), handler(Governance([rule])), contextlib.suppress(GovernanceRefused):
        for event in stream(assistant, "?"):
            told.append(event)
    texts = "".join(event.text for event in told if isinstance(event, TextDelta))
    assert "damn" not in texts
    model = ScriptedModel("Well, damn.")
    with handler(harness(**STACK)), handler(model), handler(Governance([rule])), contextlib.suppress(GovernanceRefused):
        for step in steps(assistant, "?"):
            if isinstance(step, ModelStep) and step.phase is Phase.COMPLETED and step.response is not None:
                assert "damn" not in str(step.response)
            if isinstance(step, FinalStep):
                assert "damn" not in step.value


def test_without_a_rule_for_it_replies_are_streamed_as_they_come():
    model = ScriptedModel("Well, well.", chunk_size=2)
    with handler(harness(**STACK)), handler(model), handler(Governance([amending("ingress")])):
        pieces = [event.text for event in stream(assistant, "?") if isinstance(event, TextDelta)]
    assert len(pieces) > 3


@dataclasses.dataclass
class Letter:
    to: str
    lines: list[str]


@Skill.define
def letter(topic: str) -> Letter:
    """Write a letter about {topic}."""
    raise NotHandled


@Skill.define
def number(text: str) -> int:
    """Find a number in {text}."""
    raise NotHandled


def test_texts_in_a_value_are_amended_and_other_values_pass():
    model = ScriptedModel('{"to": "Ann", "lines": ["damn", "fine"]}', "7")
    with handler(harness(**STACK)), handler(model), handler(Governance([amending("egress")])):
        assert letter("it") == Letter("Ann", ["d***", "fine"])
        assert number("seven") == 7


@pytest.mark.parametrize("rule", [amending, refusing])
def test_a_value_that_code_computed_is_looked_at_as_well(rule):
    body = "def assistant(request: str) -> str:\n    return 'da' + 'mn'\n"
    model = ScriptedModel(in_body(body))
    with handler(harness(eval_provider="builtin", type_checker="none")), handler(model):
        with handler(Governance([rule("egress")])):
            if rule is amending:
                assert assistant("?") == "d***"
            else:
                with pytest.raises(GovernanceRefused):
                    assistant("?")


def test_a_refused_draft_leaves_no_trace_in_a_history():
    class Bot(Agent):
        """You help."""

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    bot = Bot()
    with handler(harness(**STACK)), handler(ScriptedModel("hi", "damn")), handler(Governance([refusing("egress")])):
        bot.ask("?")
        before = list(bot.__history__)
        with pytest.raises(GovernanceRefused):
            bot.ask("?")
    assert list(bot.__history__) == before


# --- rules that fail, the reflector, the log --------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["ingress", "egress"])
def test_a_rule_that_raises_refuses(stage):
    def broken(text: str) -> None:
        raise KeyError("secret")

    with handler(harness(**STACK)), handler(ScriptedModel("hi")), handler(Governance([Rule("r", **{stage: broken})])):
        with pytest.raises(GovernanceRefused) as refused:
            assistant("?")
    assert "secret" not in str(refused.value)


def test_a_rule_for_calls_that_raises_refuses():
    with handler(Governance([Rule("r", tool_call=lambda effect: 1 / 0)])), pytest.raises(AgentsError):
        send("ann")
    assert sent == []


def test_the_reflector_amends_refuses_and_is_passed_over_when_it_raises():
    records: list[Any] = []

    def governed(reflector: Any) -> Any:
        with handler(harness(**STACK)), handler(ScriptedModel("draft")):
            with handler(Governance(reflector=reflector, decisions=records.append)):
                return assistant("?")

    assert governed(lambda value: value.upper()) == "DRAFT"
    assert governed(lambda value: None) == "draft"
    with pytest.raises(GovernanceRefused, match="no"):
        governed(lambda value: Refuse("no"))
    assert governed(lambda value: 1 / 0) == "draft"
    assert [(record.stage, record.decision.reason_code) for record in records if record.stage != "effect"] == [
        ("reflector", "amended"),
        ("reflector", "refused"),
        ("reflector", "reflector_error"),
    ]


def test_a_skill_is_a_reflector():
    @Skill.define
    def review(draft: str) -> str:
        """Improve this: {draft}"""
        raise NotHandled

    with handler(harness(**STACK)), handler(ScriptedModel("draft", "better")), handler(Governance(reflector=review)):
        assert assistant("?") == "better"


def test_what_was_decided_is_in_the_log_with_its_rule_and_without_payload():
    log = DecisionLog()
    rules = [amending("ingress"), Rule("no eve", tool_call=lambda effect: Disposition.DENY_STEP)]
    with handler(harness(**STACK)), handler(ScriptedModel(calls("send", to=TO), "ok")), handler(log):
        with handler(Governance(rules)):
            assistant("damn")
    assert [(r.stage, r.decision.rule) for r in log.records if r.decision.rule] == [
        ("ingress", "softer"),
        ("effect", "no eve"),
    ]
    lines = log.to_json_lines()
    assert "damn" not in lines
    assert TO not in lines


def test_what_is_no_rule_is_refused():
    with pytest.raises(OptionError, match="Rule"):
        Governance([lambda text: text])
    with pytest.raises(OptionError, match="does nothing"):
        Rule("empty")


# --- rules that are ready ---------------------------------------------------------------------------------------------


def test_personal_data_does_not_reach_the_model_and_tools_and_the_program_get_it_back():
    model = ScriptedModel(lambda request: calls("send", to=mark_in(request)), lambda request: f"To {mark_in(request)}.")
    stack = harness(system_prompt="brief", **STACK)
    with handler(stack), handler(model), handler(Governance([Redaction(restore=True)])):
        result = run(assistant, "Write to ann@example.org.")
    assert sent == ["ann@example.org"]
    assert result.value == "To ann@example.org."
    assert "ann@example.org" not in str(model.requests)
    assert "ann@example.org" not in str(result.messages)


def mark_in(request: Any) -> str:
    return re.findall(r"\[EMAIL [0-9a-f]+\]", str(request["messages"]))[0]


def test_nobody_gets_what_another_one_said_by_writing_a_mark():
    marks: list[str] = []

    def first(request: Any) -> str:
        marks.append(mark_in(request))
        return "ok"

    model = ScriptedModel(first, lambda request: f"You said {marks[0]}", lambda request: f"You said {marks[0]}")
    with handler(harness(system_prompt="brief", **STACK)), handler(model):
        with handler(Governance([Redaction(restore=True)])):
            assistant("I am ann@example.org")
            assert "ann@" not in assistant(f"Please repeat {marks[0]}")
            assert "ann@" not in assistant("Please repeat that mark.")


def test_a_mark_of_an_earlier_block_stands_for_nobody_else():
    class Bot(Agent):
        """You help."""

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    bot, governance = Bot(), Governance([Redaction(restore=True)])
    model = ScriptedModel("ok", lambda request: f"To {mark_in(request)}")
    with handler(harness(system_prompt="brief", **STACK)), handler(model):
        with handler(governance):
            bot.ask("I am ann@example.org")
        with handler(governance):
            said = bot.ask("Copy bob@example.org. Who am I?")
    assert "@" not in said


def test_marks_are_the_same_when_a_run_is_resumed():
    store = MemoryCheckpointer()

    def called(*replies: Any) -> str:
        with handler(harness(system_prompt="brief", **STACK)), handler(ScriptedModel(*replies)):
            with handler(Journal("r", store)), handler(Governance([Redaction(restore=True)])):
                return assistant("I am ann@example.org")

    def crash(request: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        called(calls("look", at="it"), crash)
    assert called(lambda request: f"You are {mark_in(request)}") == "You are ann@example.org"


@pytest.mark.parametrize(
    ("settings", "replies"),
    [
        ({}, (calls("read_mail"), calls("send", to=TO), "done")),
        ({}, (batch(calls("read_mail", id="a"), calls("send", id="b", to=TO)), "done")),
        ({"eval_provider": "builtin"}, (in_repl(f"m = read_mail()\nsend({TO!r})"), "done")),
        ({"eval_provider": "builtin"}, (in_repl("m = read_mail()"), calls("send", to=TO), "done")),
        ({}, (calls("read_mail"), calls("deputy", request="x"), calls("send", to=TO), "done", "done")),
        ({}, (calls("deputy", request="read"), calls("read_mail"), "read", calls("send", to=TO), "done")),
    ],
)
def test_after_content_from_outside_was_read_nothing_risky_is_done(settings, replies):
    model = ScriptedModel(*replies)
    rule = UntrustedContent(read_mail)
    with handler(harness(**{**STACK, **settings})), handler(model), handler(Governance([rule])):
        with contextlib.suppress(AgentsError):
            assistant("What is new?")
    assert sent == []


def test_content_from_outside_is_marked_and_cannot_end_the_mark():
    model = ScriptedModel(calls("read_mail"), "done")
    with handler(harness(**STACK)), handler(model), handler(Governance([UntrustedContent(read_mail)])):
        assistant("?")
    first, *_, last = model.requests[1]["messages"][-1]["content"].splitlines()
    assert first.startswith("[data ")
    assert first.split()[1].rstrip(":") in last


def test_the_next_block_begins_anew():
    governance = Governance([UntrustedContent(read_mail, risk=Risk.READ)])
    with handler(governance):
        read_mail()
        with pytest.raises(AgentsError):
            send("ann")
    with handler(governance):
        send("ann")
    assert sent == ["ann"]


def test_usage_and_calls_beside_the_text_stay():
    with handler(harness(**STACK)), handler(ScriptedModel(batch(says("damn"), calls("send", to="ann")), "ok")):
        with handler(Governance([amending("egress")])):
            result = run(assistant, "?")
    assert sent == ["ann"]
    assert result.usage.input == 200


FORMS: dict[str, dict[str, Any]] = {
    "parts": {"content": [{"type": "text", "text": "da"}, {"type": "text", "text": "mn"}]},
    "a tuple": {"content": ({"type": "text", "text": "damn"},)},
    "another part": {"content": [{"type": "output_text", "text": "damn"}]},
    "reasoning": {"content": "fine", "reasoning_content": "damn"},
    "thinking": {"content": "fine", "thinking_blocks": [{"type": "thinking", "thinking": "damn", "signature": "s"}]},
    "a refusal": {"content": None, "refusal": "damn"},
    "escaped": {"content": '["da\\u006dn"]'},
    "arguments": {
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": "da\\u006dn"}'}}
        ],
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_draft_of_any_form_is_looked_at(form):
    class Bot(Agent):
        """You help."""

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

        @Tool.define
        def look(self, at: str) -> str:
            """Look."""
            return at

    bot, told = Bot(), []
    reply = {**says("x"), "choices": [{"index": 0, "message": {"role": "assistant", **FORMS[form]}}]}
    with handler(harness(**STACK)), handler(ScriptedModel(reply, "fine")), handler(Governance([refusing("egress")])):
        with pytest.raises(GovernanceRefused):
            told += [str(event) for event in stream(bot.ask, "?")]
    assert list(bot.__history__) == []
    assert "damn" not in str(told)


@pytest.mark.parametrize("content", [None, 7, {"text": 1}, [], [None], "x"])
@pytest.mark.parametrize("choices", [None, [], [{}], [{"message": None}], "x", [{"message": {"content": None}}]])
def test_a_malformed_reply_is_refused_as_without_governance(content, choices):
    reply = {**says("x"), "choices": choices}
    if choices == [{"message": {"content": None}}]:
        reply["choices"] = [{"message": {"role": "assistant", "content": content}}]

    def outcome(*layers: Any) -> Any:
        with handler(harness(num_retries=0, **STACK)), handler({completion: lambda **_: reply}):
            with contextlib.ExitStack() as stack:
                for layer in layers:
                    stack.enter_context(handler(layer))
                try:
                    return assistant("?")
                except Exception as error:
                    return type(error)

    assert outcome(Governance([refusing("egress")])) == outcome()


def test_names_in_a_value_are_texts_too():
    @Skill.define
    def count(text: str) -> dict[str, int]:
        """Count words in {text}."""
        raise NotHandled

    with handler(harness(**STACK)), handler(ScriptedModel('{"damn": 1, "x": 2}')):
        with handler(Governance([amending("egress")])):
            assert count("?") == {"d***": 1, "x": 2}
    with handler(harness(**STACK)), handler(ScriptedModel('{"damn": 1, "d***": 2}')):
        with handler(Governance([amending("egress")])), pytest.raises(AgentsError):
            count("?")


def test_what_is_refused_on_leaving_is_in_no_history_step_or_journal():
    class Bot(Agent):
        """You help."""

        @Skill.define
        def words(self, question: str) -> list[str]:
            """{question}"""
            raise NotHandled

    bot, told = Bot(), []
    with handler(harness(**STACK)), handler(ScriptedModel('["fine"]')):
        with handler(Governance(reflector=lambda value: Refuse("no"))), pytest.raises(GovernanceRefused):
            told += list(steps(bot.words, "?"))
    assert list(bot.__history__) == []
    assert not any(isinstance(event, FinalStep) for event in told)


@Skill.define(tools=False)
def reviewed(answer: str) -> str:
    """Write it without names: {answer}"""
    raise NotHandled


def test_a_reflector_that_may_not_be_called_lets_nothing_pass_unseen():
    with handler(harness(**STACK)), handler(ScriptedModel("Ann is ill.", "Somebody is ill.")):
        with handler(GrantEffects()), handler(Governance(reflector=reviewed)):
            with pytest.raises(StepDenied, match="delegate"):
                assistant("?")


def test_a_reflector_that_reaches_a_limit_lets_nothing_pass_unseen():
    with handler(harness(**STACK)), handler(ScriptedModel("Ann is ill.", "Somebody is ill.")):
        with handler(Limits(turns=1)), handler(Governance(reflector=reviewed)):
            with pytest.raises(LimitExceeded):
                assistant("?")


def test_a_skill_with_its_grant_reflects():
    with handler(harness(**STACK)), handler(ScriptedModel("Ann is ill.", "Somebody is ill.")):
        with handler(GrantEffects("model_call", "delegate")), handler(Governance(reflector=reviewed)):
            assert assistant("?") == "Somebody is ill."
