"""Synchronous code that waits on an event loop without blocking it.

The loop is written once, as ordinary functions. To run it in an event loop, `bridged` puts a call into a greenlet. When
something inside has to be awaited, `wait` steps that awaitable right there, inside the greenlet, and hands only what it
yields out to the event loop: so it sees the call's handlers and context variables, and the event loop sees one
coroutine of the task that awaits `bridged`. Which event loop that is matters only where tasks are begun, or a
cancellation is looked for.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import math
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, cast, override

import greenlet

from effectful_agents.runtime.helper_loop import wait_elsewhere
from effectful_agents.runtime.loops import current_task, in_event_loop, running_trio
from effectful_agents.runtime.stopping import StopScope, check_stopped, stoppable_scopes, until_stopped

__all__ = ["Awaited", "Driven", "Handed", "bridged", "can_wait", "named", "together", "wait"]

_PATIENCE = 16
"""How often a call that is closed may go on instead of ending, before that is an error."""


class _Ending(StopScope):
    """Stopped by what drives the call, which needs nobody to wake it."""

    __slots__ = ()

    wakes = False


class _Cancelling(_Ending):
    """That of a call in an event loop: an operation lets a cancellation through that the task has not been given yet.

    Attributes:
        task: The task that drives the call at this moment, if it does.
        before: How many cancellations of the task were asked for before it began to drive the call.
        given: Whether one was given to the call since.
    """

    __slots__ = ("before", "given", "task")

    def __init__(self) -> None:
        super().__init__()
        self.armed = True
        self.task: Any = None
        self.before = 0
        self.given = False

    @override
    def check(self) -> None:
        super().check()
        if self.task is None or not self._is_cancelled():
            return
        call = _enclosing()
        if call is None or call._ending is not self:
            return  # in another task, or a thread, that the context was carried into
        if self.given:  # and was eaten, or is on its way out
            import asyncio  # noqa: PLC0415 - loaded, as its loop runs

            raise asyncio.CancelledError
        import anyio.lowlevel  # noqa: PLC0415 - loads asyncio

        _stepped(call, anyio.lowlevel.checkpoint())

    def _is_cancelled(self) -> bool:
        if hasattr(self.task, "cancelling"):
            return self.task.cancelling() > self.before
        trio = running_trio()
        return trio is not None and trio.current_effective_deadline() == -math.inf

    def drive(self, task: Any) -> None:
        """Begin to be driven by a task."""
        self.task = task
        self.before = task.cancelling() if hasattr(task, "cancelling") else 0
        self.given = False


class Driven(greenlet.greenlet):
    """A function in a greenlet of its own, which runs whenever `go_on` is called, and may come to a stop in between.

    Attributes:
        hub: The greenlet that drives it at this moment.
        leaf: The greenlet that has handed something out last: this one, or one that runs below it. None: this one.
        waits: How many `wait` are going on directly in it.
        task: The task in which it is driven at this moment; None where that is none of an event loop that we know.
    """

    hub: greenlet.greenlet
    leaf: greenlet.greenlet | None = None
    waits = 0
    task: Any = None

    def __init__(self, function: Callable[[], Any], context: contextvars.Context) -> None:
        self._ending = ending = self._ending_of()

        def run() -> Any:
            with ending:
                return function()

        if trio := sys.modules.get("trio"):
            # Its handler of Ctrl-C looks for a mark on the stack, and finds none on that of a greenlet.
            run = trio.lowlevel.disable_ki_protection(run)
        super().__init__(run)
        self.gr_context = context

    def _ending_of(self) -> Any:
        return _Ending()

    def go_on(self, value: Any = None, error: BaseException | None = None) -> Any:
        """Run until it hands something out, or ends; then `dead` is true, and what is returned is its value."""
        if self.dead:
            raise RuntimeError("a call that has ended cannot go on")
        # It may be driven from another greenlet, or thread, than the last time.
        self.hub = self.parent = greenlet.getcurrent()
        self.task = current_task()
        leaf, self.leaf = self.leaf, None
        try:
            if leaf is None:
                return self.switch() if error is None else self.throw(error)
            return leaf.switch(value) if error is None else leaf.throw(error)
        finally:
            self.task = None

    def hand_out(self, value: Any) -> Any:
        """From inside: give a value to whoever drives it, and wait to go on."""
        self.leaf = greenlet.getcurrent()
        return self.hub.switch(value)

    def end(self) -> None:
        """Have it end with `GeneratorExit` where it has stopped, and at each operation after that.

        Raises:
            RuntimeError: It goes on all the same.
        """
        self._ending.stop(GeneratorExit)
        for _ in range(_PATIENCE):
            with contextlib.suppress(GeneratorExit):
                self.go_on(error=GeneratorExit())
            if self.dead:
                return
        raise RuntimeError("a call that is closed ignores GeneratorExit: something in it eats all exceptions, for ever")


class Awaited(Driven):
    """A function whose `wait` is done by the event loop that drives it."""

    _ending: _Cancelling

    @override
    def _ending_of(self) -> _Cancelling:
        return _Cancelling()

    @types.coroutine
    def turns(self, *, ending: bool = False) -> Generator[Any, Any, Any]:
        """Go on until it hands out a `Handed` or ends; return that, or its value.

        Args:
            ending: Have it end, as `end` does, and let it wait for what it cleans up.
        """
        value: Any = None
        error: BaseException | None = None
        if ending:
            self._ending.stop(GeneratorExit)
            error = GeneratorExit()
        self._ending.drive(current_task())
        try:
            while True:
                trap = self.go_on(value, error)
                if self.dead or type(trap) is Handed:
                    return trap
                try:
                    value, error = (yield trap), None
                except GeneratorExit:
                    self.end()
                    raise
                except BaseException as thrown:  # cancelled: for the function to see
                    value, error = None, thrown
                    self._ending.given = True
        finally:
            self._ending.task = None


class Handed:
    """Marks what is handed out and is not for the event loop."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def bridged[T](function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, T]:
    """Call a synchronous function so that whatever it waits for is awaited by the event loop that awaits the result.

    The function runs in a copy of the context of this moment. What cancels the awaiting task is raised inside the
    function, at the place where it waits.

    >>> import asyncio
    >>> def twice(seconds: float) -> str:
    ...     wait(asyncio.sleep(seconds))
    ...     wait(asyncio.sleep(seconds))
    ...     return "done"
    >>> asyncio.run(bridged(twice, 0))
    'done'
    """
    call = Awaited(lambda: function(*args, **kwargs), contextvars.copy_context())
    return _drive(call)


