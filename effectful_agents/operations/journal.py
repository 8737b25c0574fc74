"""Taking a step, as a journal sees it: whether it is made at all, or answered with what it came to before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from effectful_agents.operations.records import Record
from effectful_agents.operations.steps import StepEvent
from effectful_agents.runtime import Operation

__all__ = ["attempt_of", "not_made_again", "perform_step", "record", "recorded_below"]


@Operation.define
def perform_step(step: StepEvent, body: Callable[[], StepEvent]) -> Any:
    """Take a step of a call: a request to the model, a tool call, a delegation.

    A handler sees every step here, whatever it is, and may answer it without `body`. By default it is made.

    Args:
        step: What is about to happen.
        body: Makes it happen; performs the operation of the step (`completion`, `call_tool`).

    Returns:
        The step as it was completed.
    """
    return body()


@Operation.define
def attempt_of(step_id: str) -> tuple[int, bool]:
    """Which attempt of a step is coming, and whether it is not made but only told again, from a journal."""
    return 1, False


@Operation.define
def not_made_again() -> str:
    """The tool that the code is in and that a resumed run would not call again, by name; empty where there is none.

    Whoever suspends the run asks this first: the run could not come back to where it was suspended.
    """
    return ""


@Operation.define
def recorded_below(step_id: str) -> Sequence[Record]:
    """What a step did inside, of one that is answered from a journal and not made again: the first half of each.

    These are its requests, tool calls and delegations, in order; by default there are none.
    """
    return ()


@Operation.define
def record[T](fn: Callable[[], T], tp: Any = None) -> T:
    """A value that a program takes from outside: the time, a random number, a file. A journal writes it down.

    When the run is resumed, `fn` is not called again: the value is the same. Without a journal this is `fn()`.

    Args:
        fn: Gets the value; it takes no arguments. A coroutine function makes this awaitable.
        tp: The type of the value. By default it is what `fn` is annotated to return, or else the value's own class,
            which suffices for text, numbers, bytes, dates, identifiers, paths, and for lists and dictionaries of
            plain JSON.

    Raises:
        EncodingError: With a journal: the value has no form that gives the same value again. Name its type.

    >>> import time
    >>> record(time.time) > 0
    True
    """
    return fn()
