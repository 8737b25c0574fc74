"""Which tools a skill is offered by agents: its own one, those in view, and those that it is given."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.legibility.offers import Bot, offered


def test_a_method_is_offered_its_public_siblings():
    assert offered(Bot().ask) == ["count", "other"]


def test_the_siblings_act_on_the_same_agent():
    @dataclasses.dataclass
    class Counter(Agent):
        total: int = 0

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def add(self, number: int) -> int:
            """Add."""
            self.total += number
            return self.total

    counter, other = Counter(), Counter()
    model = ScriptedModel(calls("add", number=2), calls("add", number=3, id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        counter.ask()
    assert (counter.total, other.total) == (5, 0)


def test_inherited_and_overriding_methods_are_offered_once():
    class Child(Bot):
        @Tool.define
        def count(self, number: int) -> int:
            """Count otherwise."""
            return number + 2

        @Tool.define
        def more(self) -> str:
            """More."""
            return ""

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        Child().ask()
    tools = {tool["function"]["name"]: tool["function"]["description"] for tool in model.requests[0]["tools"]}
    assert {name: tools[name] for name in ("count", "more", "other")} == {
        "count": "Count otherwise.",
        "more": "More.",
        "other": "{question}",
    }


def test_a_method_hidden_by_something_else_in_the_child_is_not_offered():
    class Child(Bot):
        count = None

    assert offered(Child().ask) == ["other"]


def class_method_outside(function):
    return classmethod(Skill.define(function))


def class_method_inside(function):
    return Skill.define(classmethod(function))


@pytest.mark.parametrize("define", [class_method_outside, class_method_inside])
def test_the_siblings_of_a_class_method_are_those_of_the_class(define):
    class Factory:
        @define
        def make(cls) -> str:
            """Make."""
            raise NotHandled

        @classmethod
        @Tool.define
        def outside(cls) -> str:
            """Describe."""
            return cls.__name__

        @Tool.define
        @classmethod
        def inside(cls) -> str:
            """Describe."""
            return cls.__name__

        @staticmethod
        @Tool.define
        def fixed() -> str:
            """Fixed."""
            return "fixed"

        @Tool.define
        def needs_an_instance(self) -> str:
            """It needs one."""
            return ""

    class Child(Factory): ...

    assert offered(Factory.make) == ["fixed", "inside", "outside"]
    model = ScriptedModel(calls("inside"), calls("outside", id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Child.make()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["Child", "Child"]


def test_a_skill_taken_from_the_class_is_offered_the_siblings_of_its_instance():
    bot = [Bot()]
    assert offered(Bot.ask, *bot) == ["count", "other"]


def test_another_agent_in_view_offers_its_tools_under_its_name():
    helper = Bot()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["helper__ask", "helper__count", "helper__other"]
    assert helper


@dataclasses.dataclass
class Named(Agent):
    name: str

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled

    @Tool.define
    def tell(self) -> str:
        """Tell."""
        return self.name


def test_two_agents_of_one_class_are_told_apart():
    ann, bob = Named("Ann"), Named("Bob")

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    model = ScriptedModel(calls("bob__tell", id="a"), calls("ann__tell", id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        ask()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["Bob", "Ann"]
    assert ann != bob


def test_an_argument_that_is_an_agent_offers_its_tools_under_the_name_of_the_parameter():
    @Skill.define
    def ask(partner: Bot) -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask, Bot()) == ["partner__ask", "partner__count", "partner__other"]


def test_each_call_is_offered_the_tools_of_its_own_arguments():
    @Skill.define
    def ask(partner: Named) -> str:
        """Ask."""
        raise NotHandled

    for name in ("Ann", "Bob"):
        with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("partner__tell"), "ok")) as model:
            ask(Named(name))
        assert model.requests[-1]["messages"][-1]["content"] == name


def test_an_argument_that_is_a_tool_is_offered():
    @Tool.define
    def given() -> str:
        """Given."""
        return ""

    def make():
        @Skill.define
        def ask(tool: Tool) -> str:
            """Ask."""
            raise NotHandled

        return ask

    [tool] = [given]
    del given
    ask = make()
    assert offered(ask, tool) == ["given"]


def test_an_agent_is_not_offered_its_own_tools_twice():
    class Knowing(Agent):
        def __init__(self) -> None:
            self.me = self

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def tell(self) -> str:
            """Tell."""
            return ""

    knowing = Knowing()
    assert offered(knowing.ask) == ["tell"]
    assert knowing


def test_no_property_of_an_agent_is_run():
    class Costly(Agent):
        @property
        def expensive(self) -> Any:
            raise AssertionError("the property was run")

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    assert offered(Costly().ask) == []
    costly = Costly()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["costly__ask"]
    assert costly


def test_a_static_tool_of_another_agent_keeps_its_own_name():
    class Clock(Agent):
        @staticmethod
        @Tool.define
        def zone() -> str:
            """The zone."""
            return "UTC"

    clock = Clock()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    model = ScriptedModel(calls("clock__zone"), "done")
    stubbed = {clock.zone: lambda: "CET"}
    with handler(model), handler(harness(system_prompt="brief")), handler(stubbed):
        ask()
    assert model.requests[1]["messages"][-1]["content"] == "CET"
    assert Clock.zone.__name__ == "zone"
