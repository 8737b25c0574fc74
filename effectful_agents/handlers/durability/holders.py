"""Who has a lease: a process, and whether it is still there."""

from __future__ import annotations

import dataclasses
import functools
import os
import socket
import sys
from pathlib import Path
from typing import Self

__all__ = ["Holder"]


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process.

    Attributes:
        name: How people are told of it.
        place: The machine since it was started, and the container: what a process identifier is unique in.
        pid: The process identifier.
        started: When it began, as the system counts; identifiers are given out again. Empty where that is not known.
    """

    name: str
    place: str
    pid: int
    started: str

    @classmethod
    def this_process(cls) -> Self:
        """The process that this is called in.

        >>> Holder.this_process().is_gone()
        False
        """
        pid = os.getpid()
        return cls(f"pid {pid} on {socket.gethostname()}", _place(), pid, _process(pid)[1])

    def is_gone(self) -> bool:
        """Whether the process has ended for certain: False where nobody here can know."""
        if self.place != _place():
            return False
        if sys.platform == "linux":
            state, started = _process(self.pid)
            # One that has ended, and whose parent has not asked about it yet, is still listed.
            return state in ("", "Z", "X") or started != self.started
        if os.name != "posix":  # on Windows, signal 0 is not harmless
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False


@functools.cache
def _place() -> str:
    if sys.platform != "linux":
        return socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        # Without /proc nothing is known of other processes, so that nobody shares a place.
        return f"{socket.gethostname()} {os.urandom(8).hex()}"


def _process(pid: int) -> tuple[str, str]:
    """State and start of a process of this machine; empty where it is not there."""
    if sys.platform != "linux":
        return "", ""
    try:
        # The name of the program stands in brackets, and may hold brackets and spaces.
        told = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return "", ""
    return told[0].decode(), told[19].decode()
