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
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

from effectful_agents.errors import CodeStopped

__all__ = [
    "Limits",
    "OutOfMemory",
    "OutOfTime",
    "TooLarge",
    "TooMuchOutput",
    "current",
    "is_stopped",
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


class TooMuchOutput(CodeStopped):
    """The code printed more than it may."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one piece of code may use up.

    Attributes:
        seconds: Time on the clock; None is for ever.
        size: Characters, bytes or items of one value, and binary digits of one integer.
        output: Characters that it may print.
        memory: Bytes by which the process may grow meanwhile, where the system tells (Linux); None does not look.
    """

    seconds: float | None = 10.0
    size: int = 10_000_000
    output: int = 1_000_000
    memory: int | None = 1 << 30


class Run:
    """One piece of code that runs, and what it has used up."""

    __slots__ = ("_memory", "_next_look", "deadline", "limits", "printed", "stopped")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        self.printed = 0
        self.stopped: CodeStopped | None = None
        self._memory = _resident() if limits.memory is not None else 0
        self._next_look = 0.0

    def check(self) -> None:
        """Raise if it was stopped, or has used up its time or its memory."""
        if self.stopped is not None:
            raise self.stopped
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            assert self.limits.seconds is not None
            self.stop(OutOfTime("seconds", self.limits.seconds, "The code ran longer than it may."))
        if self.limits.memory is not None and now >= self._next_look:
            self._next_look = now + 0.02
            if _resident() - self._memory > self.limits.memory:
                self.stop(OutOfMemory("memory", self.limits.memory, "Keep less at once."))

    def stop(self, error: CodeStopped) -> None:
        """End it: the error is raised now, and again at each tick, so that nothing goes on that has eaten it."""
        self.stopped = error
        raise error

    def prints(self, characters: int) -> None:
        """Count what is about to be printed."""
        self.printed += characters
        if self.printed > self.limits.output:
            self.stop(TooMuchOutput("output", self.limits.output, "Print less."))


_run: contextvars.ContextVar[Run | None] = contextvars.ContextVar("effectful_agents_code_run", default=None)
_DEFAULT = Limits()


class _Clock:
    __slots__ = ("left",)


# Several threads may count on it at once: then it is only when the clock is read that differs a little.
_clock = _Clock()
_clock.left = _STEP


def tick() -> None:
    """Count one step of the running code, and now and then see whether it may go on."""
    _clock.left -= 1
    if _clock.left < 0:
        check()


def check() -> None:
    """See whether the running code may go on."""
    _clock.left = _STEP
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


@contextlib.contextmanager
def running(limits: Limits, is_inside: Callable[[FrameType], bool]) -> Generator[None]:
    """Hold what runs in the block to limits.

    Code that is run by code that runs has the time that is left of both.

    Args:
        limits: The limits.
        is_inside: Whether a frame is one of the code that is held to them.
    """
    run = Run(limits)
    around = _run.get()
    if around is not None and around.deadline is not None:
        run.deadline = around.deadline if run.deadline is None else min(run.deadline, around.deadline)
    token = _run.set(run)
    try:
        with _alarm(run, is_inside):
            yield
        if run.stopped is not None:  # it was eaten by a `finally`
            raise run.stopped
    finally:
        _run.reset(token)


# --- code that is called after its piece has ended ----------------------------------------------------------------

# A function that was defined under limits and is called later, by the program, has as much time for each call.
# Nothing announces that such a call begins or ends, so it is known by its outermost frame.
_late = threading.local()


def _check_late() -> None:
    frame: FrameType | None = sys._getframe(2)
    outermost: FrameType | None = None
    while frame is not None:
        if "__sandbox__" in frame.f_globals:
            outermost = frame
        frame = frame.f_back
    # A generator lives as long as somebody takes from it, and what happens in between is not its time.
    if outermost is None or outermost.f_code.co_flags & inspect.CO_GENERATOR:
        return
    if getattr(_late, "frame", None) is not outermost:
        _late.frame = outermost
        _late.run = Run(outermost.f_globals["__sandbox__"].limits)
    _late.run.check()


# --- what the system tells and does -------------------------------------------------------------------------------

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _resident() -> int:
    # Without a file object: an alarm in the middle would leave it to the collector, which warns.
    try:
        return int(os.pread(_statm(os.getpid()), 128, 0).split()[1]) * _PAGE
    except OSError:
        return 0


@functools.cache
def _statm(pid: int) -> int:
    """The kernel's page about the memory of this process, open for as long as that lives."""
    return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def _alarm(run: Run, is_inside: Callable[[FrameType], bool]) -> Generator[None]:
    """Stop what takes long inside C, where that can be done without getting in anybody's way.

    Only the main thread gets signals, and a program that uses the timer itself keeps it.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
        or signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0)
    ):
        yield
        return

    def ring(signum: int, frame: FrameType | None) -> Any:
        # A tool of the program that the code has called is left to its end, as is anything else that runs here now.
        if not _is_ignored(frame) and is_directly_inside(frame, is_inside):
            run.check()

    signal.signal(signal.SIGALRM, ring)
    # All the while: one operation that builds too much is to end before it has the whole memory.
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _is_ignored(frame: FrameType | None) -> bool:
    """Whether Python throws away what is raised here, with a message about it: the timer rings again anyway."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_globals.get("__name__") in ("weakref", "_weakrefset"):
            return True
        frame = frame.f_back
    return False


def is_directly_inside(frame: FrameType | None, is_inside: Callable[[FrameType], bool]) -> bool:
    """Whether a frame belongs to the code, or to the standard library that the code has called."""
    while frame is not None:
        if is_inside(frame):
            return True
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in sys.stdlib_module_names and not module.startswith(_FAMILY):
            return False
        frame = frame.f_back
    return False


_FAMILY = __name__.rpartition(".")[0]
