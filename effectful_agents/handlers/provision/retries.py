"""Asking a service again after a failure that may pass, for the handlers that send requests over a network."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import email.utils
import functools
from collections.abc import Callable, Generator, Mapping
from typing import Any

from effectful_agents.errors import ProviderError
from effectful_agents.operations.world import now, random, sleep

__all__ = ["RETRIES", "Conditions", "Spent", "conditions", "retried", "retry_after", "under"]

RETRIES = 2
"""How often a request is made again where nothing is said about it."""
_LONGEST_PAUSE = 60.0
"""Seconds. Who is told to come back later than that should know at once."""


@dataclasses.dataclass
class Spent:
    """A count of repetitions, which several requests share.

    Attributes:
        retries: How many there were.
    """

    retries: int = 0


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Under which conditions requests are made again: what handlers further inside say about it.

    Attributes:
        spent: The repetitions of all requests that stand for one; None counts each request for itself.
        longest_pause: Seconds that a pause may have; who has to wait longer gives up at once.
        around: Each is called with a function that makes an attempt, or that calls the one before it; the last one is
            called first. The keys say whose they are.
    """

    spent: Spent | None = None
    longest_pause: float = _LONGEST_PAUSE
    around: Mapping[int, Callable[[Callable[[], Any]], Any]] = dataclasses.field(default_factory=dict)


_ALONE = Conditions()
_conditions: contextvars.ContextVar[Conditions] = contextvars.ContextVar("effectful_agents_retries", default=_ALONE)


def conditions() -> Conditions:
    """The conditions under which a request that is made here is made again."""
    return _conditions.get()


@contextlib.contextmanager
def under(changed: Conditions) -> Generator[None]:
    """Have requests that are made in the block made again under these conditions."""
    outer = _conditions.get()
    _conditions.set(changed)
    try:
        yield
    finally:
        _conditions.set(outer)


def retried[T](ask: Callable[[], T], retries: int | None) -> T:
    """Call a function until it succeeds, again after a `ProviderError` that may pass.

    The pause between two attempts is the one that the provider asks for, or else about half a second, one, two and so
    on up to eight.

    Args:
        ask: Makes the request once.
        retries: How often it is made again at most; None takes `RETRIES`. What `conditions` has as spent is taken off.

    Raises:
        ProviderError: The attempts are used up, the failure will not pass, or the provider wants a longer pause than
            the conditions allow, which is a minute if nothing is said.

    >>> from effectful_agents.runtime import handler
    >>> failures = [ProviderError("busy", status=503)]
    >>> def ask():
    ...     if failures:
    ...         raise failures.pop()
    ...     return "answer"
    >>> with handler({sleep: print, random: lambda: 0.0}):
    ...     retried(ask, 1)
    0.5
    'answer'
    """
    retries = RETRIES if retries is None else retries
    given = conditions()
    spent = Spent() if given.spent is None else given.spent
    attempt = 0
    while True:
        try:
            return _made(ask, given)
        except ProviderError as error:
            pause = error.retry_after
            if pause is None:
                # Many that failed at the same moment should not come back at the same moment.
                pause = min(0.5 * 2**attempt, 8.0) * (1 - random() / 4)
            if not error.retryable or spent.retries >= retries or pause > given.longest_pause:
                raise
        attempt += 1
        spent.retries += 1
        sleep(pause)


def _made[T](ask: Callable[[], T], given: Conditions) -> T:
    for wrap in given.around.values():
        ask = functools.partial(wrap, ask)
    return ask()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, where an answer says so as a number or as a date; None where it does not.

    >>> retry_after({"retry-after": "20"})
    20.0
    """
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now())
    except ValueError:
        return None
