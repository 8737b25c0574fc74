"""A function in a thread of its own, and waiting for it without blocking an event loop."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import cast

from effectful_agents.runtime.bridge import can_wait, wait
from effectful_agents.runtime.propagating import propagate
from effectful_agents.runtime.stopping import StopScope, pause, waker

__all__ = ["InThread"]


class InThread[T]:
    """A call that runs in a thread, with the handlers and the context of this moment.

    The thread does not keep the process from ending. What runs in it cannot be interrupted; `abandon` makes its next
    operation raise.

    Args:
        function: What to call.
        name: Name of the thread.

    >>> call = InThread(lambda: 1 + 1, "adding")
    >>> call.wait()
    >>> call.result()
    2
    """

    def __init__(self, function: Callable[[], T], name: str) -> None:
        self._function = function
        self._scope = StopScope()
        self._future: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._value: T | None = None
        self._error: BaseException | None = None
        threading.Thread(target=propagate(self._run), name=name, daemon=True).start()

    def _run(self) -> None:
        try:
            with self._scope:
                self._value = self._function()
        except BaseException as error:
            self._error = error
        self._future.set_result(None)

    def wait(self) -> None:
        """Wait until it has ended.

        Raises:
            BaseException: What a scope raises that the code is in and that is stopped meanwhile.
        """
        if can_wait():
            wait(self.ended())
        else:
            done = threading.Event()
            self._future.add_done_callback(lambda _: done.set())
            pause(until=done)

    async def ended(self) -> None:
        """Await its end."""
        import anyio  # noqa: PLC0415 - loads asyncio

        done = anyio.Event()
        wake = waker(done.set)
        self._future.add_done_callback(lambda _: wake())
        await done.wait()

    def result(self) -> T:
        """What it returned, or what it raised, when it has ended."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame, and so itself
        return cast(T, self._value)

    def abandon(self, reason: Callable[[], BaseException], then: Callable[[], None]) -> None:
        """Wait for it no longer: its next operation raises, and when it ends at last, `then` is called."""
        self._scope.stop(reason)
        self._future.add_done_callback(lambda _: then())
