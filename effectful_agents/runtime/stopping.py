"""Ending a part of the program from outside: what stops it, and where it notices.

A `StopScope` is such a part. Once it has been stopped, or its time is over, every operation of ours that is performed
inside raises, and so does everything that waits there. So a bare `except` that ate the exception delays the end, and no
more. A scope is carried with the context: into tasks, and into threads that were started with `propagate`.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, override

from effectful_agents.errors import Cancelled, Signal
from effectful_agents.runtime.loops import running_trio

if TYPE_CHECKING:
    import asyncio

__all__ = ["SignalScope", "StopScope", "check_stopped", "entered_scopes", "pause", "shielded", "time_left"]

type Reason = Callable[[], BaseException]
"""Makes the exception that a stopped scope raises, anew for each place that it is raised at."""

scopes: contextvars.ContextVar[tuple[StopScope, ...]] = contextvars.ContextVar("effectful_agents_scopes", default=())
"""The scopes that the code is in, the innermost first."""

watched: contextvars.ContextVar[tuple[StopScope, ...]] = contextvars.ContextVar("effectful_agents_watched", default=())
"""The scopes of a `wait` in the middle of which the code runs. What it awaits is cancelled with the rest, once."""

# One for all scopes, of which each call has several. It is held for a moment only, and may be taken again by a handler
# of a signal, or a finalizer, that runs in this moment.
_changing = threading.RLock()


class StopScope:
    """A part of the program that can be told to stop. A context manager, which may be entered in several contexts.

    Args:
        owner: What it was made for.
        seconds: The time that it has from now on; None for as long as it takes.
        too_late: Makes what is raised when that time is over.

    Attributes:
        wakes: Whether what waits inside is woken when it is stopped.
        armed: Whether operations have to look at it: it has been stopped, or may be over at any time.

    >>> with StopScope() as scope:
    ...     scope.stop(lambda: KeyError("stopped"))
    ...     check_stopped()
    Traceback (most recent call last):
    KeyError: 'stopped'
    """

    __slots__ = ("_reason", "_too_late", "_wakers", "armed", "deadline", "owner")

    wakes = True

    def __init__(self, owner: Any = None, *, seconds: float | None = None, too_late: Reason = Cancelled) -> None:
        self.owner = owner
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self._too_late = too_late
        self._reason: Reason | None = None
        self._wakers: dict[int, Callable[[], None]] | None = None
        self.armed = seconds is not None

    def __enter__(self) -> Self:
        scopes.set((self, *scopes.get()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = scopes.get()
        innermost = entered[:1] == (self,)
        scopes.set(entered[1:] if innermost else tuple(scope for scope in entered if scope is not self))

    @property
    def stopped(self) -> bool:
        """Whether it has been stopped, or its time is over."""
        return self._reason is not None or (self.deadline is not None and time.monotonic() >= self.deadline)

    def stop(self, reason: Reason) -> None:
        """Stop it, from any thread or task; only the first time counts."""
        with _changing:
            if self._reason is not None:
                return
            self._reason = reason
            self.armed = True
            wakers = list((self._wakers or {}).values())
        for wake in wakers:
            wake()

    def expire(self) -> None:
        """Stop it because its time is over."""
        self.stop(self._too_late)

    def finish(self) -> None:
        """Have its time no longer count: what it was for has ended, and what is left of it goes on."""
        with _changing:
            self.deadline = None
            self.armed = self._reason is not None

    def check(self) -> None:
        """Raise if it has been stopped, or its time is over."""
        if self._reason is None:
            deadline = self.deadline
            if deadline is None or time.monotonic() < deadline:
                return
            self.expire()
        assert self._reason is not None
        raise self._marked(self._reason())

    def _marked(self, error: BaseException) -> BaseException:
        if isinstance(error, Signal):
            error.ends = self
        return error

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], None]) -> Generator[None]:
        """Have a function called when it is stopped, or now if it was."""
        key = id(wake)
        with _changing:
            self._wakers = self._wakers or {}
            self._wakers[key] = wake
            stopped = self._reason is not None
        try:
            if stopped:
                wake()
            yield
        finally:
            with _changing:
                self._wakers.pop(key, None)


class SignalScope(StopScope):
    """A part of the program that is not to go on after a `Signal` has passed, even if something inside has eaten it.

    It is entered once, and nothing stops it from outside. It remembers a signal that comes out of an operation
    performed directly inside, and raises it again at the next one, or when the block ends.

    >>> from effectful_agents.errors import Suspended
    >>> from effectful_agents.runtime import Operation
    >>> @Operation.define
    ... def ask() -> str:
    ...     raise Suspended
    >>> with SignalScope():
    ...     try:
    ...         ask()
    ...     except:
    ...         print("eaten")
    Traceback (most recent call last):
    effectful_agents.errors.Suspended
    """

    __slots__ = ()

    wakes = False

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if error is None:
            self.check()
        elif not isinstance(error, Exception):
            # Ended on purpose: what it has left running in tasks and threads ends too.
            self.stop(Cancelled)

    @override
    def _marked(self, error: BaseException) -> BaseException:
        return error


def keep_signal(signal: Signal) -> None:
    """Remember a signal for the innermost scope, unless it comes of a stopped scope, which raises it again itself."""
    if signal.ends is None:
        for scope in scopes.get():
            if isinstance(scope, SignalScope):
                scope.stop(lambda: signal)
                return


def entered_scopes() -> Sequence[StopScope]:
    """The scopes that the code is in, the innermost first."""
    return scopes.get()


def check_stopped() -> None:
    """Raise if one of the scopes that the code is in has been stopped; of several the innermost counts."""
    for scope in scopes.get():
        scope.check()


def time_left() -> float | None:
    """Seconds until the first of the scopes that the code is in runs out, at least 0; None where none ever does.

    >>> with StopScope(seconds=60), StopScope():
    ...     59 < time_left() <= 60
    True
    """
    deadlines = [scope.deadline for scope in scopes.get() if scope.deadline is not None]
    return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None


@contextlib.contextmanager
def shielded() -> Generator[None]:
    """Where the code may wait, and perform operations, though it has been stopped or its time is over: to clean up.

    Everywhere else `wait` raises at once in a stopped scope, and a connection that has to be awaited would stay open.

    >>> with StopScope() as scope:
    ...     scope.stop(lambda: KeyError("stopped"))
    ...     with shielded():
    ...         check_stopped()
    """
    stopped = scopes.get()
    scopes.set(())
    try:
        yield
    finally:
        scopes.set(stopped)


# --- waiting ----------------------------------------------------------------------------------------------------------


def stoppable_scopes() -> list[StopScope]:
    """The scopes that the code is in and that wake what waits in them, but for those that another wait looks after."""
    around = watched.get()
    return [scope for scope in scopes.get() if scope.wakes and scope not in around]


def pause(seconds: float | None = None, until: threading.Event | None = None) -> None:
    """Block the thread for so many seconds, for ever with None, or until an event is set.

    Raises:
        BaseException: What a scope raises that is stopped meanwhile.
    """
    stoppable = stoppable_scopes()
    if until is None and not stoppable:
        time.sleep(0 if seconds is None else seconds)
        return
    woken = until or threading.Event()
    left = time_left()
    limits = [limit for limit in (seconds, left) if limit is not None]
    with contextlib.ExitStack() as stack:
        for scope in stoppable:
            stack.enter_context(scope.waking(woken.set))
        woken.wait(min([*limits, threading.TIMEOUT_MAX]) if limits else None)
    check_stopped()


def waker(function: Callable[[], Any]) -> Callable[[], None]:
    """A function that has the event loop that runs here call `function`, from any thread; nothing once it has ended."""
    if trio := running_trio():
        soon, ended = trio.lowlevel.current_trio_token().run_sync_soon, trio.RunFinishedError
    else:
        import asyncio  # noqa: PLC0415 - loaded, as its loop runs

        soon, ended = asyncio.get_running_loop().call_soon_threadsafe, RuntimeError

    def wake() -> None:
        with contextlib.suppress(ended):
            soon(function)

    return wake


async def until_stopped[T](awaitable: Awaitable[T], stoppable: Sequence[StopScope]) -> T:
    """Await something, and cancel it when one of the scopes is stopped, or its time is over."""
    around = watched.get()
    watched.set((*around, *stoppable))
    try:
        return await _until_stopped(awaitable, stoppable)
    finally:
        watched.set(around)


async def _until_stopped[T](awaitable: Awaitable[T], stoppable: Sequence[StopScope]) -> T:
    first = min((scope for scope in stoppable if scope.deadline is not None), key=_deadline, default=None)
    left = None if first is None else _deadline(first) - time.monotonic()
    if trio := running_trio():
        with trio.CancelScope() as cancelling, _woken(cancelling.cancel, stoppable):
            if left is not None:
                cancelling.deadline = trio.current_time() + left
            return await awaitable
    else:
        # Not a scope of anyio: it cancels again and again, and what cleans up could not wait.
        import asyncio  # noqa: PLC0415 - loaded, as its loop runs

        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(left)
        try:
            async with limit:
                with _woken(lambda: _expire(limit, loop.time()), stoppable):
                    return await awaitable
        except TimeoutError:
            if not limit.expired():
                raise
    for scope in stoppable:
        scope.check()
    # The clock of the event loop was faster.
    assert first is not None
    first.expire()
    first.check()
    raise AssertionError


@contextlib.contextmanager
def _woken(function: Callable[[], Any], stoppable: Sequence[StopScope]) -> Generator[None]:
    wake = waker(function)
    with contextlib.ExitStack() as stack:
        for scope in stoppable:
            stack.enter_context(scope.waking(wake))
        yield


def _expire(limit: asyncio.Timeout, now: float) -> None:
    with contextlib.suppress(RuntimeError):  # it is over already
        limit.reschedule(now)


def _deadline(scope: StopScope) -> float:
    assert scope.deadline is not None
    return scope.deadline
