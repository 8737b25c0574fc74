"""The message transaction: a call's messages join a history all together, or not at all."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Generator, MutableSequence, Sequence

from effectful_agents.errors import HistoryError
from effectful_agents.messages import Message, ToolCallID
from effectful_agents.messages.mending import with_free_ids
from effectful_agents.operations.history import admit_message, append_message, get_history
from effectful_agents.runtime import handler
from effectful_agents.types import History
from effectful_agents.types.history import place_of_request

__all__ = ["changing_history", "transaction"]


@contextlib.contextmanager
def transaction(prefix: MutableSequence[Message] | None = None, *, write_back: bool = True) -> Generator[History]:
    """Collect messages in a buffer that is the history for the time of the block.

    Args:
        prefix: The conversation that the buffer starts as a copy of; None for an empty one.
        write_back: Whether `prefix` receives what the block added when it ends without an exception.

    Yields:
        The buffer. `get_history` gives it, `append_message` adds to it.

    The first message of the user's that is added is the request of the call.

    A `prefix` that somebody else added to meanwhile keeps those messages. A buffer whose beginning was rewritten (a
    compaction) takes the place of what it started from; what another one has put in the place of the same messages
    meanwhile is left out.

    >>> kept = [{"role": "user", "content": "Hi"}]
    >>> with transaction(kept):
    ...     append_message({"role": "assistant", "content": "Hello"})
    >>> [message["role"] for message in kept]
    ['user', 'assistant']
    """
    buffer = History(prefix or ())
    if isinstance(prefix, History):
        buffer.memo = prefix.memo  # it is the same conversation
    seed, added = list(buffer), list[Message]()

    def append(message: Message) -> None:
        message = admit_message(message)
        _check_place(buffer, message)
        buffer.append(message)
        added.append(message)
        if message["role"] == "user" and buffer.request is None:
            buffer.request = message

    with handler({get_history: lambda: buffer, append_message: append}):
        yield buffer
    if prefix is not None and write_back:
        with changing_history:
            _write_back(prefix, seed, buffer, added)


# Calls of one agent in several threads may end at the same moment. No operation is performed while it is held.
changing_history = threading.Lock()


def _write_back(prefix: MutableSequence[Message], seed: list[Message], buffer: History, added: list[Message]) -> None:
    head = buffer[:1] if _begins_with_system(buffer) and not (seed and buffer[0] is seed[0]) else []
    body = buffer[len(head) :]
    # What somebody else added meanwhile stays; it may have the same identifiers, and a system message of its own.
    continued = len(body) >= len(seed) and all(map(operator.is_, seed, body))
    alone = len(prefix) == len(seed) and all(map(operator.is_, seed, prefix))
    known = set() if continued and alone else set(map(id, seed))
    others = [] if alone else [message for message in prefix if id(message) not in known]
    if continued:
        if head and not _begins_with_system(prefix):
            prefix.insert(0, head[0])
        new = body[len(seed) :]
        prefix.extend(with_free_ids(new, History(prefix).call_ids()) if others else new)
    else:
        instead = _instead(prefix)
        theirs = [
            message
            for message in others
            if message["role"] != "system" and not (id(message) in instead and instead[id(message)] <= known)
        ]
        _note_what_stands_for_others(instead, seed, buffer, added)
        prefix[:] = [*buffer, *with_free_ids(theirs, buffer.call_ids())]


def _instead(prefix: MutableSequence[Message]) -> dict[int, frozenset[int]]:
    """The messages that stand in the place of others, and of which, by their identities.

    Two compactions of the same messages are both right, and one is enough. (A number may be used again for another
    message, but never for one that a running transaction still knows.)
    """
    memo = prefix.memo if isinstance(prefix, History) else {}
    found: dict[int, frozenset[int]] = memo.setdefault(transaction, {})
    here = set(map(id, prefix))
    for gone in found.keys() - here:
        del found[gone]
    return found


def _note_what_stands_for_others(
    instead: dict[int, frozenset[int]], seed: list[Message], buffer: History, added: list[Message]
) -> None:
    known, left = set(map(id, seed)), set(map(id, buffer))
    if not left.issuperset(map(id, added)):
        return  # it tells of the work of its own call, too
    gone = frozenset(known - left)
    for message in buffer[: place_of_request(buffer)]:
        if id(message) not in known and message["role"] != "system":
            instead[id(message)] = gone


def _begins_with_system(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[0]["role"] == "system"


def _check_place(history: History, message: Message) -> None:
    """Raise unless a provider accepts the message after those that are there."""
    waiting = history.open_calls()
    if message["role"] == "tool":
        answered = message["tool_call_id"]
        if answered not in waiting:
            raise HistoryError(
                f"the result of the tool call `{answered}` cannot stand here: no such call is waiting for one."
            )
        if answered != waiting[0]:
            raise HistoryError(
                f"the result of the tool call `{answered}` cannot stand here: that of `{waiting[0]}` comes before it."
            )
    elif waiting:
        raise HistoryError(
            f"a {message['role']} message cannot stand here: the tool call `{waiting[0]}` has no result yet."
        )
    elif message["role"] == "system" and history:
        raise HistoryError("a system message cannot stand here: it is always the first message.")
    elif message["role"] == "assistant":
        here: set[ToolCallID] = set()
        for call in message.get("tool_calls", ()):
            if call["id"] in here or call["id"] in history.call_ids():
                raise HistoryError(f"the identifier `{call['id']}` of a tool call is taken in this conversation.")
            here.add(call["id"])
