"""Memories that end with the process."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Collection, Sequence

from effectful_agents.handlers.memory.checking import check_forgetting, check_memories
from effectful_agents.handlers.memory.words import query_words, scores, words_of
from effectful_agents.operations.memory import Memory, MemoryScope

__all__ = ["InMemoryStore"]


class InMemoryStore:
    """Keep memories in this process, for tests and for programs that need them no longer than that.

    It finds what shares a word with the query, and ranks it as `SqliteMemoryStore` without an embedder does.

    >>> store, scope = InMemoryStore(), MemoryScope("acme")
    >>> store.write(scope, [Memory("1", "Ann likes green tea.", scope), Memory("2", "It rained in May.", scope)])
    >>> [memory.text for memory in store.search(scope, "Which tea does she like?", 5)]
    ['Ann likes green tea.']
    """

    def __init__(self) -> None:
        # Held for what is done here and never while an operation is performed.
        self._lock = threading.Lock()
        self._scopes: dict[MemoryScope, dict[str, _Kept]] = {}
        self._forgotten: set[tuple[MemoryScope, str]] = set()
        self._written = 0

    def write(self, scope: MemoryScope, memories: Sequence[Memory], *, batch: str = "") -> None:
        """Keep memories, as `MemoryStore` says.

        Raises:
            OptionError: A memory is of another scope.
            EncodingError: Its metadata, tags or time are no plain JSON.
        """
        check_memories(scope, memories)
        with self._lock:
            self._write(scope, memories, batch)

    def flush(self, scope: MemoryScope, batch: str) -> int:
        """Make a batch visible."""
        with self._lock:
            waiting = [kept for kept in self._of(scope).values() if batch and kept.batch == batch]
            for kept in waiting:
                kept.batch = ""
            return len(waiting)

    def search(self, scope: MemoryScope, query: str, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The memories of a scope that share a word with a text, the best first."""
        wanted = query_words(query)
        with self._lock:
            visible = self._visible(scope)
        words = frozenset(wanted)
        fitting = [kept for kept in visible if not words.isdisjoint(kept.words)]
        average = sum(len(kept.words) for kept in visible) / max(len(visible), 1)
        ranked = scores(wanted, [kept.words for kept in fitting], count=len(visible), average=average)
        best = sorted(zip(ranked, fitting, strict=True), key=lambda pair: (-pair[0], *pair[1].newest_first))
        return _copies([kept for _, kept in best if kind in (None, kept.memory.kind)][: max(limit, 0)])

    def recent(self, scope: MemoryScope, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The latest memories of a scope, the newest first."""
        with self._lock:
            visible = self._visible(scope)
        newest = sorted(visible, key=lambda kept: kept.newest_first)
        return _copies([kept for kept in newest if kind in (None, kept.memory.kind)][: max(limit, 0)])

    def memories(self, scope: MemoryScope, limit: int | None = None) -> Sequence[Memory]:
        """The memories of a scope, the oldest first."""
        with self._lock:
            visible = self._visible(scope)
        oldest = sorted(visible, key=lambda kept: kept.newest_first, reverse=True)
        return _copies(oldest if limit is None else oldest[: max(limit, 0)])

    def replace(self, scope: MemoryScope, ids: Collection[str], memories: Sequence[Memory]) -> bool:
        """Put memories in the place of others, all or none; whether that is done."""
        check_memories(scope, memories)
        with self._lock:
            if memories and all(self._is_known(scope, memory.id) for memory in memories):
                return True
            there = self._of(scope)
            if any(id not in there or there[id].batch for id in ids):
                return False
            self._forget(scope, ids)
            self._write(scope, memories, "")
            return True

    def forget(
        self, scope: MemoryScope, ids: Collection[str] = (), *, before: float | None = None, everything: bool = False
    ) -> int:
        """Delete memories of a scope, and return how many were visible."""
        check_forgetting(ids, before)
        with self._lock:
            gone = [
                id
                for id, kept in self._of(scope).items()
                if everything or id in ids or (before is not None and kept.memory.at < before)
            ]
            visible = sum(not self._of(scope)[id].batch for id in gone)
            self._forget(scope, gone)
            return visible

    # The rest is done under the lock.

    def _of(self, scope: MemoryScope) -> dict[str, _Kept]:
        return self._scopes.get(scope, {})

    def _visible(self, scope: MemoryScope) -> list[_Kept]:
        return [kept for kept in self._of(scope).values() if not kept.batch]

    def _is_known(self, scope: MemoryScope, id: str) -> bool:
        return id in self._of(scope) or (scope, id) in self._forgotten

    def _write(self, scope: MemoryScope, memories: Sequence[Memory], batch: str) -> None:
        kept = self._scopes.setdefault(scope, {})
        for memory in memories:
            self._written += 1
            there = kept.get(memory.id)
            if there is not None and there.batch:
                there.batch = batch
            elif not self._is_known(scope, memory.id):
                # The caller may change the metadata afterwards.
                kept[memory.id] = _Kept(copy.deepcopy(memory), batch, self._written, words_of(memory.text))

    def _forget(self, scope: MemoryScope, ids: Collection[str]) -> None:
        for id in ids:
            del self._scopes[scope][id]
            self._forgotten.add((scope, id))


@dataclasses.dataclass
class _Kept:
    """A memory; `batch` is empty in one that is visible, and `number` higher in one that was written later."""

    memory: Memory
    batch: str
    number: int
    words: Sequence[str]

    @property
    def newest_first(self) -> tuple[float, int]:
        return -self.memory.at, -self.number


def _copies(found: Sequence[_Kept]) -> list[Memory]:
    return [copy.deepcopy(kept.memory) for kept in found]
