"""What a piece of restricted code may use up: time, memory, output, and the size of what it builds.

Time is counted by the code itself. The policy writes a call of `tick` into every loop and every special method, and
every other call goes through a guard that counts too; each few hundred ticks the clock is read. A thread that raises an
exception in this one from outside (`PyThreadState_SetAsyncExc`) does it once, and a `finally` that leaves the loop eats
it; a tick raises again and again. What it cannot stop is one long operation inside C. So what may become long there
is bounded beforehand (`sizes`), iterators that never end are made of Python (`streams`), and in the main thread a
timer of the operating system stops what is left, such as a regular expression that tries everything.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import gc
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution.alarms import alarm, interrupt, is_directly_inside
from effectful_agents.handlers.execution.nesting import DEPTH, Nesting

__all__ = [
    "Limits",
    "OutOfMemory",
    "OutOfTime",
    "TooDeep",
    "TooLarge",
    "TooMuchOutput",
    "current",
    "is_stopped",
    "kept_flying",
    "may_disappear",
    "running",
    "tick",
]

_STEP = 256
"""Ticks between two looks at the clock: some twenty microseconds."""


class OutOfTime(CodeStopped, TimeoutError):
    """The code took longer than it may."""


class OutOfMemory(CodeStopped, MemoryError):
    """The process has grown by more than the code may use."""


class TooLarge(CodeStopped, MemoryError):
    """A value would have been larger than the code may build; it was not built."""


class TooDeep(CodeStopped, RecursionError):
    """Values lie deeper in each other than the interpreter can follow."""


class _StoppedNow(CodeStopped):
    """Raised from another thread: what the code of this one has been stopped with."""

    def __new__(cls, *args: Any) -> Any:
        run = _run.get()
        return super().__new__(cls) if run is None or run.stopped is None else run.stopped

    def __init__(self) -> None:
        super().__init__("depth", DEPTH)


class TooMuchOutput(CodeStopped):
    """The code printed more than it may."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one piece of code may use up.

    Attributes:
        seconds: Time on the clock; None is for ever.
        size: Characters, bytes or items of one value, and binary digits of one integer, which has a million at most.
        output: Characters that it may print.
        memory: Bytes by which the process may grow meanwhile, where the system tells (Linux); None does not look.
    """

    seconds: float | None = 10.0
    size: int = 10_000_000
    output: int = 1_000_000
    memory: int | None = 1 << 30


class Run:
    """One piece of code that runs, and what it has used up."""

    __slots__ = (
        *("_deep", "_late", "_missed", "_most", "_next_look", "_rounds", "_statm", "_steps", "_unseen"),
        *("around", "deadline", "limits", "printed", "stopped"),
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self.printed = 0
        error = sys.exception()
        self.around = None if isinstance(error, Exception) else error
        """What the program was handling already when it began."""
        self.stopped: CodeStopped | None = None
        # What code is stopped with is made before, as `check` must not call anything that is written in Python.
        self._late = OutOfTime("seconds", limits.seconds or 0, "The code ran longer than it may.")
        self._deep = too_deep()
        self._statm = _statm(os.getpid()) if limits.memory is not None else None
        self._most = 0 if self._statm is None or limits.memory is None else _resident(self._statm) + limits.memory
        self._next_look = 0.0
        self._steps = 0
        self._missed = _rounds() - _nesting.rounds
        self._rounds = _nesting.rounds
        self._unseen = 0

    def check(self) -> None:
        """Raise if it was stopped, or has used up its time or its memory, or was not looked at for too long.

        All of it is done here, by functions in C. Code that has come near the limit of recursion has room for the calls
        of a guard, and for no more: a further one would fail there, and the code could go on for ever.
        """
        # Once it has to stop, each tick says so: a `finally` may have eaten this one.
        steps, _clock.left = _STEP - _clock.left, 0
        if self.stopped is not None:
            raise self.stopped.with_traceback(None)
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            self.stopped = self._late
            raise self._late
        if self._statm is not None and now >= self._next_look:
            self._next_look = now + 0.02
            if int(os.pread(self._statm, 128, 0).split()[1]) * _PAGE > self._most:
                self.stop(OutOfMemory("memory", self.limits.memory or 0, "Keep less at once."))
        self._steps += 1
        if self._steps & 15 == 0:
            young, middle, old = gc.get_stats()
            missed = young["collections"] + middle["collections"] + old["collections"] - _nesting.rounds - self._missed
            if _nesting.changeable > DEPTH and now >= _nesting.next_look:
                try:
                    _nesting.look_at_all()
                except RecursionError:
                    self._missed -= 1
            if missed > _MISSED:
                self.stopped = self._deep
            if self.stopped is not None:
                raise self.stopped
        self._unseen += steps
        if self._unseen > _UNSEEN:
            # It comes when much has been made, and not when as much has been freed.
            if _nesting.rounds == self._rounds:
                gc.collect(0)
                self._missed += _nesting.rounds == self._rounds
            if _nesting.rounds != self._rounds:
                self._rounds = _nesting.rounds
                self._unseen = 0
            elif self._unseen > 3 * _UNSEEN:
                self.stopped = self._deep
            if self.stopped is not None:
                raise self.stopped
        _clock.left = _STEP

    def stop(self, error: CodeStopped) -> None:
        """End it: the error is raised now, and again at each tick, so that nothing goes on that has eaten it."""
        self.stopped = error
        raise error

    def prints(self, characters: int) -> None:
        """Count what is about to be printed."""
        self.printed += characters
        if self.printed > self.limits.output:
            self.stop(TooMuchOutput("output", self.limits.output, "Print less."))


_UNSEEN = 10_000
"""Steps after which the collector is called, should it not have come: each may have put one value into another."""

_MISSED = 4
"""Rounds of the collector at which there may have been no room to look."""


def _rounds() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def too_deep() -> TooDeep:
    """The error about values that lie too deep in each other."""
    return TooDeep("depth", DEPTH, "Keep values in a list, and not in one another.")


_run: contextvars.ContextVar[Run | None] = contextvars.ContextVar("effectful_agents_code_run", default=None)
_DEFAULT = Limits()


class _Clock:
    __slots__ = ("left",)


# Several threads may count on it at once: then it is only when the clock is read that differs a little.
_clock = _Clock()
_clock.left = _STEP


def told(value: Any, steps: int) -> Any:
    """A value that took so many steps to make."""
    tick(steps)
    return value


def tick(steps: int = 1) -> None:
    """Count a step of the running code, or several, and now and then see whether it may go on."""
    _clock.left -= steps
    if _clock.left < 0:
        # As in `check`: where the stack has little room left, each further call counts.
        run = _run.get()
        if run is not None:
            run.check()
        else:
            _check_late()


def check() -> None:
    """See whether the running code may go on."""
    run = _run.get()
    if run is not None:
        run.check()
    else:
        _check_late()


def current() -> Limits:
    """The limits of the running code."""
    run = _run.get()
    return _DEFAULT if run is None else run.limits


def counted(characters: int) -> None:
    """Count what the running code is about to print."""
    run = _run.get()
    if run is not None:
        run.prints(characters)


def is_stopped(error: BaseException | None) -> bool:
    """Whether the running code is being stopped, with this error in flight: nothing in it may catch that."""
    if isinstance(error, CodeStopped) and not isinstance(error, TooLarge):
        return True
    run = _run.get()
    return run is not None and run.stopped is not None


def may_disappear(error: object) -> bool:
    """Whether code may make an error that is on its way disappear: an `Exception` that stops nothing."""
    return not isinstance(error, BaseException) or (isinstance(error, Exception) and not is_stopped(error))


def kept_flying(error: BaseException | None) -> tuple[()]:
    """Go on with an error that was on its way, if another one or a `return` may not take its place.

    It stands behind an `except`, and is no class that something is caught by.
    """
    if isinstance(error, BaseException) and not may_disappear(error) and not isinstance(error, GeneratorExit):
        run = _run.get()
        if run is None or run.around is not error:
            raise error
    return ()


@contextlib.contextmanager
def running(limits: Limits, is_inside: Callable[[FrameType], bool]) -> Generator[None]:
    """Hold what runs in the block to limits.

    Code that is run by code that runs has the time that is left of both.

    Args:
        limits: The limits.
        is_inside: Whether a frame is one of the code that is held to them.
    """
    _watch_nesting()
    if not _active:
        _nesting.begin()
    run = Run(limits)
    around = _run.get()
    if around is not None and around.deadline is not None:
        run.deadline = around.deadline if run.deadline is None else min(run.deadline, around.deadline)
    token = _run.set(run)
    _active.append(run)
    try:
        with alarm(run.deadline, run.check, is_inside, _StoppedNow):
            yield
        if run.stopped is not None:  # it was eaten by a `finally`
            raise run.stopped
    except Exception as error:
        if run.stopped is None or error is run.stopped:
            raise
        raise run.stopped from error  # it was on its way, and met another one
    finally:
        _active.remove(run)
        _run.reset(token)
        if not _active:
            _nesting.forget()


# --- values in values ---------------------------------------------------------------------------------------------

_active: list[Run] = []
"""What runs now, in whatever thread."""


def _is_watched() -> bool:
    return bool(_active) or _outermost(sys._getframe(1)) is not None


def _stop_too_deep() -> None:
    """Stop the code that runs, at once where it is in this thread: it may be about to do what does harm."""
    error = too_deep()
    runs = [*_active, run] if (run := getattr(_late, "run", None)) is not None else _active
    for run in runs:
        run.stopped = run.stopped or error
    _clock.left = 0
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals["__name__"] in (__name__, Nesting.__module__):
        frame = frame.f_back
    if _run.get() is not None and is_directly_inside(frame, lambda frame: "__sandbox__" in frame.f_globals):
        interrupt(threading.get_ident(), _StoppedNow)


_nesting = Nesting(_is_watched, _stop_too_deep)


def _watch_nesting() -> None:
    if _nesting not in gc.callbacks:
        gc.callbacks.append(_nesting)


# --- code that is called after its piece has ended ----------------------------------------------------------------

# A function that was defined under limits and is called later, by the program, has as much time for each call.
# Nothing announces that such a call begins or ends, so it is known by its outermost frame.
_late = threading.local()


def _check_late() -> None:
    outermost = _outermost(sys._getframe(2))
    if outermost is None:
        _clock.left = _STEP
        return
    if getattr(_late, "frame", None) is not outermost:
        limits = outermost.f_globals["__sandbox__"].limits
        if outermost.f_code.co_flags & inspect.CO_GENERATOR:
            # It lives as long as somebody takes from it, and what happens in between is not its time.
            limits = dataclasses.replace(limits, seconds=None, memory=None)
        _late.frame = outermost
        _late.run = Run(limits)
    _late.run.check()


def _outermost(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of restricted code."""
    outermost: FrameType | None = None
    while frame is not None:
        if "__sandbox__" in frame.f_globals:
            outermost = frame
        frame = frame.f_back
    return outermost


# --- what the system tells -----------------------------------------------------------------------------------

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _resident(statm: int) -> int:
    # Without a file object: an alarm in the middle would leave it to the collector, which warns.
    return int(os.pread(statm, 128, 0).split()[1]) * _PAGE


@functools.cache
def _statm(pid: int) -> int | None:
    """The kernel's page about the memory of this process, open for as long as that lives; None where there is none."""
    try:
        return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
