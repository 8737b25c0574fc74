"""What ends a call ends the delegates in it, and a delegate has no more time than it was given."""

from __future__ import annotations

import asyncio
import threading

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import Cancelled
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.loop import CallControl
from effectful_agents.testing import calls
from tests.handlers.delegation.delegate.team import Playing, results_in


class _Slow(Agent):
    """Takes its time."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = ""

    @Tool.define
    async def sleep(self) -> str:
        """Sleep."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended = type(error).__name__
            raise
        return "slept"

    @Skill.define
    async def rest(self, text: str) -> str:
        """slow: {text}"""
        raise NotHandled


def team(slow: _Slow, **options: float) -> Skill:
    _slow = slow
    ask = Delegate(_slow, name="ask", **options)  # ty: ignore[invalid-argument-type]

    @Skill.define
    async def work(topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled

    assert ask.is_async
    return work


def model() -> Playing:
    return Playing(boss=[calls("ask", brief="rest"), lambda request: results_in(request)[0]], slow=[calls("sleep")])


def test_cancelling_the_task_ends_what_a_delegate_waits_for():
    async def main() -> str:
        slow = _Slow()
        with handler(harness(system_prompt="brief")), handler(model().handlers):
            task = asyncio.create_task(acall(team(slow), "now"))
            await slow.begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert list(slow.__history__) == []
        return slow.ended

    assert asyncio.run(main()) == "CancelledError"


def test_the_timeout_of_a_delegate_is_told_to_the_one_who_delegates():
    async def main() -> tuple[str, str]:
        slow = _Slow()
        with handler(harness(system_prompt="brief")), handler(model().handlers):
            return await acall(team(slow, timeout=0.01), "now"), slow.ended

    said, ended = asyncio.run(main())
    assert "`ask` took longer than 0.01 s" in said
    assert ended == "CancelledError"


def test_a_synchronous_delegate_ends_at_its_next_operation():
    class Busy(Agent):
        threads: list[threading.Thread] = []

        @Tool.define
        def look(self) -> str:
            """Look."""
            self.threads.append(threading.current_thread())
            return "nothing"

        @Skill.define
        def watch(self, text: str) -> str:
            """busy: {text}"""
            raise NotHandled

    _busy = Busy()
    ask = Delegate(_busy, name="ask", timeout=0.05)

    @Skill.define
    def work(topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled

    playing = Playing(
        boss=[calls("ask", brief="watch"), lambda request: results_in(request)[0]], busy=[calls("look")] * 5_000
    )
    with handler(harness(system_prompt="brief", turns=5_000)), handler(playing.handlers):
        assert "took longer than 0.05 s" in work("now")
    assert ask.timeout == 0.05
    assert set(_busy.threads) == {threading.current_thread()}


def test_cancelling_the_call_ends_a_delegate_at_its_next_step():
    control = CallControl()

    class Worker(Agent):
        @Tool.define
        def stop_all(self) -> str:
            """Somebody cancels meanwhile."""
            control.cancel()
            return "stopped"

        @Skill.define
        def labour(self, text: str) -> str:
            """worker: {text}"""
            raise NotHandled

    _worker = Worker()
    ask = Delegate(_worker, name="ask")

    @Skill.define
    def work(topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled

    playing = Playing(boss=[calls("ask", brief="x")], worker=[calls("stop_all")])
    with handler(harness(system_prompt="brief")), handler(playing.handlers), handler(control):
        with pytest.raises(Cancelled):
            work("now")
    assert len(playing.requests) == 2
    assert ask.skill.agent is _worker
