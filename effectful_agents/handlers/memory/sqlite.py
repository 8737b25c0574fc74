"""Memories in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Sequence

from effectful_agents.errors import OptionError
from effectful_agents.handlers.memory import tables
from effectful_agents.handlers.memory.checking import check_forgetting, check_memories
from effectful_agents.handlers.memory.vectors import Embedder, Vectors, fused
from effectful_agents.handlers.memory.words import query_words, scores
from effectful_agents.operations.memory import Memory, MemoryScope
from effectful_agents.storage import Database, as_text

__all__ = ["SqliteMemoryStore"]

_ALIKE = 50
"""Memories that each way of searching may put forward, at least."""


class SqliteMemoryStore:
    """Keep memories in an SQLite file, which processes, threads and tasks may use at the same time.

    A search finds what shares a word with the query (FTS5), in small letters and without accents, ranked by how rare
    the words are among the memories of the same scope. With an embedder it finds what is alike in meaning as well, and
    puts the two lists together by their ranks. What is forgotten is overwritten in the file.

    Args:
        path: The file; it is made where there is none. Agents and runs may be kept in the same one.
        embedder: Makes vectors of texts. It is called when memories are written and when they are searched for, outside
            of transactions.
        embedder_name: Which model that is. Vectors that were made under another name are left alone; `embed_missing`
            makes them anew.
        least_similarity: The cosine, from -1 to 1, that a memory's vector and the query's have to exceed.
        patience: Seconds to wait while another process writes to the file.

    Raises:
        OptionError: `path` names no file, or `least_similarity` is no such number.
        StorageError: The file cannot be written, is damaged, or was written by a later version. The methods raise it
            too.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store, scope = SqliteMemoryStore(f"{folder}/memory.db"), MemoryScope("acme", user="ann")
    ...     store.write(scope, [Memory("1", "Ann likes green tea.", scope)])
    ...     found = store.search(scope, 'tea? "AND" NEAR(', 5)
    ...     others = store.search(MemoryScope("acme", user="bob"), "tea", 5)
    ...     store.close()
    >>> [memory.text for memory in found], others
    (['Ann likes green tea.'], [])
    """

    path: str
    """The file, with all folders."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: Embedder | None = None,
        *,
        embedder_name: str = "",
        least_similarity: float = 0.0,
        patience: float = 60.0,
    ) -> None:
        if not isinstance(least_similarity, int | float) or not -1 <= least_similarity <= 1:
            raise OptionError(f"`least_similarity` is {least_similarity!r}; it is a cosine, from -1 to 1.")
        self._vectors = None if embedder is None else Vectors(embedder)
        self._embedder_name = embedder_name
        self._least = least_similarity
        self._database = Database(path, tables.SCHEMA, patience=patience)
        self.path = self._database.path

    def write(self, scope: MemoryScope, memories: Sequence[Memory], *, batch: str = "") -> None:
        """Keep memories, as `MemoryStore` says.

        Raises:
            OptionError: A memory is of another scope.
            EncodingError: Its metadata, tags or time are no plain JSON.
            ConfigurationError: The embedder gave no vectors.
        """
        check_memories(scope, memories)
        vectors = self._vectors_of(memories)
        with self._database.writing() as connection:
            self._insert(connection, memories, batch, vectors)

    def flush(self, scope: MemoryScope, batch: str) -> int:
        """Make a batch visible."""
        if not batch:
            return 0
        with self._database.writing() as connection:
            return connection.execute(
                "UPDATE memories SET batch = NULL WHERE scope = ? AND batch = ?", (scope.key, as_text(batch))
            ).rowcount

    def search(self, scope: MemoryScope, query: str, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The memories of a scope that share a word with a text, or are like it, the best first."""
        if limit < 1 or not query.strip():
            return []
        words = query_words(query)
        wanted = b"" if self._vectors is None else self._vectors.of([query])[0]
        with self._database.reading() as connection:
            fitting = tables.fitting(connection, scope, words, kind)
            count, average = tables.sizes(connection, scope)
            embedded = [] if self._vectors is None else tables.embedded(connection, scope, self._embedder_name)
        ranked = scores(words, [text for _, text in fitting], count=count, average=average)
        best = sorted(
            zip(ranked, (stored for stored, _ in fitting), strict=True),
            key=lambda pair: (-pair[0], -pair[1].memory.at, -pair[1].key),
        )
        found = [stored for _, stored in best]
        if self._vectors is not None:
            found = self._with_those_alike(found, wanted, embedded, max(_ALIKE, limit))
        return [stored.memory for stored in found if kind in (None, stored.memory.kind)][:limit]

    def _with_those_alike(
        self, found: list[tables.Stored], wanted: bytes, embedded: list[tables.Stored], most: int
    ) -> list[tables.Stored]:
        """What shares a word, and what is like the query, in one list."""
        assert self._vectors is not None
        by_key = {str(stored.key): stored for stored in (*found, *embedded)}
        vectors = {str(stored.key): stored.vector for stored in embedded if stored.vector is not None}
        alike = [key for key, _ in self._vectors.alike(wanted, vectors, self._least)]
        return [by_key[key] for key in fused([str(stored.key) for stored in found[:most]], alike[:most])]

    def recent(self, scope: MemoryScope, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The latest memories of a scope, the newest first."""
        of_kind = None if kind is None else as_text(kind)
        with self._database.reading() as connection:
            found = tables.select(
                connection,
                scope,
                "batch IS NULL AND kind = ifnull(?, kind)",
                of_kind,
                order=f"at DESC, key DESC LIMIT {max(int(limit), 0)}",
            )
        return [stored.memory for stored in found]

    def memories(self, scope: MemoryScope, limit: int | None = None) -> Sequence[Memory]:
        """The memories of a scope, the oldest first."""
        order = "at, key" if limit is None else f"at, key LIMIT {max(int(limit), 0)}"
        with self._database.reading() as connection:
            return [stored.memory for stored in tables.select(connection, scope, order=order)]

    def replace(self, scope: MemoryScope, ids: Collection[str], memories: Sequence[Memory]) -> bool:
        """Put memories in the place of others, all or none; whether that is done."""
        check_memories(scope, memories)
        vectors = self._vectors_of(memories)
        with self._database.writing() as connection:
            if memories and all(tables.is_known(connection, scope, memory.id) for memory in memories):
                return True
            there = sum(
                len(tables.select(connection, scope, f"batch IS NULL AND {condition}", *values))
                for condition, values in tables.in_parts(ids)
            )
            if there != len(set(ids)):
                return False
            for condition, values in tables.in_parts(ids):
                tables.delete(connection, scope, condition, *values)
            self._insert(connection, memories, "", vectors)
            tables.clean_up(connection)
        return True

    def forget(
        self, scope: MemoryScope, ids: Collection[str] = (), *, before: float | None = None, everything: bool = False
    ) -> int:
        """Delete memories of a scope, and return how many were visible; nothing of them stays in the file.

        While others read the file, its log may keep the text until they have finished and somebody writes again.
        """
        check_forgetting(ids, before)
        with self._database.writing() as connection:
            gone, before_it = 0, connection.total_changes
            if everything:
                gone += tables.delete(connection, scope, "1")
            if before is not None:
                gone += tables.delete(connection, scope, "at < ?", before)
            for condition, values in tables.in_parts(ids):
                gone += tables.delete(connection, scope, condition, *values)
            if connection.total_changes > before_it:
                tables.clean_up(connection)
        return gone

    def embed_missing(self, scope: MemoryScope, *, at_once: int = 64) -> int:
        """Make the vectors of memories that have none of this embedder's, and return how many that were.

        Args:
            scope: The scope.
            at_once: Texts that the embedder is given at once.

        Raises:
            OptionError: The store has no embedder.
        """
        if self._vectors is None:
            raise OptionError("the store has no embedder: `SqliteMemoryStore(path, embedder)`.")
        name, done = as_text(self._embedder_name), 0
        while True:
            with self._database.reading() as connection:
                missing = tables.select(
                    connection,
                    scope,
                    "(embedder IS NULL OR embedder != ?)",
                    name,
                    order=f"key LIMIT {max(int(at_once), 1)}",
                )
            if not missing:
                return done
            vectors = self._vectors.of([stored.memory.text for stored in missing])
            with self._database.writing() as connection:
                for stored, vector in zip(missing, vectors, strict=True):
                    connection.execute(
                        "UPDATE memories SET embedder = ?, vector = ? WHERE key = ?", (name, vector, stored.key)
                    )
            done += len(missing)

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens another one."""
        self._database.close()

    def _vectors_of(self, memories: Sequence[Memory]) -> list[bytes] | None:
        return None if self._vectors is None else self._vectors.of([memory.text for memory in memories])

    def _insert(
        self, connection: sqlite3.Connection, memories: Sequence[Memory], batch: str, vectors: list[bytes] | None
    ) -> None:
        for place, memory in enumerate(memories):
            vector = None if vectors is None else vectors[place]
            tables.insert(connection, memory, batch, self._embedder_name, vector)
