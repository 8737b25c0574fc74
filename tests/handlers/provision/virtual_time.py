"""An event loop whose time passes as soon as everybody waits, so that an hour takes no time at all.

Nothing in it may wait for a network or another thread: that takes longer than an hour here.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

from effectful_agents import handler
from effectful_agents.operations.world import now

__all__ = ["run"]


class _Selector(selectors.DefaultSelector):
    time = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0)
        if timeout is None and not events:  # nobody will ever go on but for another thread
            return super().select(5)
        if not events and timeout:
            self.time += timeout
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.time


def run[T](main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; `now` is the time of its loop, and `sleep` passes it."""
    loop = _Loop()

    async def timed() -> T:
        with handler({now: loop.time}):
            return await main

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(timed())
