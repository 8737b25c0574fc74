"""Running many things at once: in threads, or in tasks of the event loop where one is awaited."""

from __future__ import annotations

import collections
import contextvars
from collections.abc import Callable, Sequence

from effectful_agents.errors import Cancelled
from effectful_agents.operations.steps import StepIds, current_ids
from effectful_agents.runtime import StopScope, bridged, can_wait, in_tasks, in_threads, wait
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
                in_threads([_apart(job) for job in todo], at_once, _THREAD)
        except BaseException:
            scope.stop(Cancelled)
            raise


def _at(ids: StepIds, job: _Job) -> _Job:
    def placed() -> None:
        with ids:
            job()

    return placed


def _apart(job: _Job) -> _Job:
    return lambda: contextvars.copy_context().run(job)


async def _in_tasks(todo: collections.deque[_Job], at_once: int) -> None:
    import anyio.lowlevel  # noqa: PLC0415 - loads asyncio

    async def work() -> None:
        try:
            while todo:
                await bridged(todo.popleft())
                await anyio.lowlevel.checkpoint()  # others have their turn, though nothing was awaited
        finally:
            todo.clear()

    await in_tasks([work] * at_once)
