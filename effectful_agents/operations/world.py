"""The outside world, as far as the framework looks at it: what a replay and a test must be able to fix."""

from __future__ import annotations

import random as _random
import time as _time
import uuid as _uuid

from effectful_agents.runtime import Operation, can_wait, pause, wait

__all__ = ["fresh_id", "now", "random", "sleep"]


@Operation.define
def now() -> float:
    """The time, in seconds since 1970-01-01 UTC."""
    return _time.time()


@Operation.define
def sleep(seconds: float) -> None:
    """Wait that many seconds; in a call that is awaited, other tasks go on meanwhile.

    It ends early, by an exception, when the call is cancelled or its time is over.
    """
    if can_wait():
        import anyio  # noqa: PLC0415 - loads asyncio

        wait(anyio.sleep(seconds))
    else:
        pause(seconds)


@Operation.define
def fresh_id() -> str:
    """An identifier that nobody else has: 32 hexadecimal digits.

    >>> from effectful_agents import handler
    >>> with handler({fresh_id: lambda: "run-1"}):
    ...     fresh_id()
    'run-1'
    """
    return _uuid.uuid4().hex


@Operation.define
def random() -> float:
    """A random number from 0 up to, not including, 1."""
    return _random.random()
