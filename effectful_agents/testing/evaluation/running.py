"""Running many things at once: in threads, or in tasks of the event loop where one is awaited."""

from __future__ import annotations

import collections
import contextvars
import threading
from collections.abc import Callable, Sequence

from effectful_agents.errors import Cancelled
from effectful_agents.operations.steps import StepIds, current_ids
from effectful_agents.runtime import InThread, StopScope, bridged, can_wait, pause, together, wait
from effectful_agents.runtime.loops import in_event_loop

__all__ = ["run_all"]

_THREAD = "effectful-agents-case"

type _Job = Callable[[], None]


def run_all(jobs: Sequence[_Job], at_once: int) -> None:
    """Run all jobs, each in a copy of this context; where a journal is kept, each has its own place, by its number.

    In a call that is awaited they run in tasks of its event loop, otherwise in threads; one at a time runs here, unless
    that would block an event loop in which something has to be awaited.

    Raises:
        BaseException: The first that a job raised; no other is begun, and what is under way ends at its next operation.
    """
    ids = current_ids()
    todo = collections.deque(jobs if ids is None else [_at(ids.below(ids.next("call")), job) for job in jobs])
    at_once = min(at_once, len(todo))
    if not todo or (at_once == 1 and (can_wait() or not in_event_loop())):
        while todo:
            contextvars.copy_context().run(todo.popleft())
        return
    with StopScope() as scope:
        try:
            if can_wait():
                wait(_in_tasks(todo, at_once))
            else:
                _in_threads(todo, at_once)
        except BaseException:
            scope.stop(Cancelled)
            raise


def _at(ids: StepIds, job: _Job) -> _Job:
    def placed() -> None:
        with ids:
            job()

    return placed


async def _in_tasks(todo: collections.deque[_Job], at_once: int) -> None:
    import anyio.lowlevel  # noqa: PLC0415 - loads asyncio

    ended_by: list[BaseException] = []

    async def work() -> None:
        try:
            while todo:
                await bridged(todo.popleft())
                await anyio.lowlevel.checkpoint()  # others have their turn, though nothing was awaited
        except (KeyboardInterrupt, SystemExit) as error:  # raised in a task, these would end the event loop itself
            ended_by.append(error)
            raise _Ended from error
        finally:
            todo.clear()

    try:
        await together([work] * at_once)
    except BaseExceptionGroup as group:
        raise (ended_by or [_first(group)])[0] from group


class _Ended(Exception):
    """Somebody ends the program."""


def _first(group: BaseExceptionGroup) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _in_threads(todo: collections.deque[_Job], at_once: int) -> None:
    ended = threading.Event()
    ended_by: list[BaseException] = []
    left = len(todo)
    counting = threading.Lock()

    def work() -> None:
        nonlocal left
        while not ended.is_set():
            try:
                job = todo.popleft()
            except IndexError:
                return
            try:
                contextvars.copy_context().run(job)
            except BaseException as error:
                ended_by.append(error)
                ended.set()
            with counting:
                left -= 1
                if not left:
                    ended.set()

    for _ in range(at_once):
        InThread(work, _THREAD)
    try:
        pause(until=ended)
    finally:
        ended.set()  # however it ended, nothing else is begun
    if ended_by:
        raise ended_by[0]
