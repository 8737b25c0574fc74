"""Evaluating 1,000 cases: what a case costs beyond the call of its skill; and comparing two evaluations."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.stacks import STACKS
from effectful_agents import NotHandled, Skill, handler
from effectful_agents.operations.loop import completion
from effectful_agents.testing import Case, Evaluation, aevaluate, compare, evaluate, says
from effectful_agents.testing.evaluation import Row, exact

pytestmark = pytest.mark.benchmark(timer=time.process_time)

CASES = 1_000
TABLE = [Case(f"question {number}", expected="yes") for number in range(CASES)]
YES = says("yes")


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def plain(question: str) -> str:
    return "yes"


def one_after_the_other() -> None:
    for case in TABLE:
        ask(*case.args)


def in_threads() -> None:
    evaluate(ask, TABLE, exact)


def in_turn() -> None:
    evaluate(ask, TABLE, exact, concurrency=1)


def in_tasks() -> None:
    async def program() -> None:
        await aevaluate(ask, TABLE, exact)

    asyncio.run(program())


def nothing_asked() -> None:
    evaluate(plain, TABLE, exact, concurrency=1)


@pytest.mark.parametrize(
    "run", [one_after_the_other, nothing_asked, in_turn, in_threads, in_tasks], ids=lambda run: run.__name__
)
def test_thousand_cases(benchmark: Any, report: Callable[[str, str], None], run: Callable[[], None]) -> None:
    benchmark.group = f"{CASES:,} cases"
    with handler({completion: lambda **request: YES}), handler(STACKS["loop, history, retry"]()):
        benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    if benchmark.stats is not None:
        report(f"{CASES:,} cases, {run.__name__}", f"{benchmark.stats.stats.median / CASES * 1e6:8.1f} µs per case")


@pytest.mark.parametrize("kind", ["truths", "numbers"])
@pytest.mark.parametrize("count", [12, 100, CASES])
def test_compare(benchmark: Any, report: Callable[[str, str], None], count: int, kind: str) -> None:
    draw = random.Random(1)

    def scored() -> Evaluation[str]:
        score = (lambda: draw.random() < 0.5) if kind == "truths" else draw.random
        return Evaluation("n", [Row(Case(name=str(number)), "", {"s": score()}) for number in range(count)])

    one, other = scored(), scored()
    benchmark.group = "comparing"
    benchmark.pedantic(compare, args=(one, other), rounds=3, warmup_rounds=1)
    if benchmark.stats is not None:
        report(f"comparing {count:,} cases, {kind}", f"{benchmark.stats.stats.median * 1e3:8.1f} ms")
