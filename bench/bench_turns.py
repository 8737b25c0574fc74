"""A run of many turns: what a turn costs must not grow with the number of turns before it."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import pytest

from bench.stacks import STACKS, Report, skill_with_tools
from effectful_agents import fwd, handler
from effectful_agents.operations.loop import completion
from effectful_agents.testing import ScriptedModel, calls

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ANSWER = '{"city": "Oslo", "degrees": 3.5}'


@pytest.mark.parametrize("turns", [100, 200, 400])
@pytest.mark.parametrize("stack", STACKS)
def test_run_of_many_turns(benchmark: Any, per_model_call: Any, stack: str, turns: int) -> None:
    skill, rounds = skill_with_tools(1), 5
    model = ScriptedModel(*[*[calls("tool_0", city="Oslo")] * turns, ANSWER] * (rounds + 2))
    benchmark.group = f"many turns, {stack}"
    with handler(model), handler(STACKS[stack](turns=turns + 1)):
        value = benchmark.pedantic(skill, args=("Oslo",), rounds=rounds, warmup_rounds=1)
    assert value == Report("Oslo", 3.5)
    per_model_call(f"a run of {turns} turns, {stack}", turns + 1)


@pytest.mark.parametrize("stack", STACKS)
def test_first_and_last_turns(report: Any, stack: str) -> None:
    """The time from one request to the next, at the beginning of a run of 400 turns and at its end."""
    turns, runs = 400, 5
    skill, moments = skill_with_tools(1), []

    def watched(**_: Any) -> Any:
        moments.append(time.process_time())
        return fwd()

    model = ScriptedModel(*[*[calls("tool_0", city="Oslo")] * turns, ANSWER] * runs)
    pauses: list[list[float]] = []
    with handler(model), handler({completion: watched}), handler(STACKS[stack](turns=turns + 1)):
        for _ in range(runs):
            moments.clear()
            skill("Oslo")
            pauses.append([after - before for before, after in itertools.pairwise(moments)])
    for first, last in ((1, 20), (191, 210), (381, 400)):
        middle = statistics.median(pause for run in pauses for pause in run[first - 1 : last])
        report(f"turns {first:3} to {last:3} of {turns}, {stack}", f"{middle * 1e6:8.1f} µs per model call")
