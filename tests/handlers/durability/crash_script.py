"""A program that is killed: a run of every kind of step, whose model and whose effects are counted outside of it.

Started by `test_crash_matrix.py`. It reads orders, a line of JSON each, and carries each out in a process that it forks
off, so that a try costs milliseconds; it answers with a line of JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import JournalError, RunInUse, UncertainEffect
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.operations.journal import record
from effectful_agents.testing import calls
from tests.handlers.durability.journaling import MODEL, RESULT, World, a_program, plays

REPLIES = (
    *MODEL,
    ("Solve", [calls("write_and_run_body", implementation={"code": "def solve(n):\n    return 2 * levy(n)"})]),
)
VALUE = json.loads(json.dumps([20, *RESULT]))
"""What the program comes to, after the value that it records."""

EFFECTS = [["looked", "the east"], ["looked", "a"], ["looked", "b"], ["paid", 3], ["paid", 7], ["paid", 10]]
"""What it does outside; the first of these may be done more than once."""


class Outside:
    """A file that lines are added to, whole and at once, as a bank adds to its books."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, line: Any) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, json.dumps(line).encode() + b"\n")
        os.close(file)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []


class Effects:
    """Of a kind, in the file of all."""

    def __init__(self, kind: str, outside: Outside) -> None:
        self.kind, self.outside = kind, outside

    def append(self, what: Any) -> None:
        self.outside.append([self.kind, what])


def digest_of(messages: Any) -> str:
    """What a request is counted as."""
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:16]


class Killed(SqliteCheckpointer):
    """A database whose process is killed at a record, before or after it is written."""

    def __init__(self, path: Path, kill: Any) -> None:
        super().__init__(path, synchronous="normal")  # a killed process loses nothing that the system was given
        self.when, self.at = kill or ("", 0)
        self.appends = 0

    def lease(self, run_id: str, *, seconds: float = 30.0) -> Any:
        lease = super().lease(run_id, seconds=seconds)
        append = lease.append

        def killing(*records: Any) -> None:
            self.appends += 1
            self._kill("before")
            append(*records)
            self._kill("after")

        lease.append = killing
        return lease

    def _kill(self, when: str) -> None:
        if (when, self.appends) == (self.when, self.at):
            os.kill(os.getpid(), signal.SIGKILL)


def program(world: World) -> Any:
    """All that is journalled: the program of the other tests, a value from outside, and a body that the model wrote."""

    @Tool.define
    def levy(amount: int) -> int:
        """Levy an amount."""
        world.paid.append(amount)
        return amount

    @Skill.define
    def solve(n: int) -> int:
        """Solve {n}."""
        raise NotHandled

    noise = record(lambda: os.urandom(8).hex(), str)
    solved = solve(10)
    return [noise, solved, *a_program(world)()]


def run(folder: Path, run_id: str, kill: Any = None, wait: bool = False) -> dict[str, Any]:
    """Run the program, or go on with it; how that ended."""
    requests, effects = Outside(folder / f"{run_id}.requests"), Outside(folder / f"{run_id}.effects")
    world: Any = World(Effects("paid", effects), Effects("looked", effects))
    model, asked = plays(*REPLIES)
    ((operation, answer),) = model.items()

    def counted(**request: Any) -> Any:
        requests.append(digest_of(request["messages"]))
        while wait and not (folder / "go").exists():
            time.sleep(0.002)
        return answer(**request)

    try:
        store = Killed(folder / "runs.db", kill)
        options: Any = {"system_prompt": "brief", "eval_provider": "builtin", "type_checker": "none"}
        with handler({operation: counted}), handler(harness(**options, journal=store, run_id=run_id)):
            value = program(world)
    except UncertainEffect as error:
        return {"uncertain": error.step_id}
    except RunInUse:
        return {"in use": True}
    except (JournalError, OSError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"value": value, "appends": store.appends, "asked": len(asked)}


def attempt(order: dict[str, Any]) -> dict[str, Any]:
    """Carry an order out in a process of its own, and kill that after a time if the order says so."""
    folder = Path(order["folder"])
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    began = time.perf_counter()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            if "size" in order:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (order["size"], order["size"]))
            result = run(folder, order["run"], order.get("kill"))
            told.write_text(json.dumps(result))
            os._exit(0)
        os._exit(1)
    if "after" in order:
        time.sleep(order["after"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"killed": os.WTERMSIG(status)}
    if os.waitstatus_to_exitcode(status) != 0:
        return {"error": "it ended with an exception of another kind"}
    return json.loads(told.read_text()) | {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    if len(sys.argv) > 1:  # a run in this process: FOLDER RUN, and `wait` to begin when the file `go` is there
        print(json.dumps(run(Path(sys.argv[1]), sys.argv[2], wait="wait" in sys.argv)))
    else:
        with tempfile.TemporaryDirectory() as warm:  # what is loaded and built at first use costs a second
            run(Path(warm), "warm")
        for line in sys.stdin:
            print(json.dumps(attempt(json.loads(line))), flush=True)
