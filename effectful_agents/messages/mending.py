"""Making a conversation one that a provider accepts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, cast

from effectful_agents.errors import HistoryError
from effectful_agents.messages.conversation import AssistantMessage, Message, ToolCall, ToolMessage
from effectful_agents.messages.text import arguments_text

__all__ = ["RUNNING", "UNANSWERED", "close_calls", "mended", "with_free_ids"]

UNANSWERED = "(This call has no result: the conversation was interrupted before it came.)"
RUNNING = "(This call is still running.)"
_STRAY = "(The result of a call that is no longer part of this conversation.)"


def mended(messages: Iterable[Message]) -> list[Message]:
    """A copy of a conversation, mended where a provider would refuse it. Nothing that was said is lost.

    Each call has exactly one result, right behind it and in the order of the calls; a call without a result gets a
    marked one; calls without an identifier, or with one that is taken, get another. A result without its call, a second
    one of the same call, and a system message that is not the first message become user messages.

    Args:
        messages: The conversation. Neither the sequence nor a message in it is changed.

    Returns:
        The mended conversation; messages that are right are the same objects.

    Raises:
        HistoryError: Something in it is no message.

    >>> mended([{"role": "user", "content": "Hi"}, {"role": "tool", "tool_call_id": "x", "content": "7"}])[1]["role"]
    'user'
    """
    rest: list[Any] = [_message(message, position) for position, message in enumerate(messages)]
    taken: set[str] = set()
    placed: set[int] = set()  # identities of the results that stand behind their calls already
    result: list[Message] = []
    for position, message in enumerate(rest):
        role = message["role"]
        if role == "assistant" and message.get("tool_calls"):
            mended_turn, used = _mend_calls(message, _results_ahead(rest, position), taken, position)
            result.extend(mended_turn)
            placed.update(used)
        elif role == "assistant":
            result.append(_without_calls(message))
        elif role == "tool":
            if id(message) not in placed:
                result.append({"role": "user", "content": _marked(_STRAY, message["content"])})
        elif role in ("system", "developer"):
            wanted = "user" if result else "system"
            result.append(message if role == wanted else cast(Message, {**message, "role": wanted}))
        else:
            result.append(message)
    return result


def _message(message: Any, position: int) -> Any:
    """A message with a role, content and calls of the right form; itself where it has them."""
    if not isinstance(message, Mapping):
        raise HistoryError(
            f"message {position} of the history is {type(message).__name__}; it has to be a dictionary with `role` and "
            "`content`."
        )
    role = message.get("role")
    mended = dict(message)
    if role not in ("system", "developer", "user", "assistant", "tool"):
        mended["role"] = role = "user"
    if role == "assistant" and message.get("tool_calls"):
        mended["tool_calls"] = _calls(message["tool_calls"])
        mended.setdefault("content", None)
    content = mended.get("content")
    if not isinstance(content, str | list) and not (
        content is None and role == "assistant" and mended.get("tool_calls")
    ):
        mended["content"] = "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
    return message if mended == message else mended


def _calls(calls: Any) -> Any:
    listed = calls if isinstance(calls, list | tuple) else [calls]
    return [_call(call) for call in listed]


def _call(call: Any) -> Any:
    whole: Mapping[str, Any] = call if isinstance(call, Mapping) else {}
    inside = whole.get("function")
    function: Mapping[str, Any] = inside if isinstance(inside, Mapping) else {}
    name, arguments = function.get("name"), function.get("arguments")
    mended = {
        **whole,
        "type": "function",
        "function": {**function, "name": name if isinstance(name, str) else "", "arguments": arguments_text(arguments)},
    }
    return call if mended == call else mended


def close_calls(messages: Sequence[Message], open_calls: Sequence[str], note: str) -> list[Message]:
    """The conversation with a marked result for each of the open calls at its end."""
    return [*messages, *(ToolMessage(role="tool", tool_call_id=call, content=note) for call in open_calls)]


def with_free_ids(messages: Iterable[Message], taken: Set[str]) -> list[Message]:
    """A copy of a valid conversation in which no tool call has one of the identifiers that are taken."""
    known = set(taken)
    names: dict[str, str] = {}
    result: list[Any] = []
    for message in messages:
        if message["role"] == "tool" and message["tool_call_id"] in names:
            result.append({**message, "tool_call_id": names[message["tool_call_id"]]})
        elif message["role"] == "assistant" and any(call["id"] in known for call in message.get("tool_calls", ())):
            renamed = []
            for call in message.get("tool_calls", ()):
                names[call["id"]] = _free_id(call["id"], f"{call['id']}_2", known)
                renamed.append({**call, "id": names[call["id"]]})
            result.append({**message, "tool_calls": renamed})
        else:
            known.update(call["id"] for call in message.get("tool_calls", ()) if message["role"] == "assistant")
            result.append(message)
    return result


def _results_ahead(messages: Sequence[Any], position: int) -> list[ToolMessage]:
    """The tool messages between an assistant message and the next one."""
    found = []
    for message in messages[position + 1 :]:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            found.append(message)
    return found


def _mend_calls(
    message: AssistantMessage, results: Sequence[ToolMessage], taken: set[str], position: int
) -> tuple[list[Message], set[int]]:
    """An assistant message with its results behind it, and the identities of the results that were there."""
    calls = message.get("tool_calls") or []
    waiting = list(results)
    renamed: list[ToolCall] = []
    answers: list[ToolMessage] = []
    for index, call in enumerate(calls):
        name = _free_id(call.get("id"), f"call_{position}_{index}", taken)
        same = name == call.get("id")
        renamed.append(call if same else {**call, "id": name})
        answer = next((one for one in waiting if one.get("tool_call_id") == call.get("id")), None)
        if answer is None:
            answers.append({"role": "tool", "tool_call_id": name, "content": UNANSWERED})
        else:
            waiting = [one for one in waiting if one is not answer]
            answers.append(answer if same else {**answer, "tool_call_id": name})
    unchanged = all(one is other for one, other in zip(renamed, calls, strict=True))
    turn: list[Message] = [message if unchanged else {**message, "tool_calls": renamed}, *answers]
    return turn, {id(one) for one in results} - {id(one) for one in waiting}


def _free_id(given: Any, otherwise: str, taken: set[str]) -> str:
    name = given if isinstance(given, str) and given and given not in taken else otherwise
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _without_calls(message: AssistantMessage) -> AssistantMessage:
    """An assistant message without the empty list of calls that some providers write and others refuse."""
    if "tool_calls" not in message:
        return message
    return cast(AssistantMessage, {key: value for key, value in message.items() if key != "tool_calls"})


def _marked(note: str, content: Any) -> Any:
    if isinstance(content, str):
        return f"{note}\n{content}"
    return [{"type": "text", "text": note}, *content]
