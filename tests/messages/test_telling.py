"""The events of a reply that is there already."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.messages import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from effectful_agents.messages.telling import told


def reply(content: Any = None, **message: Any) -> Any:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return {"model": "m", "choices": [choice]}


def call(name: str, arguments: str) -> Any:
    return {"id": f"id-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_each_content_is_told_in_one_piece():
    whole = reply("Hello!", reasoning_content="The user greets.", tool_calls=[call("f", '{"a": 1}'), call("g", "{}")])
    assert list(told(whole)) == [
        StreamStart("m"),
        *(ReasoningStart(), ReasoningDelta("The user greets."), ReasoningEnd()),
        *(TextStart(), TextDelta("Hello!"), TextEnd()),
        *(ToolCallStart("id-f", "f", 0), ToolCallDelta('{"a": 1}', 0), ToolCallEnd(0)),
        *(ToolCallStart("id-g", "g", 1), ToolCallDelta("{}", 1), ToolCallEnd(1)),
        Finish(whole),
    ]


def test_pieces_have_the_size_that_is_asked_for():
    events = list(told(reply("Hello!", reasoning_content="Hm.", tool_calls=[call("f", "{}")]), 4))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hell", "o!"]
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["Hm."]
    assert [event.arguments for event in events if isinstance(event, ToolCallDelta)] == ["{}"]


@pytest.mark.parametrize("content", [None, "", []])
def test_what_is_not_there_is_not_told(content: Any):
    whole = reply(content)
    assert list(told(whole)) == [StreamStart("m"), Finish(whole)]


def test_a_call_without_arguments_has_a_beginning_and_an_end():
    events = list(told(reply(tool_calls=[call("f", "")])))
    assert events[1:-1] == [ToolCallStart("id-f", "f", 0), ToolCallEnd(0)]


def test_text_in_parts_is_one_text():
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
    assert TextDelta("ab") in list(told(reply(parts)))


def test_a_reply_without_choices_begins_and_ends():
    whole: Any = {"choices": []}
    assert list(told(whole)) == [StreamStart(), Finish(whole)]


def test_of_several_choices_the_first_is_told():
    whole = reply("first")
    whole["choices"] += reply("second")["choices"]
    assert [event.text for event in told(whole) if isinstance(event, TextDelta)] == ["first"]


@given(st.text(), st.none() | st.integers(1, 9))
def test_the_pieces_are_the_text(text: str, size: int | None):
    pieces = [event.text for event in told(reply(text), size) if isinstance(event, TextDelta)]
    assert "".join(pieces) == text
    assert all(pieces)
