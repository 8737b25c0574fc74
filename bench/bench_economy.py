"""What the economy of a run takes to work out and to draw, for runs of several lengths."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.stacks import skill_with_tools, whole
from effectful_agents import handler
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.observability import economy
from effectful_agents.operations.records import RunState
from effectful_agents.testing import ScriptedModel, calls

ANSWER = '{"city": "Oslo", "degrees": 3.5}'


def conversation(steps: int) -> RunState:
    """A run of one call, half of whose steps are requests to the model."""
    store = MemoryCheckpointer()
    model = ScriptedModel(*[calls("tool_0", city="Oslo")] * (steps // 2), ANSWER)
    with handler(whole(turns=steps + 2)), handler(model), handler(Journal("run", store)):
        skill_with_tools(10)("Oslo")
    return store.load("run")


def refused(steps: int) -> RunState:
    """The same with every third reply refused: what was said is taken back, and the prefix broken, again and again."""
    good, bad = calls("tool_0", city="Oslo"), calls("tool_0", town="Oslo")
    store = MemoryCheckpointer()
    model = ScriptedModel(*[good, bad, good] * (steps // 5), ANSWER)
    with handler(whole(turns=steps + 2)), handler(model), handler(Journal("run", store)):
        skill_with_tools(10)("Oslo")
    return store.load("run")


def milliseconds(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times) * 1e3


@pytest.mark.parametrize("steps", [100, 1_000, 4_000])
@pytest.mark.parametrize("made", [conversation, refused], ids=["conversation", "refused replies"])
def test_cost_of_a_report(report: Any, made: Callable[[int], RunState], steps: int) -> None:
    state = made(steps)
    seen = economy(state)
    whole = milliseconds(lambda: economy(state))
    ways = {"text": seen.text, "JSON": seen.to_json, "picture": seen.to_svg}
    shown = ", ".join(f"{way} {milliseconds(make):.0f}" for way, make in ways.items())
    report(
        f"{made.__name__} of {steps:5,} steps",
        f"{whole:8.1f} ms, {whole / steps * 1e3:6.1f} µs a step; then in ms: {shown}; "
        f"the picture has {len(seen.to_svg()) / 1e3:.0f} kB",
    )
