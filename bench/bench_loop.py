"""A run of two model calls, one with a tool call and one with a typed answer: what the framework adds to each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bench.stacks import STACKS, Report, skill_with_tools
from effectful_agents import handler
from effectful_agents.testing import ScriptedModel, calls

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP = 1000, 100


@pytest.mark.parametrize("tools", [1, 10, 100])
@pytest.mark.parametrize("stack", STACKS)
def test_run_of_two_model_calls(benchmark: Any, per_model_call: Any, stack: str, tools: int) -> None:
    skill = skill_with_tools(tools)
    script = [calls("tool_0", city="Oslo"), '{"city": "Oslo", "degrees": 3.5}']
    # One round more than is measured: pytest-benchmark runs the function once by itself when it is disabled.
    model = ScriptedModel(*script * (ROUNDS + WARMUP + 1))
    benchmark.group = f"two model calls, {stack}"
    with handler(model), handler(STACKS[stack]()):
        value = benchmark.pedantic(skill, args=("Oslo",), rounds=ROUNDS, warmup_rounds=WARMUP)
    assert value == Report("Oslo", 3.5)
    per_model_call(f"two model calls, {stack}, {tools:3} tools", 2)
