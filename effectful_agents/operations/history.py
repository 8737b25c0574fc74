"""The history of a conversation: read it, add to it, and where it begins."""

from __future__ import annotations

import enum
from collections.abc import MutableSequence

from effectful_agents.errors import MissingHandlerError
from effectful_agents.messages import Message
from effectful_agents.runtime import Operation
from effectful_agents.types import History, Skill

__all__ = ["CompactionScope", "agents_called", "append_message", "conversation", "get_history"]

_KEEPER = "Install `HistoryBuilder()` of `effectful_agents.handlers.durability`; `harness()` has it."


class CompactionScope(enum.Enum):
    """How much of a conversation a compaction drops.

    The system message, what the user said in the call that is being answered, and the turn that asked for the
    compaction stay in any case.
    """

    NONE = "none"
    """Nothing."""
    TURN = "turn"
    """The earlier turns of the current *call*; earlier calls stay."""
    CONVERSATION = "conversation"
    """The earlier calls as well."""


@Operation.define
def get_history() -> MutableSequence[Message]:
    """The messages of the call that is running, those of earlier calls of the same agent included.

    It is the list itself: what is added to it will be sent.
    """
    raise MissingHandlerError("get_history", _KEEPER)


@Operation.define
def append_message(message: Message) -> None:
    """Add a message to the history of the running call.

    Raises:
        HistoryError: No provider would accept the message at that place.
    """
    raise MissingHandlerError("append_message", _KEEPER)


@Operation.define
def agents_called() -> frozenset[int]:
    """Identities (`id`) of the histories that running calls will be written back to; by default none."""
    return frozenset()


@Operation.define
def conversation(skill: Skill) -> MutableSequence[Message]:
    """The history that a call of `skill` continues, and is added to when the call succeeds.

    By default it is the agent's own for a method of an agent, and an empty one for any other skill.
    """
    agent = skill.agent
    return History() if agent is None else agent.__history__
