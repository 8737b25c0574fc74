"""What stops code that counts no steps: a timer of the operating system in the main thread, a watcher in the others.

Both raise in the middle of what is running there, so they look at where that is. A tool of the program that the code
has called is left to its end, and so is what would throw the exception away.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution.kinds import ALLOWED_MODULES, is_inside
from effectful_agents.handlers.execution.nesting import Nesting

__all__ = ["alarm", "interrupt", "is_directly_inside", "quiet", "uninterrupted"]

IsCode = Callable[[FrameType], bool]
"""Whether a frame is one of the code."""

_PERIOD = 0.05
"""Seconds from one look to the next: what was raised may have been eaten."""


@contextlib.contextmanager
def alarm(
    deadline: float | None, check: Callable[[], None], is_code: IsCode, error: type[Exception]
) -> Generator[None]:
    """Stop what runs in the block and counts no steps.

    Only the main thread gets signals, and a program that uses the timer itself keeps it; then, as in another thread,
    what is one operation in C runs to its end.

    Args:
        deadline: When that is, on the monotonic clock; None is never.
        check: Raises if the code has to stop, and remembers that.
        is_code: Which frames are of the code.
        error: What is raised from another thread, which can give a class and nothing else.
    """
    with quiet():
        if (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        ):
            with _timer(check, is_code):
                yield
        elif deadline is not None:
            with _watcher.watching(_Watched(deadline, check, is_code, error)):
                yield
        else:
            yield


@contextlib.contextmanager
def _timer(check: Callable[[], None], is_code: IsCode) -> Generator[None]:
    def ring(signum: int, frame: FrameType | None) -> Any:
        if is_directly_inside(frame, is_code):
            check()

    signal.signal(signal.SIGALRM, ring)
    # All the while: one operation that builds too much is to end before it has the whole memory.
    signal.setitimer(signal.ITIMER_REAL, _PERIOD, _PERIOD)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


# --- other threads ------------------------------------------------------------------------------------------------


_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc


def interrupt(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread, at its next step in Python, which has to be within `uninterrupted`.

    In a callback of the collector, which throws exceptions away, that step is to be the first one after it. A call
    looks for what was raised when it has come back. To go through a `map` does not, nor does the way back.
    """
    raising = map(_set_exception, (ctypes.c_ulong(thread),), (ctypes.py_object(error),))
    [*raising]  # noqa: B018


def uninterrupted(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that may be interrupted, and see to it that nothing after it is.

    Where it raises something else at that moment, the interruption is still to come, and would come in the middle of
    what is tidied up. So the first thing then is to take it back, in one step: a call of a function in Python, or a
    second one in C, would come too late.
    """
    here = ctypes.c_ulong(threading.get_ident())
    try:
        return function(*args)
    finally:
        _set_exception(here, None)


class _Watched:
    def __init__(self, deadline: float, check: Callable[[], None], is_code: IsCode, error: type[Exception]) -> None:
        self.deadline = deadline
        self.check = check
        self.is_code = is_code
        self.error = error
        self.thread = threading.get_ident()

    def ring(self) -> None:
        # While this runs the other does not, so that it goes on from just this frame.
        if is_directly_inside(sys._current_frames().get(self.thread), self.is_code):
            try:
                self.check()
            except CodeStopped:
                interrupt(self.thread, self.error)


class _Watcher:
    """A thread that looks at the clock for those that cannot be signalled, while there is something to do."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: list[_Watched] = []
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self, watched: _Watched) -> Generator[None]:
        with self._changed:
            self._watched.append(watched)
            if self._thread is None or not self._thread.is_alive():  # after a fork there is none
                self._thread = threading.Thread(target=self._watch, name="effectful_agents-limits", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._watched.remove(watched)

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for watched in self._watched:
                    if watched.deadline <= now:
                        watched.ring()
                waits = [max(watched.deadline - now, _PERIOD) for watched in self._watched]
                # With nothing to do it stays a while: the next piece of code is often near.
                if not self._changed.wait(min(waits, default=5.0)) and not self._watched:
                    self._thread = None
                    return


_watcher = _Watcher()


# --- where an exception may be raised -----------------------------------------------------------------------------

_HELPERS = frozenset(
    {"_strptime", "codecs", "copyreg", "encodings", "keyword", "locale", "reprlib", "stringprep", "threading", "types"}
)
"""Modules of the library that those which the code may import are made with."""

_TOPS = _HELPERS | {name.partition(".")[0] for name in ALLOWED_MODULES}

_FAMILY = __name__.rpartition(".")[0]


def is_directly_inside(frame: FrameType | None, is_code: IsCode) -> bool:
    """Whether a frame belongs to the code, or to what of the standard library the code has called.

    What the interpreter calls by itself does not: what is raised in the callback of a weak reference or of the
    collector, or when an object is freed, is thrown away with a message.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code in callbacks:
            return False
        if is_code(frame):
            return not _is_freed(frame.f_back)
        module = frame.f_globals.get("__name__", "")
        top = module.partition(".")[0]
        if module == _NESTING or not (is_inside(module) or top in _TOPS or module.startswith(_FAMILY)):
            return False
        frame = frame.f_back
    return False


_NESTING = f"{_FAMILY}.nesting"
"""Runs as a callback of the collector."""


def _is_freed(frame: FrameType | None) -> bool:
    """Whether a frame of the code is one that frees an object, further out."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


_quiets = threading.Lock()
_quiet_runs = 0
_before: Callable[[Any], Any] = sys.unraisablehook
_thrown_away: collections.deque[Any] = collections.deque(maxlen=1000)
# Written in C: where the stack has no room left, a function in Python would fail itself.
_collect = _thrown_away.append


# The second: code that has used up the stack has left no room for what the interpreter calls by itself.
_OF_THE_CODE = (CodeStopped, RecursionError)


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Have no message about a stop that was raised where the interpreter throws exceptions away.

    The code is stopped at its next step anyway. What else was thrown away is told when no code runs any more.
    """
    global _quiet_runs, _before
    with _quiets:
        _quiet_runs += 1
        if _quiet_runs == 1:
            _before, sys.unraisablehook = sys.unraisablehook, _collect
    try:
        yield
    finally:
        with _quiets:
            _quiet_runs -= 1
            if _quiet_runs == 0 and sys.unraisablehook is _collect:
                sys.unraisablehook = _before
        while not _quiet_runs and _thrown_away:
            unraisable = _thrown_away.popleft()
            if not isinstance(unraisable.exc_value, _OF_THE_CODE) and not isinstance(unraisable.object, Nesting):
                _before(unraisable)
