"""Handlers of a user's own, inside the standard stack: what they return is what is sent and kept."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.errors import HistoryError
from effectful_agents.messages.mending import mended
from effectful_agents.operations.loop import call_assistant, call_system, call_tool, call_user
from effectful_agents.testing import ScriptedModel, batch, calls

removed: list[str] = []


@Tool.define
def rm(path: str) -> str:
    """Remove."""
    removed.append(path)
    if path == "broken":
        removed.clear()
        raise OSError("busy")
    return "SECRET"


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def go(mine: Any, *replies: Any) -> tuple[list[Any], list[Any]]:
    """The messages of the last request, and the history."""
    removed.clear()
    bot, model = Bot(), ScriptedModel(*replies)
    bot.rm = rm
    with handler(model), handler(harness()), handler(mine):
        bot.ask("x")
    assert mended(bot.__history__) == bot.__history__
    return model.requests[-1]["messages"] if model.requests else [], bot.__history__


def told(call: Any, text: str) -> Any:
    return {"role": "tool", "tool_call_id": call.id, "content": text}, None, False


def test_a_tool_call_is_denied_without_being_made():
    sent, kept = go({call_tool: lambda call: told(call, "denied")}, calls("rm", path="/"), "ok")
    assert removed == []
    assert sent[-1]["content"] == "denied"
    assert kept[3]["content"] == "denied"


def test_a_result_is_changed_before_the_model_reads_it():
    def redacted(call: Any) -> Any:
        message, value, final = fwd()
        return {**message, "content": "***"}, value, final

    sent, kept = go({call_tool: redacted}, calls("rm", path="/"), "ok")
    assert "SECRET" not in str(sent[1:])
    assert "SECRET" not in str(kept[1:])


def test_a_tool_is_tried_again():
    def again(call: Any) -> Any:
        result = fwd()
        return fwd() if isinstance(result[1], Exception) else result

    sent, _ = go({call_tool: again}, calls("rm", path="broken"), "ok")
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]


def test_the_user_message_is_replaced_and_changed():
    sent, _ = go({call_user: lambda prompt: {"role": "user", "content": "mine"}}, "ok")
    assert [message["content"] for message in sent[1:]] == ["mine"]
    sent, kept = go({call_user: lambda prompt: {**fwd(), "content": "REDACTED"}}, "ok")
    assert sent[1]["content"] == kept[1]["content"] == "REDACTED"


def test_the_system_message_is_replaced():
    sent, kept = go({call_system: lambda *_: {"role": "system", "content": "short"}}, "ok")
    assert sent[0] == kept[0] == {"role": "system", "content": "short"}


def test_a_turn_is_answered_from_a_cache():
    cached = {"role": "assistant", "content": "cached"}
    sent, kept = go({call_assistant: lambda *_: (cached, [], "cached")})
    assert sent == []
    assert [message["role"] for message in kept] == ["system", "user", "assistant"]


def test_a_decoded_call_that_is_left_out_is_answered():
    def first_only(*_: Any) -> Any:
        message, decoded, answer = fwd()
        return message, decoded[:1], answer

    both = batch(calls("rm", id="1", path="a"), calls("rm", id="2", path="b"))
    sent, _ = go({call_assistant: first_only}, both, "ok")
    assert removed == ["a"]
    assert sent[-1]["content"] == "(This call was not made.)"


def test_a_call_that_the_reply_does_not_have_is_refused():
    def renamed(*_: Any) -> Any:
        message, decoded, answer = fwd()
        return {**message, "tool_calls": []}, decoded, answer

    with pytest.raises(HistoryError, match="call-1"):
        go({call_assistant: renamed}, calls("rm", path="a"), "ok")
