"""Waiting for what an asynchronous tool gives, in code that is not asynchronous itself."""

from __future__ import annotations

import math
import time
import types
from typing import Any

import anyio

from effectful_agents.handlers.execution import limits
from effectful_agents.handlers.execution.kinds import check_value
from effectful_agents.runtime.bridge import wait

__all__ = ["awaited"]


def awaited(value: Any) -> Any:
    """`await value`, at the top level of a piece of code.

    Raises:
        TypeError: It is not what an asynchronous tool gives.
        OutOfTime: The time of the code was up before it was there.
    """
    if type(value) is not types.CoroutineType:
        raise TypeError(f"`await` takes what an asynchronous tool gives here, and not a `{type(value).__name__}`.")
    run = limits._run.get()
    left = math.inf if run is None or run.deadline is None else run.deadline - time.monotonic()
    made = wait(_within(left, value))
    limits.check()
    return check_value(made)


async def _within(seconds: float, coroutine: Any) -> Any:
    with anyio.move_on_after(seconds):
        return await coroutine
    return None
