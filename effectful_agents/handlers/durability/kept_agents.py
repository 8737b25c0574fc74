"""Agents that are kept in a database, in a run that has a journal.

What an agent begins a call with depends on the database, and so does what a model is asked. So it is written down when
it is loaded, and given again when the run is resumed; and what the run has saved already is not saved once more.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, override

from effectful_agents.handlers.durability.agent_state import without_system
from effectful_agents.handlers.durability.forms import Form
from effectful_agents.handlers.durability.receivers import Attributes
from effectful_agents.messages import Message
from effectful_agents.operations.history import load_state
from effectful_agents.operations.records import Checkpointer
from effectful_agents.types import Agent, History

__all__ = ["KeptAgents", "LoadForm", "SaveForm"]

_HISTORY = "__history__"


def _history(agent: Agent) -> History:
    # Past the property, which would load it.
    return vars(agent).setdefault(_HISTORY, History(owner=id(agent)))


@dataclasses.dataclass(frozen=True)
class _Given:
    """An agent as the database had it.

    Attributes:
        agent: The agent; it is here so that its identity stays its own.
        messages: Its conversation.
        attributes: Its attributes.
        unsaved: The attributes that were changed by then, and not saved.
    """

    agent: Agent
    messages: Sequence[Message]
    attributes: Attributes
    unsaved: frozenset[str] = frozenset()

    def changed(self) -> frozenset[str]:
        """The attributes that the database does not have as they are now."""
        changed = self.attributes.changes()
        return self.unsaved.union(changed, changed.get("", ()), self.attributes.unwritable)


class KeptAgents:
    """The agents of a run whose state was given from its journal, and was not taken from the database since."""

    def __init__(self) -> None:
        self._given: dict[int, _Given] = {}
        self._saving: set[int] = set()
        self._began: float | None = None

    def mark(self, step_id: str, store: Checkpointer, run_id: str) -> str:
        """What tells the save that is a step from every other one.

        A run that was deleted, or whose journal is in another store, may have had the same name: so it has its
        beginning in it.
        """
        if self._began is None:
            self._began = next((record.at for record in store.load(run_id).records), 0.0)
        return f"{run_id}:{step_id}:{self._began!r}"

    def is_saving(self, agent: Agent) -> bool:
        """Whether it is loaded in the middle of being saved, which is no step of its own."""
        return id(agent) in self._saving

    def loaded(self, agent: Agent, names: Iterable[str]) -> None:
        """Note that its history is now as the database had it, and so are these attributes."""
        before = self._given.get(id(agent))
        self._give(agent, frozenset() if before is None else before.changed().difference(names))

    def saved(self, agent: Agent) -> None:
        """Note that the database had its state as it is now."""
        self._give(agent, frozenset())

    def _give(self, agent: Agent, unsaved: frozenset[str]) -> None:
        self._given[id(agent)] = _Given(agent, without_system(_history(agent)), Attributes(agent), unsaved)

    def load(self, agent: Agent, load: Callable[[], Any]) -> None:
        """Load it. The database has all messages that the run has saved, so those that the journal gave make room."""
        given = self._given.pop(id(agent), None)
        if given is None:
            load()
        else:
            _load(agent, given, load)

    def save(self, agent: Agent, save: Callable[[], Any]) -> None:
        """Save it; of one that the journal gave, what has come since the database had it."""
        given = self._given.pop(id(agent), None)
        if given is not None:
            mine = without_system(_history(agent))
            self._saving.add(id(agent))
            try:
                _load(agent, given, lambda: load_state(agent))
            finally:
                self._saving.discard(id(agent))
            _go_on(_history(agent), given.messages, mine)
        save()


def _load(agent: Agent, given: _Given, load: Callable[[], Any]) -> None:
    values = {name: getattr(agent, name, _MISSING) for name in given.changed()}
    history = _history(agent)
    history[:] = history[: len(history) - len(without_system(history))]
    load()
    for name, value in values.items():
        if value is not _MISSING:
            object.__setattr__(agent, name, value)  # past a class that is frozen


_MISSING = object()


def _go_on(history: History, given: Sequence[Message], mine: Sequence[Message]) -> None:
    """Have a history that was loaded anew become what the conversation has come to here.

    Args:
        history: As the database has it now.
        given: As the database had it.
        mine: What became of that.
    """
    if len(mine) >= len(given) and all(map(operator.is_, given, mine)):
        history.extend(mine[len(given) :])
        return
    # It was rewritten (a compaction): what others have added comes behind that.
    theirs = without_system(history)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(given, theirs, strict=False)))
    history[len(history) - len(theirs) :] = [*mine, *theirs[same:]]


class _StateForm(Form[None]):
    """A step after which an agent is as the database has it: its history here, its fields as of any object."""

    def __init__(self, what: str, step_id: str, agent: Agent, kept: KeptAgents) -> None:
        super().__init__(step_id, "record", f"{what} {agent.__agent_id__}", repeatable=True)
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
        if "keep" in body:
            history = _history(self._agent)
            history[:] = [*history[: body["keep"]], *body["messages"]]


class LoadForm(_StateForm):
    """An agent is loaded."""

    def __init__(self, step_id: str, agent: Agent, kept: KeptAgents) -> None:
        super().__init__("load", step_id, agent, kept)

    @override
    def result(self, body: Mapping[str, Any]) -> None:
        super().result(body)
        self._kept.loaded(self._agent, body.get("self", ()))


class SaveForm(_StateForm):
    """An agent is saved; where others have saved it meanwhile, it gets what they have."""

    def __init__(self, step_id: str, agent: Agent, kept: KeptAgents) -> None:
        super().__init__("save", step_id, agent, kept)

    @override
    def result(self, body: Mapping[str, Any]) -> None:
        super().result(body)
        self._kept.saved(self._agent)
