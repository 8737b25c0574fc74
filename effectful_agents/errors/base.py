"""What all errors of the package have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["AgentsError", "retryable_for_status"]


def retryable_for_status(status: int | None) -> bool:
    """Whether a request that ended with this HTTP status may succeed when it is made again.

    Args:
        status: The HTTP status, or None when no answer came at all.

    Returns:
        True for None (the way failed, not the request), 429 and 5xx; False for every other status.

    >>> [retryable_for_status(status) for status in (None, 429, 503, 400, 404)]
    [True, True, True, False, False]
    """
    return status is None or status == 429 or 500 <= status < 600


class AgentsError(Exception):
    """Anything that this package raises on purpose.

    Args:
        message: What was seen, and what would have worked.
        retryable: Whether the same request may succeed when repeated; None takes the default of the class.
        retry_after: Seconds to wait before a repetition, where somebody said so.

    Attributes:
        ends_call: Whether it ends the call of a skill when a tool raises it. Any other error of a tool is told to the
            model; about these it could do nothing.
    """

    ends_call: bool = False
    retryable: bool = False
    retry_after: float | None = None

    def __init__(self, message: str = "", *, retryable: bool | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception pickles by calling the class with `args`; ours take other arguments, so the state is restored whole.
        return (_restore, (type(self), self.args, self.__dict__))


def _restore(cls: type[AgentsError], args: tuple[Any, ...], state: dict[str, Any]) -> AgentsError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
