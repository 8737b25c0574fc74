"""Making a conversation one that a provider accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from effectful_agents.messages.conversation import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage

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
    rest = list(messages)
    taken: set[str] = set()
    result: list[Message] = []
    for position, message in enumerate(rest):
        role = message["role"]
        if role == "assistant" and message.get("tool_calls"):
            following = _results_ahead(rest, position)
            result.extend(_mend_calls(message, following, taken, position))
        elif role == "assistant":
            result.append(_without_calls(message))
        elif role == "tool":
            if id(message) not in _claimed(rest, position):
                result.append({"role": "user", "content": _marked(_STRAY, message["content"])})
        elif cast(str, role) in ("system", "developer") and result:
            result.append({"role": "user", "content": message["content"]})
        elif cast(str, role) == "developer":
            result.append(SystemMessage(role="system", content=cast(Any, message["content"])))
        else:
            result.append(message)
    return result


def close_calls(messages: Sequence[Message], open_calls: Sequence[str], note: str) -> list[Message]:
    """The conversation with a marked result for each of the open calls at its end."""
    return [*messages, *(ToolMessage(role="tool", tool_call_id=call, content=note) for call in open_calls)]


def _results_ahead(messages: Sequence[Message], position: int) -> list[ToolMessage]:
    """The tool messages between an assistant message and the next one."""
    found = []
    for message in messages[position + 1 :]:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            found.append(message)
    return found


def _claimed(messages: Sequence[Message], position: int) -> set[int]:
    """Identities of the results that the assistant message before `position` takes for its calls, or that repeat one."""
    for before in range(position - 1, -1, -1):
        message = messages[before]
        if message["role"] == "assistant":
            calls = {call.get("id") for call in message.get("tool_calls") or ()}
            return {id(one) for one in _results_ahead(messages, before) if one.get("tool_call_id") in calls}
    return set()


def _mend_calls(
    message: AssistantMessage, results: list[ToolMessage], taken: set[str], position: int
) -> Iterator[Message]:
    calls = message.get("tool_calls") or []
    renamed: list[ToolCall] = []
    answers: list[ToolMessage] = []
    waiting = list(results)
    for index, call in enumerate(calls):
        old = call.get("id")
        new = old
        if not isinstance(old, str) or not old or old in taken:
            new = f"call_{position}_{index}"
            while new in taken:
                new += "_"
        taken.add(cast(str, new))
        renamed.append(call if new == old else {**call, "id": cast(str, new)})
        answer = next((one for one in waiting if one.get("tool_call_id") == old), None)
        if answer is None:
            answers.append({"role": "tool", "tool_call_id": cast(str, new), "content": UNANSWERED})
        else:
            waiting.remove(answer)
            answers.append(answer if new == old else {**answer, "tool_call_id": cast(str, new)})
    unchanged = all(one is other for one, other in zip(renamed, calls, strict=True))
    yield message if unchanged else {**message, "tool_calls": renamed}
    yield from answers


def _without_calls(message: AssistantMessage) -> AssistantMessage:
    """An assistant message without the empty list of calls that some providers write and others refuse."""
    if "tool_calls" not in message:
        return message
    return cast(AssistantMessage, {key: value for key, value in message.items() if key != "tool_calls"})


def _marked(note: str, content: Any) -> Any:
    if isinstance(content, str):
        return f"{note}\n{content}"
    return [{"type": "text", "text": note}, *content]
