"""Mending: whatever conversation comes in, one that a provider accepts comes out, and nothing else has changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effectful_agents.messages.mending import UNANSWERED, close_calls, mended
from tests.messages.validity import faults

# Few identifiers, so that they meet; those that mending itself makes up are among them.
IDENTIFIERS = st.sampled_from(["a", "b", "call_1_0", "call_1_0_", "call_2_1", "", None, 7])
TEXTS = st.text(max_size=6)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2)

calls = st.builds(
    lambda id, name, absent: {
        **({} if absent else {"id": id}),
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    },
    IDENTIFIERS,
    st.sampled_from(["add", "ping"]),
    st.booleans(),
)
assistants = st.builds(
    lambda content, calls: {
        "role": "assistant",
        "content": content,
        **({} if calls == "none" else {"tool_calls": calls}),
    },
    st.one_of(st.none(), TEXTS, PARTS),
    st.one_of(st.just("none"), st.none(), st.lists(calls, max_size=3)),
)
results = st.builds(
    lambda id, content: {"role": "tool", "tool_call_id": id, "content": content}, IDENTIFIERS, st.one_of(TEXTS, PARTS)
)
others = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "user", "system", "developer"]),
    st.one_of(TEXTS, PARTS),
)
conversations: Any = st.lists(st.one_of(assistants, results, results, others), max_size=12)


@st.composite
def valid_conversations(draw: st.DrawFn) -> list[Any]:
    """Conversations as the loop leaves them."""
    messages: list[Any] = [{"role": "system", "content": "s"}] if draw(st.booleans()) else []
    number = 0
    for batch in draw(st.lists(st.integers(0, 3), max_size=8)):
        if not batch:
            messages.append({"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(TEXTS)})
            continue
        ids = [f"c{number + one}" for one in range(batch)]
        number += batch
        wanted = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": wanted})
        messages += [{"role": "tool", "tool_call_id": one, "content": draw(TEXTS)} for one in ids]
    return messages


def said(messages: list[Any]) -> list[str]:
    """What somebody wrote, a text for each message; the notes of the mending itself are left out."""
    contents = [message["content"] for message in messages if message["content"]]
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in contents]


@given(conversations)
def test_what_comes_out_is_valid(messages):
    assert faults(mended(messages)) == []


@given(conversations)
def test_mending_twice_is_mending_once(messages):
    once = mended(messages)
    twice = mended(once)
    assert twice == once
    assert all(one is other for one, other in zip(once, twice, strict=True))


@given(conversations)
def test_what_is_handed_in_is_not_changed(messages):
    before = copy.deepcopy(messages)
    mended(messages)
    assert messages == before


@given(valid_conversations())
def test_a_valid_conversation_comes_back_with_the_same_messages(messages):
    result = mended(messages)
    assert result is not messages
    assert len(result) == len(messages)
    assert all(one is other for one, other in zip(messages, result, strict=True))


@given(conversations)
@example(
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {}}]},
        {"role": "tool", "tool_call_id": "a", "content": "first"},
        {"role": "tool", "tool_call_id": "a", "content": "second"},
    ]
)
def test_nothing_that_was_said_is_lost(messages):
    result = "\n".join(said(mended(messages)))
    assert [text for text in said(messages) if text.strip("[]") not in result] == []


@given(conversations)
def test_every_call_is_kept_with_its_name_and_arguments(messages):
    def functions(conversation: list[Any]) -> list[Any]:
        return [call["function"] for message in conversation for call in message.get("tool_calls") or ()]

    assert functions(mended(messages)) == functions(messages)


@given(valid_conversations(), st.data())
def test_a_result_that_is_missing_is_marked_and_the_rest_stays(messages, data):
    results = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    if not results:
        return
    gone = data.draw(st.sampled_from(results))
    result = mended([*messages[:gone], *messages[gone + 1 :]])
    assert result[gone] == {"role": "tool", "tool_call_id": messages[gone]["tool_call_id"], "content": UNANSWERED}
    assert [*result[:gone], *result[gone + 1 :]] == [*messages[:gone], *messages[gone + 1 :]]


@given(valid_conversations(), st.data())
def test_results_of_one_turn_may_come_in_any_order(messages, data):
    shuffled: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            last = max(place for place, one in enumerate(shuffled) if one["role"] == "assistant")
            shuffled.insert(data.draw(st.integers(last + 1, len(shuffled))), message)
        else:
            shuffled.append(message)
    assert mended(shuffled) == messages


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_instructions_of_other_services_are_a_system_message(role):
    assert mended([{"role": role, "content": "x"}, {"role": role, "content": "y"}]) == [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "y"},
    ]


def test_a_generator_may_be_handed_in():
    assert mended(iter([{"role": "user", "content": "x"}])) == [{"role": "user", "content": "x"}]


def test_closing_calls_answers_them_in_order_and_copies():
    asked: Any = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in "ab"],
    }
    messages = [asked]
    closed = close_calls(messages, ["a", "b"], "later")
    assert messages == [asked]
    assert faults(closed) == []
    assert [message["content"] for message in closed[1:]] == ["later", "later"]
