"""Memories as they stand in an SQLite file."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from effectful_agents.handlers.memory.words import words_of
from effectful_agents.operations.memory import Memory, MemoryScope
from effectful_agents.storage import Damaged, Schema, as_text, of_text

__all__ = [
    "SCHEMA",
    "Stored",
    "clean_up",
    "delete",
    "embedded",
    "fitting",
    "in_parts",
    "insert",
    "is_known",
    "select",
    "sizes",
]

SCHEMA = Schema(
    "memories",
    [
        [
            # `batch` is null in a memory that is visible; of two the `key` of the later is higher; `size` is in words.
            "CREATE TABLE memories (key INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, id TEXT NOT NULL, "
            "batch TEXT, at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, rest TEXT NOT NULL, "
            "size INTEGER NOT NULL, embedder TEXT, vector BLOB, UNIQUE (scope, id))",
            "CREATE INDEX memories_by_time ON memories (scope, at, key)",
            "CREATE INDEX memories_unseen ON memories (scope, batch) WHERE batch IS NOT NULL",
            # The words as `words_of` gives them, and the digest of the scope as one more word: a search goes through
            # the memories of one scope. With this tokenizer whatever is no space or sign in ASCII is part of a word.
            "CREATE VIRTUAL TABLE memory_words USING fts5 (scope, words, tokenize = 'ascii')",
            # What was forgotten, as digests that tell nothing of it.
            "CREATE TABLE memories_forgotten (mark BLOB PRIMARY KEY) WITHOUT ROWID",
        ]
    ],
)

_COLUMNS = "key, id, at, kind, text, rest, vector"
_SEARCHED = 1000
"""Memories that a search looks at more closely: those that fit best by the index, which counts words in all scopes."""
_AT_ONCE = 500
"""Parameters in one statement; SQLite has a limit."""


class Stored(NamedTuple):
    """A memory with what is kept beside it."""

    key: int
    memory: Memory
    vector: bytes | None


def insert(connection: sqlite3.Connection, memory: Memory, batch: str, embedder: str, vector: bytes | None) -> None:
    """Write a memory, unless it is there, or was forgotten; one that is not visible yet goes over to the batch."""
    scope, id, unseen = memory.scope.key, as_text(memory.id), as_text(batch) if batch else None
    moved = connection.execute(
        "UPDATE memories SET batch = ? WHERE scope = ? AND id = ? AND batch IS NOT NULL", (unseen, scope, id)
    ).rowcount
    if moved or is_known(connection, memory.scope, memory.id):
        return
    words = words_of(memory.text)
    rest = json.dumps({"tags": list(memory.tags), "metadata": memory.metadata})
    text = as_text(memory.text)
    made_by = None if vector is None else as_text(embedder)
    row = (scope, id, unseen, memory.at, as_text(memory.kind), text, rest, len(words), made_by, vector)
    key = connection.execute(
        "INSERT INTO memories (scope, id, batch, at, kind, text, rest, size, embedder, vector) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    ).lastrowid
    connection.execute(
        "INSERT INTO memory_words (rowid, scope, words) VALUES (?, ?, ?)", (key, memory.scope.digest, " ".join(words))
    )


def is_known(connection: sqlite3.Connection, scope: MemoryScope, id: str) -> bool:
    """Whether a memory is there, or was."""
    found = connection.execute("SELECT 1 FROM memories WHERE scope = ? AND id = ?", (scope.key, as_text(id)))
    forgotten = connection.execute("SELECT 1 FROM memories_forgotten WHERE mark = ?", (_mark(scope, as_text(id)),))
    return (found.fetchone() or forgotten.fetchone()) is not None


def select(
    connection: sqlite3.Connection,
    scope: MemoryScope,
    condition: str = "batch IS NULL",
    *values: Any,
    order: str = "at, key",
) -> list[Stored]:
    """The memories of a scope that fulfil a condition, by default the visible ones, the oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE scope = ? AND {condition} ORDER BY {order}",
        (scope.key, *values),
    )
    return [_stored(scope, row) for row in rows]


def embedded(connection: sqlite3.Connection, scope: MemoryScope, embedder: str) -> list[Stored]:
    """The visible memories of a scope that have a vector of this embedder."""
    return select(connection, scope, "batch IS NULL AND embedder = ?", as_text(embedder))


