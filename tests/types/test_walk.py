"""The tools that a scope holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.types.walk import ToolSet, in_order, is_agent, tools_in_scope, tools_of
from tests.ids import shown


def tool(name: str) -> Tool:
    @Tool.define(name=name)
    def made() -> str:
        """A tool."""
        return name

    return made


class Bot(Agent):
    number = 3

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled

    @Tool.define
    def count(self) -> int:
        """Count."""
        return self.number

    @Tool.define
    def _secret(self) -> int:
        """Kept back."""
        return 0

    def plain(self) -> int:
        """No tool."""
        return 0

    @property
    def costly(self) -> Any:
        raise AssertionError("the property was run")


class Holder:
    """A class with tools and no skill is no agent."""

    @Tool.define
    def count(self) -> int:
        """Count."""
        return 1


def names(found: Any) -> list[str]:
    return [each.__name__ for each in found]


# Scopes


def test_tools_come_in_the_order_of_the_scope():
    scope = {"b": tool("b"), "x": 3, "a": tool("a"), "f": len, "c": Bot.ask}
    assert names(tools_in_scope(scope)) == ["b", "a", "ask"]


def test_names_that_begin_with_an_underscore_are_kept_back():
    assert tools_in_scope({"_a": tool("a"), "__b": tool("b"), "_bot": Bot()}) == []


def test_a_tool_under_two_names_is_taken_once():
    one = tool("one")
    assert tools_in_scope({"first": one, "second": one}) == [one]


def test_an_empty_scope_holds_none():
    assert tools_in_scope({}) == []


def test_tools_of_an_agent_go_by_its_name_in_the_scope():
    bot = Bot()
    found = tools_in_scope({"helper": bot, "x": tool("x")})
    assert names(found) == ["helper__ask", "helper__count", "x"]
    assert found[1]() == 3
    assert found[1] == bot.count


def test_one_agent_under_two_names_is_taken_once():
    bot = Bot()
    assert names(tools_in_scope({"first": bot, "second": bot})) == ["first__ask", "first__count"]


def test_tools_of_the_receiver_come_first_and_go_by_their_own_names():
    bot, other = Bot(), Bot()
    found = tools_in_scope({"x": tool("x"), "self": bot, "other": other}, bot)
    assert names(found) == ["ask", "count", "x", "other__ask", "other__count"]


def test_a_method_in_the_scope_under_a_name_of_its_own_is_that_of_the_receiver():
    bot = Bot()
    assert names(tools_in_scope({"counter": bot.count}, bot)) == ["ask", "count"]


def test_classes_and_objects_that_are_no_agents_are_not_looked_into():
    assert tools_in_scope({"Bot": Bot, "holder": Holder(), "list": [tool("x")], "dict": {"x": tool("x")}}) == []


# Objects


def test_an_object_offers_its_public_tools_in_the_order_of_the_class():
    assert names(tools_of(Bot())) == ["ask", "count"]
    assert names(tools_of(Holder())) == ["count"]


def test_what_was_set_on_it_comes_first_and_hides_what_the_class_has():
    bot = Bot()
    bot.count = tool("another")
    bot.extra = tool("extra")
    bot._hidden = tool("hidden")
    bot.ask = None
    assert names(tools_of(bot)) == ["another", "extra"]


def test_what_a_child_overrides_is_taken_from_the_child():
    class Child(Bot):
        @Tool.define
        def count(self) -> int:
            """Count otherwise."""
            return 4

        ask = None

        @Tool.define
        def more(self) -> int:
            """More."""
            return 5

    child = Child()
    assert [each() for each in tools_of(child)] == [4, 5]


def test_tools_of_several_bases_are_found_in_the_order_of_python():
    class Left:
        @Tool.define
        def one(self) -> str:
            """One."""
            return "left"

    class Right:
        @Tool.define
        def one(self) -> str:
            """One."""
            return "right"

        @Tool.define
        def other(self) -> str:
            """Other."""
            return "right"

    class Both(Left, Right): ...

    assert [each() for each in tools_of(Both())] == ["left", "right"]


@pytest.mark.parametrize("outside", [True, False])
def test_class_and_static_methods_are_found_in_both_orders(outside):
    def around(kind, function):
        return kind(Tool.define(function)) if outside else Tool.define(kind(function))

    def of_class(cls) -> str:
        """Of the class."""
        return cls.__name__

    def fixed() -> str:
        """Fixed."""
        return "fixed"

    of_class.__qualname__ = "Base.of_class"

    class Base(Agent):
        first = around(classmethod, of_class)
        second = around(staticmethod, fixed)

    class Child(Base): ...

    for holder in (Child(), Child):
        assert [each() for each in tools_of(holder)] == ["Child", "fixed"]


def test_a_class_offers_no_method_that_needs_an_instance():
    assert names(tools_of(Bot)) == []


def test_slots_and_dataclasses_are_looked_into():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        count: int

        @Tool.define
        def tell(self) -> int:
            """Tell."""
            return self.count

    @dataclasses.dataclass
    class Holding(Agent):
        given: Any

    assert [each() for each in tools_of(Slotted(3))] == [3]
    assert names(tools_of(Holding(tool("x")))) == ["x"]


# Agents


def test_what_is_an_agent():
    class Plain:
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    assert is_agent(Bot())
    assert is_agent(Plain())
    assert isinstance(Plain(), Agent)


@pytest.mark.parametrize("value", [Bot, Holder(), Holder, 3, None, "text", Bot.ask, object()], ids=shown)
def test_what_is_none(value):
    assert not is_agent(value)
    assert not isinstance(value, Agent)


class Answering(type):
    """A metaclass that has an answer to everything."""

    def __getattr__(cls, name: str) -> Any:
        return name


class Failing(type):
    """A metaclass that fails at everything."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("meta", [Answering, Failing])
def test_what_a_metaclass_says_makes_no_agent(meta):
    odd = meta("Odd", (), {})
    assert not is_agent(odd())
    assert not is_agent(odd)
    made = tool("made")
    assert tools_in_scope({"odd": odd(), "made": made}) == [made]


# Sets of tools


def test_a_set_is_iterated_over_in_its_order_and_so_are_those_made_of_it():
    many = [tool(f"t{number}") for number in range(30)]
    shuffled = many[::3] + many[1::3] + many[2::3]
    found = ToolSet(shuffled)
    assert list(found) == shuffled
    assert list(found | set(many[:5])) == shuffled
    assert list(found - set(many[:5])) == [one for one in shuffled if one not in many[:5]]
    assert list(found & set(many[:5])) == [one for one in shuffled if one in many[:5]]
    more = {tool(f"more{number}") for number in range(9)}
    assert names(found | more) == [*names(shuffled), *(f"more{number}" for number in range(9))]
    assert names(frozenset(more) | found) == [*(f"more{number}" for number in range(9)), *names(shuffled)]
    assert all(isinstance(one, ToolSet) for one in (found | more, frozenset(more) | found, found & more, found - more))
    assert found | set(many) == frozenset(many)
    with pytest.raises(TypeError):
        found | [tool("x")]


def test_tools_that_are_alike_stand_in_the_order_in_which_they_were_made():
    def made(value: int) -> Tool:
        @Tool.define
        def same() -> int:
            """All the same."""
            return value

        return same

    alike = [made(number) for number in range(30)]
    assert [one() for one in in_order(frozenset(alike))] == list(range(30))
    assert [one() for one in in_order(frozenset(one.named("other") for one in alike))] == list(range(30))
