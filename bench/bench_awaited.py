"""Calls that are awaited: many at once, on one thread, and what one costs in each of the ways to run it."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Deadline, NotHandled, Skill, acall, handler, harness, steps, stream
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import wait
from effectful_agents.testing import ScriptedModel, says

MODEL_SECONDS = 0.05


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def slow_model(**_: Any) -> Any:
    wait(asyncio.sleep(MODEL_SECONDS))
    return says("ok")


async def at_once(number: int) -> None:
    with handler(harness(system_prompt="brief")), handler({completion: slow_model}):
        await asyncio.gather(*(acall(ask, "?") for _ in range(number)))


@pytest.mark.parametrize("number", [1, 10, 1_000, 10_000])
def test_calls_at_once(benchmark: Any, number: int) -> None:
    benchmark.group = "calls at once, with a model that takes 50 ms"
    benchmark.pedantic(lambda: asyncio.run(at_once(number)), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("number", [1_000, 10_000])
def test_memory_of_a_call_that_waits(number: int, report: Any) -> None:
    """What Python has allocated while so many calls wait, for each of them."""
    waiting = 0
    peak = 0

    def model(**_: Any) -> Any:
        nonlocal waiting, peak
        waiting += 1
        if waiting == number:
            peak = tracemalloc.get_traced_memory()[0]
        wait(asyncio.sleep(MODEL_SECONDS))
        return says("ok")

    async def main() -> None:
        with handler(harness(system_prompt="brief")), handler({completion: model}):
            await asyncio.gather(*(acall(ask, "?") for _ in range(number)))

    tracemalloc.start()
    try:
        asyncio.run(main())
    finally:
        tracemalloc.stop()
    report(f"memory, {number:6,} calls that wait", f"{peak / number / 1024:8.1f} KiB a call")


def every_step(call: Any) -> Any:
    for _ in call:
        pass
    return call.value


WAYS: dict[str, Callable[[], Any]] = {
    "plain": lambda: ask("?"),
    "run in an event loop": lambda: LOOP.run(acall(ask, "?")),
    "steps": lambda: every_step(steps(ask, "?")),
    "stream": lambda: every_step(stream(ask, "?")),
}
LOOP = asyncio.Runner()


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("deadline", [False, True], ids=["without a deadline", "with a deadline"])
@pytest.mark.parametrize("way", WAYS)
def test_one_call(benchmark: Any, report: Any, way: str, deadline: bool) -> None:
    benchmark.group = "a call of one turn"
    limit = handler(Deadline(3600) if deadline else {})
    model = ScriptedModel(*["ok"] * 1_200)
    with handler(harness(system_prompt="brief")), handler(model), limit:
        benchmark.pedantic(WAYS[way], rounds=1_000, warmup_rounds=100)
    stats = benchmark.stats.stats if benchmark.stats is not None else None
    if stats is not None:
        report(f"one call, {way}{', with a deadline' * deadline}", f"{stats.median * 1e6:8.1f} µs")
