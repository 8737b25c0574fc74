"""The history of a conversation: read it, add to it, and where it begins."""

from __future__ import annotations

import enum
from collections.abc import MutableSequence, Sequence

from effectful_agents.errors import MissingHandlerError
from effectful_agents.messages import Message, ToolCallID
from effectful_agents.runtime import Operation
from effectful_agents.types import Agent, History, Skill
from effectful_agents.types.agent import load_state
from effectful_agents.types.history import place_of_request

__all__ = [
    "CompactionScope",
    "admit_message",
    "agents_called",
    "append_message",
    "compact_",
    "conversation",
    "get_history",
    "load_state",
    "save_state",
]

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
def admit_message(message: Message) -> Message:
    """Say what joins the history of the running call in the place of a message; by default the message itself.

    Whoever keeps a history performs it for each message that is added. A handler that changes a message returns another
    one, with the same role and tool calls.
    """
    return message


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


@Operation.define
def save_state(agent: Agent, mark: str = "") -> None:
    """Keep what an agent is now: its history, and its fields where it is a dataclass.

    It is performed when a call has succeeded that `load_state` was performed for, before its value is returned. By
    default nothing is kept.

    Args:
        agent: As for `load_state`.
        mark: What tells this save from every other one. One that was made with the mark already is not made again: the
            agent becomes what is kept of it instead. Without one, each is made.
    """


def compact_(history: MutableSequence[Message], tool_call_id: ToolCallID, scope: CompactionScope) -> None:
    """Drop earlier messages of a history, in place, on behalf of a tool call that asked for it.

    The system message, what the user said in the running call (see `types.history.place_of_request`), and the turn that
    asked (its assistant message and all results) stay. Where the history has another shape than expected, nothing is
    dropped.

    Args:
        history: The history of the running call.
        tool_call_id: The call that asked; its assistant message is in the history.
        scope: What to drop.
    """
    asking = _position_of_call(history, tool_call_id)
    if scope is CompactionScope.NONE or asking is None:
        return
    request = place_of_request(history, asking)
    if request is None:
        return
    earlier = list(history[:request])
    if scope is CompactionScope.CONVERSATION:
        earlier = [message for message in earlier[:1] if message["role"] == "system"]
    history[:asking] = [*earlier, *(message for message in history[request:asking] if message["role"] == "user")]


def _position_of_call(history: Sequence[Message], tool_call_id: ToolCallID) -> int | None:
    for position in range(len(history) - 1, -1, -1):
        message = history[position]
        calls = message.get("tool_calls", ()) if message["role"] == "assistant" else ()
        if any(call["id"] == tool_call_id for call in calls):
            return position
    return None
