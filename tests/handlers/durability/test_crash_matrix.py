"""A run that is killed at any record or instant, or has a full disk, or rivals: it ends as if nothing had happened.

`crash_script.py` has the program; the files that it writes outside of the journal say what was done and asked.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.handlers.durability.runs import settle, unsettled
from effectful_agents.operations.recorded import request_of
from effectful_agents.operations.records import RunState
from tests.handlers.durability.crash_script import EFFECTS, VALUE, Outside, digest_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked"),
]

SCRIPT = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tests.handlers.durability.crash_script"]
HERE = Path(__file__).parents[3]

APPENDS = 48
"""How often the program writes to its journal."""


class Runs:
    """Runs of the program in processes that are killed, and what can be seen of them from outside."""

    def __init__(self, folder: Path, server: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.server = server
        self.store = SqliteCheckpointer(folder / "runs.db")
        self.settled = 0

    def order(self, run_id: str, **options: Any) -> dict[str, Any]:
        """Begin a run or go on with it, see that no completed request was made again; how it ended."""
        paid_for = completed_requests(self.store.load(run_id))
        before = self.asked(run_id)
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps({"folder": str(self.folder), "run": run_id, **options}) + "\n")
        self.server.stdin.flush()
        told = json.loads(self.server.stdout.readline())
        asked = self.asked(run_id)
        assert [digest for digest in paid_for if asked[digest] != before[digest]] == []
        return told

    def asked(self, run_id: str) -> Counter[str]:
        return Counter(Outside(self.folder / f"{run_id}.requests").lines())

    def effects(self, run_id: str) -> list[Any]:
        return Outside(self.folder / f"{run_id}.effects").lines()

    def finish(self, run_id: str, **options: Any) -> dict[str, Any]:
        """Go on with a run until it ends; each step of which nobody knows is settled with what is seen from outside."""
        for _ in range(20):
            told = self.order(run_id, **options)
            options = {}
            if "value" in told:
                return told
            if "uncertain" in told:
                self.settle(run_id, told["uncertain"])
            else:
                assert "killed" in told, told
        raise AssertionError(f"the run does not end: {told}")

    def settle(self, run_id: str, step_id: str) -> None:
        state = self.store.load(run_id)
        assert step_id in unsettled(state)
        step = state.attempted(step_id)
        assert step is not None
        name, arguments = step.name, step.body["arguments"]
        # What a note was written to ended with the process.
        kind, what, value = {
            "pay": lambda: ("paid", arguments["amount"], arguments["amount"] * 100),
            "levy": lambda: ("paid", arguments["amount"], arguments["amount"]),
            "post": lambda: ("looked", arguments["letter"], f"posted {arguments['letter']}"),
            "note": lambda: ("", "", ""),
        }[name]()
        if [kind, what] in self.effects(run_id):
            settle(self.store, run_id, step_id, done=value)
        else:
            settle(self.store, run_id, step_id, redo=True)
        self.settled += 1

    def check(self, run_id: str, told: dict[str, Any]) -> None:
        """See that a run which has ended came to its value, and did everything once."""
        assert told["value"][1:] == VALUE
        done = self.effects(run_id)
        assert sorted(Counter(map(json.dumps, done))) == sorted(map(json.dumps, EFFECTS))
        assert [effect for effect in done if effect != EFFECTS[0] and done.count(effect) > 1] == []
        again = self.order(run_id)
        assert (again["value"], again["asked"], again["appends"]) == (told["value"], 0, 0)


def completed_requests(state: RunState) -> list[str]:
    """The requests whose replies are in a journal, as the model counts them."""
    return [
        digest_of(request_of(state, step_id)["messages"])
        for step_id in state.steps()
        if (done := state.completed(step_id)) is not None and done.kind == "model"
    ]


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(SCRIPT, cwd=HERE, text=True, **pipes)
    yield process
    assert process.communicate() == ("", "")
    assert process.returncode == 0


@pytest.fixture
def runs(tmp_path: Path, server: subprocess.Popen[str]) -> Runs:
    return Runs(tmp_path, server)


def test_a_run_that_is_not_killed(runs):
    told = runs.finish("run")
    assert told["appends"] == APPENDS
    assert told["asked"] == 13
    runs.check("run", told)


def test_killed_at_every_record(runs):
    for when in "before", "after":
        for at in range(1, APPENDS + 1):
            run_id = f"{when}-{at}"
            told = runs.finish(run_id, kill=[when, at])
            assert sum(runs.asked(run_id).values()) in (13, 14)
            runs.check(run_id, told)
    assert runs.settled >= 6


def test_killed_at_random_instants(runs):
    chance = random.Random(7)
    long = runs.finish("run")["seconds"]
    killed = number = 0
    while killed < 200:
        run_id, number = f"run-{number}", number + 1
        while chance.random() < 0.8:  # most of them several times
            told = runs.order(run_id, after=chance.random() * long)
            killed += "killed" in told
            if "uncertain" in told:
                runs.settle(run_id, told["uncertain"])
        runs.check(run_id, runs.finish(run_id))


@pytest.mark.parametrize("more", range(0, 160_000, 16_000))
def test_a_full_disk(more, runs):
    """The file may grow to a size, which is reached at another record each time; then there is room again."""
    size = Path(runs.store.path).stat().st_size + more
    told = runs.order("run", size=size)
    if more < 100_000:
        assert "disk" in told["error"] or "File too large" in told["error"], told
    runs.check("run", runs.finish("run"))


def test_a_run_that_another_process_has(runs):
    first = start(runs, "run", "wait")
    while not runs.asked("run"):
        assert first.poll() is None, first.communicate()
    assert told_by(start(runs, "run")) == {"in use": True}
    (runs.folder / "go").touch()
    runs.check("run", told_by(first))


def test_eight_processes_have_runs_of_their_own_in_one_database(runs):
    (runs.folder / "go").touch()
    started = [start(runs, f"run-{number}") for number in range(8)]
    for number, process in enumerate(started):
        told = told_by(process)
        assert (told["asked"], told["appends"]) == (13, APPENDS)
        runs.check(f"run-{number}", told)
    assert {info.status for info in runs.store.runs()} == {"finished"}


def start(runs: Runs, run_id: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*SCRIPT, str(runs.folder), run_id, *words],
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert err == ""
    return json.loads(out)
