"""Tool calls as a model wrote them, in a form that every provider accepts back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.messages import Message, ToolCall
from effectful_agents.messages.text import arguments_text, safe_text
from effectful_agents.operations.loop import call_id
from effectful_agents.types.history import taken_ids

__all__ = ["normal_calls"]


def normal_calls(calls: Sequence[Any], messages: Sequence[Message]) -> list[ToolCall]:
    """The tool calls of a reply: each with an identifier of its own, a name, and JSON text of an object as arguments.

    Args:
        calls: The calls as the model, or its provider, wrote them: nothing about them is certain.
        messages: The conversation that they join.

    Returns:
        The calls in their order. What a provider added to one stays in it.
    """
    # The history's own set, which grows with it: a copy would cost more with each turn.
    before = taken_ids(messages)
    here: set[str] = set()
    result: list[ToolCall] = []
    for index, raw in enumerate(calls):
        call: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        inside = call.get("function")
        function: Mapping[str, Any] = inside if isinstance(inside, Mapping) else {}
        name = call.get("id")
        if not isinstance(name, str) or not name or name != safe_text(name) or name in before or name in here:
            name = call_id(len(messages), index)
            while name in before or name in here:
                name += "_"
        here.add(name)
        result.append(
            {
                **call,
                "id": name,
                "type": "function",
                "function": {
                    "name": _name(function.get("name")),
                    "arguments": arguments_text(function.get("arguments")),
                },
            }
        )
    return result


def _name(raw: Any) -> str:
    return safe_text(raw) if isinstance(raw, str) else ""
