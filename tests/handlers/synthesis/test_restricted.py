"""The same under the executor that holds code back: what is not allowed is told to the model, the rest works."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool
from effectful_agents.testing import calls, says
from tests.handlers.synthesis.coding import coding, results, runs, submits, tools

BASKET = ["apple", "pear"]


def restricted(*replies: Any, **options: Any) -> Any:
    return coding(*replies, eval_provider="restricted", **options)


@Tool.define
def first[T](items: list[T]) -> T:
    """The first of some."""
    return items[0]


class Keeper(Agent):
    """Keeps things."""

    def __init__(self) -> None:
        self.codes: dict[str, str] = {}

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def climb(self, steps: int) -> int:
        """Climb {steps} steps."""
        raise NotHandled


@Skill.define
def ask(n: int) -> str:
    """{n}"""
    raise NotHandled


def test_a_session_keeps_what_it_binds():
    with restricted(runs("import math\nm = n + 1"), runs("print(math.sqrt(m), first(BASKET))"), "done") as model:
        ask(3)
    assert results(model) == ["", "2.0 apple\n"]


def test_what_is_not_allowed_is_told_and_the_session_goes_on():
    with restricted(runs("m = 1\nimport os"), runs("open('x')"), runs("print(m)"), "done") as model:
        ask(3)
    first_, second, third = results(model)
    assert "`os`" in first_
    assert "open" in second
    assert third == "1\n"


def test_a_body_may_call_itself_and_write_onto_self():
    code = (
        "def climb(self, steps):\n    self.codes['last'] = str(steps)\n    return steps and 1 + self.climb(steps - 1)"
    )
    keeper = Keeper()
    with restricted(submits(code)):
        assert keeper.climb(4) == 4
    assert keeper.codes == {"last": "0"}


def test_a_function_that_is_left_on_an_agent_is_held_back_later_too():
    keeper = Keeper()
    leave = "def peek(name: str) -> str:\n    return str(getattr(self, name))\n\nself.peek = peek"
    with restricted(runs(leave), calls("peek", name="__reduce__"), "done") as model:
        keeper.ask("?")
    assert "peek" in tools(model.requests[1])
    assert "The tool raised an exception" in results(model)[-1]


def test_examples_are_run_under_the_same_rules():
    code = "def f(x: int) -> int:\n    '''\n    >>> import os\n    '''\n    return x"

    @Skill.define
    def make(n: int) -> Callable[[int], int]:
        """{n}"""
        raise NotHandled

    with restricted(says(json.dumps({"code": code})), num_retries=1) as model:
        with pytest.raises(Exception, match=r"`os`|examples? in the docstring"):
            make(1)
    assert len(model.requests) == 1


def test_an_expression_is_held_back_as_well():
    replies = calls("first", call="first([tuple.__mro__])"), calls("first", call="first(BASKET)"), "done"
    with restricted(*replies) as model:
        ask(1)
    assert "`__mro__`" in model.requests[1]["messages"][-1]["content"]
    assert results(model) == ["apple"]
