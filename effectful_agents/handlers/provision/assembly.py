"""Putting a reply together from the pieces of a stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, cast

from effectful_agents.messages import (
    CompletionUsage,
    FinishReason,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Response,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

__all__ = ["Assembly", "Piece", "PieceOfCall"]


@dataclasses.dataclass(frozen=True, slots=True)
class PieceOfCall:
    """What a piece of a stream says about one tool call.

    Attributes:
        index: Which call of the reply; None where the service does not say.
        id: Its identifier; empty where it was said before.
        name: The tool; empty where it was said before.
        arguments: The next characters of its arguments.
        fields: What else stands in the call and has to go back with it.
    """

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """What one piece of a stream adds to the reply; None says that it adds nothing of this kind.

    Attributes:
        text: The next characters of the content.
        reasoning: The next characters of the reasoning.
        refusal: The next characters of the words with which the model declines.
        calls: What it says about tool calls.
        finish_reason: Why the reply ends here; None while it goes on.
        usage: The tokens of the whole reply.
        fields: What the reply has besides its choices: `id`, `created`, `model`.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    calls: tuple[PieceOfCall, ...] = ()
    finish_reason: FinishReason | None = None
    usage: CompletionUsage | None = None
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    told: bool = False
    arguments: list[str] = dataclasses.field(default_factory=list)
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)

    def goes_on_with(self, part: PieceOfCall) -> bool:
        if part.index is not None and part.index != self.index:
            return False
        # Some services number every call 0, or none, and only a new identifier, or else a name, tells them apart.
        if part.id and self.id:
            return part.id == self.id
        return part.index is not None or not (part.name and self.name)


class Assembly:
    """A reply that comes in pieces: the events that tell of it, and at the end all of it.

    Args:
        model: The model that was asked; the pieces may say it more exactly.

    Attributes:
        begun: Whether a piece has come.
        finish_reason: Why the reply ended; None while it has not.
    """

    def __init__(self, model: str = "") -> None:
        self.begun = False
        self.finish_reason: FinishReason | None = None
        self._fields: dict[str, Any] = {"model": model} if model else {}
        self._parts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        self._usage: CompletionUsage | None = None
        self._open = ""
        self._blocks = {"text": -1, "reasoning": -1}

    def add(self, piece: Piece) -> Iterator[StreamEvent]:
        """Take a piece in, and tell what it adds."""
        self._fields |= piece.fields
        if not self.begun:
            self.begun = True
            yield StreamStart(self._fields.get("model", ""))
        yield from self._add("reasoning", piece.reasoning)
        yield from self._add("text", piece.text)
        if piece.refusal:
            self._parts.setdefault("refusal", []).append(piece.refusal)
        for part in piece.calls:
            yield from self._add_call(part)
        self.finish_reason = piece.finish_reason or self.finish_reason
        self._usage = piece.usage or self._usage

    def end(self) -> Iterator[StreamEvent]:
        """Tell that what has begun is complete."""
        yield from self._close()
        for place, call in enumerate(self._calls):
            if not call.told:
                yield from self._begin(place, call)
            yield ToolCallEnd(place)

    def response(self) -> Response:
        """The reply, when everything has come."""
        parts = {kind: "".join(pieces) for kind, pieces in self._parts.items()}
        message: dict[str, Any] = {"role": "assistant", "content": parts.get("text")}
        if "refusal" in parts:
            message["refusal"] = parts["refusal"]
        if "reasoning" in parts:
            message["reasoning_content"] = parts["reasoning"]
        reason = self.finish_reason or "stop"
        if self._calls:
            message["content"] = message["content"] or None
            message["tool_calls"] = [_whole(call) for call in self._calls]
            reason = "tool_calls" if reason == "stop" else reason
        choice = {"index": 0, "message": message, "finish_reason": reason}
        reply: dict[str, Any] = {"choices": [choice], **self._fields}
        if self._usage:
            reply["usage"] = self._usage
        return cast(Response, reply)

    def _add(self, kind: str, text: str | None) -> Iterator[StreamEvent]:
        if text is None:
            return
        self._parts.setdefault(kind, []).append(text)
        if not text:
            return
        start, delta = (TextStart, TextDelta) if kind == "text" else (ReasoningStart, ReasoningDelta)
        if self._open != kind:
            yield from self._close()
            self._open = kind
            self._blocks[kind] += 1
            yield start(self._blocks[kind])
        yield delta(text, self._blocks[kind])

    def _close(self) -> Iterator[StreamEvent]:
        if self._open:
            end = TextEnd if self._open == "text" else ReasoningEnd
            yield end(self._blocks[self._open])
        self._open = ""

    def _add_call(self, part: PieceOfCall) -> Iterator[StreamEvent]:
        yield from self._close()
        place = self._place(part)
        call = self._calls[place]
        call.id = call.id or part.id
        call.name = call.name or part.name
        call.fields |= part.fields
        call.arguments.append(part.arguments)
        if not call.told:
            if call.name:  # else it comes with a later piece
                yield from self._begin(place, call)
        elif part.arguments:
            yield ToolCallDelta(part.arguments, place)

    def _place(self, part: PieceOfCall) -> int:
        for place in reversed(range(len(self._calls))):
            if self._calls[place].goes_on_with(part):
                return place
        self._calls.append(_Call(part.index))
        return len(self._calls) - 1

    def _begin(self, place: int, call: _Call) -> Iterator[StreamEvent]:
        call.told = True
        yield ToolCallStart(call.id, call.name, place)
        if arguments := "".join(call.arguments):
            yield ToolCallDelta(arguments, place)


def _whole(call: _Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": "".join(call.arguments)}
    return {**call.fields, "id": call.id, "type": "function", "function": function}
