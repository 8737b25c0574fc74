"""Asking a service again after a failure that may pass, for the handlers that send requests over a network."""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Mapping

from effectful_agents.errors import ProviderError
from effectful_agents.operations.world import now, random, sleep

__all__ = ["RETRIES", "retried", "retry_after"]

RETRIES = 2
"""How often a request is made again where nothing is said about it."""
_LONGEST_PAUSE = 60.0
"""Seconds. Who is told to come back later than that should know at once."""


def retried[T](ask: Callable[[], T], retries: int | None) -> T:
    """Call a function until it succeeds, again after a `ProviderError` that may pass.

    The pause between two attempts is the one that the provider asks for, or else about half a second, one, two and so
    on up to eight.

    Args:
        ask: Makes the request once.
        retries: How often it is made again at most; None takes `RETRIES`.

    Raises:
        ProviderError: The attempts are used up, the failure will not pass, or the provider wants more than a minute.

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
    attempt = 0
    while True:
        try:
            return ask()
        except ProviderError as error:
            pause = error.retry_after
            if pause is None:
                # Many that failed at the same moment should not come back at the same moment.
                pause = min(0.5 * 2**attempt, 8.0) * (1 - random() / 4)
            if not error.retryable or attempt >= retries or pause > _LONGEST_PAUSE:
                raise
        attempt += 1
        sleep(pause)


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
