"""What code prints while it runs, and nobody else's output.

`sys.stdout` belongs to the whole process: other threads and tasks print at the same time. So a stand-in takes its place
while code runs, which hands each write to the buffer of the context that it is made in, or to the stream that stood
there before.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import sys
import threading
from collections.abc import Generator
from typing import Any, TextIO

__all__ = ["captured", "uncaptured"]

_NAMES = ("stdout", "stderr")

_buffers: contextvars.ContextVar[tuple[TextIO | None, TextIO | None] | None] = contextvars.ContextVar(
    "effectful_agents_captured", default=None
)
_changing = threading.Lock()
_running = 0


class _Routed:
    """Stands in for a standard stream; where nothing is captured it is that stream.

    Args:
        behind: The stream that it stands before.
        place: Which of the two buffers is its own.
    """

    def __init__(self, behind: TextIO, place: int) -> None:
        self._behind = behind
        self._place = place

    def _target(self) -> Any:
        buffers = _buffers.get()
        mine = buffers[self._place] if buffers is not None else None
        return self._behind if mine is None else mine

    # Not by `__getattr__`: `print` and others look for it again and again.
    def write(self, text: str) -> int:
        return self._target().write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def __iter__(self) -> Any:
        return iter(self._target())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        """Leave the stream open: whoever opened it closes it."""


@contextlib.contextmanager
def captured(stdout: io.StringIO, stderr: io.StringIO | None = None) -> Generator[None]:
    """Have what is printed in this context written to buffers for the time of the block.

    Threads that are started meanwhile have contexts of their own, and print where they would have printed without it.
    """
    _begin()
    token = _buffers.set((stdout, stderr))
    try:
        yield
    finally:
        _buffers.reset(token)
        _end()


def _begin() -> None:
    global _running
    with _changing:
        _running += 1
        for place, name in enumerate(_NAMES):
            stream = getattr(sys, name)
            # Whoever replaced it meanwhile, a test or `redirect_stdout`, is served by a new one.
            if stream is not None and not isinstance(stream, _Routed):
                setattr(sys, name, _Routed(stream, place))


def _end() -> None:
    global _running
    with _changing:
        _running -= 1
        if _running:
            return
        for name in _NAMES:
            stream = getattr(sys, name)
            if isinstance(stream, _Routed):
                setattr(sys, name, stream._behind)


def uncaptured(stream: Any) -> Any:
    """The stream itself, where one stands in for it: for what is meant for a person, and not for who runs the code."""
    return stream._behind if isinstance(stream, _Routed) else stream
