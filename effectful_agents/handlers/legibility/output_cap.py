"""Shortening what a model is told of a tool's result."""

from __future__ import annotations

import contextvars
import unicodedata
from collections.abc import Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.messages import ContentPart, Text, ToolMessage
from effectful_agents.operations.loop import DecodedToolCall, ToolResult, call_tool
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["ToolOutputCap", "cap_tool_output", "room_for_output", "shortened"]

_SHORTEST = 150
"""Characters; the note alone has up to 140 of them."""


class ToolOutputCap(ObjectInterpretation[Any, Any]):
    r"""Shorten long results of tools, so that one of them does not fill the conversation.

    Intercepts `call_tool` and changes what comes back (see `cap_tool_output`), results and errors alike. Only the
    message to the model is shortened: handlers, steps and the program get the whole value.

    Put it inside `TenacityRetryer`, which writes the messages about tools that raised.

    Args:
        max_chars: Characters of text that a result may have, at least 150; None for any number.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness, run
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def log() -> str:
    ...     '''The log of today.'''
    ...     return "started\n" + "tick\n" * 1000 + "stopped"
    >>> @Skill.define
    ... def look() -> str:
    ...     '''What happened?'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel(calls("log"), "Nothing.")), handler(ToolOutputCap(200)):
    ...     messages = run(look).messages
    >>> print(messages[-2]["content"].replace("tick\n", ""))
    started
    [4,931 of 5,015 characters are left out here. To read them, call the tool again with arguments that ask for less.]
    stopped
    """

    def __init__(self, max_chars: int | None = 16000) -> None:
        _check(max_chars)
        self.max_chars = max_chars

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"limits": {"max_chars": self.max_chars}}

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        outer = _room.get()
        if self.max_chars is not None:
            _room.set(self.max_chars if outer is None else min(outer, self.max_chars))
        try:
            message, value, is_final = fwd()
        finally:
            _room.set(outer)
        return cap_tool_output(message, max_chars=self.max_chars), value, is_final


# A tool's own calls of skills have tools too: their results are for another conversation, and shortened as well.
_room: contextvars.ContextVar[int | None] = contextvars.ContextVar("effectful_agents_room_for_output", default=None)


def room_for_output() -> int | None:
    """Characters that the result of the running tool call may have without being shortened; None for any number.

    A tool of a handler asks for it, that can choose what it leaves out.
    """
    return _room.get()


def cap_tool_output(result: ToolMessage, *, max_chars: int | None = 16000) -> ToolMessage:
    """What a model is told of a tool's result, with the middle left out where it is too long.

    The first half of the characters allowed is kept, and the last, and a note between them says how many are missing
    and how to get them. In a result of several parts this holds for their texts as if they were one; pictures and
    other parts stay, whole and in their places. A character is never separated from its accents.

    Args:
        result: The message.
        max_chars: Characters of text that it may have, the note included, at least 150; None for any number.

    Returns:
        A new message, or the same object where nothing had to be left out.

    Raises:
        OptionError: `max_chars` is too small for the note.

    >>> message = {"role": "tool", "tool_call_id": "call-1", "content": "short"}
    >>> cap_tool_output(message) is message
    True
    """
    _check(max_chars)
    content = result["content"]
    parts: list[ContentPart] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    total = sum(len(part["text"]) for part in parts if part["type"] == "text")
    if max_chars is None or total <= max_chars:
        return result
    capped = _capped(parts, total, max_chars)
    return {**result, "content": capped[0]["text"] if isinstance(content, str) else capped}  # ty: ignore


def shortened(text: str, max_chars: int) -> str:
    """A text with the middle left out where it is longer than `max_chars` characters, at least 150."""
    if len(text) <= max_chars:
        return text
    return _capped([{"type": "text", "text": text}], len(text), max_chars, advice="")[0]["text"]  # ty: ignore


def _check(max_chars: int | None) -> None:
    if max_chars is not None and (not isinstance(max_chars, int) or max_chars < _SHORTEST):
        raise OptionError(f"`max_chars` is {max_chars!r}; it is a number of characters, at least {_SHORTEST}, or None.")


_ADVICE = " To read them, call the tool again with arguments that ask for less."


def _note(left_out: int, total: int, advice: str) -> str:
    return f"\n[{left_out:,} of {total:,} characters are left out here.{advice}]\n"


def _capped(parts: list[ContentPart], total: int, max_chars: int, advice: str = _ADVICE) -> list[ContentPart]:
    """The parts with `max_chars` characters of text; those between two places in the text are left out."""
    texts = "".join(part["text"] for part in parts if part["type"] == "text")
    kept = max_chars - len(_note(total, total, advice))
    end_of_head, start_of_tail = _boundary(texts, kept - kept // 2, -1), _boundary(texts, total - kept // 2, 1)
    note = _note(start_of_tail - end_of_head, total, advice)
    capped: list[ContentPart] = []
    start = 0
    for part in parts:
        if part["type"] != "text":
            capped.append(part)
            continue
        end = start + len(part["text"])
        head, tail = texts[start : min(end, end_of_head)], texts[max(start, start_of_tail) : end]
        # In the part in which the first character is missing.
        text = head + (note if start <= end_of_head < end else "") + tail
        if text:
            capped.append(Text(type="text", text=text))
        start = end
    return capped


_JOINER = "\u200d"
_LONGEST_CLUSTER = 32


def _boundary(text: str, place: int, step: int) -> int:
    """The place, or one a few characters on in the direction of `step`, at which a text can be cut."""
    for _ in range(_LONGEST_CLUSTER):
        if not 0 < place < len(text) or not _belong_together(text[place - 1], text[place]):
            break
        place += step
    return place


def _belong_together(one: str, other: str) -> bool:
    if other.isascii():
        return one == "\r" and other == "\n"
    return (
        one == _JOINER
        or other == _JOINER
        or unicodedata.category(other) in ("Mn", "Me", "Mc")  # accents and other marks, variation selectors
        or "\U0001f3fb" <= other <= "\U0001f3ff"  # tones of skin
        or ("\ud800" <= one <= "\udbff" and "\udc00" <= other <= "\udfff")
    )
