"""Keeping the history of calls."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Mapping
from typing import Any

from effectful_agents.errors import ResultDecodingError, ToolCallDecodingError
from effectful_agents.handlers.durability.transaction import transaction
from effectful_agents.messages import Message
from effectful_agents.messages.mending import RUNNING, close_calls, with_free_ids
from effectful_agents.operations.history import agents_called, append_message, conversation
from effectful_agents.operations.loop import AssistantResult, call_agent, call_assistant
from effectful_agents.runtime import ObjectInterpretation, Operation, fwd, handler, implements
from effectful_agents.types import History, Skill

__all__ = ["HistoryBuilder"]


@dataclasses.dataclass
class _Running:
    """A call that is running: its buffer, and what calls of the same agent inside it will add behind it."""

    buffer: History
    later: list[Message] = dataclasses.field(default_factory=list)
    ended: bool = False


@Operation.define
def _running() -> Mapping[int, _Running]:
    """The calls that are running, by the identity of the history that each is going to be written back to."""
    return {}


class HistoryBuilder(ObjectInterpretation[Any, Any]):  # noqa: D101 - it has nothing to tell the model
    # Gives `get_history`, `append_message`, `agents_called` a meaning during a call, and records replies that failed.
    # What the operations of a turn finally return is recorded by the loop, which performs them, so that the history
    # has what handlers anywhere made of it. A call that raises leaves its agent's history as it was; one that succeeds
    # adds exactly its own messages. Put it inside `AgentLoop` and outside whatever repeats a turn.

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        kept = conversation(skill)
        outer = _running().get(id(kept))
        if outer is None or outer.ended:  # a task or thread that a tool has left behind outlives the call
            with transaction(kept) as buffer, _recorded(kept, _Running(buffer)) as running:
                value = fwd()
                buffer.extend(with_free_ids(running.later, buffer.call_ids()) if running.later else ())
            return value
        # A tool calls a skill of the agent that is calling the tool. Its messages cannot stand between the tool call
        # and the result, so they follow when the outer call is complete; what it is asked on is the conversation so
        # far, with the running calls marked as such.
        seed = close_calls(outer.buffer, outer.buffer.open_calls(), RUNNING)
        with transaction(seed, write_back=False) as buffer, _recorded(kept, _Running(buffer)) as running:
            buffer.memo = outer.buffer.memo
            buffer.reserve(outer.buffer.reserved)
            value = fwd()
        outer.buffer.reserve(buffer.call_ids())
        known = {id(message) for message in seed}
        outer.later += [message for message in buffer if id(message) not in known] + running.later
        return value

    @implements(call_assistant)
    def call_assistant(self, *_: Any) -> AssistantResult[Any]:
        try:
            return fwd()
        except (ToolCallDecodingError, ResultDecodingError) as error:
            # The reply and what was wrong with it: what the next attempt reads.
            _record_failure(error)
            raise


@contextlib.contextmanager
def _recorded(kept: Any, running: _Running) -> Generator[_Running]:
    everyone = {**_running(), id(kept): running}
    with handler({_running: lambda: everyone, agents_called: lambda: frozenset(everyone)}):
        try:
            yield running
        finally:
            running.ended = True


def _record_failure(error: ToolCallDecodingError | ResultDecodingError) -> None:
    append_message(error.raw_message)
    if isinstance(error, ToolCallDecodingError):
        for failed in (error, *error.others):
            append_message(failed.to_feedback_message())
    else:
        append_message(error.to_feedback_message())
