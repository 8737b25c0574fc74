"""A time limit for whole calls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from effectful_agents.errors import LimitExceeded, OptionError
from effectful_agents.operations.loop import call_agent
from effectful_agents.runtime import ObjectInterpretation, StopScope, entered_scopes, fwd, implements
from effectful_agents.types import Skill

__all__ = ["Deadline"]


class Deadline(ObjectInterpretation[Any, Any]):
    """Give each call that the program makes so much time, for all that happens in it: turns, tools, nested calls.

    When the time is over the call raises `LimitExceeded` at its next operation, or where it waits, and its history
    stays as it was. Asynchronous tools are cancelled. A synchronous one in the middle of its work cannot be: it comes
    to its own end, and then the call ends; one that may hang should have a `timeout` of its own.

    Args:
        seconds: The time; more than 0, and finite.

    Raises:
        LimitExceeded: From a call: its time is over. `limit` is `deadline`.

    >>> import anyio
    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... async def search() -> str:
    ...     '''Search the web.'''
    ...     await anyio.sleep_forever()
    >>> @Skill.define
    ... def ask() -> str:
    ...     '''Search for something.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel(calls("search"))), handler(Deadline(0.01)):
    ...     ask()
    Traceback (most recent call last):
    effectful_agents.errors.LimitExceeded: the limit `deadline` of 0.01 was reached. `ask` had so many seconds.
    """

    def __init__(self, seconds: float) -> None:
        if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise OptionError(f"`seconds` is {seconds!r}; it is a time, more than 0 and finite.")
        self.seconds = seconds

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"limits": {"seconds": self.seconds}}

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if any(scope.owner is self for scope in entered_scopes()):  # a call inside
            return fwd()
        advice = f"`{skill.__name__}` had so many seconds."
        scope = StopScope(
            self, seconds=self.seconds, too_late=lambda: LimitExceeded("deadline", self.seconds, advice=advice)
        )
        with scope:
            try:
                value = fwd()
            except Exception:
                # A request that was given no longer than the time left says so in its own way.
                scope.check()
                raise
            scope.finish()  # a task that a tool has left behind goes on
            return value
