"""Journals that are kept in memory: for tests, and for runs that need not outlive their process."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Sequence

from effectful_agents.errors import JournalError, LeaseLost, RunInUse
from effectful_agents.handlers.durability.bodies import body_of_text, check_run, text_of_body
from effectful_agents.handlers.durability.forking import forked_records
from effectful_agents.handlers.durability.summary import RunSummary
from effectful_agents.operations.records import Record, RunInfo, RunState

__all__ = ["MemoryCheckpointer", "MemoryLease"]


class MemoryCheckpointer:
    """Keep journals in memory, with all that a store on disk promises but that: they end with the process.

    Threads and tasks may use it at the same time. A lease does not expire: it ends when it is released, or when nobody
    refers to it any more.

    >>> from effectful_agents.operations.records import Phase
    >>> store = MemoryCheckpointer()
    >>> lease = store.lease("r")
    >>> lease.append(Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool"))
    >>> [(run.run_id, run.status.value, run.steps) for run in store.runs()], store.load("r").steps()
    ([('r', 'running', 1)], ['000001-tool'])
    """

    def __init__(self) -> None:
        # Held for what is done here and never while an operation is performed.
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._leases: weakref.WeakValueDictionary[str, MemoryLease] = weakref.WeakValueDictionary()

    def append(self, *records: Record) -> None:
        """Add records, in order, all or none; those whose `key` is there already are passed over.

        Raises:
            JournalError: A body is no plain JSON.
            RunInUse: Somebody has a lease of the run.
        """
        texts = [text_of_body(record) for record in records]
        with self._lock:
            for run_id in {record.run_id for record in records}:
                self._refuse_if_held(run_id)
            self._add(records, texts)

    def load(self, run_id: str) -> RunState:
        """The journal of a run; an empty one where there is none."""
        with self._lock:
            run = self._runs.get(run_id)
            kept = list(run.records) if run else []
        return RunState(run_id, (dataclasses.replace(record, body=body_of_text(text)) for record, text in kept))

    def lease(self, run_id: str, *, seconds: float = 30.0) -> MemoryLease:
        """Take a run; `seconds` means nothing here.

        Raises:
            RunInUse: Somebody has it.
        """
        with self._lock:
            self._refuse_if_held(run_id)
            lease = self._leases[run_id] = MemoryLease(self, run_id)
        return lease

    def runs(self) -> Sequence[RunInfo]:
        """All runs, the latest first."""
        with self._lock:
            latest = sorted(self._runs.items(), key=lambda item: item[1].order, reverse=True)
            return [run.summary.info(run_id, self._holder(run_id)) for run_id, run in latest]

    def fork(self, run_id: str, new_id: str, at: str | None = None) -> RunState:
        """Make a new run of the beginning of another; see `forked_records` for what it shares.

        Raises:
            JournalError: There is no such run or step, or there is a run `new_id` already.
            RunInUse: Somebody has a lease of `new_id`.
        """
        records = forked_records(self.load(run_id), new_id, at)
        texts = [text_of_body(record) for record in records]
        with self._lock:
            if new_id in self._runs:
                raise JournalError(f"there is a run `{new_id}` already; name another one.")
            self._refuse_if_held(new_id)
            self._add(records, texts)
        return self.load(new_id)

    def delete(self, run_id: str) -> None:
        """Forget a run and its journal; where there is none this does nothing.

        Raises:
            RunInUse: Somebody has it.
        """
        with self._lock:
            self._refuse_if_held(run_id)
            self._runs.pop(run_id, None)

    def _append_as(self, lease: MemoryLease, records: Sequence[Record]) -> None:
        texts = [text_of_body(record) for record in records]
        with self._lock:
            if self._leases.get(lease.run_id) is not lease:
                raise LeaseLost(f"the run `{lease.run_id}` was taken over; nothing was written.")
            self._add(records, texts)

    def _release(self, lease: MemoryLease) -> None:
        with self._lock:
            if self._leases.get(lease.run_id) is lease:
                del self._leases[lease.run_id]

    # The rest is done under the lock.

    def _holder(self, run_id: str) -> str:
        return f"pid {os.getpid()}" if run_id in self._leases else ""

    def _refuse_if_held(self, run_id: str) -> None:
        if run_id in self._leases:
            raise RunInUse(f"the run `{run_id}` is in use in this process: one journal at a time writes to it.")

    def _add(self, records: Sequence[Record], texts: Sequence[str]) -> None:
        order = max((run.order for run in self._runs.values()), default=0)
        for record, text in zip(records, texts, strict=True):
            run = self._runs.setdefault(record.run_id, _Run())
            run.add(record, text)
            run.order = order + 1


class MemoryLease:
    """A run that one journal of this process has."""

    def __init__(self, store: MemoryCheckpointer, run_id: str) -> None:
        self.run_id = run_id
        self._store = store

    def append(self, *records: Record) -> None:
        """As `MemoryCheckpointer.append`, for the run of the lease.

        Raises:
            LeaseLost: The lease was released, or the run taken over. Nothing was written.
            JournalError: A body is no plain JSON, or a record is of another run.
        """
        check_run(self.run_id, records)
        self._store._append_as(self, records)

    def renew(self) -> None:
        """Make sure that the run is still held.

        Raises:
            LeaseLost: It is not.
        """
        self._store._append_as(self, ())

    def release(self) -> None:
        """Give the run back."""
        self._store._release(self)


class _Run:
    """A run, with its records and the texts of their bodies."""

    def __init__(self) -> None:
        self.records: list[tuple[Record, str]] = []
        self.summary = RunSummary()
        self.order = 0  # higher for the one that was written to later
        self._keys: set[tuple[str, str, str]] = set()
        self._steps: set[str] = set()

    def add(self, record: Record, text: str) -> None:
        if record.key in self._keys:
            return
        self._keys.add(record.key)
        # The caller may change the body afterwards.
        self.records.append((dataclasses.replace(record, body={}), text))
        self.summary.add(record, is_new_step=record.step_id not in self._steps)
        self._steps.add(record.step_id)
