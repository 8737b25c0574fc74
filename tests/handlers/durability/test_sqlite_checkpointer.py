"""Journals in an SQLite database: what is noticed, who has a run, and what a record costs."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from effectful_agents.errors import JournalError, LeaseLost, OptionError, RunInUse
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.handlers.durability.holders import Holder
from effectful_agents.operations.records import Phase, Record
from effectful_agents.runtime import bridged
from effectful_agents.storage.database import Database, Schema
from effectful_agents.testing.stores import step, steps_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "runs.db"


@pytest.fixture
def store(path: Path) -> SqliteCheckpointer:
    return SqliteCheckpointer(path, synchronous="normal")


def execute(store: SqliteCheckpointer, statement: str, *values: object) -> list[Any]:
    with store._database.writing() as connection:
        return connection.execute(statement, values).fetchall()


def execute_outside(store: SqliteCheckpointer, statement: str) -> None:
    """Of what cannot be done in a transaction."""
    with contextlib.closing(sqlite3.connect(store.path)) as connection:
        connection.execute(statement)


def steps(run_id: str, count: int) -> list[Record]:
    return [step(run_id, f"{seq:06}-tool", phase, body={"x": seq}) for seq in range(1, count + 1) for phase in Phase]


# --- what is noticed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE run_records SET body = '{\"x\":9}' WHERE position = 3", "record 3, of `000002-tool`, was altered"),
        ("UPDATE run_records SET name = 'b' WHERE position = 3", "record 3, of `000002-tool`, was altered"),
        ("UPDATE run_records SET body = '{' WHERE position = 6", "record 6, of `000003-tool`, was altered"),
        ("DELETE FROM run_records WHERE position = 2", "or one before it is missing"),
        ("DELETE FROM run_records WHERE position > 4", "6 records were written, and 4 of them are there"),
        (
            "UPDATE run_records SET position = position + 9 WHERE position > 3",
            "record 4, of `000002-tool`, was altered",
        ),
    ],
)
def test_records_that_were_altered_or_lost_are_noticed(store: SqliteCheckpointer, damage: str, told: str) -> None:
    store.append(*steps("r", 3))
    store.append(*steps("whole", 3))
    execute(store, f"{damage} AND run = 1")
    for act in (lambda: store.load("r"), lambda: store.fork("r", "s")):
        with pytest.raises(JournalError, match=told) as caught:
            act()
        assert "`r`" in str(caught.value)
        assert f"effectful-agents delete r --database {store.path}" in str(caught.value)
    assert len(store.load("whole").records) == 6
    assert [info.run_id for info in store.runs()] == ["whole", "r"]


@pytest.mark.parametrize("value", ["CAST(x'80ff' AS TEXT)", "x'80ff'"])
@pytest.mark.parametrize("table", ["runs", "run_records", "run_leases", "effectful_agents"])
def test_bytes_that_are_no_text_are_told(store: SqliteCheckpointer, path: Path, table: str, value: str) -> None:
    """Whatever they stand in the place of: nothing but a JournalError comes of them."""
    held = store.lease("held")
    store.append(*steps("r", 2))
    held.append(*steps("held", 1))
    acts: list[Callable[[SqliteCheckpointer], Any]] = [
        lambda store: store.load("r"),
        lambda store: store.runs(),
        lambda store: store.lease("held"),
        lambda store: store.append(*steps("r", 3)),
    ]
    for _, column, *_ in execute(store, f"PRAGMA table_info({table})"):
        copy = path.with_name(f"{column}.db")
        execute_outside(store, f"VACUUM INTO '{copy}'")
        with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
            try:
                connection.execute(f"UPDATE {table} SET {column} = {value}")
            except sqlite3.IntegrityError:  # there is more than one row, or it is a number that SQLite itself gives
                continue
        told = []
        for act in acts:
            try:
                act(SqliteCheckpointer(copy, synchronous="normal"))
            except RunInUse:
                assert act is acts[2]
            except JournalError as error:
                told.append(error)
        assert told or column in UNREAD


UNREAD = ("token", "started", "written", "id", "run_id", "place", "holder")
"""Columns of which a value is only compared, or one that is not found."""


def test_what_is_no_database_is_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("a letter, and not a short one" * 100)
    with pytest.raises(JournalError, match=r"runs\.db` is damaged, or no SQLite database"):
        SqliteCheckpointer(path)


def test_a_place_that_cannot_be_written_is_named(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(JournalError, match=r"runs\.db` cannot be written"):
        SqliteCheckpointer(path)


def test_a_file_of_a_later_version_is_refused(store: SqliteCheckpointer, path: Path) -> None:
    execute(store, "UPDATE effectful_agents SET version = 99 WHERE part = 'journals'")
    for act in (lambda: store.load("r"), lambda: store.append(step("r", "")), lambda: SqliteCheckpointer(path)):
        with pytest.raises(JournalError, match=r"version 99.*Install that one"):
            act()


def test_a_wrong_option_is_refused(path: Path) -> None:
    with pytest.raises(OptionError, match="`full` or `normal`"):
        SqliteCheckpointer(path, synchronous="off")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="seconds"):
        SqliteCheckpointer(path).lease("r", seconds=0)
    assert not path.with_name("off").exists()


def test_other_things_are_kept_in_the_same_file(store: SqliteCheckpointer, path: Path) -> None:
    notes = Database(path, Schema("notes", [["CREATE TABLE notes (text TEXT)"]]))
    with notes.writing() as connection:
        connection.execute("INSERT INTO notes VALUES ('Milk')")
    store.append(*steps("r", 1))
    assert len(SqliteCheckpointer(path).load("r").records) == 2
    with notes.reading() as connection:
        assert connection.execute("SELECT text FROM notes").fetchall() == [("Milk",)]


# --- who has a run ----------------------------------------------------------------------------------------------------

TAKE = """
import os, sys
from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer
lease = SqliteCheckpointer(sys.argv[1]).lease("r", seconds=3600)
print("taken", flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_the_lease_of_a_process_ends_with_it(store: SqliteCheckpointer, path: Path, is_waited_for: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TAKE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "taken\n"
        with pytest.raises(RunInUse, match=f"`r` is in use by pid {holder.pid} on "):
            store.lease("r")
        store.append(step("other", ""))
        holder.send_signal(signal.SIGKILL)
        if is_waited_for:
            holder.wait()
        else:  # it has ended, and is still listed
            os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        store.append(step("r", "000001-tool"))
        store.lease("r").release()


@pytest.mark.parametrize(
    ("changes", "is_free"),
    [
        ("started = 'another time'", True),  # the identifier was given to another process
        ("place = 'another machine', pid = 4", False),
        ("place = 'another machine', expires = 1", True),
        ("pid = 4000000", True),
    ],
)
def test_whose_lease_counts(store: SqliteCheckpointer, changes: str, is_free: bool) -> None:
    lease = store.lease("r", seconds=3600)
    execute(store, f"UPDATE run_leases SET {changes}")
    if is_free:
        store.lease("r")
        with pytest.raises(LeaseLost):
            lease.renew()
    else:
        with pytest.raises(RunInUse):
            store.lease("r")


def test_an_overdue_lease_that_nobody_took_goes_on(store: SqliteCheckpointer) -> None:
    lease = store.lease("r", seconds=3600)
    execute(store, "UPDATE run_leases SET expires = 1")
    lease.renew()
    with pytest.raises(RunInUse):
        store.lease("r")


def expires(store: SqliteCheckpointer) -> float:
    (((when,)),) = execute(store, "SELECT expires FROM run_leases")
    return when


def test_a_lease_is_put_off_by_records_when_that_is_due(store: SqliteCheckpointer) -> None:
    lease = store.lease("r", seconds=3600)
    first = expires(store)
    lease.append(step("r", "000001-tool"))
    assert expires(store) == first
    lease.renewed -= 1300
    lease.append(step("r", "000001-tool"))
    assert expires(store) > first


def test_a_lease_is_put_off_while_nothing_is_written(store: SqliteCheckpointer) -> None:
    lease = store.lease("r", seconds=0.05)
    first, deadline = expires(store), time.monotonic() + 60
    while expires(store) < first + 0.1:
        assert time.monotonic() < deadline
    lease.append(step("r", "000001-tool"))


def test_a_lease_that_nobody_refers_to_is_not_put_off(store: SqliteCheckpointer) -> None:
    store.lease("r", seconds=0.05)
    deadline = time.monotonic() + 60
    while True:
        try:
            store.lease("r").release()
            return
        except RunInUse:
            assert time.monotonic() < deadline


FORK = """
import os, sys
from effectful_agents.errors import LeaseLost, RunInUse
from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer
from effectful_agents.testing.stores import step
store = SqliteCheckpointer(sys.argv[1])
lease = store.lease("r", seconds=0.2)
child = os.fork()
if not child:
    code = 1
    try:
        lease.append(step("r", "000001-tool"))
    except LeaseLost:
        lease.release()
        try:
            store.lease("r")
        except RunInUse:
            own = store.lease("s", seconds=0.2)
            own.append(step("s", "000001-tool"))
            first = own.renewed
            while own.renewed == first:
                pass
            code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
lease.append(step("r", "000002-tool"))
print(store.load("r").steps(), store.load("s").steps())
"""


def test_a_forked_process_has_leases_of_its_own_only(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, path], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("['000002-tool'] ['000001-tool']\n", "")


def test_this_process_is_there() -> None:
    me = Holder.this_process()
    assert not me.is_gone()
    assert str(os.getpid()) in me.name


# --- what a record costs ----------------------------------------------------------------------------------------------


def instructions(store: SqliteCheckpointer, act: Callable[[], object]) -> int:
    """How many instructions of its machine SQLite executes for something."""
    counter = itertools.count()
    with store._database.reading() as connection:
        pass
    connection.set_progress_handler(lambda: next(counter) * 0, 1)
    act()
    connection.set_progress_handler(None, 1)
    return next(counter)


def test_a_record_and_the_list_cost_the_same_however_long_the_journal_is(store: SqliteCheckpointer) -> None:
    lease = store.lease("r")
    lease.append(*steps("r", 10))
    another = lambda: lease.append(step("r", f"9{next(numbers):05}-tool"))  # noqa: E731
    numbers = itertools.count()
    few = instructions(store, another), instructions(store, store.runs)
    lease.append(*steps("r", 3000))
    many = instructions(store, another), instructions(store, store.runs)
    assert few[0] > 50
    assert many[0] <= few[0] + 20
    assert many[1] == few[1]


# --- event loops ------------------------------------------------------------------------------------------------------


async def write_at_once(store: SqliteCheckpointer, gather: Callable[..., Any]) -> None:
    def write(number: int) -> None:
        with_lease = store.lease(f"run {number}")
        for record in steps(f"run {number}", 5):
            with_lease.append(record)
            store.append(step("shared", record.step_id, record.phase, attempt=number))
        with_lease.release()

    await gather(*(bridged(write, number) for number in range(1, 9)))
    assert len(store.load("shared").records) == 80
    for number in range(1, 9):
        assert steps_of(store.load(f"run {number}").records) == steps_of(steps("", 5))


def test_tasks_write_at_once(store: SqliteCheckpointer) -> None:
    asyncio.run(write_at_once(store, asyncio.gather))


def test_tasks_of_trio_write_at_once(store: SqliteCheckpointer) -> None:
    async def wait(call: Any) -> None:
        await call

    async def gather(*calls: Any) -> None:
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(wait, call)

    trio.run(write_at_once, store, gather)
