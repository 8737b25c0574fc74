"""Values of any kind in a scope: none of them can break a call."""

from __future__ import annotations

import types
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.handlers.legibility import InMemoryPrompts, PromptRegistry
from effectful_agents.testing import ScriptedModel, calls
from effectful_agents.types.kinds import attributes_of, is_a, name_of_type


def refuse(*_: Any) -> Any:
    raise RuntimeError("not to be asked")


def strange(name: str) -> Any:
    """A value that tells nothing of itself. Not in the module, where pytest would ask it."""

    class Lazy:
        """A proxy outside of its context."""

        __getattribute__ = refuse
        __eq__ = refuse
        __hash__ = None  # ty: ignore

    class Mute(type):
        __getattribute__ = refuse
        __eq__ = refuse
        __hash__ = refuse
        __instancecheck__ = refuse
        __subclasscheck__ = refuse

    class Silent(metaclass=Mute):
        pass

    class Wrong(type):
        __agent_id__ = 3
        __mro__ = property(refuse)  # ty: ignore
        __dict__ = property(refuse)  # ty: ignore
        __name__ = property(refuse)  # ty: ignore

    class Liar(metaclass=Wrong):
        pass

    class Claims:
        """It stands for a tool, and is none."""

        __class__ = Tool  # ty: ignore

    values = {
        "lazy": object.__new__(Lazy),
        "silent": object.__new__(Silent),
        "class of silent": Silent,
        "liar": Liar(),
        "class of liar": Liar,
        "claims": Claims(),
    }
    return values[name]


NAMES = ("lazy", "silent", "class of silent", "liar", "class of liar", "claims")


def module(**names: Any) -> Any:
    made = types.ModuleType("strange_names")
    made.__dict__.update(Skill=Skill, NotHandled=NotHandled, Any=Any, **names)
    source = '@Skill.define\ndef ask(given: Any) -> str:\n    """Go on."""\n    raise NotHandled\n'
    exec(source, made.__dict__)
    return made


@pytest.mark.parametrize("collection", ["explicit", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_a_strange_value_in_a_scope_changes_no_call(name, collection):
    made = module(value=strange(name))
    with handler(harness(tool_collection=collection)), handler(ScriptedModel(calls("none"), "a", "b")) as model:
        assert made.ask(1) == "a"
        made.value = strange("claims")
        assert made.ask(1) == "b"
    assert "`value`" in model.requests[0]["messages"][0]["content"]
    offered = {tool["function"]["name"] for request in model.requests for tool in request.get("tools", ())}
    assert offered == {"exec_code", "write_and_run_body"}


@pytest.mark.parametrize("name", NAMES)
def test_a_strange_value_may_be_an_argument(name):
    with handler(harness(check_contracts=False)), handler(ScriptedModel("a")):
        assert module().ask(strange(name)) == "a"


@pytest.mark.parametrize("name", NAMES)
def test_a_strange_value_may_stand_in_a_class_beside_a_prompt_of_a_registry(name):
    class Desk:  # an abstract class would ask its attributes itself
        thing = strange(name)

        @Skill.define
        def ask(self) -> str:
            """Old."""
            raise NotHandled

    desk = Desk()
    desk.__dict__["other"] = strange(name)
    registry = PromptRegistry(InMemoryPrompts({"Desk.ask": "New."}))
    with handler(harness()), handler(registry), handler(ScriptedModel("a")):
        assert desk.ask() == "a"


def test_kinds_are_those_of_types_and_nothing_is_asked():
    assert is_a(True, int)
    assert not is_a(strange("claims"), Tool)
    assert not any(is_a(strange(name), Agent, Tool, types.ModuleType) for name in NAMES)
    assert name_of_type(strange("class of liar")) == "Liar"
    assert attributes_of(strange("lazy")) == {}
    assert attributes_of(3) == {}
