"""`decide`: nothing that leaves the loop happens without it, by whatever way."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.errors import AgentsError, Denied, MissingHandlerError, StepDenied
from effectful_agents.handlers.policy import DecisionLog, Governance, Policy, RiskPolicy
from effectful_agents.handlers.policy.rules import Rule
from effectful_agents.operations.policy import (
    ALLOW,
    Answer,
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    decide,
    request_approval,
    strictest,
)
from effectful_agents.testing import ScriptedModel, calls
from effectful_agents.types import Risk
from tests.handlers.policy.routes import ROUTES, TO, Clerk, assistant, forward, in_repl, send, sent, taking
from tests.ids import shown

DENY = Decision(Disposition.DENY_STEP, "no_mail", "No mails today.")


def no_mail(effect: ProposedEffect) -> Decision | None:
    return DENY if effect.tool == send else None


def attempted(route: str, *policies: Any, **options: Any) -> ScriptedModel:
    """Have the model try, whatever comes of it."""
    with taking(route, **options) as model, contextlib.ExitStack() as stack:
        for policy in policies:
            stack.enter_context(handler(policy))
        with contextlib.suppress(AgentsError):
            assistant("Send it.")
    return model


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@pytest.mark.parametrize("route", ROUTES)
def test_without_a_policy_everything_is_allowed(route):
    attempted(route)
    assert sent == [TO]


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_denied_does_not_happen_by_any_way(route):
    model = attempted(route, Policy(no_mail))
    assert sent == []
    assert "No mails today." in str(model.requests)


@pytest.mark.parametrize("route", ROUTES)
def test_each_effect_is_decided_about_once(route):
    log = DecisionLog()
    attempted(route, Policy(lambda effect: None), log)
    assert sent == [TO]
    assert [record.effect.arguments for record in log.records if record.effect.tool == send] == [{"to": TO}]


@pytest.mark.parametrize("route", ROUTES)
def test_a_run_that_is_terminated_ends_by_any_way(route):
    stop = Policy(lambda effect: Disposition.TERMINATE_RUN if effect.tool == send else None)
    with taking(route) as model, handler(stop), pytest.raises(Denied):
        assistant("Send it.")
    assert sent == []
    assert model.remaining > 0


@pytest.mark.parametrize("route", ROUTES)
def test_what_needs_approval_waits_for_the_answer(route):
    asked = []

    def ask(question: Any) -> Answer:
        asked.append((question.effect.name, list(sent)))
        return Answer(by="ann")

    attempted(route, RiskPolicy(allow=Risk.READ), {request_approval: ask})
    assert sent == [TO]
    assert ("send", []) in asked


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_refused_does_not_happen(route):
    model = attempted(
        route,
        RiskPolicy(allow=Risk.READ),
        {request_approval: lambda question: Answer(approved=False, reason="Too late.")},
    )
    assert sent == []
    assert "Too late." in str(model.requests)


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_to_ask_is_an_error_before_the_effect(route):
    with taking(route), handler(RiskPolicy(allow=Risk.READ)), pytest.raises(MissingHandlerError, match="AskInTerminal"):
        assistant("Send it.")
    assert sent == []


@pytest.mark.parametrize("route", ROUTES)
def test_amended_arguments_are_what_happens(route):
    def redirected(effect: ProposedEffect) -> Decision | None:
        if effect.tool == send and effect.arguments["to"] != "ann@example.org":
            return Decision(arguments={"to": "ann@example.org"})
        return None

    attempted(route, Policy(redirected))
    assert sent == ["ann@example.org"]


def test_the_method_of_an_agent_and_a_tool_that_was_set_on_it():
    clerk = Clerk()
    clerk.extra = send
    log = DecisionLog()
    deny = Policy(lambda effect: DENY if effect.risk > Risk.READ else None)
    with handler(harness(eval_provider="none")), handler(deny), handler(log):
        with handler(ScriptedModel(calls("post", to=TO), calls("send", to=TO), calls("send", to=TO), "no")):
            clerk.ask("?")
        with pytest.raises(StepDenied):
            clerk.post(TO)
        with pytest.raises(StepDenied):
            Clerk.post(clerk, TO)
    assert sent == []
    assert [r.effect.name for r in log.records if r.effect.kind is EffectKind.TOOL_CALL].count("post") == 3


def test_a_renamed_tool_is_the_same_tool():
    other = send.named("harmless")
    with handler(Policy(no_mail)), pytest.raises(StepDenied, match="No mails"):
        other(TO)
    assert sent == []


def test_every_policy_is_asked_and_the_strictest_wins_in_any_order():
    policies = {
        name: Policy(lambda _, d=d: d, name) for name, d in (("a", None), ("b", Disposition.ALLOW), ("c", DENY))
    }
    for order in (("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")):
        with handler(policies[order[0]]), handler(policies[order[1]]), handler(policies[order[2]]):
            with pytest.raises(StepDenied) as denied:
                send(TO)
        assert denied.value.decision.rule == "c"


def test_strictest_is_associative_and_knows_its_neutral_element():
    decisions = [Decision(one, rule=one.name) for one in Disposition]
    for a in decisions:
        assert strictest(a, ALLOW).disposition == a.disposition == strictest(ALLOW, a).disposition
        for b in decisions:
            for c in decisions:
                assert strictest(strictest(a, b), c).rule == strictest(a, strictest(b, c)).rule


@pytest.mark.parametrize("broken", [ValueError("secret-token"), KeyError("x"), RecursionError()])
def test_a_policy_that_raises_denies_and_tells_no_secret(broken, caplog):
    def judge(effect: ProposedEffect) -> None:
        if effect.tool == send:
            raise broken

    def raw(effect: ProposedEffect) -> Any:
        judge(effect)
        return fwd()

    for policy in (Policy(judge), {decide: raw}):
        model = attempted("json", policy)
        assert sent == []
        assert "the log says how" in str(model.requests)
        assert "secret-token" not in str(model.requests)
        assert "policy" in caplog.text


def test_a_policy_that_says_nonsense_denies():
    for nonsense in ("yes", 17, object(), True, False, 0):
        with handler(Policy(lambda _, n=nonsense: n)), pytest.raises(StepDenied):
            send(TO)
    assert sent == []


def test_amendments_that_do_not_fit_or_never_end_are_denied():
    endless = Policy(lambda effect: Decision(arguments={"to": effect.arguments["to"] + "x"}))
    unfit = Policy(lambda effect: Decision(arguments={"recipient": "x"}))
    for policy in (endless, unfit):
        with handler(policy), pytest.raises(StepDenied):
            send(TO)
    assert sent == []


@pytest.mark.parametrize("amended", [{"to": 5}, {"to": None}, {"to": ["ann"]}, {"cc": "ann"}], ids=shown)
@pytest.mark.parametrize("by_code", [False, True], ids=["reply", "code"])
def test_what_a_policy_amends_is_held_to_the_types(amended, by_code, caplog):
    policies = (
        Policy(lambda effect: Decision(arguments=amended) if effect.calls(send) else None, "fix"),
        Governance([Rule("fix", tool_call=lambda effect: Decision(arguments=amended) if effect.calls(send) else None)]),
        {decide: lambda effect: Decision(arguments=amended) if effect.calls(send) else fwd()},
    )
    for policy, who in zip(policies, ("the policy `fix`", "the rule `fix`", "a policy"), strict=True):
        caplog.clear()
        with handler(policy), contextlib.suppress(StepDenied):
            send(TO) if by_code else attempted("json")
        assert sent == []
        assert f"{who} amended the argument `{next(iter(amended))}`" in caplog.text
        assert "`send`" in caplog.text


def test_what_a_policy_amends_may_be_any_value_of_the_type():
    class Address:
        """Of a class that has no form in JSON."""

    @Tool.define
    def write(to: Address, copies: int | None, tags: Sequence[str], at: datetime.date, *more: int, **rest: str) -> str:
        """Write a letter."""
        return f"{copies} {tags} {at} {more} {rest}"

    new: dict[str, Any] = {
        "to": Address(),
        "copies": None,
        "tags": ("a",),
        "at": datetime.date(2026, 12, 24),
        "more": (1, 2),
        "word": "b",
    }
    with handler(Policy(lambda effect: Decision(arguments=new) if not effect.again else None)):
        said = write(Address(), 1, ["x"], datetime.date(2026, 1, 1), 3, word="c")
    assert said == "None ('a',) 2026-12-24 (1, 2) {'word': 'b'}"
    for name, value in (("to", "ann"), ("copies", 1.5), ("tags", [1]), ("at", "2026"), ("more", (1, "2")), ("word", 3)):
        with handler(Policy(lambda effect, name=name, value=value: Decision(arguments={name: value}))):
            with pytest.raises(StepDenied):
                write(Address(), 1, ["x"], datetime.date(2026, 1, 1), 3, word="c")


def test_what_one_policy_amends_another_may_refuse():
    outside = Policy(lambda effect: DENY if "evil" in effect.arguments["to"] else None, "outside")
    amending = Policy(lambda effect: Decision(arguments={"to": "evil@example.org"}), "amending")
    for one, other in ((outside, amending), (amending, outside)):
        with handler(one), handler(other), pytest.raises(StepDenied) as denied:
            send(TO)
        assert denied.value.decision.rule == "outside"
    assert sent == []


def test_a_person_cannot_allow_what_is_denied_nor_amend_into_it():
    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL)
    with handler({request_approval: lambda question: Answer()}), handler(asks), handler(Policy(no_mail)):
        with pytest.raises(StepDenied, match="No mails"):
            send(TO)
    limited = Policy(lambda effect: DENY if effect.arguments["to"] == "evil" else None)
    with (
        handler({request_approval: lambda question: Answer(arguments={"to": "evil"})}),
        handler(asks),
        handler(limited),
    ):
        with pytest.raises(StepDenied, match="No mails"):
            send(TO)
    assert sent == []


def test_a_request_that_is_denied_ends_the_call():
    for said in (Disposition.DENY_STEP, Disposition.TERMINATE_RUN):
        model = ScriptedModel("hello")
        with handler(harness(eval_provider="none")), handler(model):
            with handler(Policy(lambda effect, d=said: d if effect.kind is EffectKind.MODEL_CALL else None)):
                with pytest.raises(Denied):
                    assistant("?")
        assert model.requests == []


def test_the_effect_tells_where_it_happens():
    seen: list[ProposedEffect] = []
    with handler({decide: lambda effect: [seen.append(effect), fwd()][1]}):
        attempted("through a skill")
    by_name = {(effect.kind, effect.name): effect for effect in seen}
    mail = by_name[EffectKind.TOOL_CALL, "send"]
    assert [caller.__name__ for caller in mail.callers] == ["assistant", "deputy"]
    assert (mail.risk, mail.by_code, mail.replayed) == (Risk.HARD_WRITE, False, False)
    delegation = by_name[EffectKind.DELEGATE, "deputy"]
    assert delegation.risk is Risk.HARD_WRITE
    assert delegation.arguments == {"request": "send"}
    assert delegation.step_id.endswith("-delegate")


def test_a_call_of_the_program_is_no_delegation():
    seen: list[EffectKind] = []
    with handler({decide: lambda effect: [seen.append(effect.kind), fwd()][1]}):
        with handler(harness(eval_provider="none")), handler(ScriptedModel("hello")):
            assistant("?")
    assert seen == [EffectKind.MODEL_CALL]


def test_a_tool_that_calls_itself_is_decided_about_each_time():
    log = DecisionLog()
    with handler(Policy(lambda effect: None)), handler(log):
        assert forward(TO) == f"sent to {TO}"
    assert [record.effect.name for record in log.records] == ["forward", "send"]


def test_denied_history_is_valid_and_keeps_what_the_model_asked():
    clerk = Clerk()
    with handler(harness(eval_provider="none")), handler(Policy(lambda e: DENY if e.name == "post" else None)):
        with handler(ScriptedModel(calls("post", to=TO), "I could not.")):
            clerk.ask("Post it.")
    roles = [message["role"] for message in clerk.__history__]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]


def test_what_code_can_do_is_for_its_executor_to_say():
    asked: list[str] = []

    def ask(question: Any) -> Answer:
        asked.append(question.effect.name)
        return Answer()

    for executor, expected in (("builtin", ["exec_code", "send"]), ("restricted", ["send"])):
        asked.clear()
        with taking("snippet", eval_provider=executor), handler({request_approval: ask}), handler(RiskPolicy()):
            assistant("Send it.")
        assert asked == expected


def mail(to: str) -> str:
    """Send a mail."""
    sent.append(to)
    return "sent"


@Skill.define
def secretary(request: str) -> str:
    """{request}"""
    raise NotHandled


@pytest.mark.parametrize(
    "code", [f"mail({TO!r})", f"x = mail\nx({TO!r})", f"list(map(mail, [{TO!r}]))", f"def f(g=mail): g({TO!r})\nf()"]
)
def test_a_function_that_is_offered_as_a_tool_is_one_for_code_too(code):
    def said(*policies: Any) -> str:
        model = ScriptedModel(in_repl(code), in_repl("print(mail)"), "done")
        options = {"eval_provider": "restricted", "type_checker": "none", "tool_collection": "auto"}
        with handler(harness(**options)), handler(model), contextlib.ExitStack() as stack:
            for policy in policies:
                stack.enter_context(handler(policy))
            secretary("?")
        return str(model.requests)

    assert "No mails" in said(Policy(lambda effect: DENY if effect.name == "mail" else None))
    assert sent == []
    said()
    assert sent == [TO]


def test_what_ends_a_call_is_in_the_log():
    log = DecisionLog()
    stop = Policy(lambda effect: Disposition.TERMINATE_RUN if effect.tool == send else None, "stop")
    with taking("json"), handler(stop), handler(log), pytest.raises(Denied):
        assistant("Send it.")
    assert log.records[-1].decision.rule == "stop"
