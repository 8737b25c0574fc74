"""Runs as they are written down: the records of a journal, and what has to keep them.

A *run* is a program, or a part of one, with an identifier. Its *journal* is a list of records, to which some are added
and none is ever changed. `handlers.durability.Journal` writes them; anything that can append and load keeps them.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "SCHEMA",
    "Checkpointer",
    "Durability",
    "Lease",
    "Phase",
    "Record",
    "RunInfo",
    "RunState",
    "RunStatus",
    "RunStore",
]

SCHEMA = 1
"""The version of what a record says. A journal that says more than this version knows is refused."""


class Phase(enum.StrEnum):
    """Which half of a step an event or a record tells of."""

    ATTEMPTED = "attempted"
    """It is about to happen."""
    COMPLETED = "completed"
    """It has happened, and its result is known; or it has failed, and its error is."""


class Durability(enum.StrEnum):
    """How soon a journal has to have written an event."""

    DURABLE = "durable"
    """Before anything else happens."""
    DEFERRABLE = "deferrable"
    """In order, before the next durable one: what it tells of can be repeated without harm."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """One line of a journal: half of a step.

    Attributes:
        run_id: The run.
        step_id: The step's place in it, see `operations.steps.make_step_id`; empty where the record is about the run.
        attempt: 1, and one more for each time that the step is made again.
        phase: Which half.
        kind: What it is: `run`, `call`, `model`, `tool`, `delegate`, `record`, `approval`.
        name: The skill or tool.
        digest: Stands for all that was asked: the whole request, or the arguments. Records of one half only have it.
        body: The rest, as plain JSON; text in it may hold lone surrogates.
        durability: How soon it has to be kept.
        at: When it was made, in seconds since 1970-01-01 UTC.
        schema: The version of what it says.
    """

    run_id: str
    step_id: str
    attempt: int = 1
    phase: Phase
    kind: str
    name: str = ""
    digest: str = ""
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    durability: Durability = Durability.DURABLE
    at: float = 0.0
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two records the same: run, step with its attempt, phase."""
        return self.run_id, f"{self.step_id}.{self.attempt}", self.phase.value


class RunState:
    """The journal of a run, in order, and what can be asked of it.

    Args:
        run_id: The run.
        records: Its records, in the order in which they were appended.

    >>> state = RunState("r", [Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool")])
    >>> state.attempted("000001-tool").kind, state.completed("000001-tool"), state.uncertain()
    ('tool', None, ['000001-tool'])
    """

    def __init__(self, run_id: str, records: Iterable[Record] = ()) -> None:
        self.run_id = run_id
        self.records: list[Record] = []
        self._steps: dict[str, dict[Phase, Record]] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take one more record; of a step the latest attempt counts."""
        self.records.append(record)
        halves = self._steps.setdefault(record.step_id, {})
        latest = max((half.attempt for half in halves.values()), default=0)
        if record.attempt > latest:
            halves.clear()
        if record.attempt >= latest:
            halves.setdefault(record.phase, record)

    def attempted(self, step_id: str) -> Record | None:
        """What the latest attempt of a step was about to do."""
        return self._steps.get(step_id, {}).get(Phase.ATTEMPTED)

    def completed(self, step_id: str) -> Record | None:
        """What came of the latest attempt of a step; None where that is not known."""
        return self._steps.get(step_id, {}).get(Phase.COMPLETED)

    def steps(self) -> Sequence[str]:
        """The steps, in the order in which they began."""
        return [step_id for step_id in self._steps if step_id]

    def uncertain(self) -> Sequence[str]:
        """The steps of which nobody knows what came of them: a crash came between their halves."""
        return [
            step_id
            for step_id, halves in self._steps.items()
            if step_id and Phase.ATTEMPTED in halves and Phase.COMPLETED not in halves
        ]


class RunStatus(enum.StrEnum):
    """What has become of a run."""

    RUNNING = "running"
    """A process has it."""
    SUSPENDED = "suspended"
    """It waits for somebody's answer. Resumed, it goes on, or asks again if there is none."""
    INTERRUPTED = "interrupted"
    """Nobody has it, and it has not ended: it can be resumed."""
    FAILED = "failed"
    """An exception ended it. Resumed, it goes on where that was raised."""
    UNCERTAIN = "uncertain"
    """It ended at a step of which nobody knows what came of it: settle the step, then resume it."""
    DIVERGED = "diverged"
    """It ended where the program no longer asked what the journal recorded."""
    FINISHED = "finished"
    """It has come to its end, and only gives its values again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunInfo:
    """A run in a list of runs.

    Attributes:
        run_id: The run.
        status: What has become of it.
        skill: The skill that it called first.
        steps: How many steps are recorded.
        last_step: The latest of them; empty where there is none.
        created: When it began, in seconds since 1970-01-01 UTC.
        updated: When its latest record was made.
        holder: Who has it now, where somebody does.
        error: What ended it, where something did.
        usage: Tokens of its model calls, with the keys of `messages.Usage`.
        models: The same of each model that replied, by its name.
    """

    run_id: str
    status: RunStatus
    skill: str = ""
    steps: int = 0
    last_step: str = ""
    created: float = 0.0
    updated: float = 0.0
    holder: str = ""
    error: str = ""
    usage: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    models: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


@runtime_checkable
class Checkpointer(Protocol):
    """What keeps journals: all that a store has to implement.

    It decides nothing: it knows neither the loop, nor what a replay is, nor how identifiers are made.
    """

    def append(self, *records: Record) -> None:
        """Add records, in order, all or none; when it returns they are kept, whatever happens to the process.

        A record whose `key` is there already is passed over: it has been written before.

        Raises:
            JournalError: They could not be kept.
        """
        ...

    def load(self, run_id: str) -> RunState:
        """The journal of a run; an empty one where there is none.

        Raises:
            JournalError: It could not be read, or is damaged.
        """
        ...


@runtime_checkable
class Lease(Protocol):
    """A run that one process has: while it does, no other writes to the journal."""

    def append(self, *records: Record) -> None:
        """As `Checkpointer.append`; the lease is renewed by it.

        Raises:
            LeaseLost: It had expired, and another process has the run now. Nothing was written.
        """
        ...

    def renew(self) -> None:
        """Have it not expire yet.

        Raises:
            LeaseLost: Another process has the run now.
        """
        ...

    def release(self) -> None:
        """Give the run back. A second time does nothing, and neither does it where the lease was lost."""
        ...


@runtime_checkable
class RunStore(Checkpointer, Protocol):
    """A checkpointer for several processes: who has a run, which runs there are, runs made of others."""

    def lease(self, run_id: str, *, seconds: float = 30.0) -> Lease:
        """Take a run.

        Args:
            run_id: The run; there need not be one yet.
            seconds: How long the lease holds without being renewed. That of a process of this machine which has died
                ends at once.

        Raises:
            RunInUse: Somebody has it.
        """
        ...

    def runs(self) -> Sequence[RunInfo]:
        """All runs, the latest first."""
        ...

    def fork(self, run_id: str, new_id: str, at: str | None = None) -> RunState:
        """Make a new run of the beginning of another.

        Args:
            run_id: The run to begin as.
            new_id: The new run.
            at: The first step that the new run does not share; None shares all that is there.

        Raises:
            JournalError: There is no such run or step, or there is a run `new_id` already.
        """
        ...

    def delete(self, run_id: str) -> None:
        """Forget a run and its journal.

        Raises:
            RunInUse: Somebody has it.
        """
        ...
