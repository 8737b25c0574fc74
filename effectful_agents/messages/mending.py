"""Making a conversation one that a provider accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from effectful_agents.messages.conversation import AssistantMessage, Message, ToolCall, ToolMessage

__all__ = ["RUNNING", "UNANSWERED", "close_calls", "mended"]

UNANSWERED = "(This call has no result: the conversation was interrupted before it came.)"
RUNNING = "(This call is still running.)"
_STRAY = "(The result of a call that is no longer part of this conversation.)"


def mended(messages: Iterable[Message]) -> list[Message]:
    """A copy of a conversation, mended where a provider would refuse it. Nothing that was said is lost.

    Each call has exactly one result, right behind it and in the order of the calls; a call without a result gets a
    marked one; calls without an identifier, or with one that is taken, get another. A result without its call, and a
    system message that is not the first message, become user messages.

    Args:
        messages: The conversation. Neither the sequence nor a message in it is changed.

    Returns:
        The mended conversation; messages that are right are the same objects.

    >>> mended([{"role": "user", "content": "Hi"}, {"role": "tool", "tool_call_id": "x", "content": "7"}])[1]["role"]
    'user'
    """
    rest: list[Any] = list(messages)
    taken: set[str] = set()
    result: list[Message] = []
    for position, message in enumerate(rest):
        role = message["role"]
        if role == "assistant" and message.get("tool_calls"):
            result.extend(_mend_calls(message, _results_ahead(rest, position), taken, position))
        elif role == "assistant":
            result.append(_without_calls(message))
        elif role == "tool":
            if id(message) not in _claimed(rest, position):
                result.append({"role": "user", "content": _marked(_STRAY, message["content"])})
        elif role in ("system", "developer"):
            wanted = "user" if result else "system"
            result.append(message if role == wanted else cast(Message, {**message, "role": wanted}))
        else:
            result.append(message)
    return result


def close_calls(messages: Sequence[Message], open_calls: Sequence[str], note: str) -> list[Message]:
    """The conversation with a marked result for each of the open calls at its end."""
    return [*messages, *(ToolMessage(role="tool", tool_call_id=call, content=note) for call in open_calls)]


def _results_ahead(messages: Sequence[Any], position: int) -> list[ToolMessage]:
    """The tool messages between an assistant message and the next one."""
    found = []
    for message in messages[position + 1 :]:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            found.append(message)
    return found


def _claimed(messages: Sequence[Any], position: int) -> set[int]:
    """Identities of the results that the assistant message before `position` takes for its calls, repeated ones too."""
    for before in range(position - 1, -1, -1):
        message = messages[before]
        if message["role"] == "assistant":
            calls = {call.get("id") for call in message.get("tool_calls") or ()}
            return {id(one) for one in _results_ahead(messages, before) if one.get("tool_call_id") in calls}
    return set()


def _mend_calls(
    message: AssistantMessage, results: Sequence[ToolMessage], taken: set[str], position: int
) -> Iterator[Message]:
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
            waiting.remove(answer)
            answers.append(answer if same else {**answer, "tool_call_id": name})
    unchanged = all(one is other for one, other in zip(renamed, calls, strict=True))
    yield message if unchanged else {**message, "tool_calls": renamed}
    yield from answers


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
