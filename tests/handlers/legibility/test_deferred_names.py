"""A catalogue of tools: what of it is shown, the names in it, and a tool that has to be called."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness, run
from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.legibility import ToolOutputCap
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.loop import send_request
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.legibility.offers import names

CHOICE: Any = {"type": "function", "function": {"name": "weather_1"}}


def weather(number: int, codes: int = 1, answer: str = "sunny") -> Tool:
    wide = Literal[tuple(f"the_code_of_a_region_{number}_{code}" for code in range(codes))]  # ty: ignore

    @Tool.define(name=f"weather_{number}", description=f"The weather, {answer}.")
    def tool(code: wide) -> str:  # ty: ignore
        return answer

    return tool


class Desk(Agent):
    """A desk, whose tools are set on it."""

    def __init__(self, **tools: Tool) -> None:
        self.__dict__.update(tools)

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def desk(count: int, codes: int = 1) -> Desk:
    return Desk(**{f"t{number}": weather(number, codes) for number in range(count)})


def results(messages: Any) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


# --- what is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cap", "whole"), [(16000, 4), (8000, 2), (5000, 1)])
def test_a_search_shows_as_many_tools_as_its_result_may_have_and_the_names_of_the_others(cap, whole):
    model = ScriptedModel(calls("search_tools", query="weather"), "ok")
    with handler(harness(system_prompt="brief", defer_tools=0)), handler(ToolOutputCap(cap)), handler(model):
        (result,) = results(run(desk(8, codes=120).ask, "?").messages)
    *shown, others = json.loads(result)
    assert [one["name"] for one in shown] == [f"weather_{number}" for number in range(whole)]
    assert all(len(one["parameters"]["properties"]["code"]["enum"]) == 120 for one in shown)
    assert others["too_long_to_show"] == [f"weather_{number}" for number in range(whole, 5)]
    assert len(result) <= cap


def test_a_tool_that_is_too_long_alone_is_named_and_can_be_called():
    replies = (
        calls("search_tools", query="weather"),
        calls("use_tool", id="b", name="weather_0", arguments={"code": "the_code_of_a_region_0_7"}),
        "ok",
    )
    with handler(harness(system_prompt="brief", defer_tools=0)), handler(ScriptedModel(*replies)):
        result, value = results(run(desk(1, codes=2000).ask, "?").messages)
    assert json.loads(result)[0]["too_long_to_show"] == ["weather_0"]
    assert value == "sunny"


def test_the_names_of_all_are_a_few_of_many():
    agent = Desk(**{f"t{number}": weather(number) for number in range(400)})
    model = ScriptedModel(calls("search_tools", query="zebra"), "ok")
    with handler(harness(system_prompt="brief", defer_tools=0)), handler(model):
        (result,) = results(run(agent.ask, "?").messages)
    assert len(result) <= 4000
    shown, _, more = result.rpartition(" and ")
    assert shown.count("`weather_") + int(more.split()[0]) == 400


# --- names ------------------------------------------------------------------------------------------------------------


def pick(answer: str) -> Tool:
    @Tool.define(name="pick", description=f"Pick from {answer}.")
    def tool() -> str:
        return answer

    return tool


def use(name: str, id: str) -> Any:
    return calls("use_tool", id=id, name=name, arguments={})


def test_names_of_tools_with_the_same_name_hold_when_one_of_them_goes():
    agent = Desk(first=pick("a"), second=pick("b"))

    def drop(_: Any) -> Any:
        del agent.__dict__["first"]
        return use("pick_2", "b")

    def search(_: Any) -> Any:
        return calls("search_tools", id="d", query="pick")

    replies = (use("pick", "a"), drop, use("pick", "c"), search, "ok", use("pick_2", "e"), "ok")
    with handler(harness(system_prompt="brief", defer_tools=0)), handler(ScriptedModel(*replies)) as model:
        agent.ask("?")
        agent.ask("?")
    first, second, found, again = results(agent.__history__)
    assert (first, second, again) == ("a", "b", "b")
    assert "no tool 'pick'. Alike are: `pick_2`" in results(model.requests[3]["messages"])[-1]
    assert [one["name"] for one in json.loads(found)] == ["pick_2"]


def test_a_tool_that_comes_later_takes_the_name_of_none():
    second = pick("b")
    agent = Desk(z=pick("a"))

    def add(_: Any) -> Any:
        agent.__dict__["a"] = second
        return use("pick", "b")

    replies = (use("pick", "a"), add, use("pick_2", "c"), "ok")
    with handler(harness(system_prompt="brief", defer_tools=0)), handler(ScriptedModel(*replies)):
        agent.ask("?")
    assert results(agent.__history__) == ["a", "a", "b"]


def test_a_tool_that_is_defined_again_keeps_its_name():
    agent = Desk(one=pick("a"))

    def again(_: Any) -> Any:
        agent.__dict__["one"] = pick("b")
        return use("pick", "b")

    with (
        handler(harness(system_prompt="brief", defer_tools=0)),
        handler(ScriptedModel(use("pick", "a"), again, use("pick", "c"), "ok")),
    ):
        agent.ask("?")
    assert results(agent.__history__) == ["a", "a", "b"]


# --- a tool that has to be called -------------------------------------------------------------------------------------


def test_a_tool_that_tool_choice_names_stays_in_view():
    sent: list[Any] = []

    def send(**request: Any) -> Any:
        sent.append(request)
        return calls("weather_1", id=f"u{len(sent)}", code="the_code_of_a_region_1_0")

    stack = harness(model="gpt-5-mini", system_prompt="brief", tool_choice=CHOICE, turns=2, defer_tools=0)
    with handler(stack), handler({send_request: send}), pytest.raises(Exception, match="turns"):
        desk(30).ask("?")
    assert [names(request) for request in sent] == [["search_tools", "use_tool", "weather_1"]] * 2


def test_a_choice_of_a_tool_that_is_out_of_view_is_an_error_that_says_how():
    stack = harness(system_prompt="brief", defer_tools=0)
    with handler(ScriptedModel()), handler(stack), handler(LiteLLMConfigurer(tool_choice=CHOICE)):
        with pytest.raises(ConfigurationError, match=r"DeferredTools\(always=\['weather_1'\]\)"):
            desk(30).ask("?")
