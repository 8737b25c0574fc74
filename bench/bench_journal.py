"""What a journal costs: for each step, for resuming a run of any length, and in bytes of the file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from bench.stacks import skill_with_tools, whole
from effectful_agents import Tool, handler
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer, SqliteCheckpointer
from effectful_agents.operations.journal import record
from effectful_agents.testing import ScriptedModel, calls

ANSWER = '{"city": "Oslo", "degrees": 3.5}'

STORES: dict[str, Callable[[Path], Any]] = {
    "memory": lambda _: MemoryCheckpointer(),
    "SQLite, normal": lambda folder: SqliteCheckpointer(folder / "runs.db", synchronous="normal"),
    "SQLite, full": lambda folder: SqliteCheckpointer(folder / "runs.db"),
}


@Tool.define
def pay(amount: int) -> int:
    """Pay an amount."""
    return amount


@Tool.define(idempotent=True)
def look(amount: int) -> int:
    """Look at an amount."""
    return amount


def of_conversation(steps: int) -> Any:
    """One call: half of its steps are requests to the model, the other half tool calls."""
    skill = skill_with_tools(1)
    return lambda: skill("Oslo"), ScriptedModel(*[calls("tool_0", city="Oslo")] * (steps // 2), ANSWER)


def of_calls(tool: Any) -> Any:
    """Calls that the program makes itself."""
    return lambda steps: (lambda: [tool(number) for number in range(steps)], ScriptedModel())


def of_records(steps: int) -> Any:
    """Values from outside."""
    return lambda: [record(time.time, float) for _ in range(steps)], ScriptedModel()


PROGRAMS: dict[str, Callable[[int], Any]] = {
    "model and tool by turns": of_conversation,
    "tool called by code": of_calls(pay),
    "idempotent tool called by code": of_calls(look),
    "record": of_records,
}


@contextlib.contextmanager
def journalled(store: Any) -> Generator[None]:
    with contextlib.nullcontext() if store is None else handler(Journal("run", store)):
        yield


def seconds(program: Any, model: Any, store: Any, steps: int) -> tuple[float, float]:
    """The time that a run takes, of the processor and by the clock."""
    with handler(whole(turns=steps + 2)), handler(model):
        cpu, clock = time.process_time(), time.perf_counter()
        with journalled(store):
            program()
        return time.process_time() - cpu, time.perf_counter() - clock


@pytest.mark.parametrize("name", PROGRAMS)
def test_cost_of_a_step(report: Any, tmp_path: Path, name: str) -> None:
    steps = 400
    seconds(*PROGRAMS[name](steps), None, steps)  # what is built at first use
    bare, _ = min(seconds(*PROGRAMS[name](steps), None, steps) for _ in range(3))
    report(f"{name}, no journal", f"{bare / steps * 1e6:8.1f} µs a step")
    for where, make in STORES.items():
        times = []
        for round in range(3):
            folder = tmp_path / f"{where} {round}"
            folder.mkdir()
            times.append(seconds(*PROGRAMS[name](steps), make(folder), steps))
        cpu, clock = min(times)
        report(
            f"{name}, {where}",
            f"{(cpu - bare) / steps * 1e6:8.1f} µs a step more ({clock / steps * 1e6:.1f} in all, by the clock)",
        )


@pytest.mark.parametrize("steps", [10, 1_000, 10_000])
@pytest.mark.parametrize("name", ["model and tool by turns", "tool called by code"])
def test_resuming(report: Any, tmp_path: Path, name: str, steps: int) -> None:
    """A run that was interrupted after so many steps: the time until it has told all of them again."""
    store = STORES["SQLite, normal"](tmp_path)
    program, model = PROGRAMS[name](steps)

    class Stopped(BaseException):
        pass

    def stopped() -> Any:
        program()
        raise Stopped

    with contextlib.suppress(Stopped):
        seconds(stopped, model, store, steps)
    file = Path(store.path)
    store.close()
    began = time.process_time()
    store.load("run")
    loaded = time.process_time() - began
    cpu, _ = seconds(program, ScriptedModel(), store, steps)
    report(
        f"resuming after {steps:6,} steps, {name}",
        f"{cpu * 1e3:8.1f} ms, {cpu / steps * 1e6:6.1f} µs a step, of which reading {loaded / steps * 1e6:5.1f}; "
        f"{file.stat().st_size / steps:6.0f} bytes a step",
    )
