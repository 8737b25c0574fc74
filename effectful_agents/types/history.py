"""The list in which a conversation is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any, override

from effectful_agents.messages import Message, ToolCallID

__all__ = ["History", "place_of_request", "stand_in", "taken_ids"]


class History(list[Message]):
    """A list of messages that knows which tool calls are still open and which identifiers are taken.

    Both are answered without walking the whole list: the cost of a turn must not grow with the turns before it.

    Attributes:
        owner: Identity of the agent whose history this is, or None. A shallow copy of an agent shares the attribute
            with the original; by this number the copy notices, and goes on with a list of its own.
        passing: Whether it goes when the call is over, and nobody keeps it.
        reserved: Identifiers that count as taken though no call in the list has them: those of calls that will join it.
        request: The message that opened the call which is running, where one is.
        memo: Where handlers keep what they decided for this conversation, by keys of their own: a running call has that
            of the history which it continues, and any other copy starts anew.
    """

    owner: int | None
    passing: bool = False
    reserved: set[ToolCallID]
    request: Message | None
    memo: dict[Any, Any]
    _ids: set[ToolCallID]
    _seen: int

    def __init__(self, messages: Iterable[Message] = (), *, owner: int | None = None) -> None:
        super().__init__(messages)
        self.owner = owner
        self.reserved = set()
        self.request = None
        self.memo = {}
        self._ids = set()
        self._seen = 0

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (History, (list(self),))

    def open_calls(self) -> list[ToolCallID]:
        """Identifiers of the tool calls at the end of the list that have no result yet, in order."""
        answered: set[ToolCallID] = set()
        for message in reversed(self):
            if message["role"] == "tool":
                answered.add(message["tool_call_id"])
            elif message["role"] == "assistant":
                return [call["id"] for call in message.get("tool_calls", ()) if call["id"] not in answered]
            else:
                return []
        return []

    def call_ids(self) -> Set[ToolCallID]:
        """Identifiers that are taken in this conversation; only what is new since the last time is looked at."""
        for position in range(self._seen, len(self)):
            message = self[position]
            if message["role"] == "assistant":
                self._ids.update(call["id"] for call in message.get("tool_calls", ()))
        self._seen = len(self)
        return self._ids

    def reserve(self, ids: Iterable[ToolCallID]) -> None:
        """Count identifiers as taken."""
        self.reserved.update(ids)
        self._ids.update(self.reserved)

    # Whatever does more than add at the end makes what was known about the beginning void.

    def _forget(self) -> None:
        self._ids, self._seen = set(self.reserved), 0

    @override
    def __setitem__(self, *args: Any) -> None:
        super().__setitem__(*args)
        self._forget()

    @override
    def __delitem__(self, *args: Any) -> None:
        super().__delitem__(*args)
        self._forget()

    @override
    def insert(self, *args: Any) -> None:
        super().insert(*args)
        self._forget()

    @override
    def pop(self, *args: Any) -> Message:
        self._forget()
        return super().pop(*args)

    @override
    def remove(self, *args: Any) -> None:
        super().remove(*args)
        self._forget()

    @override
    def clear(self) -> None:
        super().clear()
        self._forget()


def taken_ids(messages: Sequence[Message]) -> Set[ToolCallID]:
    """Identifiers of tool calls that are taken in a conversation."""
    return (messages if isinstance(messages, History) else History(messages)).call_ids()


def stand_in(messages: Iterable[Message], *others: Sequence[Message]) -> History:
    """What is sent in the place of other conversations: identifiers that are taken there are taken here, too."""
    history = History(messages)
    for other in others:
        history.reserve(taken_ids(other))
    return history


def place_of_request(messages: Sequence[Message], before: int | None = None) -> int | None:
    """Where the request of the running call stands, or None where the user has said nothing.

    What the user says later in the same call (the program steers it, an answer was refused) stands behind it. A history
    of a running call knows it. Of other messages it is the first of the user's behind the last answer; where an earlier
    call ended in a tool call, it may be that one's, which is one too many and never one too few.

    Args:
        messages: The conversation.
        before: Where in it to stop looking; None for the end.

    >>> place_of_request([{"role": "user", "content": "Go on!"}, {"role": "user", "content": "Faster!"}])
    0
    """
    end = len(messages) if before is None else before
    if isinstance(messages, History) and messages.request is not None:
        for place in range(end - 1, -1, -1):
            if messages[place] is messages.request:
                return place
    found = None
    for place in range(end - 1, -1, -1):
        message = messages[place]
        if message["role"] == "user":
            found = place
        elif found is not None and message["role"] == "assistant" and not message.get("tool_calls"):
            break
    return found
