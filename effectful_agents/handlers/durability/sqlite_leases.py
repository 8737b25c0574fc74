"""Leases as rows of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from effectful_agents.errors import LeaseLost, OptionError, RunInUse
from effectful_agents.handlers.durability.bodies import check_run
from effectful_agents.handlers.durability.heartbeat import heartbeat
from effectful_agents.handlers.durability.holders import Holder
from effectful_agents.operations.records import Record
from effectful_agents.storage.stored import Damaged, as_text, of_text

if TYPE_CHECKING:
    from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer

__all__ = ["SqliteLease", "holders", "refuse_if_held"]


class SqliteLease:
    """A run that one journal of this process has.

    Its row says until when. It is put off when a third of that time is gone, by the next record or by a thread. Who
    finds it overdue, or the process of the holder gone, takes the run by a row with another token; every record is
    written in one transaction with a look at the token, so that the former holder writes nothing any more.
    """

    renewed: float
    """When it was put off last, by `time.monotonic`."""

    def __init__(self, store: SqliteCheckpointer, run_id: str, seconds: float) -> None:
        if not seconds > 0:
            raise OptionError(f"a lease holds for more than no time; `seconds` is {seconds!r}")
        self.run_id = run_id
        self.seconds = seconds
        self._store = store
        self._token = uuid.uuid4().hex
        self._pid = os.getpid()
        self._released = False

    def append(self, *records: Record) -> None:
        """As `SqliteCheckpointer.append`, for the run of the lease, which is renewed.

        Raises:
            LeaseLost: It was released, the run was taken over, or this is a process that was forked off the one that
                has it. Nothing was written.
            JournalError: The records cannot be written, or one is of another run.
        """
        check_run(self.run_id, records)
        if records:
            self._store._append(records, self)

    def renew(self) -> None:
        """Have it not expire yet.

        Raises:
            LeaseLost: As for `append`.
            JournalError: The file cannot be written.
        """
        with self._store._writing() as connection:
            self.hold(connection, renew=True)

    def release(self) -> None:
        """Give the run back.

        Raises:
            JournalError: The file cannot be written. The lease then ends with its time, or with the process.
        """
        heartbeat.discard(self)
        # A forked process has no lease to give back: it is its parent's.
        if self._released or os.getpid() != self._pid:
            return
        with self._store._writing() as connection:
            connection.execute("DELETE FROM run_leases WHERE run_id = ? AND token = ?", self._key)
        self._released = True

    def take(self, connection: sqlite3.Connection) -> None:
        """Write the row.

        Raises:
            RunInUse: Somebody has the run.
        """
        refuse_if_held(connection, self.run_id)
        mine = Holder.this_process()
        connection.execute(
            f"REPLACE INTO run_leases (run_id, token, {_HOLDER}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*self._key, as_text(mine.name), as_text(mine.place), mine.pid, mine.started, self._put_off()),
        )

    def hold(self, connection: sqlite3.Connection, *, renew: bool = False) -> None:
        """Make sure that the row is there, and put it off where that is due.

        Raises:
            LeaseLost: It is not there.
        """
        chosen = "SELECT 1 FROM run_leases WHERE run_id = ? AND token = ?"
        if os.getpid() != self._pid:
            raise LeaseLost(f"process {self._pid} has the run `{self.run_id}`, and not the one that was forked off it.")
        if connection.execute(chosen, self._key).fetchone() is None:
            raise LeaseLost(
                f"the run `{self.run_id}` was taken over by another process, since this one was not heard of for "
                f"{self.seconds:g} seconds, or it was given back. Nothing was written."
            )
        if renew or time.monotonic() - self.renewed >= self.seconds / 3:
            put_off = "UPDATE run_leases SET expires = ? WHERE run_id = ? AND token = ?"
            connection.execute(put_off, (self._put_off(), *self._key))

    def _put_off(self) -> float:
        self.renewed = time.monotonic()
        return time.time() + self.seconds

    @property
    def _key(self) -> tuple[str | bytes, str]:
        return as_text(self.run_id), self._token


def holders(connection: sqlite3.Connection) -> dict[str, str]:
    """Who has which run."""
    rows = connection.execute(f"SELECT run_id, {_HOLDER} FROM run_leases").fetchall()
    return {of_text(run_id): holder.name for run_id, *row in rows for holder in _living(*row)}


def refuse_if_held(connection: sqlite3.Connection, run_id: str) -> None:
    """Refuse to touch a run that somebody has.

    Raises:
        RunInUse: Somebody has it.
    """
    chosen = f"SELECT {_HOLDER} FROM run_leases WHERE run_id = ?"
    for row in connection.execute(chosen, (as_text(run_id),)).fetchall():
        for holder in _living(*row):
            # A script that names its run, under `resume`: to wait for the holder would be to wait for itself.
            advice = (
                "That is this process, in which a block with its journal is open: end that first. A script that names "
                "its run itself is run without `effectful-agents resume`, `--journal` and `--run-id`."
                if holder == Holder.this_process()
                else "Wait until that has ended, or end it."
            )
            raise RunInUse(f"the run `{run_id}` is in use by {holder.name}. {advice}")


# The clock is that of the system: a database in WAL mode is used from one machine only.
_HOLDER = "holder, place, pid, started, expires"


def _living(name: str | bytes, place: str | bytes, pid: int, started: str, expires: float) -> Iterator[Holder]:
    """A holder, if it still counts."""
    if not (isinstance(pid, int) and isinstance(expires, float | int)):
        raise Damaged(f"a lease has the process {pid!r} and the end {expires!r}")
    holder = Holder(of_text(name), of_text(place), pid, started)
    if expires > time.time() and not holder.is_gone():
        yield holder
