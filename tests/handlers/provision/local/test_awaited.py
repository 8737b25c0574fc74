"""The real model in calls that are awaited: other tasks go on while it reads and writes."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio

from effectful_agents.errors import RequestTimeoutError
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import bridged, handler

pytestmark = pytest.mark.local_model

RUNNERS = {"asyncio": anyio.run, "trio": trio.run}


@pytest.fixture(params=RUNNERS)
def run(request: Any) -> Any:
    return RUNNERS[request.param]


def asked(text: str, **request: Any) -> Any:
    request.setdefault("max_tokens", 8)
    return bridged(completion, messages=[{"role": "user", "content": text}], **request)


def test_other_tasks_go_on(run):
    ticks = 0

    async def ticking():
        nonlocal ticks
        while True:
            await anyio.sleep(0)
            ticks += 1

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ticking)
            with handler(LocalModel()):
                reply = await asked("Name a colour.")
            tasks.cancel_scope.cancel()
        return reply

    assert run(main)["choices"][0]["message"]["content"]
    assert ticks > 10


def test_a_cancelled_request_stops_and_the_next_one_works(run):
    async def main():
        with handler(LocalModel()):
            with anyio.move_on_after(0.05) as scope:
                await asked("word " * 1500, max_tokens=200)
            return scope.cancelled_caught, await asked("Name a colour.")

    cancelled, reply = run(main)
    assert cancelled
    assert reply["choices"][0]["message"]["content"]


def test_time_that_is_over_is_an_error(run):
    async def main():
        with handler(LocalModel()), pytest.raises(RequestTimeoutError):
            await asked("word " * 1500, timeout=0.01)

    run(main)
