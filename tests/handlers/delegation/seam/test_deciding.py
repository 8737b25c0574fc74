"""What a gateway decides is what a policy of the program would: denials, ends, approvals, amendments."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, Tool, handler, harness
from effectful_agents.errors import Denied, NetworkError, StepDenied, Suspended
from effectful_agents.handlers.delegation import RemoteOperations, StackGateway
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import DecisionLog, HumanInteraction, MemoryLedger, Policy, RiskPolicy
from effectful_agents.operations.policy import Answer, Decision, Disposition, EffectKind, request_approval
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.delegation.seam.serving import served

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@Tool.define(risk=Risk.HARD_WRITE)
def send(to: tuple[str, int], text: str = "hi") -> str:
    """Send a mail."""
    done.append((to, text))
    return "sent"


@Skill.define
def inform(name: str) -> str:
    """Inform {name}."""
    raise NotHandled


def says_about_tools(*decisions: Decision) -> Policy:
    left = list(decisions)

    def judge(effect: Any) -> Decision | None:
        return left.pop(0) if effect.kind == EffectKind.TOOL_CALL and left else None

    return Policy(judge, "rules")


def asked(model: ScriptedModel) -> str:
    return model.requests[-1]["messages"][-1]["content"]


CALL = calls("send", to=["ann", 1])
DECISIONS = [
    Decision(Disposition.DENY_STEP, "late", "No mails after ten."),
    Decision(Disposition.DENY_STEP),
    Decision(arguments={"text": "bye"}),
    None,
]


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_about_a_tool_of_the_program_is_as_one_made_there(decision):
    decisions = [decision] if decision else []
    local, remote = ScriptedModel(CALL, "Done."), ScriptedModel(CALL, "Done.")
    with handler(local), handler(harness()), handler(says_about_tools(*decisions)):
        expected = inform("Ann"), list(done)
    done.clear()
    with served(remote, says_about_tools(*decisions)) as gateway, handler(harness()), handler(gateway.remote()):
        assert (inform("Ann"), done) == expected
    assert asked(remote) == asked(local)


def test_the_end_of_a_run_is_denied_with_its_decision():
    decision = Decision(Disposition.TERMINATE_RUN, "fraud", "That is enough.")
    log = DecisionLog()
    with served(ScriptedModel(CALL), says_about_tools(decision)) as gateway:
        with handler(harness()), handler(gateway.remote()), handler(log):
            with pytest.raises(Denied, match="That is enough") as caught:
                inform("Ann")
    assert caught.value.decision.reason_code == "fraud"
    assert [record.decision.rule for record in log.records if not record.decision.allows] == ["rules"]
    assert done == []


def test_a_request_that_may_not_be_made_ends_the_call():
    def judge(effect: Any) -> Decision | None:
        return Decision(Disposition.DENY_STEP, "night") if effect.kind == EffectKind.MODEL_CALL else None

    model = ScriptedModel("never")
    with served(model, Policy(judge)) as gateway, handler(harness()), handler(gateway.remote()):
        with pytest.raises(Denied) as caught:
            inform("Ann")
    assert caught.value.decision.reason_code == "night"
    assert model.requests == []


def test_the_gateway_sees_the_arguments_and_the_declared_risk():
    seen: list[Any] = []
    policy = Policy(lambda effect: seen.append(effect))
    with served(ScriptedModel(CALL, "Done."), policy) as gateway, handler(harness()), handler(gateway.remote()):
        inform("Ann")
    tool = next(effect for effect in seen if effect.kind == EffectKind.TOOL_CALL)
    assert (tool.name, dict(tool.arguments), tool.risk) == ("send", {"to": ["ann", 1], "text": "hi"}, Risk.HARD_WRITE)


def test_code_of_the_program_is_decided_about_too():
    decision = Decision(Disposition.DENY_STEP)
    with served(ScriptedModel(), says_about_tools(decision)) as gateway, handler(gateway.remote()):
        with pytest.raises(StepDenied):
            send(("ann", 1))
    assert done == []


# --- approvals --------------------------------------------------------------------------------------------------------


def approving(answer: Answer) -> Any:
    return {request_approval: lambda question: answer}


@pytest.mark.parametrize(
    "answer", [Answer(), Answer(approved=False, reason="Too late."), Answer(arguments={"text": "x"})]
)
def test_people_of_the_program_approve_as_they_would_for_a_policy_there(answer):
    local, remote = ScriptedModel(CALL, "Done."), ScriptedModel(CALL, "Done.")
    with handler(local), handler(harness()), handler(RiskPolicy(allow=Risk.READ)), handler(approving(answer)):
        expected = inform("Ann"), list(done)
    done.clear()
    with served(remote, RiskPolicy(allow=Risk.READ), limits={"approves": True}) as gateway:
        with handler(harness()), handler(gateway.remote()), handler(approving(answer)):
            assert (inform("Ann"), done) == expected
    assert asked(remote) == asked(local)


def test_a_program_that_may_not_approve_is_denied():
    model = ScriptedModel(CALL, "Done.")
    with served(model, RiskPolicy(allow=Risk.READ)) as gateway:
        with handler(harness()), handler(gateway.remote()), handler(approving(Answer())):
            inform("Ann")
    assert "does not take the program's word" in asked(model)
    assert done == []


def test_the_gateway_asks_its_own_people_where_it_has_some():
    model = ScriptedModel(CALL, "Done.")
    with served(model, RiskPolicy(allow=Risk.READ), approving(Answer(approved=False, reason="No."))) as gateway:
        with handler(harness()), handler(gateway.remote()), handler(approving(Answer())):
            inform("Ann")
    assert "A person refused it: No." in asked(model)
    assert done == []


def test_a_run_is_suspended_until_somebody_of_the_program_has_answered():
    runs, ledger = MemoryCheckpointer(), MemoryLedger()
    people = HumanInteraction(bytes(32), binding="ann", consumption=ledger)
    model = ScriptedModel(CALL, "Done.")
    with served(model, RiskPolicy(allow=Risk.READ), limits={"approves": True}) as gateway:

        def program() -> str:
            with handler(Layers(harness(journal=runs, run_id="monday"), gateway.remote(), people)):
                return inform("Ann")

        with pytest.raises(Suspended) as caught:
            program()
        people.redeem(caught.value.token, "ann", Answer())
        assert program() == "Done."
    assert done == [(("ann", 1), "hi")]
    assert len(model.requests) == 2


def test_a_request_is_approved_once_by_people_of_the_program():
    def judge(effect: Any) -> Decision | None:
        return Decision(Disposition.REQUIRE_APPROVAL) if effect.kind == EffectKind.MODEL_CALL else None

    questions: list[Any] = []

    def answer(question: Any) -> Answer:
        questions.append(question)
        return Answer()

    model = ScriptedModel("Hello")
    with served(model, Policy(judge), limits={"approves": True}) as gateway:
        with handler(harness()), handler(gateway.remote()), handler({request_approval: answer}):
            assert inform("Ann") == "Hello"
    assert len(questions) == len(model.requests) == 1


# --- a gateway that cannot be asked -----------------------------------------------------------------------------------


def test_nothing_happens_when_the_gateway_is_gone():
    with served(ScriptedModel(CALL), Policy(lambda effect: None)) as gateway:
        remote = gateway.remote()
        with handler(harness()), handler(remote):
            assert remote.tools == ()
            gateway.stop()
            with pytest.raises(NetworkError):
                send(("ann", 1))
    assert done == []


def test_a_gateway_in_the_same_process_is_one_too():
    gateway = StackGateway(ScriptedModel(CALL, "Done."), RiskPolicy(allow=Risk.READ), approves=True)
    with handler(harness()), handler(RemoteOperations(gateway)), handler(approving(Answer())):
        assert inform("Ann") == "Done."
    assert done == [(("ann", 1), "hi")]
