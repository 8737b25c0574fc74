"""The stream events of a reply that is there already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from effectful_agents.messages.exchange import Response
from effectful_agents.messages.stream import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

__all__ = ["told", "unstreamed"]


def unstreamed(response: Response) -> Response:
    """The reply, with a mark in its `provider_metadata` that it came in one piece.

    >>> unstreamed({"choices": []})["provider_metadata"]
    {'streamed': False}
    """
    metadata = {**response.get("provider_metadata", {}), "streamed": False}
    return {**response, "provider_metadata": metadata}


def told(response: Response, chunk_size: int | None = None) -> Iterator[StreamEvent]:
    """The events of a reply, from `StreamStart` to `Finish`, as if it had come in pieces.

    Only its first choice is told of: a stream has room for one.

    Args:
        response: The reply.
        chunk_size: Characters in one piece, at least 1; None tells each content in one piece.

    >>> reply = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}
    >>> [event.text for event in told(reply, 3) if isinstance(event, TextDelta)]
    ['Hel', 'lo']
    """
    yield StreamStart(response.get("model", ""))
    for choice in response["choices"][:1]:
        message = choice["message"]
        if reasoning := message.get("reasoning_content"):
            yield ReasoningStart()
            for piece in _pieces(reasoning, chunk_size):
                yield ReasoningDelta(piece)
            yield ReasoningEnd()
        if text := _text(message.get("content")):
            yield TextStart()
            for piece in _pieces(text, chunk_size):
                yield TextDelta(piece)
            yield TextEnd()
        for index, call in enumerate(message.get("tool_calls", ())):
            yield ToolCallStart(call["id"], call["function"]["name"], index)
            for piece in _pieces(call["function"]["arguments"], chunk_size):
                yield ToolCallDelta(piece, index)
            yield ToolCallEnd(index)
    yield Finish(response)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _pieces(text: str, size: int | None) -> Iterator[str]:
    size = size or max(len(text), 1)
    return (text[start : start + size] for start in range(0, len(text), size))
