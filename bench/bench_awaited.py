"""Many calls that wait at once, on one thread: each asks a model that takes 50 ms."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, acall, handler, harness
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import wait
from effectful_agents.testing import says

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
