"""Journals as rows of an SQLite database."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from effectful_agents.errors import JournalError
from effectful_agents.handlers.durability.bodies import body_of_text
from effectful_agents.handlers.durability.summary import RunSummary
from effectful_agents.messages import Usage
from effectful_agents.operations.records import Durability, Phase, Record, RunState, RunStatus
from effectful_agents.storage.database import Schema
from effectful_agents.storage.stored import Damaged, as_text, of_text

__all__ = ["TABLES", "StoredJournal", "add", "delete", "has_run", "infos", "read"]

TABLES = Schema(
    "journals",
    [
        [
            # What a list of runs shows stands here, so that it costs the same however long their journals are.
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, records INTEGER NOT NULL,"
            " chain TEXT NOT NULL, status TEXT NOT NULL, skill TEXT NOT NULL, steps INTEGER NOT NULL,"
            " last_step TEXT NOT NULL, created REAL, updated REAL NOT NULL, error TEXT NOT NULL,"
            " models TEXT NOT NULL, written INTEGER NOT NULL)",
            "CREATE INDEX runs_written ON runs (written)",
            "CREATE TABLE run_records (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,"
            " position INTEGER NOT NULL, step_id TEXT NOT NULL, attempt INTEGER NOT NULL, phase TEXT NOT NULL,"
            " kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,"
            " durability TEXT NOT NULL, at REAL NOT NULL, schema INTEGER NOT NULL, chain TEXT NOT NULL)",
            "CREATE UNIQUE INDEX run_records_position ON run_records (run, position)",
            "CREATE UNIQUE INDEX run_records_key ON run_records (run, step_id, attempt, phase)",
            "CREATE TABLE run_leases (run_id TEXT PRIMARY KEY, token TEXT NOT NULL, holder TEXT NOT NULL,"
            " place TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID",
        ]
    ],
)

_SUMMARY = "status, skill, steps, last_step, created, updated, error, models"
_RECORD = "step_id, attempt, phase, kind, name, digest, body, durability, at, schema"


def add(connection: sqlite3.Connection, run_id: str, records: Sequence[tuple[Record, str]]) -> None:
    """Add records, each with the text of its body, to the journal of a run; those that are there are passed over."""
    run, position, chain, summary = _run(connection, run_id)
    before = position
    for record, text in records:
        step, half = as_text(record.step_id), (record.attempt, record.phase.value)
        halves = connection.execute(
            "SELECT attempt, phase FROM run_records WHERE run = ? AND step_id = ?", (run, step)
        ).fetchall()
        if half in halves:
            continue
        row = (
            step,
            *half,
            *map(as_text, (record.kind, record.name, record.digest)),
            text,
            record.durability.value,
            float(record.at),
            record.schema,
        )
        position, chain = position + 1, _link(chain, row)
        connection.execute(
            f"INSERT INTO run_records (run, position, chain, {_RECORD}) VALUES (?, ?, ?{', ?' * len(row)})",
            (run, position, chain, *row),
        )
        summary.add(record, is_new_step=not halves)
    if position > before:
        _keep_summary(connection, run, position, chain, summary)


def read(connection: sqlite3.Connection, run_id: str) -> StoredJournal:
    """The rows of the journal of a run; they are checked and understood when the transaction is over."""
    run = connection.execute("SELECT id, records, chain FROM runs WHERE run_id = ?", (as_text(run_id),)).fetchone()
    if run is None:
        return StoredJournal(run_id, [], 0, _first_link(run_id))
    chosen = f"SELECT position, chain, {_RECORD} FROM run_records WHERE run = ? ORDER BY position"
    return StoredJournal(run_id, connection.execute(chosen, run[:1]).fetchall(), *run[1:])


def infos(connection: sqlite3.Connection) -> list[tuple[str, RunSummary]]:
    """All runs, the latest first."""
    rows = connection.execute(f"SELECT run_id, {_SUMMARY} FROM runs ORDER BY written DESC").fetchall()
    return [(of_text(row[0]), _summary(row[1:])) for row in rows]


def has_run(connection: sqlite3.Connection, run_id: str) -> bool:
    """Whether there is a journal of a run."""
    return connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (as_text(run_id),)).fetchone() is not None


def delete(connection: sqlite3.Connection, run_id: str) -> None:
    """Remove a run with its records, and the lease of a holder that no longer counts."""
    for table in ("runs", "run_leases"):
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (as_text(run_id),))


def _run(connection: sqlite3.Connection, run_id: str) -> tuple[int, int, str, RunSummary]:
    """A run's row, number of records, last link and summary; the row is made where there is none."""
    chosen = f"SELECT id, records, chain, {_SUMMARY} FROM runs WHERE run_id = ?"
    row = connection.execute(chosen, (as_text(run_id),)).fetchone()
    if row is not None:
        run, records, chain, *told = row
        if not isinstance(records, int):
            raise Damaged(f"the run `{run_id}` has {records!r} as the number of its records")
        return run, records, of_text(chain), _summary(told)
    summary, chain = RunSummary(), _first_link(run_id)
    fields = _row_of_summary(summary)
    made = connection.execute(
        f"INSERT INTO runs (run_id, records, chain, written, {_SUMMARY}) VALUES (?, 0, ?, 0{', ?' * len(fields)})",
        (as_text(run_id), chain, *fields),
    )
    assert made.lastrowid is not None
    return made.lastrowid, 0, chain, summary


