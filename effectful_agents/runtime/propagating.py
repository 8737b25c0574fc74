"""Carrying the handlers of a moment to wherever a function is called."""

from __future__ import annotations

import contextvars
import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

from effectful_agents.runtime.bridge import bridged, wait
from effectful_agents.runtime.stopping import watched

__all__ = ["propagate"]


def propagate[**P, T](function: Callable[P, T]) -> Callable[P, T]:
    """Give a function the handlers and other context variables of this moment, wherever it is called.

    A new thread, or a worker of a pool, starts without handlers; `pool.submit(propagate(work))` runs `work` with those
    of whoever submits it. Each call runs in its own copy, so several threads may call it at once and see nothing of
    each other. The coroutine of an `async def` has them wherever it is awaited.

    Args:
        function: What to run.

    Returns:
        A function with the signature of `function`.

    Raises:
        TypeError: `function` is a generator function, whose body would run where the handlers are not.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from effectful_agents import handler
    >>> from effectful_agents.operations.world import now
    >>> with ThreadPoolExecutor() as pool, handler({now: lambda: 7.0}):
    ...     pool.submit(propagate(now)).result()
    7.0
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        name = getattr(function, "__qualname__", function)
        raise TypeError(
            f"`propagate` cannot carry anything into the generator function `{name}`: its body runs after the call. "
            "Carry the function that iterates over it."
        )
    moment = contextvars.copy_context()
    thread = threading.get_ident()
    is_async = inspect.iscoroutinefunction(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        context = moment.copy()
        if threading.get_ident() != thread:
            context.run(_leave_event_loop)
        if is_async:
            return context.run(bridged, _awaited, function, args, kwargs)
        return context.run(function, *args, **kwargs)

    return inspect.markcoroutinefunction(call) if is_async else call


def _awaited(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return wait(function(*args, **kwargs))


def _leave_event_loop() -> None:
    # Nobody who waits in the other thread looks after this one.
    watched.set(())
    # It says which event loop runs, and another thread has none of it.
    if sniffio := sys.modules.get("sniffio"):
        sniffio.current_async_library_cvar.set(None)
