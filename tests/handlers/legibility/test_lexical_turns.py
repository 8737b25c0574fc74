"""Tools that come and go in the course of a conversation, and those that cannot be offered."""

from __future__ import annotations

import logging
from typing import Any

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.handlers.durability import HistoryBuilder
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.loop import call_assistant
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.legibility.offers import Bot, names, offered


def test_a_tool_set_on_the_agent_by_a_tool_is_offered_on_the_next_turn():
    class Learner(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def learn(self) -> str:
            """Learn."""

            @Tool.define
            def learned() -> str:
                """Learned."""
                return "it works"

            self.learned = learned
            return "done"

        @Tool.define
        def forget(self) -> str:
            """Forget."""
            del self.learned
            return "done"

    model = ScriptedModel(calls("learn"), calls("learned", id="b"), calls("forget", id="c"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Learner().ask()
    assert ["learned" in names(request) for request in model.requests] == [False, True, True, False]
    assert model.requests[2]["messages"][-1]["content"] == "it works"


def test_a_name_bound_by_a_tool_is_offered_on_the_next_turn():
    def make():
        learned = None

        @Tool.define
        def learn() -> str:
            """Learn."""
            nonlocal learned

            @Tool.define
            def new() -> str:
                """New."""
                return ""

            learned = new
            return "done"

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, learn, learned

    model = ScriptedModel(calls("learn"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        make()[0]()
    assert ["new" in names(request) for request in model.requests] == [False, True]


def test_the_tools_are_the_same_bytes_from_turn_to_turn():
    model = ScriptedModel(*[calls("count", number=number) for number in range(5)], "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Bot().ask()
    first, *others = [request["tools"] for request in model.requests]
    assert all(tools == first for tools in others)


# What cannot be offered


class Machine:
    """It has no form on the wire."""


def with_a_tool_that_has_no_schema() -> Skill:
    @Tool.define
    def start(machine: Machine) -> str:
        """Start."""
        return ""

    @Tool.define
    def fine() -> str:
        """Fine."""
        return ""

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    return ask


def test_a_tool_without_a_schema_is_left_out_with_a_warning_that_names_it(caplog):
    ask = with_a_tool_that_has_no_schema()
    with caplog.at_level(logging.WARNING):
        assert offered(ask) == ["fine"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name.startswith("effectful_agents.")
    assert "`start`" in record.getMessage()
    assert "start(machine: Machine).machine: " in record.getMessage()


def test_the_warning_comes_once_for_all_turns(caplog):
    ask = with_a_tool_that_has_no_schema()
    with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("fine"), calls("fine", id="b"), "ok")):
        ask()
    assert len(caplog.records) == 1


def test_the_skill_that_is_called_is_no_reason_for_a_warning(caplog):
    @Skill.define
    def ask(machine: Machine) -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask, Machine()) == []
    assert not caplog.records


# The handler alone


def seen_by_a_handler_inside(extractor: LexicalToolExtractor, skill: Any) -> list[str]:
    """The names of the tools that the extractor hands on to what stands outside of it."""
    seen: list[str] = []

    def watch(messages, response_type, env, tools=frozenset()):
        seen.extend(sorted(tool.__name__ for tool in tools))
        return {"role": "assistant", "content": "ok"}, [], "ok"

    with handler(AgentLoop(system_prompt="brief")), handler({call_assistant: watch}), handler(extractor):
        with handler(HistoryBuilder()):
            skill()
    return seen


def test_tools_without_a_schema_are_left_to_the_handler_inside_if_it_is_said(caplog):
    def make():
        @Tool.define
        def start(machine: Machine) -> str:
            """Start."""
            return ""

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, start

    ask, _ = make()
    assert "start" in seen_by_a_handler_inside(LexicalToolExtractor(json_only=False), ask)
    assert not caplog.records
    assert "start" not in seen_by_a_handler_inside(LexicalToolExtractor(), ask)


def test_tools_that_others_offer_are_kept():
    def make():
        @Tool.define
        def extra() -> str:
            """Extra."""
            return "extra"

        return extra

    tools = frozenset({make()})

    @Tool.define
    def beside_it() -> str:
        """Beside it."""
        return ""

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    def offer(messages, response_type, env, given=frozenset()):
        return fwd(messages, response_type, env, given | tools)

    with handler(harness(system_prompt="brief")), handler({call_assistant: offer}):
        with handler(ScriptedModel(calls("extra"), "ok")) as model:
            ask()
    assert "extra" in names(model.requests[0])
    assert "beside_it" in names(model.requests[0])


def test_without_it_no_tool_is_offered():
    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(AgentLoop()), handler(HistoryBuilder()), handler(ScriptedModel("ok")) as model:
        ask()
    assert "tools" not in model.requests[0]
