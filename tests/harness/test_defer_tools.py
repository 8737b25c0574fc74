"""`harness(defer_tools=…)`: what is offered in the place of many tools, and how long that holds."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run
from effectful_agents.handlers.legibility import worth_deferring
from effectful_agents.operations.loop import call_assistant
from effectful_agents.testing import ScriptedModel, calls

TWO = ["search_tools", "use_tool"]


def berth(name: str) -> Tool:
    @Tool.define(name=name)
    def tool(city: str, berths: int = 3) -> str:
        """The harbours of a city, and what a berth costs in each."""
        return f"{name} of {city}"

    return tool


class Agency(Agent):
    """An agency, whose tools are set on it."""

    def __init__(self, count: int) -> None:
        self.add(*range(count))

    def add(self, *numbers: int) -> None:
        for number in numbers:
            setattr(self, f"berth_{number}", berth(f"berth_{number}"))

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def tell(self, what: str) -> str:
        """Tell something about {what}."""
        raise NotHandled


def stack(**options: Any) -> Any:
    """The standard stack without the tools for code, which stay as they are."""
    return harness(eval_provider="none", **options)


def asked(skill: Any, *replies: Any, argument: str = "?", **options: Any) -> list[Any]:
    """The requests of a call."""
    with handler(stack(**options)), handler(ScriptedModel(*replies)) as model:
        skill(argument)
    return model.requests


def offered(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def use(name: str, id: str = "u", **arguments: Any) -> Any:
    return calls("use_tool", id=id, name=name, arguments=arguments)


@pytest.mark.parametrize("prompt", ["full", "brief"])
@pytest.mark.parametrize("count", [0, 1, 10])
def test_the_requests_of_few_tools_are_the_same_bytes_with_and_without(count, prompt):
    replies = [calls("berth_0", city="Rome"), "ok"] if count else ["ok"]
    bodies = [
        json.dumps(asked(Agency(count).ask, *replies, system_prompt=prompt, defer_tools=when), ensure_ascii=False)
        for when in (True, False)
    ]
    assert bodies[0] == bodies[1]


def test_many_tools_are_deferred_by_default():
    first, second = asked(Agency(60).ask, use("berth_59", city="Rome"), "ok")
    assert offered(first) == offered(second) == TWO
    assert second["messages"][-1]["content"] == "berth_59 of Rome"


def test_the_default_is_where_it_is_worth_it():
    at = next(n for n in range(100) if worth_deferring(map(berth, [f"berth_{one}" for one in range(n)])))
    assert 15 < at < 30

    class Plain(Agency):
        ask = Agency.ask
        tell = None  # not a tool

    assert offered(asked(Plain(at - 1).ask, "ok")[0]) != TWO
    assert offered(asked(Plain(at).ask, "ok")[0]) == TWO


@pytest.mark.parametrize(
    ("when", "deferred"), [(False, False), (True, False), (0, True), (1, True), (100, True), (10_000, False)]
)
def test_a_number_is_of_tokens(when, deferred):
    assert (offered(asked(Agency(2).ask, "ok", defer_tools=when)[0]) == TWO) is deferred


def test_never_is_never():
    assert len(offered(asked(Agency(60).ask, "ok", defer_tools=False)[0])) == 61


def test_functions_that_nobody_declared_are_deferred_too():
    def helper(city: str) -> str:
        """Help somebody in a city."""
        return f"helped in {city}"

    @Skill.define
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    first, second = asked(ask, use("helper", city="Rome"), "ok", defer_tools=0, tool_collection="auto")
    assert offered(first) == TWO
    assert second["messages"][-1]["content"] == "helped in Rome"


# Once in a conversation


def beginnings_hold(requests: list[Any]) -> bool:
    return all(
        after["tools"] == before["tools"] and after["messages"][: len(before["messages"])] == before["messages"]
        for before, after in itertools.pairwise(requests)
    )


def test_what_was_deferred_stays_so_when_few_tools_are_left():
    agency = Agency(60)
    with handler(stack()), handler(ScriptedModel("one", use("berth_0", city="Rome"), "two")) as model:
        agency.ask("?")
        for number in range(1, 60):
            delattr(agency, f"berth_{number}")
        agency.ask("!")
    assert [offered(request) for request in model.requests] == [TWO] * 3
    assert beginnings_hold(model.requests)


def test_what_was_shown_stays_so_when_many_tools_are_added():
    agency = Agency(2)
    with handler(stack()), handler(ScriptedModel("one", "two")) as model:
        agency.ask("?")
        agency.add(*range(2, 60))
        agency.ask("!")
    assert offered(model.requests[0]) == ["berth_0", "berth_1", "tell"]
    assert len(offered(model.requests[1])) == 61


def test_tools_that_come_in_the_middle_of_a_call_change_nothing_of_it():
    class Growing(Agency):
        ask = Agency.ask

        @Tool.define
        def grow(self) -> str:
            """Get more tools."""
            self.add(*range(2, 60))
            return "done"

    with handler(stack()), handler(ScriptedModel(calls("grow"), "ok")) as model:
        Growing(2).ask("?")
    assert [len(offered(request)) for request in model.requests] == [4, 62]
    with (
        handler(stack(defer_tools=100)),
        handler(ScriptedModel(use("grow"), use("berth_50", "v", city="Rome"), "ok")) as model,
    ):
        grown = Growing(2)
        grown.ask("?")
    assert [offered(request) for request in model.requests] == [TWO] * 3
    assert model.requests[-1]["messages"][-1]["content"] == "berth_50 of Rome"


def test_all_skills_of_an_agent_have_the_same_two():
    agency = Agency(60)
    with handler(stack()), handler(ScriptedModel("one", "two", "three")) as model:
        agency.ask("?")
        agency.tell("it")
        agency.ask("!")
    assert beginnings_hold(model.requests)
    assert [offered(request) for request in model.requests] == [TWO] * 3


def test_agents_decide_for_themselves():
    small, large = Agency(1), Agency(60)
    with handler(stack()), handler(ScriptedModel(*["ok"] * 4)) as model:
        for agency in (small, large, small, large):
            agency.ask("?")
    assert [offered(request) == TWO for request in model.requests] == [False, True, False, True]


def test_a_call_on_another_history_decides_nothing_for_that_of_the_agent():
    agency = Agency(60)
    with handler(stack()), handler(ScriptedModel("one", "two")) as model:
        run(agency.ask, "?", history=[])
        for number in range(1, 60):
            delattr(agency, f"berth_{number}")
        agency.ask("!")
    assert [offered(request) == TWO for request in model.requests] == [True, False]


def test_a_call_inside_a_tool_of_the_same_agent_goes_by_what_was_decided():
    class Asking(Agency):
        ask = Agency.ask

        @Tool.define
        def again(self) -> str:
            """Ask again, with fewer tools."""
            for number in range(1, 60):
                delattr(self, f"berth_{number}")
            return self.ask("!")

    with handler(stack()), handler(ScriptedModel(use("again"), "inside", "ok")) as model:
        Asking(60).ask("?")
    assert [offered(request) for request in model.requests] == [TWO] * 3


def test_a_call_that_failed_leaves_the_next_one_the_same_beginning():
    agency = Agency(60)
    with handler(stack(num_retries=0)), handler(ScriptedModel(RuntimeError("down"), "ok")) as model:
        with pytest.raises(RuntimeError):
            agency.ask("?")
        agency.ask("?")
    assert model.requests[0] == model.requests[1]


def test_each_call_of_a_plain_skill_is_a_conversation():
    shown = [berth("berth_0")]

    @Skill.define
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    def offering(messages: Any, response_type: Any, env: Any, tools: Any = frozenset()) -> Any:
        return fwd(messages, response_type, env, frozenset(shown))

    model = ScriptedModel("ok", "ok")
    with handler(stack(tool_collection="none")), handler({call_assistant: offering}), handler(model):
        ask("?")
        shown += [berth(f"berth_{number}") for number in range(1, 60)]
        ask("?")
    assert [offered(request) == TWO for request in model.requests] == [False, True]
