"""Running many things at once: in threads, or in tasks of the event loop where one is awaited."""

from __future__ import annotations

import collections
import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import Any

from effectful_agents.errors import Cancelled
from effectful_agents.operations.steps import StepIds, current_ids
from effectful_agents.runtime import StopScope, bridged, can_wait, check_stopped, in_tasks, in_threads, wait
from effectful_agents.runtime.loops import current_task, in_event_loop

__all__ = ["run_all", "settle"]

_THREAD = "effectful-agents-case"

type _Job = Callable[[], None]

_around: contextvars.ContextVar[tuple[Any, int] | None] = contextvars.ContextVar(
    "effectful_agents_around", default=None
)
"""The task of asyncio in which the one of this job is awaited, and how often that had been cancelled before."""


def run_all(jobs: Sequence[_Job], at_once: int) -> None:
    """Run all jobs, each in a copy of this context; where a journal is kept, each has its own place, by its number.

    In a call that is awaited each runs in a task of its event loop, otherwise in a thread; one at a time runs here,
    where there is no event loop.

    Raises:
        BaseException: The first that a job raised; no other is begun, and what is under way ends at its next operation.
    """
    ids = current_ids()
    todo = collections.deque(jobs if ids is None else [_at(ids.below(ids.next("call")), job) for job in jobs])
    at_once = min(at_once, len(todo))
    if not todo or (at_once == 1 and not in_event_loop()):
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


def settle() -> None:
    """In a job: raise if all of it has been ended from outside, and forget how it has cancelled its own task.

    Raises:
        BaseException: What ends it from outside.
    """
    task, around = current_task(), _around.get()
    if around is None or not hasattr(task, "cancelling"):
        check_stopped()
        return
    import asyncio  # noqa: PLC0415 - loaded, as its loop runs

    outer, before = around
    try:
        check_stopped()
    except asyncio.CancelledError:
        if outer.cancelling() > before:
            raise
    while task.cancelling():
        task.uncancel()
    check_stopped()


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
        task = current_task()
        if hasattr(task, "cancelling"):
            _around.set((task, task.cancelling()))
        try:
            while todo:
                # In a task of its own: a timeout of the older kind cancels the task that it runs in.
                await in_tasks([functools.partial(bridged, todo.popleft())])
                await anyio.lowlevel.checkpoint()  # others have their turn, though nothing was awaited
        finally:
            todo.clear()

    await in_tasks([work] * at_once)
