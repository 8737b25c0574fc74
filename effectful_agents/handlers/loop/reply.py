"""Reading a model's reply: whatever it is, it becomes a message that a provider accepts back, and values or errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from effectful_agents.encoding import answer_codec, normal_calls, tool_codec
from effectful_agents.encoding.functions import ENDS_CALL
from effectful_agents.errors import ProviderError, RefusalError, ResultDecodingError, ToolCallDecodingError
from effectful_agents.messages import AssistantMessage, Message, Response, ToolCall
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.types import Tool

__all__ = ["Reply", "decode_answer", "decode_tool_calls", "read_reply"]

# Calls are written anew; sources of an answer are for the program, and some services refuse a message with them.
_NOT_SENT_BACK = frozenset({"tool_calls", "function_call", "annotations"})

_CUT = "The reply was cut off at the limit of its length. Write a shorter one."


class Reply(NamedTuple):
    """The first choice of a reply.

    Attributes:
        message: The message for the history.
        arguments: The arguments of its tool calls, as the model wrote them.
        cut: Whether it ended at the limit of its length.
    """

    message: AssistantMessage
    arguments: list[Any]
    cut: bool


def read_reply(response: Response, messages: Sequence[Message]) -> Reply:
    """The first choice of a reply, with a message that a provider accepts back.

    Identifiers of tool calls are made unique in the conversation, arguments become JSON text of an object, and what a
    provider added (its reasoning above all) stays as it is. `annotations` are not for the history: who wants them takes
    them from the reply.

    Raises:
        ProviderError: There is no choice in the reply, or it has not the form of one.
        RefusalError: The model declined, or a filter stopped it.
    """
    choice, raw = _first_choice(response)
    reason = choice.get("finish_reason")
    if raw.get("refusal"):
        raise RefusalError(f"the model declined: {raw['refusal']}")
    if reason == "content_filter":
        raise RefusalError("a filter of the provider stopped the reply")
    calls = raw.get("tool_calls") or []
    if isinstance(calls, Mapping):
        calls = [calls]
    if not isinstance(calls, list | tuple):
        raise _malformed("its tool calls are no list")
    message = {key: value for key, value in raw.items() if value is not None and key not in _NOT_SENT_BACK}
    message["role"] = "assistant"
    message["content"] = _content(raw.get("content"), None if calls else "")
    if calls:
        message["tool_calls"] = normal_calls(calls, messages)
    return Reply(cast(AssistantMessage, message), [_written_arguments(call) for call in calls], reason == "length")


def _first_choice(response: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    choices = response.get("choices") if isinstance(response, Mapping) else None
    if not isinstance(choices, list | tuple) or not choices:
        raise _malformed("the reply holds no choice")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, Mapping) else choice
    if message is None:
        message = {}
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise _malformed("its first choice is no message")
    return choice, message


def _malformed(problem: str) -> ProviderError:
    return ProviderError(f"the reply of the model's service has not the form of one: {problem}")


def _content(raw: Any, otherwise: str | None) -> Any:
    """Content that may stand in a message: text, a list of parts, or nothing; anything else as its JSON."""
    if raw is None:
        return otherwise
    if isinstance(raw, str):
        return safe_text(raw)
    if isinstance(raw, list | tuple):
        parts = [part for part in raw if isinstance(part, Mapping) and isinstance(part.get("type"), str)]
        return [
            {**part, "text": safe_text(str(part.get("text") or ""))} if part["type"] == "text" else part
            for part in parts
        ] or otherwise
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    return safe_text(json.dumps(raw, ensure_ascii=False, default=str))


def _written_arguments(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    return function.get("arguments") if isinstance(function, Mapping) else None


def decode_tool_calls(
    reply: Reply, offered: Mapping[str, Tool], env: Mapping[str, Any], *, strict: bool = False
) -> list[DecodedToolCall[Any] | ToolCallDecodingError]:
    """The tool calls of a message, each decoded on its own; one that cannot be is its error.

    Args:
        reply: The reply. Where it was cut the last call may be a torso.
        offered: The tools that the model was offered, by name.
        env: The names that validators of the arguments may look at.
        strict: Whether nothing is forgiven.

    Raises:
        ToolCallDecodingError: None of the calls could be decoded.
    """
    message, cut = reply.message, reply.cut
    calls = message.get("tool_calls", [])
    result: list[DecodedToolCall[Any] | ToolCallDecodingError] = []
    for index, (call, arguments) in enumerate(zip(calls, reply.arguments, strict=True)):
        try:
            torso = cut and index == len(calls) - 1
            result.append(_decode_tool_call(call, arguments, offered, env, torso=torso, strict=strict))
        except ENDS_CALL:
            raise
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
    call: ToolCall,
    arguments: Any,
    offered: Mapping[str, Tool],
    env: Mapping[str, Any],
    *,
    torso: bool,
    strict: bool,
) -> DecodedToolCall[Any]:
    name = call["function"]["name"]
    tool = offered.get(name)
    if tool is None:
        known = ", ".join(f"`{one}`" for one in offered) or "none"
        raise ValueError(f"there is no tool `{name}`. The tools are: {known}.")
    if torso and not _is_complete(arguments):
        raise ValueError(_CUT)
    return DecodedToolCall(tool, tool_codec(tool).decode(arguments, context=env, strict=strict), call["id"], name)


def _is_complete(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return arguments is not None
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def decode_answer(reply: Reply, response_type: Any, env: Mapping[str, Any], *, strict: bool = False) -> Any:
    """The value that an answer stands for.

    Raises:
        ResultDecodingError: It does not fit `response_type`, or it was cut off.
    """
    message, cut = reply.message, reply.cut
    content = message["content"]
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part["type"] == "text")
    codec = answer_codec(response_type)
    try:
        if cut and codec.response_format is None and response_type is not None:
            raise ValueError(_CUT)
        return codec.decode(content, context=env, strict=strict)
    except ENDS_CALL:
        raise
    except Exception as error:  # a validator of the user's may raise anything
        if cut:
            error = ValueError(f"{_CUT} ({error})") if _CUT not in str(error) else error
        raise ResultDecodingError(error, message) from error
