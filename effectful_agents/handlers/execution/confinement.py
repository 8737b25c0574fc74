"""What a process may do that runs restricted code, as the system enforces it: code that has got out meets it too.

All of it is done before any of the code is read, and none of it can be taken back. The limits are hard ones, and a
process without privileges cannot raise them. No descriptor can be opened. On Linux it may make no system call but those
that computing takes, and where it was root, it is nobody, in a network of its own that leads nowhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
from collections.abc import Sequence

__all__ = ["confine"]

_NOBODY = 65534
_NEW_NETWORK, _NEW_IPC, _NEW_MOUNTS, _NEW_NAMES = 0x40000000, 0x08000000, 0x00020000, 0x04000000
_DEATH_SIGNAL, _DUMPABLE, _SECCOMP, _NO_NEW_PRIVILEGES = 1, 4, 22, 38


def confine(seconds: float | None, memory: int | None) -> bool:
    """Take from this process whatever it does not need to compute; its standard input and output remain.

    Args:
        seconds: Of the processor, a few more than the code has; None is without end.
        memory: Bytes by which the process may grow; None does not look.

    Returns:
        Whether its system calls are limited.
    """
    os.chdir("/")
    os.environ.clear()
    _limit(seconds, memory)
    system = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if os.geteuid() == 0:
        if system is not None:
            for kind in (_NEW_NETWORK, _NEW_IPC, _NEW_NAMES, _NEW_MOUNTS):
                system.unshare(kind)  # where a container forbids it, the rest has to do
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)  # of root that is all three users: there is no way back
    if system is None:
        return False
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    system.prctl(_DUMPABLE, 0, 0, 0, 0)
    # It does not outlive the program. A change of the user takes this back, so it comes after that.
    system.prctl(_DEATH_SIGNAL, 9, 0, 0, 0)
    return _limit_calls(system)


def _limit(seconds: float | None, memory: int | None) -> None:
    import resource  # noqa: PLC0415 - there is none on Windows

    os.closerange(3, max(4096, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)))
    with contextlib.suppress(OSError):
        os.close(2)
    limits: dict[str, float] = {
        **dict.fromkeys(("CORE", "FSIZE", "MEMLOCK", "MSGQUEUE", "NPROC", "RTPRIO"), 0),
        # Whatever number is closed, none can be opened again.
        "NOFILE": 0,
    }
    if memory is not None:
        limits["AS"] = _virtual() + memory
    if seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        limits["CPU"] = used.ru_utime + used.ru_stime + seconds + 2
    for name, most in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            most = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
            resource.setrlimit(kind, (most, most))


def _virtual() -> int:
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 1 << 30


# --- system calls -------------------------------------------------------------------------------------------------

# In this order on each machine: read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
# rt_sigreturn sched_yield mremap madvise getpid gettid exit exit_group restart_syscall futex sigaltstack getrusage
# gettimeofday clock_gettime nanosleep clock_nanosleep getitimer setitimer getrandom membarrier rseq
_CALLS: dict[str, tuple[int, Sequence[int]]] = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 39, 186, 60, 231, 219, 202, 131, 98, 96, 228, 35, 230,
         36, 38, 318, 324, 334),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 124, 216, 233, 172, 178, 93, 94, 128, 98, 132, 165, 169,
         113, 101, 115, 102, 103, 278, 283, 293),
    ),
}  # fmt: skip
"""For each kind of machine: its number, and the calls that it takes to compute and to answer."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000


def _limit_calls(system: ctypes.CDLL) -> bool:
    """Have the kernel refuse every system call but those."""
    if platform.machine() not in _CALLS or struct.calcsize("P") != 8:
        return False
    machine, calls = _CALLS[platform.machine()]
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    steps.append((_AT_LEAST, len(calls), 0, 0x40000000))  # another numbering of the same calls
    steps += [(_EQUAL, len(calls) - number, 0, call) for number, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    program = ctypes.create_string_buffer(b"".join([struct.pack("HBBI", *step) for step in steps]))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program)))
    return system.prctl(_SECCOMP, 2, ctypes.byref(head), 0, 0) == 0
