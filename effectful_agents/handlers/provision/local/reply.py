"""The reply of the model while it comes in: stream events, and at the end a message."""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Iterator
from typing import Any, override

from pydantic_core import from_json

from effectful_agents.messages import (
    AssistantMessage,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

__all__ = ["EnvelopeReply", "PlainReply", "Reply"]


class Reply(abc.ABC):
    """A reply that comes in pieces.

    Attributes:
        text: What the model has written so far.
    """

    def __init__(self) -> None:
        self.text = ""

    @abc.abstractmethod
    def add(self, piece: str) -> Iterator[StreamEvent]:
        """Take a piece in, and tell what it adds."""

    @abc.abstractmethod
    def end(self) -> Iterator[StreamEvent]:
        """Tell what was still held back, and that it is complete."""

    @abc.abstractmethod
    def message(self) -> AssistantMessage:
        """The message, when everything has come."""

    @property
    def is_json(self) -> bool:
        """Whether the text is one JSON value from beginning to end."""
        try:
            from_json(self.text)
        except ValueError:
            return False
        return True


class PlainReply(Reply):
    """A reply that is the answer itself: free text, or JSON."""

    @override
    def add(self, piece: str) -> Iterator[StreamEvent]:
        if not self.text:
            yield TextStart()
        self.text += piece
        yield TextDelta(piece)

    @override
    def end(self) -> Iterator[StreamEvent]:
        if self.text:
            yield TextEnd()

    @override
    def message(self) -> AssistantMessage:
        return {"role": "assistant", "content": self.text}


_STRING = r'"(?:[^"\\]|\\.)*"'
_CALL = re.compile(rf'\s*{{\s*"tool"\s*:\s*({_STRING})\s*,\s*"arguments"\s*:\s*(?=\S)')
_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*(?=\S)')
# What may be the end of the envelope, or else of the value inside it: it is held back until it is known.
_CLOSING = " \t\r\n}"


class EnvelopeReply(Reply):
    """A reply in the envelope of the grammar: `{"tool": …, "arguments": …}` or `{"answer": …}`.

    Args:
        text_answer: Whether an answer is a JSON string that stands for its text, and not JSON to be handed on.
    """

    def __init__(self, *, text_answer: bool) -> None:
        super().__init__()
        self._text_answer = text_answer
        self._tool: str | None = None
        self._begin: int | None = None
        self._told = 0

    @override
    def add(self, piece: str) -> Iterator[StreamEvent]:
        self.text += piece
        if self._begin is None and (found := _CALL.match(self.text) or _ANSWER.match(self.text)):
            self._begin = found.end()
            if found.re is _CALL:
                self._tool = json.loads(found[1])
                yield ToolCallStart(name=self._tool or "")
            else:
                yield TextStart()
        yield from self._news(self._value(complete=False))

    @override
    def end(self) -> Iterator[StreamEvent]:
        yield from self._news(self._value(complete=self.is_json))
        if self._begin is not None:
            yield TextEnd() if self._tool is None else ToolCallEnd()

    @override
    def message(self) -> AssistantMessage:
        value = self._value(complete=self.is_json)
        if self._tool is None:
            return {"role": "assistant", "content": self.text if self._begin is None else value}
        function: Any = {"name": self._tool, "arguments": value}
        # The loop names the call: it knows the place in the conversation.
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "", "type": "function", "function": function}],
        }

    def _news(self, value: str) -> Iterator[StreamEvent]:
        new = value[self._told :]
        self._told = max(self._told, len(value))
        if new:
            yield TextDelta(new) if self._tool is None else ToolCallDelta(new)

    def _value(self, *, complete: bool) -> str:
        """What stands in the envelope, as far as it is known."""
        if self._begin is None:
            return ""
        raw = self.text[self._begin :]
        raw = raw.rstrip()[:-1].rstrip() if complete else raw.rstrip(_CLOSING)
        if self._tool is not None or not self._text_answer:
            return raw
        return from_json(raw, allow_partial="trailing-strings") if raw else ""
