"""The stores of memories: what each promises."""

from __future__ import annotations

from pathlib import Path
from typing import override

from effectful_agents.handlers.memory import InMemoryStore, SqliteMemoryStore
from effectful_agents.testing.memory_stores import MemoryStoreContract


class TestInMemoryStore(MemoryStoreContract):
    keeps = False

    @override
    def open_store(self, folder: Path) -> InMemoryStore:
        return InMemoryStore()


class TestSqliteMemoryStore(MemoryStoreContract):
    examples = 15

    @override
    def open_store(self, folder: Path) -> SqliteMemoryStore:
        return SqliteMemoryStore(folder / "memory.db")
