"""Waiting where no event loop runs: the process keeps one for this, in a thread of its own."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.runtime.loops import in_event_loop
from effectful_agents.runtime.stopping import stoppable_scopes, until_stopped, waker

if TYPE_CHECKING:
    import asyncio

__all__ = ["in_helper_loop", "wait_elsewhere"]


def wait_elsewhere[T](awaitable: Awaitable[T]) -> T:
    """Await something in the loop that the process keeps, with a copy of the context, and block until it is there.

    Raises:
        ConfigurationError: An event loop runs in this thread, which would wait for ever.
    """
    import asyncio  # noqa: PLC0415 - slow to load, and not needed by most programs

    if in_event_loop():
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise ConfigurationError(
            "something has to be awaited, and this is a plain call inside a running event loop, which it would block "
            "for ever. Use `await acall(skill, …)` instead of `skill(…)`, and `async for` with `steps` and `stream`."
        )
    if stoppable := stoppable_scopes():
        awaitable = until_stopped(awaitable, stoppable)
    ended = threading.Event()
    future = asyncio.run_coroutine_threadsafe(_outcome(awaitable, ended), _helper_loop())
    try:
        value, error = future.result()
    except BaseException:  # Ctrl-C: what was being awaited may clean up before anything else happens
        future.cancel()
        ended.wait(_LAST_WAIT)
        raise
    if error is not None:
        raise error
    return value


async def in_helper_loop[T](make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await something in the loop that the process keeps, whichever loop runs here, with a copy of the context.

    What is tied to a loop, a connection say, is used in this way from anywhere. Whoever is cancelled here cancels it.

    Args:
        make: Makes what is awaited, in that loop.
    """
    import asyncio  # noqa: PLC0415 - as above
    import concurrent.futures  # noqa: PLC0415 - loaded by asyncio

    import anyio  # noqa: PLC0415 - loads asyncio

    loop = _helper_loop()
    if threading.current_thread() is _thread:
        return await make()

    async def made() -> T:
        return await make()

    done = anyio.Event()
    wake = waker(done.set)
    future = asyncio.run_coroutine_threadsafe(made(), loop)
    future.add_done_callback(lambda _: wake())
    try:
        await done.wait()
    except BaseException:
        future.cancel()
        raise
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise ConnectionError("what was awaited has been cancelled by somebody else") from None


async def _outcome(awaitable: Awaitable[Any], ended: threading.Event) -> tuple[Any, BaseException | None]:
    # An exception such as SystemExit is for the caller; raised here, it would end the loop that serves everybody.
    try:
        return await awaitable, None
    except BaseException as error:
        return None, error
    finally:
        ended.set()


_LAST_WAIT = 5.0
"""Seconds that something interrupted may take to clean up."""

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def _helper_loop() -> asyncio.AbstractEventLoop:
    """The event loop that serves the process; clients that are tied to a loop survive from call to call."""
    import asyncio  # noqa: PLC0415 - as above

    global _loop, _thread
    with _starting:
        if _loop is None or _loop.is_closed() or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="effectful-agents-loop", daemon=True)
            _thread.start()
    return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    while not loop.is_closed():
        # A task that ends with SystemExit or KeyboardInterrupt ends the loop as well; whoever awaits the task gets it.
        with contextlib.suppress(BaseException):
            loop.run_forever()


def _forget_helper_loop() -> None:
    global _starting, _loop
    _starting, _loop = threading.Lock(), None


# A child process has the loop's memory and not its thread.
os.register_at_fork(after_in_child=_forget_helper_loop)
