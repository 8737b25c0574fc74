"""A process that may have been taken over by what runs in it: asked something, heard within bounds, and ended."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence

__all__ = ["Ended", "TooLong", "TooMuch", "ask"]

_START = 30.0
"""Seconds that a process may take until it is ready: to load what it needs is not the time of the code."""


class TooLong(Exception):
    """The process did not answer in time."""


class TooMuch(Exception):
    """The answer is longer than it may be."""


class Ended(Exception):
    """The process has ended, without an answer or in the middle of one."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def ask(command: Sequence[str], request: bytes, *, ready: bytes, seconds: float | None, size: int) -> bytes:
    """Start a process, wait until it is ready, ask it something and hear what it says.

    Whatever happens, the process and all of its group are ended and gone when this returns.

    Args:
        command: What to start. It has no environment, a session of its own, and two pipes to here.
        request: What to write to it.
        ready: What it writes before it reads.
        seconds: How long it may take from then on; None is for ever.
        size: Bytes that its answer may have.

    Raises:
        TooLong: It took longer.
        TooMuch: It wrote more.
        Ended: It ended otherwise than with status 0 and an answer.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        bufsize=0,
        close_fds=True,
        start_new_session=True,
    )
    try:
        answer = _heard(process, request, ready, seconds, size)
        # It has closed its end, and has nothing left to do but to end.
        status = process.wait(1.0)
    except subprocess.TimeoutExpired:
        raise TooLong from None
    finally:
        # Before it is waited for: after that its number may be that of another.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()
    if status or not answer:
        raise Ended(status)
    return answer


def _heard(process: subprocess.Popen[bytes], request: bytes, ready: bytes, seconds: float | None, size: int) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    deadline: float | None = time.monotonic() + _START
    heard = bytearray()
    left = memoryview(request)
    is_ready = False
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while True:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise TooLong
            for key, _ in waiting.select(remaining):
                if key.fileobj is process.stdin:
                    try:
                        left = left[os.write(process.stdin.fileno(), left) :]
                    except BlockingIOError:
                        continue
                    except BrokenPipeError:
                        left = left[:0]
                    if not left:
                        waiting.unregister(process.stdin)
                        with contextlib.suppress(OSError):
                            process.stdin.close()
                    continue
                some = os.read(process.stdout.fileno(), 1 << 16)
                if not some:
                    return bytes(heard)
                heard += some
                if not is_ready:
                    if not heard.startswith(ready):
                        return b""
                    del heard[: len(ready)]
                    is_ready = True
                    deadline = None if seconds is None else time.monotonic() + seconds
                    waiting.register(process.stdin, selectors.EVENT_WRITE)
                if len(heard) > size:
                    raise TooMuch