async def _drive(call: Awaited) -> Any:
    return await call.turns()


async def together(functions: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    """Await what these functions return, each in a task of its own.

    Raises:
        BaseExceptionGroup: What those raised that did not come to a good end; the first of them cancels the others.
    """
    if trio := running_trio():
        async with trio.open_nursery() as nursery:
            for function in functions:
                nursery.start_soon(function)
        return
    # Not a task group of anyio: it cancels again and again, and what cleans up could not wait.
    import asyncio  # noqa: PLC0415 - loaded, as its loop runs

    async def run(function: Callable[[], Awaitable[Any]]) -> None:
        await function()

    async with asyncio.TaskGroup() as tasks:
        for function in functions:
            tasks.create_task(run(function))


def _not_begun(awaitable: Any) -> Awaited | None:
    """The call of a coroutine that `bridged` has made and nobody has awaited yet."""
    if getattr(awaitable, "cr_code", None) is not _drive.__code__:
        return None
    return awaitable.cr_frame.f_locals["call"] if inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED else None


def named[T](coroutine: Coroutine[Any, Any, T], name: str) -> Coroutine[Any, Any, T]:
    """The coroutine, by that name in warnings and in the descriptions of tasks."""
    native = cast(types.CoroutineType, coroutine)
    native.__name__ = native.__qualname__ = name
    return coroutine


def can_wait() -> bool:
    """Whether the code that runs is part of a bridged call, so that `wait` parks it instead of blocking the thread."""
    return _enclosing() is not None


def wait[T](awaitable: Awaitable[T]) -> T:
    """Wait for something from synchronous code.

    Inside a bridged call the event loop goes on meanwhile. Outside of one, and with no event loop in this thread, the
    awaitable runs in an event loop that the process keeps for this, in a thread of its own, with a copy of the context.
    What is awaited is cancelled when a scope that the code is in is stopped.

    Raises:
        ConfigurationError: An event loop runs in this thread, and the code that waits is an ordinary call in it: it
            would wait for ever.
    """
    call = _enclosing()
    _check_before(awaitable)
    inner = _not_begun(awaitable)
    if inner is not None and (call is not None or not in_event_loop()):
        # A call of ours that has not begun: it is as good as a part of this one. In the helper loop it would block
        # everybody else's.
        cast("Coroutine[Any, Any, T]", awaitable).close()
        return cast(contextvars.Context, inner.gr_context).run(inner.run)
    if call is None:
        return wait_elsewhere(awaitable)
    if stoppable := stoppable_scopes():
        awaitable = until_stopped(awaitable, stoppable)
    here = greenlet.getcurrent()
    driven = here if isinstance(here, Driven) else call
    driven.waits += 1
    try:
        return _stepped(call, awaitable)
    finally:
        driven.waits -= 1


def _stepped(call: Awaited, awaitable: Awaitable[Any]) -> Any:
    """Step an awaitable here, and hand out what it yields."""
    steps = awaitable.__await__()
    step: Callable[[Any], Any] = steps.send if hasattr(steps, "send") else lambda _: next(steps)
    value: Any = None
    while True:
        try:
            trap = step(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = call.hand_out(trap)
            step = steps.send if hasattr(steps, "send") else lambda _: next(steps)
        except BaseException as error:
            if not hasattr(steps, "throw"):
                raise
            value, step = error, steps.throw


def _check_before(awaitable: Awaitable[Any]) -> None:
    try:
        check_stopped()
    except BaseException:
        # It will not be awaited, of which Python would warn: a coroutine, or the next step of an async generator.
        close = getattr(awaitable, "close", None)
        if close is not None and hasattr(awaitable, "send"):
            close()
        raise


def _enclosing() -> Awaited | None:
    """The call that the code that runs is part of, unless another task has been begun in the middle of it."""
    current: greenlet.greenlet | None = greenlet.getcurrent()
    while current is not None and not isinstance(current, Awaited):
        current = current.parent
    if current is None or current.task is not current_task():
        return None
    return current
