"""What outlasts a session: values, functions and tools that the model leaves on objects of the program."""

from __future__ import annotations

import inspect

import pytest

from effectful_agents import Agent, NotHandled, Skill
from effectful_agents.testing import calls
from tests.handlers.synthesis.coding import coding, results, runs, tools


@Skill.define
def ask(n: int, words: list[str] | None = None) -> str:
    """Say something about {n}."""
    raise NotHandled


class Bot(Agent):
    """A bot that keeps things."""

    def __init__(self) -> None:
        self.codes: dict[str, str] = {}

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def test_functions_on_self_are_tools_from_the_next_turn_on():
    bot = Bot()
    leave = "def next_guess(prefix: str) -> str:\n    return prefix + 'A'\n\nself.next_guess = next_guess"
    with coding(runs(leave), "one", calls("next_guess", prefix="B"), "two") as model:
        bot.ask("1")
        bot.ask("2")
    assert "next_guess" not in tools(model.requests[0])
    assert "return prefix + 'A'" in tools(model.requests[1])["next_guess"]["description"]
    assert results(model)[-1] == "BA"


def test_a_function_that_is_bound_to_self_is_offered_without_its_receiver():
    bot = Bot()
    leave = (
        "import types\ndef count(self, more: int) -> int:\n    'Count the codes.'\n    return len(self.codes) + more\n"
        "self.count = types.MethodType(count, self)"
    )
    with coding(runs(leave), calls("count", more=2), "done") as model:
        bot.ask("1")
    tool = tools(model.requests[1])["count"]
    assert (tool["description"], list(tool["parameters"]["properties"])) == ("Count the codes.", ["more"])
    assert results(model)[-1] == "2"


def test_it_is_called_by_the_name_of_the_attribute():
    bot = Bot()
    with coding(
        runs("def f(x: int) -> int:\n    return x + 1\nself.increased = f"), calls("increased", x=1), "x"
    ) as model:
        bot.ask("1")
    assert results(model)[-1] == "2"


@pytest.mark.parametrize(
    "leave",
    ["def f(x):\n    return x\nself.f = f", "def f(x: int) -> int:\n    return x\nself._f = f", "self.f = print"],
)
def test_functions_that_are_private_or_untyped_are_kept_back(leave):
    bot = Bot()
    with coding(runs(leave), "one") as model:
        bot.ask("1")
    assert model.requests[0]["tools"] == model.requests[1]["tools"]


def test_functions_of_the_program_on_an_agent_are_no_tools():
    bot = Bot()

    def callback(x: int) -> int:
        """A function that the program keeps there."""
        return x

    bot.callback = callback
    with coding("one") as model:
        bot.ask("1")
    assert "callback" not in tools(model.requests[0])


def test_the_source_of_what_a_snippet_made_can_be_read():
    bot = Bot()
    with coding(runs("def f(x: int) -> int:\n    return x + 1  # one more\n\nself.f = f"), "one"):
        bot.ask("1")
    assert inspect.getsource(bot.f).endswith("return x + 1  # one more\n")


def test_a_tool_that_the_session_made_is_offered():
    make = "from effectful_agents import Tool\n@Tool.define\ndef twice(x: int) -> int:\n    'Twice.'\n    return 2 * x"
    with coding(runs(make), calls("twice", x=4), "done") as model:
        ask(1)
    assert results(model) == ["", "8"]


@pytest.mark.parametrize("collection", ["explicit", "auto"])
def test_functions_of_a_session_are_no_tools(collection):
    make = "def shout(text: str) -> str:\n    'Shout.'\n    return text.upper()"
    with coding(runs(make), runs("print(shout('x'))"), "done", tool_collection=collection) as model:
        ask(1)
    assert model.requests[0]["tools"] == model.requests[1]["tools"] == model.requests[2]["tools"]
    assert results(model) == ["", "X\n"]
