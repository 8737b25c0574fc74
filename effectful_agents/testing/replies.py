"""Replies of a model, written down by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from effectful_agents.encoding import encode
from effectful_agents.messages import AssistantMessage, CompletionUsage, Response, ToolCall, Usage

__all__ = ["DEFAULT_USAGE", "batch", "called", "calls", "says"]

DEFAULT_USAGE = Usage(input=100, output=20, reasoning=0, cache_read=0, cache_write=0)
"""What a scripted reply reports to have used when nothing else is said."""


def says(text: str, *, usage: Usage | None = None) -> Response:
    """Make a reply that is an answer.

    Args:
        text: The text of the answer, sent as it is; for a typed answer, its JSON.
        usage: What it reports to have used; None for `DEFAULT_USAGE`, `Usage()` for a model that reports nothing.

    Returns:
        The reply.

    >>> says("Hello!")["choices"][0]["message"]
    {'role': 'assistant', 'content': 'Hello!'}
    """
    return _reply({"role": "assistant", "content": text}, _wire_usage(usage))


def calls(name: str, /, *, id: str = "call-1", usage: Usage | None = None, **arguments: Any) -> Response:
    """Make a reply that calls one tool; `batch` makes one that calls several.

    Args:
        name: The tool.
        id: Identifier of the call. The loop renames one that is taken in its conversation.
        usage: What it reports to have used; None for `DEFAULT_USAGE`, `Usage()` for a model that reports nothing.
        **arguments: The arguments, as Python values.

    Returns:
        The reply.

    Raises:
        EncodingError: An argument has no form in JSON.

    >>> calls("weather", city="Paris")["choices"][0]["message"]["tool_calls"]
    [{'id': 'call-1', 'type': 'function', 'function': {'name': 'weather', 'arguments': '{"city": "Paris"}'}}]
    """
    call: ToolCall = {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(encode(arguments), ensure_ascii=False)},
    }
    return _reply({"role": "assistant", "content": None, "tool_calls": [call]}, _wire_usage(usage))


def called(tool_calls: Sequence[ToolCall]) -> Response:
    """Make a reply that makes calls which are written already."""
    return _reply({"role": "assistant", "content": None, "tool_calls": list(tool_calls)}, _wire_usage(None))


def batch(*replies: Response) -> Response:
    """Merge several replies into one, as a model makes it that calls several tools in one turn.

    Args:
        *replies: What `says` and `calls` made; at least one. The identifiers of the calls stay as they are, and the
            usage is that of the first.

    Returns:
        The reply.

    Raises:
        ValueError: There is nothing to merge.

    >>> reply = batch(says("Let me see."), calls("add", id="a", x=1), calls("add", id="b", x=2))
    >>> message = reply["choices"][0]["message"]
    >>> message["content"], [call["id"] for call in message["tool_calls"]]
    ('Let me see.', ['a', 'b'])
    """
    if not replies:
        raise ValueError("`batch` merges at least one reply")
    messages = [reply["choices"][0]["message"] for reply in replies]
    texts = [content for message in messages if isinstance(content := message["content"], str)]
    message: AssistantMessage = {"role": "assistant", "content": "".join(texts) if texts else None}
    if tool_calls := [call for each in messages for call in each.get("tool_calls", ())]:
        message["tool_calls"] = tool_calls
    return _reply(message, replies[0].get("usage"))


def _reply(message: AssistantMessage, usage: CompletionUsage | None) -> Response:
    finish = "tool_calls" if "tool_calls" in message else "stop"
    reply: Response = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    if usage:
        reply["usage"] = usage
    return reply


def _wire_usage(usage: Usage | None) -> CompletionUsage:
    usage = DEFAULT_USAGE if usage is None else usage
    wire: dict[str, Any] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": None if usage.input is None or usage.output is None else usage.input + usage.output,
        "prompt_tokens_details": _known(cached_tokens=usage.cache_read, cache_creation_tokens=usage.cache_write),
        "completion_tokens_details": _known(reasoning_tokens=usage.reasoning),
    }
    return _known(**wire)


def _known(**counts: Any) -> Any:
    # What was not measured is left out, as providers do it.
    return {name: count for name, count in counts.items() if count is not None and count != {}}
