"""Reading a model's reply: whatever it is, it becomes a message that a provider accepts back, and values or errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from effectful_agents.encoding import answer_codec, normal_calls, tool_codec
from effectful_agents.errors import ProviderError, RefusalError, ResultDecodingError, ToolCallDecodingError
from effectful_agents.messages import AssistantMessage, Message, Response, ToolCall
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.types import Tool

__all__ = ["assistant_message", "decode_answer", "decode_tool_calls"]

_CUT = "The reply was cut off at the limit of its length. Write a shorter one."


def assistant_message(response: Response, messages: Sequence[Message]) -> tuple[AssistantMessage, str | None]:
    """The first choice of a reply as a message for the history, and why it ended.

    Identifiers of tool calls are made unique in the conversation, arguments become JSON text of an object, and what a
    provider added (its reasoning above all) stays as it is.

    Raises:
        ProviderError: There is no choice in the reply.
        RefusalError: The model declined, or a filter stopped it.
    """
    choices = response.get("choices")
    if not choices:
        raise ProviderError("the reply holds no choice", provider=response.get("model", ""))
    raw = choices[0].get("message") or {}
    reason = choices[0].get("finish_reason")
    if raw.get("refusal"):
        raise RefusalError(f"the model declined: {raw['refusal']}", provider=response.get("model", ""))
    calls = raw.get("tool_calls") or []
    if reason == "content_filter":
        raise RefusalError("a filter of the provider stopped the reply", provider=response.get("model", ""))
    message = {
        key: value for key, value in raw.items() if value is not None and key not in ("tool_calls", "function_call")
    }
    message["role"] = "assistant"
    message.setdefault("content", None if calls else "")
    if calls:
        message["tool_calls"] = normal_calls(calls, messages)
    return cast(AssistantMessage, message), reason


def decode_tool_calls(
    message: AssistantMessage,
    response: Response,
    offered: Mapping[str, Tool],
    env: Mapping[str, Any],
    *,
    cut: bool,
) -> list[DecodedToolCall[Any] | ToolCallDecodingError]:
    """The tool calls of a message, each decoded on its own; one that cannot be is its error.

    Args:
        message: The message, as `assistant_message` made it.
        response: The reply, for the arguments as the model wrote them.
        offered: The tools that the model was offered, by name.
        env: The names that validators of the arguments may look at.
        cut: Whether the reply ended at the limit of its length; the last call may then be a torso.

    Raises:
        ToolCallDecodingError: None of the calls could be decoded.
    """
    calls = message.get("tool_calls", [])
    raw_calls: Sequence[Any] = response["choices"][0]["message"].get("tool_calls") or []
    result: list[DecodedToolCall[Any] | ToolCallDecodingError] = []
    for index, (call, raw) in enumerate(zip(calls, raw_calls, strict=True)):
        arguments = ((raw if isinstance(raw, Mapping) else {}).get("function") or {}).get("arguments")
        try:
            torso = cut and index == len(calls) - 1
            result.append(_decode_tool_call(call, arguments, offered, env, torso=torso))
        except Exception as error:  # a validator of the user's may raise anything
            result.append(ToolCallDecodingError(error, message, call))
    failures = [one for one in result if isinstance(one, ToolCallDecodingError)]
    if failures and len(failures) == len(result):
        first, *others = failures
        raise ToolCallDecodingError(
            first.original_error, message, first.raw_tool_call, others
        ) from first.original_error
    return result


def _decode_tool_call(
    call: ToolCall, arguments: Any, offered: Mapping[str, Tool], env: Mapping[str, Any], *, torso: bool
) -> DecodedToolCall[Any]:
    name = call["function"]["name"]
    tool = offered.get(name)
    if tool is None:
        known = ", ".join(f"`{one}`" for one in offered) or "none"
        raise ValueError(f"there is no tool `{name}`. The tools are: {known}.")
    if torso and not _is_complete(arguments):
        raise ValueError(_CUT)
    return DecodedToolCall(tool, tool_codec(tool).decode(arguments, context=env), call["id"], name)


def _is_complete(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return arguments is not None
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def decode_answer(message: AssistantMessage, response_type: Any, env: Mapping[str, Any], *, cut: bool) -> Any:
    """The value that an answer stands for.

    Raises:
        ResultDecodingError: It does not fit `response_type`, or it was cut off.
    """
    content = message["content"]
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part["type"] == "text")
    codec = answer_codec(response_type)
    try:
        if cut and codec.response_format is None and response_type is not None:
            raise ValueError(_CUT)
        return codec.decode(content, context=env)
    except Exception as error:  # a validator of the user's may raise anything
        if cut:
            error = ValueError(f"{_CUT} ({error})") if _CUT not in str(error) else error
        raise ResultDecodingError(error, message) from error
