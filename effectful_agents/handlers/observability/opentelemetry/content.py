"""Messages in the form in which the conventions write them down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from effectful_agents.handlers.observability.watching import json_text

__all__ = ["input_messages", "output_messages", "tool_definitions"]


def input_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """The conversation that is sent, as JSON text.

    >>> input_messages([{"role": "user", "content": "Hi"}])
    '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'
    """
    return json_text([{"role": one.get("role", ""), "parts": list(_parts(one))} for one in messages])


def output_messages(response: Mapping[str, Any]) -> str:
    """The replies, as JSON text."""
    return json_text(
        [
            {
                "role": "assistant",
                "parts": list(_parts(choice.get("message") or {})),
                "finish_reason": choice.get("finish_reason") or "",
            }
            for choice in response.get("choices") or ()
        ]
    )


def tool_definitions(tools: Sequence[Mapping[str, Any]]) -> str:
    """The tools that are offered, as JSON text."""
    return json_text([{"type": "function", **tool.get("function", {})} for tool in tools])


def _parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    if message.get("role") == "tool":
        yield {"type": "tool_call_response", "id": message.get("tool_call_id", ""), "response": content}
        return
    if reasoning := message.get("reasoning_content"):
        yield {"type": "reasoning", "content": reasoning}
    if isinstance(content, str):
        if content:
            yield {"type": "text", "content": content}
    else:
        yield from map(_part, content or ())
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = _json(function.get("arguments"))
        yield {"type": "tool_call", "id": call.get("id", ""), "name": function.get("name", ""), "arguments": arguments}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "text":
        return {"type": "text", "content": part.get("text", "")}
    return dict(part)


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
