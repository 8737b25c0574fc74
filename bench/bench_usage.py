"""Counting what requests use: what a meter adds to a request, and what reading it costs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import Any

import pytest

from bench.stacks import STACKS, skill_with_tools
from effectful_agents import handler, usage
from effectful_agents.handlers.observability import UsageMeter
from effectful_agents.operations.loop import completion
from effectful_agents.operations.usage import answered
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ANSWER = '{"city": "Oslo", "degrees": 3.5}'
METERS = [0, 1, 3]


@pytest.mark.parametrize("meters", METERS)
def test_a_request_that_is_told_of(benchmark: Any, per_model_call: Any, meters: int) -> None:
    """One request as the loop makes it, with a model that costs nothing."""
    benchmark.group = "a request, with so many meters"
    reply = says("ok")
    with handler({completion: lambda **_: reply}), handler(Layers(*(UsageMeter() for _ in range(meters)))):
        benchmark(lambda: [answered({"messages": []}) for _ in range(1_000)])
    per_model_call(f"a request, {meters} meters", 1_000)


@pytest.mark.parametrize("meters", METERS)
@pytest.mark.parametrize("stack", STACKS)
def test_a_run_of_many_turns(benchmark: Any, per_model_call: Any, stack: str, meters: int) -> None:
    skill, turns, rounds = skill_with_tools(1), 100, 7
    model = ScriptedModel(*[*[calls("tool_0", city="Oslo")] * turns, ANSWER] * (rounds + 2))
    benchmark.group = f"a run of {turns} turns, {stack}"
    with contextlib.ExitStack() as entered:
        for one in (handler(model), handler(STACKS[stack](turns=turns + 1)), *(usage() for _ in range(meters))):
            entered.enter_context(one)
        benchmark.pedantic(skill, args=("Oslo",), rounds=rounds, warmup_rounds=1)
    per_model_call(f"a run of {turns} turns, {stack}, {meters} meters", turns + 1)


def test_reading_the_cost(benchmark: Any, per_model_call: Any) -> None:
    benchmark.group = "reading"
    with handler(ScriptedModel(*["a"] * 100)), usage() as used:
        for _ in range(100):
            completion(model="gpt-5-mini", messages=[])
    benchmark(lambda: used.cost)
    per_model_call("reading the cost (not a model call)", 1)


def test_reading_the_cost_for_the_first_time(report: Any) -> None:
    program = (
        "import time; from effectful_agents.operations.prices import cost_of; "
        "from effectful_agents.messages import Usage; start = time.process_time(); "
        "cost_of('gpt-5-mini', Usage(1, 1)); print(time.process_time() - start)"
    )
    seconds = float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
    report("the table of prices, read for the first time", f"{seconds * 1e3:8.1f} ms")
