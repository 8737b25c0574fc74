"""Calls inside calls, and histories that are handed in: what is recorded where, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run
from effectful_agents.handlers.durability import HistoryBuilder
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.messages.mending import mended
from effectful_agents.operations.history import agents_called, conversation, get_history
from effectful_agents.operations.loop import call_agent, call_tool, completion
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.messages.validity import faults


@Tool.define
def ping() -> str:
    """Ping."""
    return "pong"


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def consult(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def two_agents() -> tuple[Any, Any]:
    """Two agents that see each other."""

    class Peer(Agent):
        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    left, right = Peer(), Peer()
    return left, right


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def talk(skill: Any, *replies: Any, **options: Any) -> ScriptedModel:
    """Call a skill; every request that is sent is one that a provider accepts."""
    model = ScriptedModel(*replies)
    with handler(model), handler(harness(system_prompt="brief", **options)):
        skill("What?")
    for request in model.requests:
        assert faults(request["messages"]) == []
    return model


def said(history: Any) -> list[Any]:
    return [message["content"] for message in history if message["role"] in ("assistant", "tool")]


# Identifiers


@pytest.mark.parametrize("id", ["same", "", None])
def test_identifiers_are_unique_when_a_call_of_the_same_agent_uses_those_of_its_caller(id):
    """The messages of the inner call come behind those of the outer one, which goes on naming calls."""
    bot = Bot()
    one: Any = calls("ping")
    one["choices"][0]["message"]["tool_calls"][0]["id"] = id
    talk(bot.ask, calls("consult", id="first", question="?"), one, one, "inner", one, one, one, "outer")
    assert faults(bot.__history__) == []
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("next")) as model:
        bot.ask("And then?")
    assert faults(model.requests[0]["messages"]) == []


@pytest.mark.parametrize("id", ["same", "", None])
def test_identifiers_are_unique_when_two_calls_of_one_agent_stand_in_one_turn(id):
    bot = Bot()
    one: Any = calls("ping")
    one["choices"][0]["message"]["tool_calls"][0]["id"] = id
    two = batch(calls("consult", id="1", question="a"), calls("consult", id="2", question="b"))
    talk(bot.ask, two, one, "a", one, "b", "outer")
    assert faults(bot.__history__) == []


def test_identifiers_are_unique_in_a_reply_that_the_tool_choice_forbids():
    """The model is told of each of its calls that none may be made."""
    two: Any = batch(calls("ping", id="call_2_1"), calls("ping", id=""))
    model = talk(ask, two, "done", tool_choice="none")
    results = [message for message in model.requests[1]["messages"] if message["role"] == "tool"]
    assert len(results) == 2


# Calls inside calls


def test_a_call_of_the_same_agent_is_recorded_behind_the_call_that_it_is_made_in():
    bot = Bot()
    talk(bot.ask, calls("consult", question="?"), calls("ping"), "inner", "outer")
    assert said(bot.__history__) == [None, "inner", "outer", None, "pong", "inner"]


def test_a_call_of_the_same_agent_that_fails_is_not_recorded():
    bot = Bot()
    talk(bot.ask, calls("consult", question="?"), calls("ping"), ValueError("down"), "outer")
    called, failed, outer = said(bot.__history__)
    assert (called, outer) == (None, "outer")
    assert "ValueError: down" in failed


def test_calls_inside_calls_of_the_same_agent_are_recorded_from_the_outermost_to_the_innermost():
    bot = Bot()
    deeper = calls("ask", question="?")
    talk(bot.ask, calls("consult", question="?"), deeper, "innermost", "inner", "outer")
    assert said(bot.__history__) == [None, "inner", "outer", None, "innermost", "inner", "innermost"]
    assert faults(bot.__history__) == []


def test_a_call_of_the_same_agent_by_way_of_another_is_recorded_with_each():
    left, right = two_agents()
    replies = calls("right__ask", question="?"), calls("left__ask", question="?"), "innermost", "middle", "outermost"
    talk(left.ask, *replies)
    assert said(left.__history__) == [None, "middle", "outermost", "innermost"]
    assert said(right.__history__) == [None, "innermost", "middle"]


def test_a_call_of_another_agent_stays_when_the_outer_call_fails():
    left, right = two_agents()
    with pytest.raises(ValueError, match="down"):
        talk(left.ask, calls("right__ask", question="?"), "kept", ValueError("down"))
    assert said(left.__history__) == []
    assert said(right.__history__) == ["kept"]


def test_a_call_of_the_same_agent_is_lost_with_the_outer_call():
    bot = Bot()
    with pytest.raises(ValueError, match="down"):
        talk(bot.ask, calls("consult", question="?"), "inner", ValueError("down"))
    assert said(bot.__history__) == []


def test_a_skill_that_is_no_method_begins_anew_with_every_call():
    talk(ask, calls("ping"), "one")
    with handler(harness(system_prompt="brief")), handler(model := ScriptedModel("two")):
        ask("?")
    assert [message["role"] for message in model.requests[0]["messages"]] == ["user"]


# What handlers are told


def test_the_agents_that_are_called_are_known_while_they_are():
    bot, seen = Bot(), []

    def look(*_: Any) -> Any:
        seen.append(agents_called())
        return fwd()

    with handler({call_tool: look}):
        talk(bot.ask, calls("consult", question="?"), calls("ping"), "inner", "outer")
    assert seen == []  # the harness is inside, and its loop forwards nothing
    with handler(harness(system_prompt="brief")), handler({call_tool: look}):
        with handler(ScriptedModel(calls("ping"), "done")):
            bot.ask("?")
    assert seen == [frozenset({id(bot.__history__)})]
    assert agents_called() == frozenset()


def test_the_history_that_a_handler_reads_is_the_one_that_is_sent():
    lengths: list[tuple[int, int]] = []

    def look(**request: Any) -> Any:
        lengths.append((len(get_history()), len(request["messages"])))
        return fwd()

    model = ScriptedModel(calls("ping"), "done")
    with handler(model), handler(harness(system_prompt="brief")), handler({completion: look}):
        ask("?")
    assert lengths == [(1, 1), (3, 3)]


def test_a_handler_decides_which_conversation_a_call_continues():
    kept: list[Any] = []
    model = ScriptedModel("one", "two")
    with handler(harness(system_prompt="brief")), handler({conversation: lambda skill: kept}), handler(model):
        ask("?")
        ask("?")
    assert said(kept) == ["one", "two"]
    assert len(model.requests[1]["messages"]) == 3


# What goes wrong outside


def test_a_handler_outside_that_refuses_the_value_leaves_no_trace():
    bot = Bot()

    def refuse(*_: Any, **__: Any) -> Any:
        fwd()
        raise PermissionError("refused")

    with handler(ScriptedModel("draft")), handler(AgentLoop()), handler({call_agent: refuse}):
        with handler(HistoryBuilder()), pytest.raises(PermissionError):
            bot.ask("?")
    assert len(bot.__history__) == 0


# Conversations that are handed in


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"role": "user", "content": "Hi"}],
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "tool_calls": []}],
        [{"role": "tool", "tool_call_id": "x", "content": "7"}],
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": {}}]},
            {"role": "user", "content": "Well?"},
        ],
    ],
)
def test_a_conversation_that_is_handed_in_is_continued_and_not_changed(history):
    for message in history:
        for call in message.get("tool_calls", ()):
            call["function"] = {"name": "ping", "arguments": "{}"}
    before = [dict(message) for message in history]
    model = ScriptedModel("done")
    with handler(harness(system_prompt="brief")), handler(model):
        result = run(ask, "?", history=history)
    assert history == before
    assert faults(model.requests[0]["messages"]) == []
    assert result.messages[:-2] == mended(history)


def test_an_agent_whose_history_was_set_to_a_broken_one_sends_a_valid_one():
    bot = Bot()
    asked: Any = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "ping", "arguments": "{}"}}],
    }
    bot.__history__ = [{"role": "user", "content": "Hi"}, asked]
    model = ScriptedModel("done")
    with handler(harness(system_prompt="brief")), handler(model):
        bot.ask("?")
    assert faults(model.requests[0]["messages"]) == []
    assert faults(bot.__history__) == []
