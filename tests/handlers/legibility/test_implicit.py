"""Functions of the scope as tools, though nobody declared them."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import math  # noqa: F401 - modules in scope are not offered
import weakref
from collections.abc import Iterator
from dataclasses import field  # noqa: F401 - nor what has no annotations
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import DefinitionError
from effectful_agents.handlers.legibility.implicit import ImplicitToolExtractor
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.legibility.offers import names


def offered(skill: Any, *arguments: Any, **options: Any) -> list[str]:
    model = ScriptedModel("ok")
    with handler(model), handler(harness(system_prompt="brief", tool_collection="none")):
        with handler(ImplicitToolExtractor(**options)):
            skill(*arguments)
    return names(model.requests[0])


def test_functions_are_offered_that_say_what_they_do_and_with_what_types():
    def measure(text: str) -> int:
        """Measure a text."""
        return len(text)

    def undocumented(text: str) -> int:
        return len(text)

    def half(text, count: int) -> int:
        """Has no type for a parameter."""
        return count

    def open_ended(text: str):
        """Has no type for what it returns."""

    def _private(text: str) -> int:
        """Private."""
        return 0

    def generated(count: int) -> Any:
        """Generate."""
        yield count

    @contextlib.contextmanager
    def opened(path: str) -> Iterator[int]:
        """Open something."""
        yield 1

    def strange(text: str) -> str:
        """Somebody wrote into its attributes."""
        return text

    strange.__signature__ = "text"  # ty: ignore[unresolved-attribute]

    async def later(text: str) -> str:
        """Later."""
        return text

    @Tool.define
    def declared() -> int:
        """Declared."""
        return 1

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["declared", "later", "measure"]


def test_a_function_is_called_with_decoded_arguments_and_keeps_its_identity():
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    model = ScriptedModel(calls("add", a=1), calls("add", a=2, b=3), "done")
    stack = handler(harness(system_prompt="brief", tool_collection="auto"))
    with handler(model), stack:
        assert ask() == "done"
    assert [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"] == ["2", "5"]
    definitions = [request["tools"] for request in model.requests]
    assert definitions[0] == definitions[1] == definitions[2]
    assert add(1) == 2


def test_a_predicate_narrows_what_is_offered():
    def one() -> int:
        """One."""
        return 1

    def two() -> int:
        """Two."""
        return 2

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask, predicate=lambda function: function.__name__ == "two") == ["two"]


class Base(Agent):
    def inherited(self, text: str) -> str:
        """Inherited."""
        return f"base {text}"

    def overridden(self) -> str:
        """Overridden."""
        return "base"

    def hidden(self) -> str:
        """Hidden by an attribute."""
        return "base"


class Bot(Base):
    def __init__(self, name: str) -> None:
        self.name = name
        self.hidden = 3

    def overridden(self) -> str:
        """Overridden by the bot."""
        return self.name

    @property
    def attribute(self) -> str:
        """A property is not run."""
        raise AssertionError

    @staticmethod
    def fixed(count: int) -> int:
        """Static."""
        return count

    @classmethod
    def made(cls, name: str) -> str:
        """Of the class."""
        return f"{cls.__name__} {name}"

    def _secret(self) -> str:
        """Kept back."""
        return ""

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled


def test_methods_of_the_agent_are_offered_and_called_on_it():
    bot = Bot("Robin")
    assert offered(bot.ask) == ["fixed", "inherited", "made", "overridden"]
    model = ScriptedModel(
        calls("overridden"), calls("inherited", text="x"), calls("fixed", count=2), calls("made", name="y"), "done"
    )
    with handler(model), handler(harness(system_prompt="brief", tool_collection="auto")):
        bot.ask()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["Robin", "base x", "2", "Bot y"]


def test_methods_of_another_agent_go_by_its_name():
    robin = Bot("Robin")

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == [
        *("robin__ask", "robin__fixed", "robin__inherited", "robin__made", "robin__overridden"),
    ]
    assert robin.name == "Robin"


def test_functions_set_on_an_agent_are_found_while_the_call_runs():
    bot = Bot("Robin")

    def greet(name: str) -> str:
        """Greet."""
        return f"Hello {name}"

    def reply(_: Any) -> Any:
        bot.greet = greet
        bot.own = bot.overridden
        return calls("overridden")

    model = ScriptedModel(reply, "done")
    with handler(model), handler(harness(system_prompt="brief", tool_collection="auto")):
        bot.ask()
    assert "greet" not in names(model.requests[0])
    assert names(model.requests[1]) == ["fixed", "greet", "inherited", "made", "overridden"]


def test_a_function_without_a_schema_is_left_out_in_silence(caplog):
    class Socket:
        pass

    def connect(socket: Socket) -> int:
        """Connect."""
        return 1

    def fine() -> int:
        """Fine."""
        return 1

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with caplog.at_level(logging.INFO):
        assert offered(ask) == ["fine"]
    assert not caplog.records


def test_what_the_framework_itself_is_made_of_is_not_offered():
    from effectful_agents import acall, run, steps  # noqa: F401

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == []


def test_a_wrapper_that_copied_the_attributes_of_a_function_is_another_tool():
    def inner(text: str) -> str:
        """Inner."""
        return "inner"

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["inner"]

    @functools.wraps(inner)
    def inner(text: str) -> str:
        return "outer"

    model = ScriptedModel(calls("inner", text="x"), "done")
    with handler(model), handler(harness(system_prompt="brief", tool_collection="auto")):
        ask()
    assert model.requests[-1]["messages"][-1]["content"] == "outer"


def test_a_function_is_freed_with_its_tool():
    def make() -> weakref.ref[Any]:
        def local(text: str) -> str:
            """Local."""
            return text

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        assert offered(ask) == ["local"]
        return weakref.ref(local)

    freed = make()
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize("annotation", ["1 / 0", "absent.name", "a b"])
def test_an_annotation_that_raises_keeps_a_function_back_and_is_told_of_a_tool(annotation, caplog):
    def divide(number: int) -> int:
        """Divide."""
        return number

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    divide.__annotations__["number"] = annotation
    with caplog.at_level(logging.DEBUG):
        assert "divide" not in offered(ask)
    assert "`divide` is not offered" in caplog.text
    del divide
    declared = Tool.define(_half)
    declared.__wrapped__.__annotations__["number"] = annotation  # ty: ignore
    with pytest.raises(DefinitionError, match="an annotation of `_half`"):
        offered(ask)
    del declared


def _half(number: int) -> int:
    """Halve."""
    return number


def test_what_is_written_into_the_attributes_of_a_function_breaks_nothing():
    def measure(text: str) -> int:
        """Measure a text."""
        return len(text)

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    def wrapped(text: str) -> int:
        """Wrapped in nothing."""
        return len(text)

    measure.__module__ = 7  # ty: ignore
    wrapped.__wrapped__ = 5  # ty: ignore
    tools = offered(ask)
    assert "measure" in tools
    assert "wrapped" not in tools
