"""Shortening what a model is told of a tool's result."""

from __future__ import annotations

import copy
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, Tool, fwd, handler, harness, run
from effectful_agents.errors import OptionError
from effectful_agents.handlers.legibility import ToolOutputCap, cap_tool_output
from effectful_agents.operations.loop import call_tool
from effectful_agents.testing import ScriptedModel, batch, calls

NOTE = "characters are left out here"
PICTURE: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}


@Tool.define
def big(count: int) -> str:
    """A long text."""
    return "x" * count


@Tool.define
def broken() -> str:
    """Fail at length."""
    raise ValueError("y" * 50_000)


@Skill.define
def look() -> str:
    """Look."""
    raise NotHandled


def told(content: Any) -> Any:
    return {"role": "tool", "tool_call_id": "a", "content": content}


def text(string: str) -> Any:
    return {"type": "text", "text": string}


def capped(content: Any, max_chars: int = 1000) -> Any:
    return cap_tool_output(told(content), max_chars=max_chars)["content"]


# What stays as it is


@pytest.mark.parametrize("content", ["", "short", "x" * 1000, [], [text("x" * 1000), PICTURE], [PICTURE] * 9])
def test_what_fits_is_the_same_object(content):
    message = told(content)
    assert cap_tool_output(message, max_chars=1000) is message


def test_none_switches_it_off():
    message = told("x" * 1_000_000)
    assert cap_tool_output(message, max_chars=None) is message


def test_by_default_there_are_16000_characters():
    assert cap_tool_output(told("x" * 16_000))["content"] == "x" * 16_000
    assert 15_990 < len(cap_tool_output(told("x" * 16_001))["content"]) <= 16_000


@pytest.mark.parametrize("wrong", [0, -1, 149, 1000.0, "1000"])
def test_a_limit_without_room_for_the_note_is_refused(wrong):
    with pytest.raises(OptionError, match="at least 150"):
        ToolOutputCap(wrong)
    with pytest.raises(OptionError, match="at least 150"):
        cap_tool_output(told("x"), max_chars=wrong)


# What is cut


def test_the_middle_is_left_out_with_how_much_it_is_and_how_to_get_it():
    content = capped("a" * 5000 + "b" * 5000)
    head, note, tail = content.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert abs(len(head) - len(tail)) <= 1
    left_out = 10_000 - len(head) - len(tail)
    assert note.startswith(f"[{left_out:,} of 10,000 {NOTE}.")
    assert "call the tool again" in note


def test_the_message_that_is_given_stays_as_it_is():
    message = told([text("x" * 5000), PICTURE])
    before = copy.deepcopy(message)
    shorter = cap_tool_output(message, max_chars=1000)
    assert message == before
    assert shorter["tool_call_id"] == "a"
    assert shorter["content"][1] is message["content"][1]


def test_several_texts_are_cut_as_if_they_were_one_and_pictures_stay():
    content = capped([text("A" * 300), PICTURE, text("b" * 5000), PICTURE, text("c" * 5000), text("D" * 300)])
    assert [part["type"] for part in content] == ["text", "image_url", "text", "image_url", "text", "text"]
    texts = [part["text"] for part in content if part["type"] == "text"]
    assert texts[0] == "A" * 300
    assert texts[-1] == "D" * 300
    assert sum(map(len, texts)) <= 1000
    assert [NOTE in one for one in texts] == [False, True, False, False]


def test_a_text_that_is_left_out_whole_leaves_no_empty_part():
    content = capped([text("a" * 500), *(text("b" * 10) for _ in range(5000)), PICTURE, text("c" * 500)])
    assert all(part["text"] for part in content if part["type"] == "text")
    assert PICTURE in content
    assert sum(NOTE in part.get("text", "") for part in content) == 1
    assert [part["type"] for part in content] == ["text", "image_url", "text"]


CHARACTERS = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab \n\r\u0301\u200d\ufe0f\U0001f469\U0001f3fd\U0001f680\ud83d\ude00漢"), st.characters()
    ),
    max_size=700,
)
PARTS = st.one_of(
    CHARACTERS,
    st.lists(st.one_of(CHARACTERS.filter(bool).map(text), st.just(PICTURE)), max_size=6),
)


def texts_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(p["text"] for p in content if p["type"] == "text")


@given(PARTS, st.integers(150, 600))
def test_whatever_comes_back_is_short_enough_and_has_the_beginning_and_the_end(content, max_chars):
    message = told(content)
    shorter = cap_tool_output(message, max_chars=max_chars)
    whole, kept = texts_of(content), texts_of(shorter["content"])
    if shorter is message:
        assert len(whole) <= max_chars
        return
    assert len(whole) > max_chars >= len(kept)
    head, _, rest = kept.partition("\n[")
    while NOTE not in rest.partition("]\n")[0]:  # the text may have such a beginning of its own
        more, _, rest = rest.partition("\n[")
        head += f"\n[{more}"
    tail = rest.partition("]\n")[2]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert f"{len(whole) - len(head) - len(tail):,} of {len(whole):,}" in rest
    for place in (len(head), len(whole) - len(tail)):
        one, other = whole[place - 1 : place], whole[place : place + 1]
        assert not unicodedata.combining(other or "a")
        assert not ("\ud800" <= one <= "\udbff" and "\udc00" <= other <= "\udfff")
    pictures = [part for part in content if part is PICTURE] if isinstance(content, list) else []
    assert [part for part in shorter["content"] if part is PICTURE] == pictures
    assert cap_tool_output(shorter, max_chars=max_chars) is shorter
    assert cap_tool_output(copy.deepcopy(message), max_chars=max_chars) == shorter


# As a handler


def test_the_program_has_the_whole_value():
    values: list[Any] = []

    def keep(tool_call):
        result = fwd()
        values.append(result[1])
        return result

    model = ScriptedModel(batch(calls("big", id="a", count=50_000), calls("big", id="b", count=10)), "ok")
    with handler(harness()), handler(ToolOutputCap(1000)), handler({call_tool: keep}), handler(model):
        messages = run(look).messages
    assert [len(value) for value in values] == [50_000, 10]
    told_about = [message["content"] for message in messages if message["role"] == "tool"]
    assert len(told_about[0]) == 1000
    assert told_about[1] == "x" * 10
    assert model.requests[1]["messages"] == messages[:-1]


def test_what_a_tool_raised_is_shortened_too():
    with handler(harness()), handler(ToolOutputCap(1000)), handler(ScriptedModel(calls("broken"), "ok")):
        messages = run(look).messages
    assert len(messages[-2]["content"]) == 1000
    assert "ValueError" in messages[-2]["content"]


def test_an_inner_cap_can_only_make_it_shorter():
    with handler(harness()), handler(ToolOutputCap(2000)), handler(ToolOutputCap(500)):
        with handler(ScriptedModel(calls("big", count=9000), "ok")):
            messages = run(look).messages
    assert len(messages[-2]["content"]) == 500
