"""A database file that threads, tasks and processes share."""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.errors import ConfigurationError, StorageError
from effectful_agents.runtime import bridged
from effectful_agents.storage.database import Database, Schema
from effectful_agents.storage.stored import as_text, of_text
from tests.processes import exit_code, forked

ONE = Schema("counts", [["CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)"]])
TWO = Schema(
    "counts", [*ONE.steps, ["ALTER TABLE counts ADD COLUMN unit TEXT", "UPDATE counts SET unit = 'm' WHERE 1"]]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "counts.db"


def count(database: Database) -> None:
    with database.writing() as connection:
        found = connection.execute("SELECT value FROM counts WHERE name = 'a'").fetchone()
        connection.execute("REPLACE INTO counts (name, value) VALUES ('a', ?)", (found[0] + 1 if found else 1,))


def counted(database: Database) -> int:
    with database.reading() as connection:
        found = connection.execute("SELECT value FROM counts WHERE name = 'a'").fetchone()
    return found[0] if found else 0


def count_to(number: int, path: Path) -> None:
    """What a process of its own does."""
    database = Database(path, ONE)
    for _ in range(number):
        count(database)


@contextlib.contextmanager
def taken(path: Path):
    """Somebody else is in the middle of writing."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.close()


# Transactions


def test_a_block_that_raises_leaves_nothing(path: Path) -> None:
    database = Database(path, ONE)
    count(database)

    def interrupted() -> None:
        with database.writing() as connection:
            connection.execute("DELETE FROM counts")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert counted(database) == 1


def test_a_reader_sees_one_moment(path: Path) -> None:
    database = Database(path, ONE)
    with database.reading() as connection:
        count(Database(path, ONE))
        assert not connection.execute("SELECT * FROM counts").fetchall()
    assert counted(database) == 1


def test_what_was_committed_within_the_block_stays(path: Path) -> None:
    database = Database(path, ONE)

    def failing() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO counts VALUES ('a', 7)")
            connection.commit()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert counted(database) == 7


def test_processes_and_threads_wait_for_each_other(path: Path) -> None:
    database = Database(path, ONE)
    others = [forked(lambda: count_to(25, path)) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: count(database), range(100)))
    assert {exit_code(other) for other in others} == {0}
    assert counted(database) == 175


def test_processes_that_make_the_file_at_the_same_time(path: Path) -> None:
    others = [forked(lambda: count_to(1, path)) for _ in range(4)]
    assert {exit_code(other) for other in others} == {0}
    assert counted(Database(path, ONE)) == 4


def test_many_transactions_at_once(path: Path) -> None:
    database = Database(path, ONE)
    with contextlib.ExitStack() as stack:
        for _ in range(9):
            stack.enter_context(database.reading()).execute("SELECT * FROM counts")
        count(database)
    assert counted(database) == 1


def test_a_file_that_stays_taken_is_named(path: Path) -> None:
    database = Database(path, ONE, patience=0.01)
    with taken(path), pytest.raises(StorageError, match=r"counts\.db` was in use for too long") as caught:
        count(database)
    assert caught.value.retryable
    assert caught.value.path == str(path)
    count(database)


def test_a_task_that_waits_lets_others_go_on(path: Path) -> None:
    database = Database(path, ONE)

    async def main() -> None:
        with taken(path) as other:

            async def release() -> None:
                other.rollback()

            await asyncio.gather(bridged(count, database), release())

    asyncio.run(main())
    assert counted(database) == 1


def test_the_same_in_trio(path: Path) -> None:
    database = Database(path, ONE)

    async def waiting() -> None:
        await bridged(count, database)

    async def main() -> None:
        with taken(path) as other:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(waiting)
                await trio.testing.wait_all_tasks_blocked()
                other.rollback()

    trio.run(main)
    assert counted(database) == 1


# The life of a file and of a process


def test_a_file_that_was_removed_is_made_anew(path: Path) -> None:
    database = Database(path, ONE)
    count(database)
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    count(database)
    assert counted(Database(path, ONE)) == 1


def test_another_folder_becomes_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database("counts.db", ONE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    count(database)
    database.close()
    assert counted(Database(tmp_path / "counts.db", ONE)) == 1


def test_a_forked_process_goes_on_with_it(path: Path) -> None:
    database = Database(path, ONE)
    count(database)
    stop = threading.Event()

    def others() -> None:
        while not stop.is_set():
            counted(database)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for _ in range(5):
            child = forked(lambda: count(database))
            count(database)
            assert exit_code(child) == 0
    finally:
        stop.set()
        thread.join()
    assert counted(database) == 11


def test_a_process_that_is_killed_while_it_writes(path: Path) -> None:
    database = Database(path, ONE)
    count(database)

    def write() -> None:
        with Database(path, ONE).writing() as connection:
            connection.execute("DELETE FROM counts")
            os.kill(os.getpid(), signal.SIGKILL)

    assert exit_code(forked(write)) == -signal.SIGKILL
    assert counted(database) == 1
    count(database)


# What is wrong with a file


@pytest.mark.parametrize("name", ["", ":memory:", "a\0b"])
def test_what_names_no_file(name: str) -> None:
    with pytest.raises(ConfigurationError, match="names no file"):
        Database(name, ONE)


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path, tmp_path / "file" / "counts.db"):
        with pytest.raises(StorageError, match=f"`{wrong}` cannot be (written|made)"):
            Database(wrong, ONE)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("Dear diary, " * 100)
    with pytest.raises(StorageError, match=r"counts\.db` is damaged, or no SQLite database"):
        Database(path, ONE)
    assert path.read_text().startswith("Dear diary")


def test_a_damaged_file(path: Path) -> None:
    database = Database(path, ONE)
    with database.writing() as connection:
        connection.executemany("INSERT INTO counts VALUES (?, 1)", [(f"{n:0500}",) for n in range(100)])
    database.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StorageError, match="is damaged"):
        counted(Database(path, ONE))


def test_a_full_disk(path: Path) -> None:
    database = Database(path, ONE)
    count(database)
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, allowed[1]))
    try:
        with pytest.raises(StorageError, match=r"counts\.db` could not be used"), database.writing() as connection:
            connection.execute("REPLACE INTO counts VALUES (?, 2)", ("x" * 1_000_000,))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
        signal.signal(signal.SIGXFSZ, ignored)
    count(database)
    assert counted(database) == 2


def test_a_mistake_in_the_code_is_not_reported_as_one_of_the_file(path: Path) -> None:
    database = Database(path, ONE)
    with pytest.raises(sqlite3.ProgrammingError), database.reading() as connection:
        connection.execute("SELECT ?")
    with pytest.raises(FileNotFoundError), database.reading():
        path.with_name("absent").read_text()


# Versions


def test_an_older_file_is_brought_up_to_date(path: Path) -> None:
    old = Database(path, ONE)
    count(old)
    with Database(path, TWO).reading() as connection:
        assert connection.execute("SELECT * FROM counts").fetchall() == [("a", 1, "m")]
    with pytest.raises(StorageError, match="version 2, and this effectful-agents knows up to version 1"):
        count(old)
    with pytest.raises(StorageError, match="a newer one has written them"):
        Database(path, ONE)


def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    count(Database(path, ONE))
    broken = Schema("counts", [*TWO.steps, ["CREATE TABLE more (x)", "INSERT INTO nowhere VALUES (1)"]])
    with pytest.raises(StorageError, match="no such table: nowhere"):
        Database(path, broken)
    assert counted(Database(path, ONE)) == 1


def test_an_older_file_that_is_copied_over_a_used_one(path: Path) -> None:
    database = Database(path, TWO)
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE effectful_agents SET version = 1")
    with pytest.raises(StorageError, match="became older"):
        count(database)


def test_parts_share_a_file(path: Path) -> None:
    more = Schema("more", [["CREATE TABLE more (x)"]])
    count(Database(path, ONE))
    both = Database(path, ONE, more)
    with both.writing() as connection:
        connection.execute("INSERT INTO more VALUES (1)")
    count(Database(path, ONE))
    assert counted(both) == 2


# Text


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_any_text_is_kept_and_found(one: str, other: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE texts (text TEXT PRIMARY KEY) WITHOUT ROWID")
    connection.execute("INSERT INTO texts VALUES (?)", (as_text(one),))
    (found,) = connection.execute("SELECT text FROM texts").fetchone()
    assert of_text(found) == one
    same = connection.execute("SELECT 1 FROM texts WHERE text = ?", (as_text(other),)).fetchone()
    assert bool(same) == (one == other)
    connection.close()