def _keep_summary(connection: sqlite3.Connection, run: int, records: int, chain: str, summary: RunSummary) -> None:
    fields = _row_of_summary(summary)
    names = ", ".join(f"{name} = ?" for name in _SUMMARY.split(", "))
    connection.execute(
        f"UPDATE runs SET records = ?, chain = ?, written = (SELECT max(written) + 1 FROM runs), {names} WHERE id = ?",
        (records, chain, *fields, run),
    )


def _row_of_summary(summary: RunSummary) -> tuple[Any, ...]:
    return (
        summary.status.value,
        as_text(summary.skill),
        summary.steps,
        as_text(summary.last_step),
        summary.created,
        summary.updated,
        as_text(summary.error),
        json.dumps({model: dataclasses.asdict(usage) for model, usage in summary.models.items()}),
    )


def _summary(row: Sequence[Any]) -> RunSummary:
    status, skill, steps, last_step, created, updated, error, models = row
    try:
        return RunSummary(
            RunStatus(status),
            of_text(skill),
            int(steps),
            of_text(last_step),
            None if created is None else float(created),
            float(updated),
            of_text(error),
            {model: Usage(**usage) for model, usage in json.loads(models).items()},
        )
    except (ValueError, TypeError, AttributeError) as wrong:
        raise Damaged(f"what the list of runs says about one cannot be read: {wrong}") from wrong


# --- the chain --------------------------------------------------------------------------------------------------------

# Each record has a digest of itself and of that of the one before it, and the run has the last one: a record that was
# altered or lost is noticed when the journal is read. SQLite itself notices only damage to the form of the file.


def _first_link(run_id: str) -> str:
    return _link("", [as_text(run_id)])


def _link(before: str, row: Sequence[Any]) -> str:
    chain = hashlib.blake2b(before.encode(), digest_size=16)
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode()
        chain.update(b"%d:" % len(data))  # so that no two rows are the same bytes
        chain.update(data)
    return chain.hexdigest()


@dataclasses.dataclass(frozen=True)
class StoredJournal:
    """The rows of a journal.

    Attributes:
        run_id: The run.
        rows: Those that there are, in order.
        records: How many were written.
        chain: The link that the last of them had.
    """

    run_id: str
    rows: Sequence[Sequence[Any]]
    records: int
    chain: str

    def state(self) -> RunState:
        """The journal.

        Raises:
            JournalError: Records were altered, or are missing.
        """
        state, chain = RunState(self.run_id), _first_link(self.run_id)
        for place, (position, link, *row) in enumerate(self.rows, 1):
            chain = _link(chain, row)
            if position != place or chain != link:
                step = (row[0] if isinstance(row[0], str) else repr(row[0])) or "the run itself"
                raise self._damage(f"its record {place}, of `{step}`, was altered, or one before it is missing")
            state.add(_record(self.run_id, row))
        if (len(self.rows), chain) != (self.records, self.chain):
            raise self._damage(f"{self.records} records were written, and {len(self.rows)} of them are there")
        return state

    def _damage(self, what: str) -> JournalError:
        return JournalError(f"the journal of the run `{self.run_id}` is damaged: {what}.")


def _record(run_id: str, row: Sequence[Any]) -> Record:
    step_id, attempt, phase, kind, name, digest, body, durability, at, schema = row
    return Record(
        run_id=run_id,
        step_id=of_text(step_id),
        attempt=attempt,
        phase=Phase(phase),
        kind=of_text(kind),
        name=of_text(name),
        digest=of_text(digest),
        body=body_of_text(body),
        durability=Durability(durability),
        at=at,
        schema=schema,
    )
