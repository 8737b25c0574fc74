"""Closing what is open when a call ends in the middle of a request."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from effectful_agents.runtime.stopping import scopes

__all__ = ["closing_time"]


@contextlib.contextmanager
def closing_time() -> Generator[None]:
    """Where a call may wait though it has been stopped, or its time is over: for the end of a connection, and no more.

    Everywhere else `wait` raises at once in such a call, and what had to be awaited would stay open.
    """
    stopped = scopes.get()
    scopes.set(())
    try:
        yield
    finally:
        scopes.set(stopped)
