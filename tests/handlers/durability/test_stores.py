"""The stores of journals: what each promises, and what only the one on disk can get wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, override

from effectful_agents.handlers.durability import MemoryCheckpointer, SqliteCheckpointer
from effectful_agents.storage.stored import as_text
from effectful_agents.testing.run_stores import RunStoreContract


class TestMemoryCheckpointer(RunStoreContract):
    keeps = False
    examples = 10

    @override
    def open_store(self, folder: Path) -> MemoryCheckpointer:
        return MemoryCheckpointer()

    @override
    def lapse(self, store: Any, run_id: str) -> None:
        del store._leases[run_id]


class TestSqliteCheckpointer(RunStoreContract):
    examples = 10

    @override
    def open_store(self, folder: Path) -> SqliteCheckpointer:
        return SqliteCheckpointer(folder / "runs.db", synchronous="normal")

    @override
    def lapse(self, store: Any, run_id: str) -> None:
        with store._database.writing() as connection:
            connection.execute("UPDATE run_leases SET expires = 0 WHERE run_id = ?", (as_text(run_id),))
