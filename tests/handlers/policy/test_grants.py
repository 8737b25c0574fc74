"""`GrantEffects`: what may happen at all."""

from __future__ import annotations

import contextlib

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import AgentsError, Denied, OptionError, StepDenied
from effectful_agents.handlers.policy import GrantEffects, Policy
from effectful_agents.operations.policy import Disposition, EffectKind, ProposedEffect
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.policy.routes import ROUTES, TO, Clerk, assistant, deputy, in_repl, send, sent, taking


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@pytest.mark.parametrize("route", ROUTES)
def test_no_tool_is_called_without_the_grant(route):
    with taking(route), handler(GrantEffects("model_call", "delegate", "import")), contextlib.suppress(AgentsError):
        assistant("Send it.")
    assert sent == []


@pytest.mark.parametrize("route", ["through a skill", "through a skill that code calls"])
def test_no_skill_is_called_in_a_call_without_the_grant(route):
    with taking(route) as model, handler(GrantEffects()), contextlib.suppress(AgentsError):
        assistant("Send it.")
    assert not any("Do for me" in str(request["messages"][1:2]) for request in model.requests)


def test_no_request_is_made_without_the_grant():
    with (
        handler(harness(eval_provider="none")),
        handler(ScriptedModel("hi")) as model,
        handler(GrantEffects("tool_call")),
    ):
        with pytest.raises(Denied, match="model_call"):
            assistant("?")
        assert send("ann") == "sent to ann"
    assert model.requests == []


def test_without_arguments_there_are_requests_and_tool_calls():
    assert GrantEffects().effects == {EffectKind.MODEL_CALL, EffectKind.TOOL_CALL}


@pytest.mark.parametrize("executor", ["builtin", "restricted"])
@pytest.mark.parametrize(
    "code",
    [
        "import math\nx = 1",
        "def f():\n    from math import pi\nx = 1",
        "class A:\n    import math\nx = 1",
        "import math as m",
    ],
)
def test_no_module_is_imported_without_the_grant(executor, code):
    model = ScriptedModel(in_repl(code), "done")
    with handler(harness(eval_provider=executor, type_checker="none")), handler(model):
        with handler(GrantEffects("model_call", "tool_call")):
            assert assistant("?") == "done"
    told = model.requests[1]["messages"][-1]["content"]
    assert "`import` is not granted" in told
    granted = ScriptedModel(in_repl(code), "done")
    with handler(harness(eval_provider=executor, type_checker="none")), handler(granted):
        with handler(GrantEffects("model_call", "tool_call", "import")):
            assistant("?")
    assert "not granted" not in granted.requests[1]["messages"][-1]["content"]


def no_import_but_math(effect: ProposedEffect) -> Disposition | None:
    return Disposition.DENY_STEP if effect.kind is EffectKind.IMPORT and effect.name != "math" else None


def test_a_module_is_named():
    only_math = Policy(no_import_but_math)
    model = ScriptedModel(in_repl("import math\nimport json"), in_repl("import math\nprint(math.pi)"), "done")
    with handler(harness(eval_provider="restricted", type_checker="none")), handler(model), handler(only_math):
        assistant("?")
    assert "not done" in model.requests[1]["messages"][-1]["content"]
    assert "3.14" in model.requests[2]["messages"][-1]["content"]


def test_nested_blocks_can_only_lose():
    everything = GrantEffects(*EffectKind)
    with handler(GrantEffects("model_call")), handler(everything), pytest.raises(StepDenied):
        send(TO)
    with handler(everything), handler(GrantEffects("model_call")), pytest.raises(StepDenied):
        send(TO)
    with handler(everything), handler(everything):
        send(TO)
    assert sent == [TO]


def test_a_skill_that_was_given_less_has_less_whatever_it_calls():
    def program(of: object) -> ScriptedModel:
        model = ScriptedModel(calls("deputy", request="go"), calls("send", to=TO), "I could not", "done")
        with handler(harness(eval_provider="none")), handler(model), handler(GrantEffects("model_call", of=of)):
            assert assistant("?") == "done"
        return model

    program(deputy)
    assert sent == []
    with handler(harness(eval_provider="none")), handler(ScriptedModel(calls("send", to=TO), "done")):
        with handler(GrantEffects("model_call", of=deputy)):
            assistant("?")
    assert sent == [TO]


def test_an_agent_and_a_class_of_agents():
    one, other = Clerk(), Clerk()
    for of, expected in ((one, ["b"]), (Clerk, [])):
        sent.clear()
        with handler(harness(eval_provider="none")), handler(GrantEffects("model_call", of=of)):
            for clerk, to in ((one, "a"), (other, "b")):
                with handler(ScriptedModel(calls("post", to=to), "done")):
                    clerk.ask("?")
        assert sent == expected


def test_what_there_is_not():
    with pytest.raises(OptionError, match="kinds of effects are model_call"):
        GrantEffects("shell")
    with pytest.raises(OptionError, match="`of`"):
        GrantEffects("model_call", of=3)


def test_a_tool_that_is_a_skill_by_another_name():
    @Skill.define
    def asker(question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    def harmless(question: str) -> str:
        """Do nothing."""
        return asker(question)

    @Skill.define
    def outer() -> str:
        """Go."""
        raise NotHandled

    assert harmless.__name__ == "harmless"
    model = ScriptedModel(calls("harmless", question="?"), "done")
    with handler(harness(eval_provider="none")), handler(model), handler(GrantEffects()):
        assert outer() == "done"
    assert "`delegate` is not granted" in model.requests[1]["messages"][-1]["content"]


class Secretary(Clerk):
    """You are a secretary."""

    @Skill.define
    def ask(self, request: str) -> str:
        """Neatly: {request}"""
        raise NotHandled


def test_a_method_of_a_class_stands_for_those_that_override_it():
    for of, expected in ((Clerk.ask, []), (Secretary.ask, ["clerk"])):
        sent.clear()
        with handler(harness(eval_provider="none")), handler(GrantEffects("model_call", of=of)):
            for clerk, to in ((Clerk(), "clerk"), (Secretary(), "secretary")):
                with handler(ScriptedModel(calls("post", to=to), "done")):
                    clerk.ask("?")
        assert sent == expected


def test_a_method_of_an_instance_stands_for_that_one():
    one, other = Secretary(), Secretary()
    with handler(harness(eval_provider="none")), handler(GrantEffects("model_call", of=one.ask)):
        for clerk, to in ((one, "a"), (other, "b")):
            with handler(ScriptedModel(calls("post", to=to), "done")):
                clerk.ask("?")
    assert sent == ["b"]
