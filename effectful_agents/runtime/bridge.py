"""Synchronous code that waits on an event loop without blocking it.

The loop is written once, as ordinary functions. To run it in an event loop, `bridged` puts a call into a greenlet. When
something inside has to be awaited, `wait` steps that awaitable right there, inside the greenlet, and hands only what it
yields out to the event loop: so it sees the call's handlers and context variables, and the event loop sees one
coroutine of the task that awaits `bridged`. Nothing here knows which event loop that is.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import os
import sys
import threading
import types
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, cast

import greenlet

from effectful_agents.errors import ConfigurationError
from effectful_agents.runtime.stopping import StopScope, check_stopped, stoppable_scopes, until_stopped

if TYPE_CHECKING:
    import asyncio

__all__ = ["Awaited", "Driven", "bridged", "can_wait", "named", "wait"]

_PATIENCE = 16
"""How often a call that is closed may go on instead of ending, before that is an error."""


class _Ending(StopScope):
    """Stopped by what drives the call, which needs nobody to wake it."""

    __slots__ = ()

    wakes = False


class Driven(greenlet.greenlet):
    """A function in a greenlet of its own, which runs whenever `go_on` is called, and may come to a stop in between.

    Attributes:
        hub: The greenlet that drives it at this moment.
        leaf: The greenlet that has handed something out last: this one, or one that runs below it. None: this one.
        waits: How many `wait` are going on directly in it.
    """

    hub: greenlet.greenlet
    leaf: greenlet.greenlet | None = None
    waits = 0

    def __init__(self, function: Callable[[], Any], context: contextvars.Context) -> None:
        self._ending = ending = _Ending()

        def run() -> Any:
            with ending:
                return function()

        super().__init__(run)
        self.gr_context = context

    def go_on(self, value: Any = None, error: BaseException | None = None) -> Any:
        """Run until it hands something out, or ends; then `dead` is true, and what is returned is its value."""
        # It may be driven from another greenlet, or thread, than the last time.
        self.hub = self.parent = greenlet.getcurrent()
        leaf, self.leaf = self.leaf, None
        if leaf is None:
            return self.switch() if error is None else self.throw(error)
        return leaf.switch(value) if error is None else leaf.throw(error)

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
    """A function whose `wait` is done by the event loop that drives it.

    Attributes:
        task: The task that drives it at this moment; None where there is none, or the event loop is none we know.
    """

    task: Any = None

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
        while True:
            self.task = _current_task()
            try:
                trap = self.go_on(value, error)
            finally:
                self.task = None
            if self.dead or type(trap) is Handed:
                return trap
            try:
                value, error = (yield trap), None
            except GeneratorExit:
                self.end()
                raise
            except BaseException as thrown:  # cancelled: for the function to see
                value, error = None, thrown


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
    coroutine = _drive(call)
    _calls[coroutine] = call
    return coroutine


# The calls of coroutines that `bridged` has made.
_calls: weakref.WeakKeyDictionary[Any, Awaited] = weakref.WeakKeyDictionary()


async def _drive(call: Awaited) -> Any:
    return await call.turns()


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
    inner = _calls.get(awaitable) if inspect.iscoroutine(awaitable) else None
    if inner is not None and not inner and not inner.dead and (call is not None or not _in_event_loop()):
        # A call of ours that has not begun: it is as good as a part of this one. In the helper loop it would block
        # everybody else's.
        cast("Coroutine[Any, Any, T]", awaitable).close()
        return cast(contextvars.Context, inner.gr_context).run(inner.run)
    if call is None:
        return _wait_elsewhere(awaitable)
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
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise


def _enclosing() -> Awaited | None:
    """The call that the code that runs is part of, unless another task has been begun in the middle of it."""
    current: greenlet.greenlet | None = greenlet.getcurrent()
    while current is not None and not isinstance(current, Awaited):
        current = current.parent
    if current is None or current.task is not _current_task():
        return None
    return current


def _current_task() -> Any:
    # Where it is not loaded, it does not run. (Trio begins no task in the middle of another.)
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


# --- without an event loop --------------------------------------------------------------------------------------------


def _wait_elsewhere[T](awaitable: Awaitable[T]) -> T:
    import asyncio  # noqa: PLC0415 - slow to load, and not needed by most programs

    if _in_event_loop():
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise ConfigurationError(
            "something has to be awaited, and this is a plain call inside a running event loop, which it would block "
            "for ever. Use `await acall(skill, …)` instead of `skill(…)`, and `async for` with `steps` and `stream`."
        )
    if stoppable := stoppable_scopes():
        awaitable = until_stopped(awaitable, stoppable)
    ended = threading.Event()
    future = asyncio.run_coroutine_threadsafe(_outcome(awaitable, ended), _helper_loop())
    try:
        value, error = future.result()
    except BaseException:  # Ctrl-C: what was being awaited may clean up before anything else happens
        future.cancel()
        ended.wait(_LAST_WAIT)
        raise
    if error is not None:
        raise error
    return value


async def _outcome(awaitable: Awaitable[Any], ended: threading.Event) -> tuple[Any, BaseException | None]:
    # An exception such as SystemExit is for the caller; raised here, it would end the loop that serves everybody.
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error
    finally:
        ended.set()


def _in_event_loop() -> bool:
    # Where neither is loaded, neither runs.
    asyncio, trio = sys.modules.get("asyncio"), sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return True
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_LAST_WAIT = 5.0
"""Seconds that something interrupted may take to clean up."""

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _helper_loop() -> asyncio.AbstractEventLoop:
    """The event loop that serves the process; clients that are tied to a loop survive from call to call."""
    import asyncio  # noqa: PLC0415 - as above

    global _loop, _thread
    with _starting:
        if _loop is None or _loop.is_closed() or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="effectful-agents-loop", daemon=True)
            _thread.start()
    return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        # A task that ends with SystemExit or KeyboardInterrupt ends the loop as well; whoever awaits the task gets it.
        with contextlib.suppress(BaseException):
            loop.run_forever()


def _forget_helper_loop() -> None:
    global _starting, _loop
    _starting, _loop = threading.Lock(), None


# A child process has the loop's memory and not its thread.
os.register_at_fork(after_in_child=_forget_helper_loop)
