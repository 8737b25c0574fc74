"""Deferring tools that are called by Python expressions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls


class Ship:
    """A ship, which no JSON can say."""


mary = Ship()


@Tool.define
def moor(ship: Ship, *berths: int) -> str:
    """Moor a ship at some berths."""
    return f"{type(ship).__name__} at {sum(berths)}"


@Skill.define
def harbour(question: str) -> str:
    """{question}"""
    raise NotHandled


def by_expression(expression: str, id: str = "e") -> Any:
    return calls("use_tool", id=id, name="moor", arguments={"call": expression})


def asked(*replies: Any, **options: Any) -> list[Any]:
    """The requests of a call."""
    with handler(harness(defer_tools=0, **options)), handler(ScriptedModel(*replies)) as model:
        harbour("?")
    return model.requests


def offered(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


@pytest.mark.parametrize("calling", ["auto", "code"])
def test_what_is_called_by_an_expression_is_found_and_used_by_it(calling):
    first, _, third = asked(
        *(calls("search_tools", query="moor a ship"), by_expression("moor(mary, 2, 3)"), "ok"),
        type_checker="none",
        tool_calling=calling,
    )
    assert offered(first) == ["exec_code", "search_tools", "use_tool", "write_and_run_body"]
    [found, *_] = json.loads(third["messages"][-3]["content"])
    assert found["name"] == "moor"
    assert "moor(ship: Ship, *berths: int) -> str" in found["description"]
    assert list(found["parameters"]["properties"]) == ["call"]
    assert third["messages"][-1]["content"] == "Ship at 5"


def sunken() -> int:
    raise LookupError(f"{'a reef, ' * 60}and a wreck")


def test_what_is_wrong_with_an_expression_is_told_in_full():
    _, second = asked(by_expression("moor(mary, sunken())"), "ok", type_checker="none")
    said = second["messages"][-1]["content"]
    assert "moor(mary, sunken())" in said
    assert said.endswith("a reef, and a wreck")


def test_without_an_executor_a_tool_that_no_json_can_say_is_left_out(caplog):
    [first] = asked("ok", eval_provider="none")
    assert "tools" not in first
    assert "`moor` is not offered" in caplog.text
