"""Keeping agents across processes.

Of an agent with an `__agent_id__` the history and the fields that it declares as a dataclass are kept in an SQLite
file, when a call of it has succeeded that is not inside another one of its calls.

- The fields are written by their annotations, as everything that a model is sent; a field may hold whatever an argument
  of a skill may. Those that hold agents are left out, and those declared with `field(metadata={"persist": False})`.
  What is kept comes before what a constructor was given.
- A call that raises saves nothing, and leaves the history as it was. What it did to the fields stays in the object, as
  in any Python program, and is saved with the next call that succeeds. A call that fails because it cannot be saved is
  a call that raises.
- Several processes, and several objects in one, may go on with the same agent at the same time. The messages of each
  call stay together, in the order in which the calls ended; a call sees those that had ended when it began. Of a field
  that one of them changed, the others get the new value when their next call begins; if several changed it, the last
  call to end decides. Calls of one object in several threads or tasks share its fields while they run.
- The system message is not kept. Each process writes the one that is right for its program.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import operator
import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from effectful_agents.errors import StateError
from effectful_agents.handlers.durability import agent_state as state
from effectful_agents.handlers.durability import agent_table as table
from effectful_agents.handlers.durability.agent_state import Kept
from effectful_agents.handlers.durability.transaction import changing_history
from effectful_agents.messages import Message, SystemMessage
from effectful_agents.operations.history import load_state, save_state
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.operations.loop import call_agent, call_system
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.runtime import fwd, implements
from effectful_agents.storage.database import Database
from effectful_agents.types import Agent, History, Skill

__all__ = ["SQLitePersister"]

_KEPT = "__kept__"


@dataclasses.dataclass(frozen=True)
class _Calls:
    """The calls of kept agents that the code is in.

    Attributes:
        running: Whether they still run (a task or a thread may outlive its call), by the identity of the agent.
        innermost: Whether the innermost call of all is one of a kept agent.
    """

    running: Mapping[int, list[bool]]
    innermost: bool


_NOWHERE = _Calls({}, innermost=False)
_calls: contextvars.ContextVar[_Calls] = contextvars.ContextVar("_calls", default=_NOWHERE)


class SQLitePersister(PromptInjectingInterpretation):
    """You will remember this conversation when the program has ended and runs again.

    Whenever a call that you answer succeeds, its messages and the fields of the agent (`self`) are saved. The next
    process, perhaps days later, begins with them: what you read above may be older than the program that asks now. It
    is there because it was saved, so build on it and do not work it out again.

    What you set in a field of the agent is kept as well. Use it on purpose, for notes, results and summaries that later
    calls need. A call that ends in an exception saves nothing at all; what has to survive a failure must be finished
    in an earlier call.
    """

    # Innermost in a stack, so that what it saves is what a call has come to: `HistoryBuilder` outside of it has written
    # the messages back, and nothing that follows can make the call raise. Of several the innermost decides.
    #
    # Args:
    #     db_path: The file; it is made where there is none.
    #     patience: Seconds to wait while another process writes to the file.
    #
    # Raises:
    #     OptionError: `db_path` names no file.
    #     StorageError: It cannot be written, is damaged, or was written by a later version. Calls raise it too.
    #
    # Calls raise a StateError, before the model is asked, where what is kept does not fit the class of the agent.

    db_path: str

    def __init__(self, db_path: str | os.PathLike[str], *, patience: float = 60.0) -> None:
        self._database = Database(db_path, table.SCHEMA, patience=patience)
        self._unsaved: dict[int, list[Message]] = {}
        self.db_path = self._database.path

    def manifest(self) -> Mapping[str, object]:
        # What the manifest of a stack says of it.
        return {"stages": ["agents.kept"], "versions": {"agents": str(table.SCHEMA.version)}}

    @implements(call_system)
    def call_system(self, harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
        # To a skill or an agent that is not kept it would say what is not true.
        return super().call_system(harness_prompt, agent_prompt) if _calls.get().innermost else fwd()

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *_args: Any, **_kwargs: Any) -> Any:
        agent = skill.agent
        if agent is None or not agent.__persistent__:
            with _called(None):
                return fwd()
        if any(_calls.get().running.get(id(agent), ())):  # inside another call of it, which will save all
            with _called(agent):
                return fwd()
        load_state(agent)
        before = list(agent.__history__)
        with _called(agent):
            value = fwd()
        with self._adding(agent, before):
            save_state(agent)
        return value

    @implements(load_state)
    def load_state(self, agent: Agent) -> None:
        if not agent.__persistent__:
            return
        state.check_fields(agent)
        history = agent.__history__
        taken_over = False
        while not taken_over:
            kept = self._kept(agent)
            with self._database.reading() as connection:
                row = _find(connection, agent, self.db_path)
                if _is_current(kept, row):
                    return
                rows, stored = table.read(connection, row.key)
            taken = state.take_fields(agent, kept, stored)
            fields = {**(kept.fields if kept else {} if row.key else state.encoded_fields(agent)), **taken}
            with changing_history:
                taken_over = self._kept(agent) is kept  # or another thread has saved the agent meanwhile
                if taken_over:
                    theirs = state.known_again(kept, rows, self.db_path)
                    _replace(history, state.merged(kept, state.without_system(history), theirs))
                    id = state.agent_id(agent)
                    self._keep(agent, Kept(id, row.key, row.version, theirs, list(rows), fields, stored))

    @implements(save_state)
    def save_state(self, agent: Agent, mark: str = "") -> None:
        if not agent.__persistent__:
            return
        history, fields = agent.__history__, state.encoded_fields(agent)
        for name, text in _changed(self._kept(agent), fields).items():
            state.check_readable(agent, name, text)
        with self._database.writing() as connection:
            row = _find(connection, agent, self.db_path)
            if not (mark and table.has_mark(connection, row.key, mark)):
                with changing_history:
                    self._save(agent, history, fields, connection, row, mark)
                return
            rows, stored = table.read(connection, row.key)
        self._become(agent, fields, row, rows, stored)

    def _become(
        self,
        agent: Agent,
        fields: dict[str, str],
        row: table.Row,
        rows: Mapping[int, str],
        stored: Mapping[str, str],
    ) -> None:
        """Have an agent that was saved as it is be what is kept of it, which others may have changed since."""
        id, kept = state.agent_id(agent), self._kept(agent)
        taken = state.take_fields(agent, Kept(id, row.key, None, [], [], fields, fields), stored)
        with changing_history:
            theirs = state.known_again(kept, rows, self.db_path)
            _replace(agent.__history__, theirs)
            self._keep(agent, Kept(id, row.key, row.version, theirs, list(rows), {**fields, **taken}, stored))

    def _save(
        self,
        agent: Agent,
        history: History,
        fields: dict[str, str],
        connection: sqlite3.Connection,
        row: table.Row,
        mark: str,
    ) -> None:
        kept, mine = self._kept(agent), state.without_system(history)
        current = _is_current(kept, row)
        changed = _changed(kept, fields) if row.key else fields
        if kept is not None and current:
            theirs, had, wanted = kept.messages, kept.numbers, mine
        else:
            rows, _ = table.read(connection, row.key)
            theirs, had = state.known_again(kept, rows, self.db_path), list(rows)
            wanted = state.merged(kept, mine, theirs)
        numbers = _numbers(theirs, had, wanted)
        if row.key and current and not changed and numbers == had and not mark:
            return
        if not row.key:
            row = table.insert(connection, state.agent_id(agent), type(agent).__name__)
        numbers = table.write_messages(connection, row.key, had, wanted, numbers)
        table.write_fields(connection, row.key, changed)
        if mark:
            table.add_mark(connection, row.key, mark)
        version = table.count_saved(connection, row.key)
        # What is known of the database is forgotten before it changes: should an exception come in between, it is
        # found out anew whether it has changed.
        self._keep(agent, None)
        connection.commit()
        if not current:
            _replace(history, wanted)
        stored = {**(kept.stored if kept else {}), **changed}
        id = state.agent_id(agent)
        self._keep(agent, Kept(id, row.key, version if current else None, wanted, numbers, fields, stored))

    @contextlib.contextmanager
    def _adding(self, agent: Agent, before: list[Message]) -> Generator[None]:
        """Where the messages that a call has added are saved; if that fails, they are taken out of the history again.

        Calls of the agent in other tasks and threads may wait here, too, with messages of their own.
        """
        history = agent.__history__
        with changing_history:
            unsaved = self._unsaved.setdefault(id(agent), [])
            mine = _without(_added(before, history), unsaved)
            unsaved += mine
        try:
            yield
        except BaseException:
            with changing_history:
                others = _without(_added(before, history), mine)
                # Where the call has rewritten what was there, that is put back as well.
                history[:] = [*before, *others]
            raise
        finally:
            with changing_history:
                unsaved[:] = _without(unsaved, mine)
                if not unsaved:
                    self._unsaved.pop(id(agent), None)

    # What is known of the database is part of the agent, so that it is copied and pickled together with the messages.

    def _kept(self, agent: Agent) -> Kept | None:
        kept: Kept | None = vars(agent).get(_KEPT, {}).get(self.db_path)
        if kept is not None and kept.id != state.agent_id(agent):
            raise StateError(
                f"an agent that was kept as `{kept.id}` cannot become `{state.agent_id(agent)}`: what it remembers is "
                "that one's. Make another object for another agent.",
                agent_id=kept.id,
            )
        return kept

    def _keep(self, agent: Agent, kept: Kept | None) -> None:
        vars(agent)[_KEPT] = {**vars(agent).get(_KEPT, {}), self.db_path: kept}

    def agents(self) -> list[str]:
        """The identifiers of the agents that are kept, those that were saved first at the front."""
        with self._database.reading() as connection:
            return table.agent_ids(connection)

    def forget(self, agent_id: str, *fields: str) -> bool:
        """Delete an agent with all that is kept of it; or only some of its fields.

        An object that is this agent, in whatever process, begins a new conversation with its next call. Its fields stay
        as they are in the object.

        Args:
            agent_id: Its `__agent_id__`.
            fields: Names of fields; without any, everything is deleted.

        Returns:
            Whether it was kept.
        """
        with self._database.writing() as connection:
            row = table.find(connection, agent_id)
            if row is not None:
                table.forget(connection, row.key, fields or None)
        return row is not None

    def adopt(self, agent_id: str, cls: type) -> bool:
        """Say that an agent which is kept belongs to another class from now on: one that was renamed, for instance.

        Args:
            agent_id: Its `__agent_id__`.
            cls: The class.

        Returns:
            Whether it was kept.
        """
        with self._database.writing() as connection:
            row = table.find(connection, agent_id)
            if row is not None:
                table.adopt(connection, row.key, cls.__name__)
        return row is not None


_NOBODY = table.Row(0, "", 0)  # an agent that is not kept


def _find(connection: sqlite3.Connection, agent: Agent, path: str) -> table.Row:
    id, cls = state.agent_id(agent), type(agent)
    row = table.find(connection, id)
    if row is None:
        return _NOBODY
    if all(row.class_name != base.__name__ for base in cls.__mro__):
        raise StateError(
            f"the agent `{id}` of the database `{path}` is a `{row.class_name}`, and this is a `{cls.__name__}`; two "
            f"agents cannot have the same `__agent_id__`. Give this one another; or, if the class was renamed, say so "
            f"once: `SQLitePersister(…).adopt({id!r}, {cls.__name__})`.",
            agent_id=id,
        )
    return row


def _is_current(kept: Kept | None, row: table.Row) -> bool:
    """Whether nobody has saved the agent since."""
    return kept is not None and (row.key, row.version) == (kept.key, kept.version)


def _changed(kept: Kept | None, fields: Mapping[str, str]) -> dict[str, str]:
    """The fields that were changed here since."""
    known = kept.fields if kept else {}
    return {name: text for name, text in fields.items() if text != known.get(name)}


def _numbers(theirs: Sequence[Message], had: Sequence[int], wanted: Sequence[Message]) -> list[int | None]:
    """The numbers of messages, None for each that is new."""
    if len(wanted) >= len(theirs) and all(map(operator.is_, theirs, wanted)):  # nearly always, and quicker
        return [*had, *[None] * (len(wanted) - len(theirs))]
    known = dict(zip(map(id, theirs), had, strict=True))
    return [known.get(id(message)) for message in wanted]


def _added(before: Sequence[Message], history: Sequence[Message]) -> Sequence[Message]:
    """The messages of a history that were not there before."""
    if len(history) >= len(before) and all(map(operator.is_, before, history)):  # nearly always, and quicker
        return history[len(before) :]
    return _without(history, before)


def _without(messages: Sequence[Message], others: Sequence[Message]) -> list[Message]:
    known = set(map(id, others))
    return [message for message in messages if id(message) not in known]


def _replace(history: History, messages: Sequence[Message]) -> None:
    """Put other messages behind the system message; in place, as running calls will add to the same list."""
    start = len(history) - len(state.without_system(history))
    if len(history) - start != len(messages) or not all(map(operator.is_, history[start:], messages)):
        history[start:] = messages


@contextlib.contextmanager
def _called(agent: Agent | None) -> Generator[None]:
    """While a call of an agent runs; of None while one runs of something that is not kept."""
    outer = _calls.get()
    running = outer.running
    alive = [True]
    if agent is not None:
        running = {**running, id(agent): alive}
    _calls.set(_Calls(running, agent is not None))
    try:
        yield
    finally:
        alive[0] = False
        _calls.set(outer)
