"""Tools that the gateway holds: offered to the program, and run where they are."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, Tool, acall, handler, harness
from effectful_agents.errors import AgentsError, Denied, StepDenied
from effectful_agents.handlers.policy import Policy, RiskPolicy
from effectful_agents.operations.policy import Answer, Decision, Disposition, EffectKind, request_approval
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.delegation.seam.serving import served

made: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    made.clear()


@Tool.define(risk=Risk.SOFT_WRITE)
def look_up(city: str, days: int = 1) -> dict[str, Any]:
    """Look up the weather.

    Args:
        city: The city.
    """
    made.append((city, days))
    if city == "Atlantis":
        raise LookupError("there is no such city")
    return {"city": city, "degrees": 3}


@Tool.define
async def wait_for(name: str) -> str:
    """Wait for somebody."""
    await asyncio.sleep(0)
    made.append(name)
    return f"{name} is here"


@Skill.define
def summarize(text: str) -> str:
    """Summarize {text}."""
    raise NotHandled


TOOLS = [look_up, wait_for]


def a_skill(options: str = "", **scope: Any) -> Any:
    """A skill in whose scope stands nothing else."""
    namespace: dict[str, Any] = {"Skill": Skill, "NotHandled": NotHandled, **scope}
    source = f'@Skill.define({options})\ndef ask(question: str) -> str:\n    """Answer {{question}}."""\n'
    exec(f"{source}    raise NotHandled\n", namespace)
    return namespace["ask"]


ask = a_skill()


def stack(*more: Any) -> Any:
    return harness(eval_provider="none"), *more


def results(model: ScriptedModel) -> list[str]:
    return [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]


def test_it_is_shown_and_answered_as_a_tool_of_the_program():
    script = batch(calls("look_up", city="Oslo"), calls("wait_for", name="Ann")), "Done."
    local, remote = ScriptedModel(*script), ScriptedModel(*script)
    with handler(local), handler(harness(eval_provider="none")):
        expected = a_skill(look_up=look_up, wait_for=wait_for)("it"), list(made)
    made.clear()
    with served(*stack(remote), tools=TOOLS) as gateway:
        with handler(harness(eval_provider="none")), handler(gateway.remote()):
            assert (ask("it"), made) == expected
    # The system message names what stands in the scope of the skill.
    for there, here in zip(remote.requests, local.requests, strict=True):
        assert json.dumps([there["tools"], there["messages"][1:]]) == json.dumps([here["tools"], here["messages"][1:]])
    assert made == [("Oslo", 1), "Ann"]


def test_it_runs_in_a_call_that_is_awaited():
    model = ScriptedModel(calls("wait_for", name="Ann"), "Done.")
    with served(*stack(model), tools=TOOLS) as gateway, handler(harness()), handler(gateway.remote()):
        assert asyncio.run(acall(ask, "it")) == "Done."
    assert made == ["Ann"]


def test_a_skill_is_one_and_has_its_own_model_there():
    model = ScriptedModel(calls("summarize", text="a book"), "Short.", "It is short.")
    with served(*stack(model), tools=[summarize]) as gateway, handler(harness()), handler(gateway.remote()):
        assert ask("it") == "It is short."
    assert results(model) == ["Short."]


def test_what_it_raises_is_told_without_a_traceback():
    model = ScriptedModel(calls("look_up", city="Atlantis"), "Done.")
    with served(*stack(model), tools=TOOLS) as gateway, handler(harness()), handler(gateway.remote()):
        ask("it")
    (result,) = results(model)
    assert "LookupError: there is no such city" in result
    assert "test_held_tools" not in result


def test_the_program_may_call_it_too():
    with served(*stack(), tools=TOOLS) as gateway:
        remote = gateway.remote(offer_tools=False)
        with handler(remote):
            look, _ = remote.tools
            assert json.loads(look(city="Rome", days=2)) == {"city": "Rome", "degrees": 3}
            with pytest.raises(AgentsError, match="LookupError"):
                look(city="Atlantis")
            with pytest.raises(AgentsError, match="do not fit"):
                look(town="Rome")
    assert look.risk is Risk.SOFT_WRITE
    assert made == [("Rome", 2), ("Atlantis", 1)]


def test_a_skill_that_uses_no_tools_is_offered_none():
    model = ScriptedModel("Done.")
    with (
        served(*stack(model), tools=TOOLS) as gateway,
        handler(harness(eval_provider="none")),
        handler(gateway.remote()),
    ):
        a_skill("tools=False")("it")
    assert "tools" not in model.requests[0]


# --- deciding ---------------------------------------------------------------------------------------------------------


def counting(*decisions: Decision) -> tuple[Policy, list[Any]]:
    seen: list[Any] = []

    def judge(effect: Any) -> Decision | None:
        if effect.kind != EffectKind.TOOL_CALL:
            return None
        seen.append(effect)
        return decisions[len(seen) - 1] if len(seen) <= len(decisions) else None

    return Policy(judge, "rules"), seen


def test_a_call_is_decided_about_once_and_with_the_tool_itself():
    policy, seen = counting()
    model = ScriptedModel(calls("look_up", city="Oslo"), "Done.")
    with served(*stack(model, policy), tools=TOOLS) as gateway, handler(harness()), handler(gateway.remote()):
        ask("it")
    (effect,) = seen
    assert effect.calls(look_up)
    assert dict(effect.arguments) == {"city": "Oslo", "days": 1}
    assert made == [("Oslo", 1)]


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Decision(Disposition.DENY_STEP, message="Not today."), "This call was not done: Not today. (rule: rules)"),
        (Decision(arguments={"city": "Rome"}), '{"city":"Rome","degrees":3}'),
    ],
)
def test_what_is_decided_is_told_as_of_a_tool_of_the_program(decision, told):
    policy, _ = counting(decision)
    model = ScriptedModel(calls("look_up", city="Oslo"), "Done.")
    with served(*stack(model, policy), tools=TOOLS) as gateway, handler(harness()), handler(gateway.remote()):
        ask("it")
    assert results(model) == [told]
    assert ("Oslo", 1) not in made


def test_the_end_of_the_run_is_denied():
    policy, _ = counting(Decision(Disposition.TERMINATE_RUN, "enough"))
    model = ScriptedModel(calls("look_up", city="Oslo"))
    with served(*stack(model, policy), tools=TOOLS) as gateway, handler(harness()), handler(gateway.remote()):
        with pytest.raises(Denied):
            ask("it")
    assert made == []


@pytest.mark.parametrize("approved", [True, False])
def test_people_of_the_program_approve_it_where_they_may(approved):
    model = ScriptedModel(calls("look_up", city="Oslo"), "Done.")
    people = {request_approval: lambda question: Answer(approved=approved)}
    policy = RiskPolicy(allow=Risk.READ)
    with served(*stack(model, policy), tools=TOOLS, limits={"approves": True}) as gateway:
        with handler(harness()), handler(gateway.remote()), handler(people):
            ask("it")
    assert made == ([("Oslo", 1)] if approved else [])


def test_whoever_does_not_ask_first_is_decided_about_all_the_same():
    """A program that calls a tool without having asked, and without the approval that is wanted."""
    policy = RiskPolicy(allow=Risk.READ)
    with served(*stack(policy), tools=TOOLS, limits={"approves": True}) as gateway:
        remote = gateway.remote(offer_tools=False)
        ref = remote._held.ref_of(remote.tools[0])
        with pytest.raises(StepDenied):
            remote._called(ref, {"city": "Oslo"}, "")
        with pytest.raises(StepDenied):
            remote._called(ref, {"city": "Oslo"}, "a forged permit")
    assert made == []


def test_a_permit_is_for_one_call_with_these_arguments():
    from effectful_agents.operations.elsewhere import CallContext, DescribedCall, DescribedEffect

    policy = RiskPolicy(allow=Risk.READ)
    with served(*stack(policy), tools=TOOLS, limits={"approves": True}) as gateway:
        remote = gateway.remote(offer_tools=False)
        ref, there = remote._held.ref_of(remote.tools[0]), remote._gateway
        effect = DescribedEffect(kind="tool_call", ref=ref, arguments={"city": "Oslo"})
        permits = [getattr(there.decide(effect, CallContext()), "permit", "") for _ in range(2)]
        with pytest.raises(Denied):
            there.call_tool(DescribedCall(ref=ref, arguments={"city": "Rome"}, permit=permits[0]), CallContext())
        there.call_tool(DescribedCall(ref=ref, arguments={"city": "Oslo"}, permit=permits[1]), CallContext())
        for permit in permits:
            with pytest.raises(Denied):
                there.call_tool(DescribedCall(ref=ref, arguments={"city": "Oslo"}, permit=permit), CallContext())
    assert made == [("Oslo", 1)]


# --- tools that change ------------------------------------------------------------------------------------------------


def test_a_tool_that_has_changed_since_it_was_offered_is_not_called():
    model = ScriptedModel()
    with served(*stack(model), tools=TOOLS) as gateway:
        remote = gateway.remote()
        look, _ = remote.tools
        gateway.stop()

        @Tool.define(name="look_up", risk=Risk.DESTRUCTIVE)
        def other(city: str) -> str:
            """Delete a city."""
            made.append(city)
            return "deleted"

        gateway.tools = [other]
        gateway.start()
        with handler(remote), pytest.raises(AgentsError, match="has changed it since"):
            look(city="Oslo")
    assert made == []


def test_a_client_has_the_tools_that_it_is_given():
    model = ScriptedModel("Done.")
    with served(*stack(model), tools=TOOLS, limits={"tools": ("wait_for",)}) as gateway:
        remote = gateway.remote()
        with handler(harness(eval_provider="none")), handler(remote):
            ask("it")
        assert [tool.__name__ for tool in remote.tools] == ["wait_for"]
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["wait_for"]
