"""Journals in an SQLite database: they outlive their processes, and several processes share them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator, Sequence
from typing import Literal

from effectful_agents.errors import JournalError, OptionError, StorageError
from effectful_agents.handlers.durability import journal_tables
from effectful_agents.handlers.durability.bodies import text_of_body
from effectful_agents.handlers.durability.forking import forked_records
from effectful_agents.handlers.durability.heartbeat import heartbeat
from effectful_agents.handlers.durability.sqlite_leases import SqliteLease, holders, refuse_if_held
from effectful_agents.operations.records import Record, RunInfo, RunState
from effectful_agents.storage.database import Database

__all__ = ["SqliteCheckpointer"]


class SqliteCheckpointer:
    """Keep journals in an SQLite database, which several threads, tasks and processes use at once.

    The file is on a disk of this machine. Agents that are kept (`persist_db`) may be in the same one. A run that is
    leased belongs to one process: it ends with `release`, with that process, or when the process was not heard of for
    so many seconds by the clock of the system, as when it is stopped.

    Args:
        path: The file; it is made, with the folders above it, where there is none.
        synchronous: `full` has each `append` survive a loss of power, for which the disk is flushed; `normal` has it
            survive a crash of the process, and is faster. The file stays whole in either case.

    Raises:
        OptionError: `path` names no file, or `synchronous` is something else.
        JournalError: The file cannot be written, is damaged, no SQLite database, or was written by a later version of
            the package. Each of the methods raises it too; then nothing was written.

    >>> import tempfile
    >>> from effectful_agents.operations.records import Phase
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SqliteCheckpointer(f"{folder}/runs.db")
    ...     store.append(Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool"))
    ...     store.close()
    ...     SqliteCheckpointer(f"{folder}/runs.db").load("r").uncertain()
    ['000001-tool']
    """

    def __init__(self, path: str | os.PathLike[str], *, synchronous: Literal["full", "normal"] = "full") -> None:
        if synchronous not in ("full", "normal"):
            raise OptionError(f"`synchronous` is `full` or `normal`, not {synchronous!r}")
        with _told():
            self._database = Database(path, journal_tables.TABLES, durable=synchronous == "full")

    @property
    def path(self) -> str:
        """The file, with all folders."""
        return self._database.path

    def append(self, *records: Record) -> None:
        """Add records, in order, all or none; those whose `key` is there already are passed over.

        Raises:
            RunInUse: Somebody has a lease of the run; only whoever has it writes.
            JournalError: A body is no plain JSON, or the file cannot be written.
        """
        if records:
            self._append(records)

    def load(self, run_id: str) -> RunState:
        """The journal of a run; an empty one where there is none.

        Each record has a digest of itself and of those before it, which is checked here.

        Raises:
            JournalError: It cannot be read, or records were altered or lost.
        """
        with self._reading() as connection:
            stored = journal_tables.read(connection, run_id)
        try:
            return stored.state()
        except JournalError as error:
            raise JournalError(
                f"{error} Put a copy of `{self.path}` in its place, or delete the run: "
                f"`effectful-agents delete {run_id} --database {self.path}`."
            ) from None

    def lease(self, run_id: str, *, seconds: float = 30.0) -> SqliteLease:
        """Take a run.

        Args:
            run_id: The run; there need not be one yet.
            seconds: How long the lease holds without being renewed, which happens by itself while the process runs.

        Raises:
            RunInUse: Somebody has it, in this process or in another one.
            JournalError: The file cannot be written.
        """
        lease = SqliteLease(self, run_id, seconds)
        with self._writing() as connection:
            lease.take(connection)
        heartbeat.add(lease)
        return lease

    def runs(self) -> Sequence[RunInfo]:
        """All runs, the latest first. No journal is read for it.

        Raises:
            JournalError: The file cannot be read.
        """
        with self._reading() as connection:
            summaries, held = journal_tables.infos(connection), holders(connection)
        return [summary.info(run_id, held.get(run_id, "")) for run_id, summary in summaries]

    def fork(self, run_id: str, new_id: str, at: str | None = None) -> RunState:
        """Make a new run of the beginning of another; see `forked_records` for what it shares.

        Raises:
            JournalError: There is no such run or step, or there is a run `new_id` already.
            RunInUse: Somebody has a lease of `new_id`.
        """
        records = forked_records(self.load(run_id), new_id, at)
        texts = [text_of_body(record) for record in records]
        with self._writing() as connection:
            if journal_tables.has_run(connection, new_id):
                raise JournalError(f"there is a run `{new_id}` already; name another one.")
            refuse_if_held(connection, new_id)
            journal_tables.add(connection, new_id, list(zip(records, texts, strict=True)))
        return self.load(new_id)

    def delete(self, run_id: str) -> None:
        """Forget a run and its journal; where there is none this does nothing.

        Raises:
            RunInUse: Somebody has it.
            JournalError: The file cannot be written.
        """
        with self._writing() as connection:
            refuse_if_held(connection, run_id)
            journal_tables.delete(connection, run_id)

    def close(self) -> None:
        """Close the file; it is opened again where the store is used once more."""
        self._database.close()

    def _append(self, records: Sequence[Record], lease: SqliteLease | None = None) -> None:
        of_runs: dict[str, list[tuple[Record, str]]] = {}
        for record in records:
            of_runs.setdefault(record.run_id, []).append((record, text_of_body(record)))
        with self._writing() as connection:
            for run_id, rows in of_runs.items():
                if lease is None:
                    refuse_if_held(connection, run_id)
                else:
                    lease.hold(connection)
                journal_tables.add(connection, run_id, rows)

    @contextlib.contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with _told(), self._database.reading() as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with _told(), self._database.writing() as connection:
            yield connection


@contextlib.contextmanager
def _told() -> Generator[None]:
    """Raise what goes wrong with the file as errors of journals."""
    try:
        yield
    except StorageError as error:
        full = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
        advice = " Nothing of it was written. Make room on the disk, and resume the run." if full else ""
        raise JournalError(f"{error}{advice}", retryable=error.retryable) from error
