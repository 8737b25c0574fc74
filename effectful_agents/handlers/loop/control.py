"""Reaching a call that is running: to end it, or to say something to it."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Sequence
from typing import Any

from effectful_agents.errors import Cancelled
from effectful_agents.messages import ContentPart, UserMessage
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.journal import attempt_of, record
from effectful_agents.operations.loop import call_agent, steer
from effectful_agents.operations.steps import current_ids
from effectful_agents.runtime import ObjectInterpretation, SignalScope, StopScope, entered_scopes, fwd, implements
from effectful_agents.types import Skill

__all__ = ["CallControl"]


class CallControl(ObjectInterpretation[Any, Any]):
    """End the calls that run under it, or say something to them, from another task or thread, or from a tool.

    `cancel` ends them in an orderly way: at their next operation, or where they wait, they raise `Cancelled`, their
    histories stay as they were, and asynchronous tools see a cancellation. `say` adds a user message to the
    conversation before the next turn. One object serves one call, or one after another: of several at the same time,
    which of them gets what is said is not determined.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> control = CallControl()
    >>> @Tool.define
    ... def search(place: str) -> str:
    ...     '''Search for hotels.'''
    ...     control.say("Nothing above 100 euros, please.")  # the user types while the tool runs
    ...     return "Ritz, 900 euros"
    >>> @Skill.define
    ... def find(place: str) -> str:
    ...     '''Find a hotel in {place}.'''
    ...     raise NotHandled
    >>> model = ScriptedModel(calls("search", place="Paris"), "Then none.")
    >>> with handler(harness()), handler(model), handler(control):
    ...     find("Paris")
    'Then none.'
    >>> model.requests[1]["messages"][-1]["content"]
    'Nothing above 100 euros, please.'
    """

    def __init__(self) -> None:
        self._scope = StopScope(self)
        self._said: collections.deque[UserMessage] = collections.deque()
        self._taken: list[UserMessage] = []

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._scope.stopped

    def cancel(self, reason: str = "") -> None:
        """End the calls under it, now and from now on.

        Args:
            reason: The message of the `Cancelled` that they raise.
        """
        self._scope.stop(lambda: Cancelled(reason))

    def say(self, content: str | list[ContentPart]) -> None:
        """Add a user message to the conversation before the next turn.

        Where the running call takes no further turn, or fails, it waits for the next call; `unsaid` has it until then.
        """
        self._said.append({"role": "user", "content": safe_text(content) if isinstance(content, str) else content})

    @property
    def unsaid(self) -> Sequence[UserMessage]:
        """What was said and has not joined a conversation yet."""
        return tuple(self._said)

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if self._scope in entered_scopes():  # a call inside
            return fwd()
        with self._scope:
            self._scope.check()
            try:
                value = fwd()
            except BaseException:
                self._said.extendleft(reversed(self._taken))  # no history has it
                raise
            finally:
                self._taken = []
            return value

    @implements(steer)
    def steer(self) -> Sequence[UserMessage]:
        others = fwd()
        if _calls_inside(self._scope) != 1:  # what is said is for the call that the program made
            return others
        mine = self._said_here()
        self._taken += mine
        return [*others, *mine]

    def _said_here(self) -> list[UserMessage]:
        """What joins the conversation before the turn that comes now.

        It comes from outside, so a run that is resumed has it from its journal, where it was said, and what is said
        now waits for the first turn that is new. A turn before which nothing was said has nothing in the journal.
        """
        ids = current_ids()
        if ids is None:
            return self._take()
        turn = ids.coming("model")
        said = ids.below(f"{turn}/said")
        _, is_told_again = attempt_of(said.coming("record"))
        _, is_old = attempt_of(turn)
        if not (is_told_again or (self._said and not is_old)):
            return []
        with said:
            return record(self._take, Any)

    def _take(self) -> list[UserMessage]:
        said = []
        with contextlib.suppress(IndexError):  # another thread may be adding to it
            while True:
                said.append(self._said.popleft())
        return said


def _calls_inside(scope: StopScope) -> int:
    entered = list(entered_scopes())
    inside = entered[: entered.index(scope)] if scope in entered else []
    return sum(isinstance(one, SignalScope) and one.owner is not None for one in inside)
