"""Holding a reply to the `tool_choice` of its request, which not every provider does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from effectful_agents.encoding import normal_calls
from effectful_agents.errors import DecodingError, ResultDecodingError, ToolCallDecodingError
from effectful_agents.messages import AssistantMessage, Message, Response, ToolCall, ToolChoice

__all__ = ["enforce"]


def enforce(choice: ToolChoice, response: Response, messages: Sequence[Message]) -> None:
    """Let a reply pass that obeys, and one that a later step deals with: a refusal, or a reply without any choice.

    Args:
        choice: What the request asked for.
        response: The reply.
        messages: The conversation that was sent.

    Raises:
        ResultDecodingError: A tool had to be called and none was.
        ToolCallDecodingError: A tool was called that may not be. It and its `others` answer every call of the reply.
    """
    error = _objection(choice, response, messages)
    if error is not None:
        error.response = response
        raise error


def _objection(choice: ToolChoice, response: Response, messages: Sequence[Message]) -> DecodingError[Any] | None:
    choices = response.get("choices")
    if choice.mode == "auto" or not choices:
        return None
    message = choices[0]["message"]
    calls = message.get("tool_calls") or []
    if not calls:
        if choice.mode != "none" and not message.get("refusal") and choices[0].get("finish_reason") != "content_filter":
            return ResultDecodingError(ValueError(_missing(choice)), message)
        return None
    if choice.mode == "none":
        problems = ["No tool may be called in this reply. Answer without calling one."] * len(calls)
    elif choice.mode == "named" and any(_name(call) != choice.name for call in calls):
        problems = [_misplaced(call, choice) for call in calls]
    else:
        return None
    return _forbidden(message, problems, messages)


def _missing(choice: ToolChoice) -> str:
    which = f"the tool `{choice.name}`" if choice.mode == "named" else "one of the tools that you are offered"
    return f"This reply must be a tool call, and it called no tool. Call {which}."


def _misplaced(call: ToolCall, choice: ToolChoice) -> str:
    if _name(call) == choice.name:
        return "It was left out because of the other calls of the same reply. Call this tool alone."
    return f"Only the tool `{choice.name}` may be called in this reply. Call that one."


def _forbidden(
    message: AssistantMessage, problems: Sequence[str], messages: Sequence[Message]
) -> ToolCallDecodingError:
    # The message goes back to the model with an answer to each of its calls.
    calls = normal_calls(message.get("tool_calls", []), messages)
    raw = cast(AssistantMessage, {**message, "tool_calls": calls})
    errors = [ToolCallDecodingError(ValueError(text), raw, call) for text, call in zip(problems, calls, strict=True)]
    first, *others = errors
    return ToolCallDecodingError(first.original_error, raw, first.raw_tool_call, others)


def _name(call: Any) -> str:
    return (call.get("function") or {}).get("name") or ""
