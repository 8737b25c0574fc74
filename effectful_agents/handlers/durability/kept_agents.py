"""Agents that are kept in a database, in a run that has a journal.

What an agent begins a call with depends on the database, and so does what a model is asked. So it is written down when
it is loaded, and given again when the run is resumed; and what the run has saved already is not saved once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, override

from effectful_agents.handlers.durability.forms import Form
from effectful_agents.operations.history import load_state
from effectful_agents.types import Agent, History

__all__ = ["KeptAgents", "StateForm"]

_HISTORY = "__history__"


def _history(agent: Agent) -> History:
    # Past the property, which would load it.
    return vars(agent).setdefault(_HISTORY, History(owner=id(agent)))


class KeptAgents:
    """The agents of a run whose state was given from its journal, and was not taken from the database since."""

    def __init__(self) -> None:
        # With the last message that was saved; the agent is kept so that its identity stays its own.
        self._given: dict[int, tuple[Agent, Any]] = {}
        self._saving: set[int] = set()

    def is_saving(self, agent: Agent) -> bool:
        """Whether it is loaded in the middle of being saved, which is no step of its own."""
        return id(agent) in self._saving

    def give(self, agent: Agent) -> None:
        """Note that the database had its state as it is now."""
        self._given[id(agent)] = agent, next(iter(_history(agent)[-1:]), None)

    def load(self, agent: Agent, load: Callable[[], Any]) -> None:
        """Load it. The database has all that the run has saved, so what the journal gave makes room for it."""
        if self._given.pop(id(agent), None) is None:
            load()
        else:
            _renew(agent, load)

    def save(self, agent: Agent, save: Callable[[], Any]) -> None:
        """Save it; of one that the journal gave, what came since the database had it."""
        _, last = given = self._given.pop(id(agent), (None, None))
        if given != (None, None):
            new, fields = _after(_history(agent), last), _fields(agent)
            self._saving.add(id(agent))
            try:
                _renew(agent, lambda: load_state(agent))
            finally:
                self._saving.discard(id(agent))
            vars(agent).update(fields)
            if new and _history(agent)[-len(new) :] == new:
                return  # the process ended when it was saved, and before that was written down
            _history(agent).extend(new)
        save()


def _renew(agent: Agent, load: Callable[[], Any]) -> None:
    """Take a history from the database. The system message is not in there, and stays."""
    history = _history(agent)
    head = [message for message in history[:1] if message["role"] == "system"]
    history.clear()
    load()
    if head and not (history and history[0]["role"] == "system"):
        history.insert(0, head[0])


def _after(history: History, last: Any) -> list[Any]:
    """The messages after the last one that was saved; a system message is not kept."""
    place = next((at for at in range(len(history), 0, -1) if history[at - 1] is last), 0)
    return [message for message in history[place:] if message["role"] != "system"]


def _fields(agent: Agent) -> dict[str, Any]:
    return {name: value for name, value in vars(agent).items() if not name.startswith("__")}


class StateForm(Form[None]):
    """An agent is loaded, or saved: its history may be another then, and its fields, as of any object in a step.

    Args:
        step_id: The step.
        verb: What is done.
        agent: The agent.
        kept: The agents of the run.
    """

    def __init__(self, step_id: str, verb: str, agent: Agent, kept: KeptAgents) -> None:
        super().__init__(step_id, "record", f"{verb} {agent.__agent_id__}", repeatable=True)
        self._agent = agent
        self._kept = kept
        self._before = list(_history(agent))

    @property
    @override
    def receiver(self) -> Any:
        return self._agent

    @override
    def came(self, result: None) -> dict[str, Any]:
        history, same = _history(self._agent), 0
        while same < min(len(history), len(self._before)) and history[same] == self._before[same]:
            same += 1
        return {"keep": same, "messages": history[same:]}

    @override
    def result(self, body: Mapping[str, Any]) -> None:
        # The messages that are there stay the same objects: a transaction that runs knows them by that.
        history = _history(self._agent)
        history[:] = [*history[: body["keep"]], *body["messages"]]
        self._kept.give(self._agent)
