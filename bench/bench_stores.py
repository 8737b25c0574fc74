"""Stores of journals: writing a record, alone and at the end of a long journal, and reading journals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from effectful_agents.handlers.durability import MemoryCheckpointer, SqliteCheckpointer
from effectful_agents.operations.records import Phase, Record

ROUNDS = 300


def records(count: int) -> list[Record]:
    """Steps as a journal of tool calls has them: a short request, a result of a page."""
    return [
        Record(
            run_id="r",
            step_id=f"{seq:06}-tool",
            phase=phase,
            kind="tool",
            name="search",
            digest="0" * 32,
            body={"arguments": {"query": "lighthouses"}} if phase is Phase.ATTEMPTED else {"text": "A page. " * 250},
        )
        for seq in range(1, count // 2 + 1)
        for phase in Phase
    ]


@pytest.mark.parametrize("before", [0, 10_000])
@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_append(
    benchmark: Any,
    report: Callable[[str, str], None],
    tmp_path: Path,
    synchronous: Literal["full", "normal"],
    before: int,
) -> None:
    store = SqliteCheckpointer(tmp_path / "runs.db", synchronous=synchronous)
    lease = store.lease("r")
    lease.append(*records(before))
    # One round more than is measured: pytest-benchmark runs the function once by itself when it is disabled.
    more = iter(records(before + 2 * ROUNDS)[before:])

    def append() -> None:
        lease.append(next(more))

    benchmark.group = "append a record"
    benchmark.pedantic(append, rounds=ROUNDS)
    lease.release()
    if benchmark.stats is not None:
        what = f"append a record, {synchronous}, after {before:,}"
        report(what, f"{benchmark.stats.stats.median * 1e6:8.0f} µs (least {benchmark.stats.stats.min * 1e6:.0f})")


@pytest.mark.parametrize("count", [10, 1_000, 10_000])
@pytest.mark.parametrize("kind", [MemoryCheckpointer, SqliteCheckpointer])
def test_load(benchmark: Any, report: Callable[[str, str], None], tmp_path: Path, kind: type[Any], count: int) -> None:
    store = MemoryCheckpointer() if kind is MemoryCheckpointer else SqliteCheckpointer(tmp_path / "runs.db")
    store.append(*records(count))
    benchmark.group = f"load {count} records"
    state = benchmark.pedantic(store.load, args=("r",), rounds=5)
    assert len(state.records) == count
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.median
        report(
            f"load {count:,} records, {kind.__name__}", f"{seconds * 1e3:8.1f} ms ({seconds / count * 1e6:.1f} µs each)"
        )


def test_list(benchmark: Any, report: Callable[[str, str], None], tmp_path: Path) -> None:
    store = SqliteCheckpointer(tmp_path / "runs.db", synchronous="normal")
    for number in range(100):
        store.append(*(Record(**{**vars(record), "run_id": f"run {number}"}) for record in records(100)))
    runs = benchmark.pedantic(store.runs, rounds=20)
    assert len(runs) == 100
    if benchmark.stats is not None:
        report("list 100 runs of 100 records", f"{benchmark.stats.stats.median * 1e3:8.1f} ms")
