"""Tools that may take only so long."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness, run
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel, calls

free = threading.Event()
begun = threading.Event()
stopped: list[str] = []


@pytest.fixture(params=["asyncio", "trio", "plain"])
def results(request: Any) -> Any:
    """The results that the model is told after one reply."""
    stopped.clear()
    free.clear()
    begun.clear()

    def go(skill: Any, *replies: Any) -> list[str]:
        with handler(harness()), handler(ScriptedModel(*replies, "done")), handler({now: lambda: 5.0}):
            if request.param == "plain":
                result = run(skill)
            else:

                async def main() -> Any:
                    return await acall(lambda: run(skill))

                result = {"asyncio": anyio.run, "trio": trio.run}[request.param](main)
        return [message["content"] for message in result.messages if message["role"] == "tool"]

    yield go
    free.set()


@Tool.define(timeout=0.02)
async def slow() -> str:
    """Be slow."""
    try:
        await anyio.sleep_forever()
    finally:
        stopped.append("slow")


@Tool.define(timeout=0.02)
def stuck() -> str:
    """Wait for what does not come."""
    begun.set()
    free.wait(30)
    stopped.append("stuck")
    return "late"


@Tool.define(timeout=30)
async def quick(text: str) -> str:
    """Be quick."""
    await anyio.sleep(0)
    return f"{text} {now()}"


@Tool.define(timeout=30)
def prompt(text: str) -> str:
    """Be quick."""
    return f"{text} {now()}"


@Tool.define(timeout=30)
def failing() -> str:
    """Fail."""
    raise TimeoutError("its own")


@Skill.define
def work() -> str:
    """Work."""
    raise NotHandled


def test_an_asynchronous_tool_is_stopped_when_its_time_is_over(results):
    (told,) = results(work, calls("slow"))
    assert "TimeoutError: `slow` took longer than 0.02 s" in told
    assert stopped == ["slow"]


def test_another_tool_is_left_to_itself_and_its_result_is_dropped(results, caplog):
    with caplog.at_level(logging.WARNING):
        while not begun.is_set():  # on a busy machine its time may be over before its thread has started
            (told,) = results(work, calls("stuck"))
            assert "TimeoutError: `stuck` took longer than 0.02 s" in told
        assert stopped == []
        free.set()
        for thread in threading.enumerate():
            if thread.name == "effectful-agents-stuck":
                thread.join(30)
    assert set(stopped) == {"stuck"}
    assert "too late" in caplog.text


@pytest.mark.parametrize("name", ["quick", "prompt"])
def test_a_tool_in_time_is_like_any_other_and_has_the_handlers_of_the_call(results, name):
    assert results(work, calls(name, text="x")) == ["x 5.0"]


def test_an_error_of_the_tools_own_is_told_as_it_is(results):
    (told,) = results(work, calls("failing"))
    assert "TimeoutError: its own" in told


@pytest.mark.parametrize("tool", [quick, prompt])
@pytest.mark.parametrize("later", [False, True])
def test_a_handler_of_a_tool_may_be_asynchronous_or_not(results, tool, later):
    async def cached_later(text: str) -> str:
        return "cached"

    stub = cached_later if later else (lambda text: "cached")
    with handler({tool: stub}):
        assert results(work, calls(tool.__name__, text="x")) == ["cached"]
