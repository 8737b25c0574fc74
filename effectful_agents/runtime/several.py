"""Several functions at once; the first that raises ends all of them."""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Awaitable, Callable, Iterable

from effectful_agents.runtime.bridge import together
from effectful_agents.runtime.stopping import pause
from effectful_agents.runtime.threads import InThread

__all__ = ["in_tasks", "in_threads"]


def in_threads(functions: Iterable[Callable[[], None]], at_once: int, name: str) -> None:
    """Call functions in threads, in their order, and wait for all of them.

    Args:
        functions: The functions.
        at_once: How many run at the same time, at most.
        name: Name of the threads.

    Raises:
        BaseException: The first that one raised. No other is begun then, and those that run are not waited for.

    >>> found = []
    >>> in_threads([lambda: found.append(1), lambda: found.append(2)], 1, "finding")
    >>> found
    [1, 2]
    """
    waiting = collections.deque(functions)
    ended = threading.Event()
    ended_by: list[BaseException] = []
    left = len(waiting)
    counting = threading.Lock()

    def work() -> None:
        nonlocal left
        while not ended.is_set():
            try:
                function = waiting.popleft()
            except IndexError:
                return
            try:
                function()
            except BaseException as error:
                ended_by.append(error)
                ended.set()
            with counting:
                left -= 1
                if not left:
                    ended.set()

    if not waiting:
        return
    for _ in range(min(at_once, len(waiting))):
        InThread(work, name)
    try:
        pause(until=ended)
    finally:
        ended.set()  # however it ended, nothing else is begun
    if ended_by:
        raise ended_by[0]


async def in_tasks(functions: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Await functions in tasks of their own, all at the same time.

    Raises:
        BaseException: The first that one raised, not in a group. The others are cancelled then.
    """
    ended_by: list[BaseException] = []

    async def guarded(function: Callable[[], Awaitable[None]]) -> None:
        try:
            await function()
        except (KeyboardInterrupt, SystemExit) as error:  # raised in a task, these would end the event loop itself
            ended_by.append(error)
            raise _Ended from error

    try:
        await together([functools.partial(guarded, function) for function in functions])
    except BaseExceptionGroup as group:
        raise (ended_by or [_first(group)])[0] from group


class _Ended(Exception):
    """Somebody ends the program."""


def _first(group: BaseExceptionGroup) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