def fitting(
    connection: sqlite3.Connection, scope: MemoryScope, words: Sequence[str], kind: str | None
) -> list[tuple[Stored, list[str]]]:
    """The visible memories of a scope that have one of these words, with all of their words."""
    if not words:
        return []
    wanted = " OR ".join(f'"{word}"' for word in words)  # words have no quotation marks
    query = f'scope : "{scope.digest}" AND words : ({wanted})'
    found = _matching(connection, scope, query, None)
    if kind is not None and len(found) == _SEARCHED:
        found = _matching(connection, scope, query, kind)
    return found


def _matching(
    connection: sqlite3.Connection, scope: MemoryScope, query: str, kind: str | None
) -> list[tuple[Stored, list[str]]]:
    columns = ", ".join(f"memories.{column}" for column in _COLUMNS.split(", "))
    rows = connection.execute(
        f"SELECT memory_words.words, {columns} FROM memory_words JOIN memories ON memories.key = memory_words.rowid "
        "WHERE memory_words MATCH ? AND memories.scope = ? AND memories.batch IS NULL AND kind = ifnull(?, kind) "
        f"ORDER BY bm25(memory_words, 0.0, 1.0) LIMIT {_SEARCHED}",
        (query, scope.key, None if kind is None else as_text(kind)),
    )
    return [(_stored(scope, row), of_text(words).split(" ")) for words, *row in rows]


def sizes(connection: sqlite3.Connection, scope: MemoryScope) -> tuple[int, float]:
    """How many visible memories a scope has, and how many words each has on average."""
    count, average = connection.execute(
        "SELECT count(*), avg(size) FROM memories WHERE scope = ? AND batch IS NULL", (scope.key,)
    ).fetchone()
    return count, average or 0.0


def delete(connection: sqlite3.Connection, scope: MemoryScope, condition: str, *values: Any) -> int:
    """Delete memories of a scope that fulfil a condition, whether visible or not; return how many were visible."""
    rows = connection.execute(
        f"SELECT key, id, batch IS NULL FROM memories WHERE scope = ? AND ({condition})", (scope.key, *values)
    ).fetchall()
    for key, id, _ in rows:
        connection.execute("DELETE FROM memory_words WHERE rowid = ?", (key,))
        connection.execute("DELETE FROM memories WHERE key = ?", (key,))
        connection.execute("INSERT OR IGNORE INTO memories_forgotten VALUES (?)", (_mark(scope, id),))
    return sum(visible for _, _, visible in rows)


def clean_up(connection: sqlite3.Connection) -> None:
    """Have nothing of what was deleted stay in the file; ends the transaction."""
    # The index keeps words of deleted rows until its parts are merged; the log of the file, until it is written back.
    connection.execute("INSERT INTO memory_words (memory_words) VALUES ('optimize')")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def in_parts(ids: Collection[str]) -> Iterator[tuple[str, list[Any]]]:
    """Conditions that say "one of these", with their values."""
    texts = [as_text(id) for id in dict.fromkeys(ids)]
    for begin in range(0, len(texts), _AT_ONCE):
        part = texts[begin : begin + _AT_ONCE]
        yield f"id IN ({', '.join('?' * len(part))})", part


def _mark(scope: MemoryScope, id: str | bytes) -> bytes:
    made = hashlib.blake2b(scope.key.encode(), digest_size=16)
    made.update(b"\0" + (id.encode() if isinstance(id, str) else id))
    return made.digest()


def _stored(scope: MemoryScope, row: Sequence[Any]) -> Stored:
    key, id, at, kind, text, rest, vector = row
    try:
        read = json.loads(of_text(rest))
        tags, metadata = tuple(read["tags"]), read["metadata"]
    except (ValueError, LookupError, TypeError) as error:
        raise Damaged(f"what is kept beside the memory `{of_text(id)}` cannot be read: {error}") from error
    if not isinstance(at, float) or not isinstance(vector, bytes | None):
        raise Damaged(f"the memory `{of_text(id)}` has a time or a vector that is none")
    memory = Memory(of_text(id), of_text(text), scope, at, of_text(kind), tags, metadata)
    return Stored(key, memory, vector)
