"""Replies that come in pieces: the events that they give, and the message at the end."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.handlers.provision.local.reply import EnvelopeReply, PlainReply, Reply
from effectful_agents.messages import (
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)


def read(reply: Reply, *pieces: str) -> list[StreamEvent]:
    events = [event for piece in pieces for event in reply.add(piece)]
    return [*events, *reply.end()]


def split(text: str, places: list[int]) -> list[str]:
    bounds = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def told(events: list[StreamEvent]) -> str:
    return "".join(
        event.text if isinstance(event, TextDelta) else event.arguments
        for event in events
        if isinstance(event, TextDelta | ToolCallDelta)
    )


places = st.lists(st.integers(0, 300), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
separators = st.sampled_from([(", ", ": "), (",", ":"), (" ,\n  ", " :  ")])


def test_free_text_is_the_content():
    reply = PlainReply()
    assert read(reply, "Hel", "lo") == [TextStart(), TextDelta("Hel"), TextDelta("lo"), TextEnd()]
    assert reply.message() == {"role": "assistant", "content": "Hello"}


def test_an_empty_reply_is_an_empty_message():
    assert read(reply := PlainReply()) == []
    assert reply.message() == {"role": "assistant", "content": ""}
    assert read(reply := EnvelopeReply(text_answer=True)) == []
    assert reply.message() == {"role": "assistant", "content": ""}


@given(values, places, separators)
def test_an_answer_comes_out_of_its_envelope_however_it_is_cut(value, places, separators):
    written = json.dumps(value, separators=separators, ensure_ascii=False)
    reply = EnvelopeReply(text_answer=False)
    events = read(reply, *split(json.dumps({"answer": 0}, separators=separators).replace("0", written), places))
    assert told(events) == reply.message()["content"] == written
    assert (events[0], events[-1]) == (TextStart(), TextEnd())


@given(st.text(max_size=20), places, st.booleans())
def test_a_text_comes_out_as_itself(text, places, ascii_only):
    reply = EnvelopeReply(text_answer=True)
    events = read(reply, *split(json.dumps({"answer": text}, ensure_ascii=ascii_only), places))
    assert told(events) == reply.message()["content"] == text


@given(st.dictionaries(st.text(max_size=4), values, max_size=3), st.text(min_size=1, max_size=9), places, separators)
def test_a_call_comes_out_with_its_arguments_as_they_were_written(arguments, name, places, separators):
    written = json.dumps(arguments, separators=separators)
    head = json.dumps({"tool": name, "arguments": 0}, separators=separators)
    reply = EnvelopeReply(text_answer=True)
    events = read(reply, *split(head[: head.rindex("0")] + written + head[head.rindex("0") + 1 :], places))
    assert (events[0], events[-1]) == (ToolCallStart(name=name), ToolCallEnd())
    [call] = reply.message().get("tool_calls", [])
    assert call["function"] == {"name": name, "arguments": told(events)}
    assert told(events) == written


@pytest.mark.parametrize("end", range(len('{"answer": "so it is"}')))
def test_what_was_cut_off_is_kept_as_far_as_it_came(end):
    text = '{"answer": "so it is"}'[:end]
    read(reply := EnvelopeReply(text_answer=True), text)
    content = reply.message()["content"]
    assert "so it is".startswith(str(content)) or content == text
    assert not reply.is_json


def test_a_call_that_was_cut_off_is_still_a_call():
    read(reply := EnvelopeReply(text_answer=True), '{"tool": "find", "arguments": {"query": "a')
    [call] = reply.message().get("tool_calls", [])
    assert call["function"] == {"name": "find", "arguments": '{"query": "a'}
