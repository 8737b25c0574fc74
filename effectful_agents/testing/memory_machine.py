"""Random courses of events on a store of memories, beside lists with what it should have. Needs hypothesis."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from effectful_agents.operations.memory import Memory, MemoryScope
from effectful_agents.testing.courses import run_courses
from effectful_agents.testing.memory_stores import SCOPES, MemoryStoreContract

__all__ = ["run"]

SCOPE = st.sampled_from(SCOPES[:3])
WORDS = ("tea", "milk", "Öl", "garden", "the", "日本", '"', "\ud800")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
IDS = st.sampled_from([f"id {number}" for number in range(8)])
TIMES = st.integers(0, 5).map(float)
KINDS = st.sampled_from(["note", "fact"])


def run(contract: MemoryStoreContract, folder: Path) -> None:
    """Try random courses of events.

    Args:
        contract: Opens the stores.
        folder: Where each course gets a folder of its own.
    """
    run_courses(_Course, contract, folder)


class _Course(RuleBasedStateMachine):
    """One course of events; `expected` has the memories that there should be, with their batches."""

    def __init__(self, contract: MemoryStoreContract, folder: Path) -> None:
        super().__init__()
        self.contract: Any = contract
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.store: Any = contract.open_store(self.folder)
        self.expected: dict[MemoryScope, dict[str, tuple[Memory, str]]] = {scope: {} for scope in SCOPES[:3]}
        self.forgotten: set[tuple[MemoryScope, str]] = set()

    def keep(self, memory: Memory, batch: str) -> None:
        kept = self.expected[memory.scope]
        if memory.id in kept:
            there, its_batch = kept[memory.id]
            kept[memory.id] = (there, batch if its_batch else "")
        elif (memory.scope, memory.id) not in self.forgotten:
            kept[memory.id] = (memory, batch)

    def drop(self, scope: MemoryScope, ids: Any) -> None:
        for id in ids:
            del self.expected[scope][id]
            self.forgotten.add((scope, id))

    def visible(self, scope: MemoryScope) -> list[Memory]:
        found = [memory for memory, batch in self.expected[scope].values() if not batch]
        return sorted(found, key=lambda memory: memory.at)  # which keeps the order of those with the same time

    @rule(scope=SCOPE, batch=st.sampled_from(["", "", "a", "b"]), data=st.data())
    def write(self, scope: MemoryScope, batch: str, data: st.DataObject) -> None:
        drawn = data.draw(st.lists(st.tuples(IDS, TEXTS, TIMES, KINDS), min_size=1, max_size=3))
        memories = [Memory(id, text, scope, at, kind) for id, text, at, kind in drawn]
        self.store.write(scope, memories, batch=batch)
        for memory in memories:
            self.keep(memory, batch)

    @rule(scope=SCOPE, batch=st.sampled_from(["a", "b", "c"]))
    def flush(self, scope: MemoryScope, batch: str) -> None:
        waiting = [memory for memory, its_batch in self.expected[scope].values() if its_batch == batch]
        assert self.store.flush(scope, batch) == len(waiting)
        for memory in waiting:
            self.expected[scope][memory.id] = (memory, "")

    @rule(scope=SCOPE, ids=st.lists(IDS, max_size=3), before=st.none() | TIMES, everything=st.integers(0, 5))
    def forget(self, scope: MemoryScope, ids: list[str], before: float | None, everything: int) -> None:
        gone = [
            (id, batch)
            for id, (memory, batch) in self.expected[scope].items()
            if not everything or id in ids or (before is not None and memory.at < before)
        ]
        forgotten = self.store.forget(scope, ids, before=before, everything=not everything)
        assert forgotten == sum(not batch for _, batch in gone)
        self.drop(scope, [id for id, _ in gone])

    @rule(scope=SCOPE, ids=st.lists(IDS, max_size=2, unique=True), id=IDS, text=TEXTS, at=TIMES)
    def replace(self, scope: MemoryScope, ids: list[str], id: str, text: str, at: float) -> None:
        new, kept = Memory(id, text, scope, at), self.expected[scope]
        is_done = id in kept or (scope, id) in self.forgotten
        can_be_done = all(one in kept and not kept[one][1] for one in ids)
        assert self.store.replace(scope, ids, [new]) == (is_done or can_be_done)
        if can_be_done and not is_done:
            self.drop(scope, ids)
            self.keep(new, "")

    @precondition(lambda self: self.contract.keeps)
    @rule(close=st.booleans())
    def open_again(self, close: bool) -> None:
        if close:
            self.contract.close_store(self.store)
        self.store = self.contract.open_store(self.folder)

    @rule(scope=SCOPE, query=TEXTS, limit=st.integers(0, 9), kind=st.none() | KINDS)
    def search(self, scope: MemoryScope, query: str, limit: int, kind: str | None) -> None:
        found = list(self.store.search(scope, query, limit, kind))
        words = set(query.split()) & {"tea", "milk", "Öl", "garden", "the", "日本"}
        fitting = [
            memory for memory in self.visible(scope) if kind in (None, memory.kind) and words & set(memory.text.split())
        ]
        assert len(found) == min(limit, len(fitting))
        assert all(memory in fitting for memory in found)
        assert list(self.store.search(scope, query, limit, kind)) == found
        everything = list(self.store.search(scope, query, 99, kind))
        assert everything[:limit] == found

    @invariant()
    def memories_are_as_expected(self) -> None:
        for scope in self.expected:
            visible = self.visible(scope)
            assert list(self.store.memories(scope)) == visible
            assert list(self.store.recent(scope, 3)) == visible[::-1][:3]
            assert list(self.store.recent(scope, 9, "fact")) == [one for one in visible[::-1] if one.kind == "fact"]

    def teardown(self) -> None:
        self.contract.close_store(self.store)
