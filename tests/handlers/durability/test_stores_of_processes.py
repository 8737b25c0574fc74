"""One database of journals and several processes: some at once, some killed, some on a full disk, some stopped."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from effectful_agents.errors import RunInUse
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.operations.records import Phase
from effectful_agents.testing.stores import step, steps_of
from tests.handlers.durability import test_stores

pytestmark = pytest.mark.slow

OPEN = """
import os, resource, sys, time
from effectful_agents.errors import JournalError, LeaseLost, RunInUse
from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer
from effectful_agents.operations.records import Phase, Record
store, me = SqliteCheckpointer(sys.argv[1]), int(sys.argv[2])
def record(run_id, seq, phase=Phase.ATTEMPTED, attempt=1, body=None):
    step_id = f"{seq:06}-tool"
    return Record(run_id=run_id, step_id=step_id, phase=phase, kind="tool", attempt=attempt, body=body or {})
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def start() -> Iterator[object]:
    """A function that starts a process with a program; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def run(program: str, path: Path, *words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", OPEN + program, path, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def outputs(processes: list[subprocess.Popen[str]]) -> list[str]:
    """What each printed, when all have ended well."""
    told = [process.communicate(timeout=120) for process in processes]
    assert [error for _, error in told] == [""] * len(processes)
    return [output for output, _ in told]


def test_eight_processes_share_a_database(path: Path, start) -> None:
    outputs(
        [
            start(
                """
with_lease = store.lease(f"run {me}")
for seq in range(1, 101):
    with_lease.append(record(f"run {me}", seq), record(f"run {me}", seq, Phase.COMPLETED, body={"by": me}))
    store.append(record("shared", seq, attempt=me))
    store.runs()
with_lease.release()
""",
                path,
                number,
            )
            for number in range(1, 9)
        ]
    )
    store = SqliteCheckpointer(path)
    in_order = [f"{seq:06}-tool" for seq in range(1, 101)]
    shared = store.load("shared").records
    assert len(shared) == 800
    for number in range(1, 9):
        assert [record.step_id for record in shared if record.attempt == number] == in_order
        own = store.load(f"run {number}").records
        assert [record.step_id for record in own[::2]] == [record.step_id for record in own[1::2]] == in_order
    assert {info.steps for info in store.runs()} == {100}


def test_two_processes_contend_for_a_run(path: Path, tmp_path: Path, start) -> None:
    program = """
inside, taken = sys.argv[3], 0
while taken < 50:
    try:
        lease = store.lease("r")
    except RunInUse:
        continue
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # an error if the other one is inside
    state = store.load("r")
    lease.append(record("r", len(state.records) + 1, body={"by": me}))
    os.unlink(inside)
    lease.release()
    taken += 1
"""
    outputs([start(program, path, number, tmp_path / "inside") for number in (1, 2)])
    records = SqliteCheckpointer(path).load("r").records
    assert steps_of(records) == [(f"{seq:06}-tool", 1, "attempted") for seq in range(1, 101)]
    assert sorted(record.body["by"] for record in records) == [1] * 50 + [2] * 50


def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_journal(path: Path, start) -> None:
    chance, acknowledged = random.Random(7), 0
    for _ in range(12):
        process = start(
            """
lease, seq = store.lease("r"), len(store.load("r").records) // 2
while True:
    seq += 1
    lease.append(record("r", seq), record("r", seq, Phase.COMPLETED, body={"text": "x" * 5000}))
    print(seq, flush=True)
""",
            path,
            1,
        )
        for _ in range(chance.randrange(1, 40)):
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        output, error = process.communicate()
        assert error == ""
        acknowledged = max([acknowledged, *(int(line) for line in output.splitlines(keepends=True) if "\n" in line)])
        records = SqliteCheckpointer(path).load("r").records
        assert len(records) % 2 == 0
        assert acknowledged <= len(records) // 2 <= acknowledged + 1
        assert steps_of(records[::2]) == [(f"{seq:06}-tool", 1, "attempted") for seq in range(1, len(records) // 2 + 1)]


def test_a_full_disk(path: Path, start) -> None:
    (told,) = outputs(
        [
            start(
                """
lease, seq = store.lease("r"), 0
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
try:
    while True:
        lease.append(record("r", seq + 1), record("r", seq + 1, Phase.COMPLETED, body={"text": "x" * 5000}))
        seq += 1
except JournalError as error:
    print(seq, error, sep="\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(store.load("r").records))
lease.append(record("r", seq + 1), record("r", seq + 1, Phase.COMPLETED))
lease.release()
""",
                path,
                1,
            )
        ]
    )
    acknowledged, error, kept = told.splitlines()
    assert int(acknowledged) > 10
    assert int(kept) == 2 * int(acknowledged)
    assert str(path) in error
    assert "Nothing of it was written. Make room on the disk, and resume the run." in error
    state = SqliteCheckpointer(path).load("r")
    assert len(state.records) == 2 * int(acknowledged) + 2
    assert state.uncertain() == []


def test_a_stopped_process_loses_its_run_and_writes_nothing_more(path: Path, start) -> None:
    process = start(
        """
lease = store.lease("r", seconds=1)
lease.append(record("r", 1))
print("taken", flush=True)
sys.stdin.readline()
try:
    lease.append(record("r", 2, body={"late": True}))
except LeaseLost as error:
    print(error)
""",
        path,
        1,
    )
    assert process.stdout.readline() == "taken\n"
    store = SqliteCheckpointer(path)
    process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 60
    while True:
        try:
            lease = store.lease("r")
            break
        except RunInUse:
            assert time.monotonic() < deadline
    lease.append(step("r", "000002-tool", Phase.ATTEMPTED))
    process.send_signal(signal.SIGCONT)
    output, error = process.communicate("go on\n")
    assert "taken over by another process, since this one was not heard of for 1 seconds" in output
    assert error == ""
    assert [dict(record.body) for record in store.load("r").records] == [{}, {}]


def test_many_random_courses_of_events(tmp_path: Path) -> None:
    class Contract(test_stores.TestSqliteCheckpointer):
        examples = 300

    Contract().test_any_course_of_events(tmp_path)
