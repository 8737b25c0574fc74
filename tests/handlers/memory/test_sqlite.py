"""Memories in a file: what only a store on disk, or one with an embedder, can get wrong."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.errors import ConfigurationError, OptionError, StorageError
from effectful_agents.handlers.durability import SqliteCheckpointer, SQLitePersister
from effectful_agents.handlers.memory import SqliteMemoryStore, tables
from effectful_agents.operations.memory import Memory, MemoryScope
from effectful_agents.testing.memory_stores import a_memory, texts_of
from tests.handlers.memory.remembering import ANN, BOB
from tests.processes import exit_code, forked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "memory.db"


def raw(path: Path, statement: str, *values: Any) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


# Forgetting


def in_files(path: Path, text: str) -> list[str]:
    """The files beside a database that hold a text."""
    return [file.name for file in path.parent.iterdir() if text.encode() in file.read_bytes()]


@pytest.mark.parametrize("unseen", [False, True], ids=["visible", "not flushed"])
def test_a_text_that_was_forgotten_is_in_no_file(path: Path, unseen: bool) -> None:
    store = SqliteMemoryStore(path, lambda texts: [[1.0, 2.0]] * len(texts))
    others = [a_memory(f"other {number}", f"Nothing of {number} " * 30) for number in range(60)]
    secret = a_memory("secretid", "The xylophone is in the quarry. " * 40, tags=("zither",), metadata={"a": "tuba"})
    store.write(ANN, others[:30])
    store.write(ANN, [secret], batch="b" if unseen else "")
    store.write(ANN, others[30:])
    assert in_files(path, "xylophone")
    store.forget(ANN, ["secretid"])
    for word in ("xylophone", "quarry", "zither", "tuba", "secretid"):
        assert in_files(path, word) == []
    assert len(store.search(ANN, "nothing", 99)) == 60


def test_a_text_that_was_forgotten_stays_in_no_file_whatever_sqlite_does_by_default(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sqlite3.connect

    def careless(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        """A connection of an SQLite that was built without SQLITE_SECURE_DELETE."""
        connection = real(*args, **kwargs)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", careless)
    store = SqliteMemoryStore(path)
    text = "The xylophone is in the quarry. " * 40
    store.write(ANN, [a_memory(str(number), text) for number in range(9)], batch="b")
    store.flush(ANN, "b")
    store.close()
    store = SqliteMemoryStore(path, lambda texts: [[1.0] * 99] * len(texts))
    store.embed_missing(ANN)
    for number in range(100):  # the index of words is merged meanwhile
        store.write(ANN, [a_memory(f"x {number}", text)])
    store.forget(ANN, everything=True)
    for word in ("xylophone", "quarry"):
        assert in_files(path, word) == []


def test_what_is_replaced_is_in_no_file(path: Path) -> None:
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("1", "The xylophone is in the quarry.")])
    assert store.replace(ANN, ["1"], [a_memory("2", "An instrument.")])
    assert in_files(path, "xylophone") == []


def test_where_there_is_nothing_to_forget_nothing_is_written(path: Path) -> None:
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("1")])
    store.write(BOB, [a_memory("2", scope=BOB)], batch="b")
    store.forget(ANN, ["2"], before=-1.0)
    files = [path, path.with_name("memory.db-wal")]
    before = [file.read_bytes() for file in files]
    assert store.forget(ANN, ["2", "nobody"]) == store.forget(ANN) == store.forget(BOB, before=0.0) == 0
    assert [file.read_bytes() for file in files] == before


def test_forgetting_many(path: Path) -> None:
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory(str(number)) for number in range(1200)])
    assert store.forget(ANN, [str(number) for number in range(2000) if number % 2]) == 600
    assert store.replace(ANN, [str(number) for number in range(0, 1200, 2)], [])
    assert list(store.memories(ANN)) == []


# Files


def test_the_file_may_hold_agents_and_runs_as_well(path: Path) -> None:
    SQLitePersister(path)
    SqliteCheckpointer(path)
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("1")])
    assert {row[0] for row in raw(path, "SELECT part FROM effectful_agents")} >= {"memories", "agents"}
    assert texts_of(store.search(ANN, "tea", 3)) == ["Tea."]
    assert store.path == os.path.abspath(path)


@pytest.mark.parametrize("name", ["", ":memory:", "a\0b"])
def test_a_path_that_names_no_file_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="names no file"):
        SqliteMemoryStore(name)


def test_a_file_that_is_no_database_is_told(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"This is no database. " * 100)
    with pytest.raises(StorageError, match="damaged"):
        SqliteMemoryStore(path)


def test_a_file_of_a_later_version_is_refused(path: Path) -> None:
    SqliteMemoryStore(path).close()
    raw(path, "UPDATE effectful_agents SET version = 99 WHERE part = 'memories'")
    with pytest.raises(StorageError, match="version 99"):
        SqliteMemoryStore(path)


DAMAGE = {
    "bytes that are no text": "UPDATE memories SET text = x'ff'",
    "a kind that is none": "UPDATE memories SET kind = x'ff'",
    "a rest that is no JSON": "UPDATE memories SET rest = '{'",
    "a rest without its parts": "UPDATE memories SET rest = '[]'",
    "tags that are none": """UPDATE memories SET rest = '{"tags": 3, "metadata": {}}'""",
    "a time that is none": "UPDATE memories SET at = 'noon'",
    "a vector that is none": "UPDATE memories SET vector = 'abc'",
    "a table that is gone": "DROP TABLE memories",
    "an index that is gone": "DROP TABLE memory_words_data",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_told_and_names_the_file(path: Path, damage: str) -> None:
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("1")])
    store.close()
    raw(path, damage)
    again = SqliteMemoryStore(path)
    with pytest.raises(StorageError, match=r"memory\.db"):
        again.search(ANN, "tea", 3)


def test_vectors_of_a_wrong_length_count_for_nothing(path: Path) -> None:
    store = SqliteMemoryStore(path, by_letters)
    store.write(ANN, [a_memory("1", "Tea."), a_memory("2", "Other.")])
    raw(path, "UPDATE memories SET vector = x'00' WHERE id = '1'")
    raw(path, "UPDATE memories SET vector = x'0000803f' WHERE id = '2'")
    assert texts_of(store.search(ANN, "tea", 3)) == ["Tea."]


def test_processes_write_at_once(path: Path) -> None:
    def write(number: int) -> None:
        store = SqliteMemoryStore(path)
        for place in range(15):
            shared, own = (Memory(f"{name} {place}", "Tea.", ANN) for name in ("shared", number))
            store.write(ANN, [shared, own])
            assert store.search(ANN, "tea", 3)

    writers = [forked(functools.partial(write, number)) for number in range(3)]
    assert [exit_code(writer) for writer in writers] == [0, 0, 0]
    assert len(SqliteMemoryStore(path).search(ANN, "tea", 99)) == 15 + 3 * 15


# Embedders


def by_letters(texts: Sequence[str]) -> list[list[float]]:
    """Vectors that say how often each letter stands in a text."""
    return [[float(text.lower().count(chr(code))) for code in range(97, 123)] for text in texts]


MEANINGS = {"feline": [1.0, 0.1], "A cat.": [1.0, 0.0], "A dog.": [0.0, 1.0], "Nothing.": [-1.0, -1.0]}


def by_meaning(texts: Sequence[str]) -> list[list[float]]:
    return [MEANINGS.get(text, [0.0, 0.0]) for text in texts]


def test_what_is_alike_is_found_without_a_word_in_common(path: Path) -> None:
    store = SqliteMemoryStore(path, by_meaning)
    store.write(ANN, [a_memory(text, text) for text in ("A dog.", "A cat.", "Nothing.")])
    store.write(BOB, [a_memory("b", "A cat.", BOB)])
    store.write(ANN, [a_memory("unseen", "A cat.")], batch="b")
    assert texts_of(store.search(ANN, "feline", 9)) == ["A cat.", "A dog."]
    assert texts_of(store.search(ANN, "feline", 1)) == ["A cat."]
    assert texts_of(store.search(ANN, "feline", 9, "fact")) == []
    closer = SqliteMemoryStore(path, by_meaning, least_similarity=0.5)
    assert texts_of(closer.search(ANN, "feline", 9)) == ["A cat."]
    assert texts_of(SqliteMemoryStore(path).search(ANN, "feline", 9)) == []


def test_what_shares_words_and_what_is_alike_come_in_one_list(path: Path) -> None:
    meanings = {"tea": [1.0, 0.0], "A hot drink.": [1.0, 0.1], "Tea.": [0.9, 0.2], "The tea table.": [-1.0, 0.0]}
    store = SqliteMemoryStore(path, lambda texts: [meanings[text] for text in texts])
    store.write(ANN, [a_memory(text, text) for text in ("The tea table.", "A hot drink.", "Tea.")])
    found = texts_of(store.search(ANN, "tea", 9))
    assert found[0] == "Tea."  # which is in both
    assert sorted(found) == ["A hot drink.", "Tea.", "The tea table."]


def test_vectors_are_made_for_what_has_none_of_this_embedder(path: Path) -> None:
    asked: list[list[str]] = []

    def noting(texts: Sequence[str]) -> list[list[float]]:
        asked.append(list(texts))
        return by_meaning(texts)

    plain = SqliteMemoryStore(path)
    plain.write(ANN, [a_memory(text, text) for text in ("A dog.", "A cat.")])
    plain.write(BOB, [a_memory("b", "A cat.", BOB)])
    with pytest.raises(OptionError, match="no embedder"):
        plain.embed_missing(ANN)
    store = SqliteMemoryStore(path, noting, embedder_name="two")
    assert list(store.search(ANN, "feline", 9)) == []
    asked.clear()
    assert store.embed_missing(ANN, at_once=1) == 2
    assert (asked, store.embed_missing(ANN)) == ([["A dog."], ["A cat."]], 0)
    assert texts_of(store.search(ANN, "feline", 9)) == ["A cat.", "A dog."]
    other = SqliteMemoryStore(path, by_meaning, embedder_name="another")
    assert list(other.search(ANN, "feline", 9)) == []  # theirs cannot be compared
    assert other.embed_missing(ANN) == 2
    assert texts_of(other.search(ANN, "feline", 9)) == ["A cat.", "A dog."]


def test_an_embedder_may_be_asynchronous(path: Path) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return by_meaning(texts)

    store = SqliteMemoryStore(path, embed)
    store.write(ANN, [])
    store.write(ANN, [a_memory(text, text) for text in ("A dog.", "A cat.")])
    assert texts_of(store.search(ANN, "feline", 1)) == ["A cat."]


@pytest.mark.parametrize(
    "made",
    [[], [[1.0]], [[1.0], [1.0, 2.0]], [[], []], [[math.nan], [1.0]], [[math.inf], [1.0]]],
    ids=["none", "too few", "of two lengths", "empty", "no number", "without end"],
)
def test_an_embedder_that_makes_no_vectors_is_told(path: Path, made: Any) -> None:
    store = SqliteMemoryStore(path, lambda texts: made)
    with pytest.raises(ConfigurationError, match="embedder"):
        store.write(ANN, [a_memory("1"), a_memory("2")])
    assert list(store.memories(ANN)) == []


def test_an_error_of_the_embedder_comes_out_and_nothing_is_kept(path: Path) -> None:
    def fail(texts: Sequence[str]) -> Any:
        raise ConnectionError("down")

    store = SqliteMemoryStore(path, fail)
    with pytest.raises(ConnectionError):
        store.write(ANN, [a_memory("1")])
    with pytest.raises(ConnectionError):
        store.search(ANN, "tea", 3)
    assert list(store.memories(ANN)) == list(store.search(ANN, " ", 3)) == []


@pytest.mark.parametrize("value", [1.5, -2, "0.5", None])
def test_a_similarity_that_is_no_cosine_is_refused(path: Path, value: Any) -> None:
    with pytest.raises(OptionError, match="least_similarity"):
        SqliteMemoryStore(path, least_similarity=value)


# Many


def test_in_a_large_memory_a_kind_that_is_rare_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_SEARCHED", 20)
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("rare", "Tea, and a long text besides, so that it fits worse.", kind="fact")])
    store.write(ANN, [a_memory(str(number)) for number in range(50)])
    assert [memory.id for memory in store.search(ANN, "tea", 3, "fact")] == ["rare"]
    assert len(store.search(ANN, "tea", 99)) == 20


def test_scopes_that_nobody_has_cost_nothing(path: Path) -> None:
    store = SqliteMemoryStore(path)
    store.write(ANN, [a_memory("1")])
    nobody = MemoryScope("nobody")
    assert list(store.search(nobody, "tea", 3)) == list(store.memories(nobody)) == []
    assert store.write(nobody, [Memory("1", "Tea.", nobody)]) is None
