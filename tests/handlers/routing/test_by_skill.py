"""A skill that chooses the tools of others."""

from __future__ import annotations

import asyncio
import json

import pytest

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness, run, steps
from effectful_agents.errors import ConfigurationError, OptionError
from effectful_agents.handlers.routing import ToolRouter
from effectful_agents.operations.steps import ModelStep
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.routing.desk import DONE, ask, asked, names


@Skill.define
def choose(text: str, tools: dict[str, str]) -> list[str]:
    """Which of these tools does the request need? {tools}

    {text}
    """
    raise NotHandled


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def test_its_answer_is_the_palette():
    model = asked(ToolRouter(choose), ["weather"], calls("weather", city="Oslo"), "Sunny.")
    assert [names(request) for request in model.requests] == [[], ["weather"], ["weather"]]
    assert DONE == [("weather", "Oslo")]
    told = model.requests[0]["messages"][-1]["content"]
    assert "Hello" in told
    assert "The weather in a city." in told


def test_it_is_in_no_catalogue():
    """A skill that is written beside it would be offered it like any other."""

    @Tool.define
    def look(place: str) -> str:
        """Look at a place."""
        return place

    @Skill.define(tools=False)
    def router(tools: dict[str, str]) -> list[str]:
        """Which? {tools}"""
        raise NotHandled

    @Skill.define
    def serve(text: str) -> str:
        """{text}"""
        raise NotHandled

    model = asked(None, "a", call=lambda: serve("x"), eval_provider="none")
    assert {"look", "router"} <= {*names(model.requests[0])}
    model = asked(ToolRouter(router), ["router"], ["look"], "a", call=lambda: serve("x"), eval_provider="none")
    assert '"look"' in model.requests[0]["messages"][-1]["content"]
    assert '"router"' not in model.requests[0]["messages"][-1]["content"]
    assert names(model.requests[2]) == ["look"]


def test_its_answer_is_asked_for_as_a_list_of_the_names_that_there_are():
    model = asked(ToolRouter(choose), ["weather"], "a")
    schema = json.dumps(model.requests[0]["response_format"])
    assert '"enum": ["read_mail", "send_mail", "weather", "best", "report"]' in schema


def test_a_name_that_is_none_is_sent_back_to_it():
    model = asked(ToolRouter(choose), ["wether"], ["weather"], "a")
    assert "'weather', 'best' or 'report'; it is \"wether\"" in model.requests[1]["messages"][-1]["content"]
    assert names(model.requests[2]) == ["weather"]


def test_an_answer_of_another_form_is_held_to_the_names_too():
    @Skill.define
    def pick(text: str) -> tuple[str, ...]:
        """Which tools? {text}"""
        raise NotHandled

    model = asked(ToolRouter(pick), ["wether"], ["weather"], "a")
    assert "there is no tool `wether`. The tools are: " in model.requests[1]["messages"][-1]["content"]
    assert names(model.requests[2]) == ["weather"]


def test_one_that_gives_no_names_is_told():
    @Skill.define
    def count(text: str) -> int:
        """How many tools? {text}"""
        raise NotHandled

    with pytest.raises(OptionError, match="what the skill `count` gave is 3"):
        asked(ToolRouter(count), 3)


def test_it_may_choose_none():
    assert "tools" not in asked(ToolRouter(choose), [], "a").requests[1]


def test_one_that_never_names_a_tool_ends_the_call():
    with pytest.raises(ConfigurationError, match=r"`choose`, which chooses the tools of `ask`.*it is \"nothing\""):
        asked(ToolRouter(choose), ["nothing"], ["nothing"], num_retries=2)


def test_it_is_asked_once_in_a_call_or_in_each_turn():
    replies = (["weather"], calls("weather", city="Oslo"), "a")
    asked(ToolRouter(choose), *replies)
    asked(ToolRouter(choose, per="turn"), *replies[:2], ["read_mail"], "a")


def test_its_tokens_are_those_of_the_call_and_its_messages_are_not():
    with handler(harness(system_prompt="brief", tool_router=ToolRouter(choose))):
        with handler(ScriptedModel(["weather"], "Sunny.")):
            result = run(ask, "Hello")
    assert [message["role"] for message in result.messages] == ["user", "assistant"]
    assert result.usage.input == 200


def test_its_request_is_a_step_of_a_nested_call():
    with handler(harness(system_prompt="brief", tool_router=ToolRouter(choose))):
        with handler(ScriptedModel(["weather"], "Sunny.")):
            seen = [
                (event.skill.__name__, event.depth) for event in steps(ask, "Hello") if isinstance(event, ModelStep)
            ]
    assert list(dict.fromkeys(seen)) == [("choose", 1), ("ask", 0)]


def test_called_by_the_program_it_is_a_skill_like_any_other():
    model = asked(ToolRouter(choose), ["anything"], call=lambda: choose("x", {}), eval_provider="none")
    assert "ask" in names(model.requests[0])


def test_it_may_be_asynchronous():
    @Skill.define
    async def choose_later(text: str) -> list[str]:
        """Which tools? {text}"""
        raise NotHandled

    with handler(harness(system_prompt="brief", tool_router=ToolRouter(choose_later))):
        with handler(ScriptedModel(["weather"], "Sunny.", ["weather"], "Warm.")) as model:
            assert asyncio.run(acall(ask, "Hello")) == "Sunny."
            assert ask("Hello") == "Warm."
    assert names(model.requests[3]) == ["weather"]


def test_a_parameter_that_nobody_fills_is_told():
    @Skill.define
    def pick(question: str) -> list[str]:
        """{question}"""
        raise NotHandled

    with pytest.raises(OptionError, match="`pick` is to choose tools and has a parameter `question`; it can"):
        ToolRouter(pick)
