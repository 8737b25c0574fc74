"""Skills called by tools and by other skills, plain and asynchronous in every mixture: histories and steps nest."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

import pytest
import trio

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, handler, harness, propagate, run, steps
from effectful_agents.errors import LimitExceeded, OptionError
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.messages.validity import faults

CALL: dict[str, Callable[..., Any]] = {
    "plain": lambda skill, *args: plainly(skill, *args),
    "asyncio": lambda skill, *args: asyncio.run(acall(skill, *args)),
    "trio": lambda skill, *args: trio.run(lambda: acall(skill, *args)),
    "steps": lambda skill, *args: followed(steps(skill, *args)),
    "async steps": lambda skill, *args: asyncio.run(followed_async(steps(skill, *args))),
    "run": lambda skill, *args: run(skill, *args).value,
    "thread": lambda skill, *args: in_thread(plainly, skill, *args),
}


def plainly(skill: Any, *args: Any) -> Any:
    """A plain call, for skills of both kinds."""
    value = skill(*args)
    return asyncio.run(awaited(value)) if asyncio.iscoroutine(value) else value


async def awaited(value: Any) -> Any:
    return await value


def followed(call: Any) -> Any:
    for _ in call:
        pass
    return call.value


async def followed_async(call: Any) -> Any:
    async for _ in call:
        pass
    return call.value


def in_thread(function: Any, *args: Any) -> Any:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(propagate(function), *args).result(30)


class Helper(Agent):
    @Skill.define
    def help(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    async def help_async(self, question: str) -> str:
        """{question}"""
        raise NotHandled


class Bot(Agent):
    def __init__(self, helper: Helper) -> None:
        self.helper = helper

    @Tool.define
    def ask_helper(self, question: str) -> str:
        """Ask the helper."""
        return self.helper.help(question)

    @Tool.define
    async def ask_helper_async(self, question: str) -> str:
        """Ask the helper."""
        return await self.helper.help_async(question)

    @Tool.define
    async def ask_helper_from_async(self, question: str) -> str:
        """Ask the helper."""
        return await acall(self.helper.help, question)

    @Tool.define
    def ask_in_thread(self, question: str) -> str:
        """Ask the helper in a thread."""
        return in_thread(self.helper.help, question)

    @Tool.define
    def ask_self(self, question: str) -> str:
        """Ask oneself."""
        return self.small(question)

    @Tool.define
    async def ask_self_async(self, question: str) -> str:
        """Ask oneself."""
        return await acall(self.small, question)

    @Skill.define
    def small(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def work(self) -> str:
        """Work."""
        raise NotHandled

    @Skill.define
    async def work_async(self) -> str:
        """Work."""
        raise NotHandled


def roles(agent: Agent) -> list[str]:
    return [message["role"] for message in agent.__history__]


OF_ONE_CALL = ["system", "user", "assistant"]
WITH_A_TOOL = ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("way", CALL)
@pytest.mark.parametrize("skill", ["work", "work_async"])
@pytest.mark.parametrize("tool", ["ask_helper", "ask_helper_async", "ask_helper_from_async", "ask_in_thread"])
def test_each_agent_gets_its_own_messages(way, skill, tool):
    helper = Helper()
    bot, model = Bot(helper), ScriptedModel(calls(tool, question="how?"), "so", "done")
    with handler(harness()), handler(model):
        assert CALL[way](getattr(bot, skill)) == "done"
    assert (roles(bot), roles(helper)) == (WITH_A_TOOL, OF_ONE_CALL)
    assert bot.__history__[3]["content"] == "so"
    assert not faults(bot.__history__)
    assert not faults(helper.__history__)


@pytest.mark.parametrize("way", CALL)
@pytest.mark.parametrize("tool", ["ask_self", "ask_self_async", "small"])
def test_a_call_of_the_same_agent_follows_when_the_outer_one_is_complete(way, tool):
    bot, model = Bot(Helper()), ScriptedModel(calls(tool, question="how?"), "so", "done", "more")
    with handler(harness()), handler(model):
        assert CALL[way](bot.work) == "done"
        assert not faults(bot.__history__)
        assert roles(bot) == [*WITH_A_TOOL, "user", "assistant"]
        assert CALL[way](bot.small, "again") == "more"
    assert not faults(bot.__history__)


@pytest.mark.parametrize("way", CALL)
def test_an_error_deep_inside_leaves_every_history_as_it_was(way):
    helper = Helper()
    bot = Bot(helper)

    def broken(**request: Any) -> Any:
        if "how?" in str(request["messages"][-1]["content"]):
            raise KeyboardInterrupt
        return calls("ask_helper", question="how?")

    with handler(harness()), handler({completion: broken}):
        with pytest.raises(KeyboardInterrupt):
            CALL[way](bot.work)
    assert (roles(bot), roles(helper)) == ([], [])


@pytest.mark.parametrize("way", CALL)
def test_a_nested_call_has_the_handlers_of_its_place(way):
    @Tool.define
    def under_another_clock() -> str:
        """Ask under another clock."""
        with handler({now: lambda: 2.0}):
            return tell("!")

    @Skill.define
    def outer() -> str:
        """Work."""
        raise NotHandled

    @Skill.define
    def tell(question: str) -> str:
        """{question}"""
        raise NotHandled

    times = []

    def model(**request: Any) -> Any:
        times.append(now())
        return next(script)

    script = iter([calls("under_another_clock"), reply("so"), reply("done")])
    with handler(harness()), handler({now: lambda: 1.0}), handler({completion: model}):
        assert CALL[way](outer) == "done"
    assert times == [1.0, 2.0, 1.0]


def reply(text: str) -> Any:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def test_a_pool_of_threads_has_the_handlers_of_who_submits():
    with handler(harness()), handler(ScriptedModel(*["ok"] * 20)), concurrent.futures.ThreadPoolExecutor(4) as pool:
        helper = Helper()
        answers = list(pool.map(propagate(helper.help), map(str, range(20))))
    assert answers == ["ok"] * 20
    assert len(helper.__history__) == 1 + 2 * 20


def test_a_thread_that_outlives_an_event_loop_may_begin_another():
    """What says which event loop runs is not carried along."""

    async def main() -> str:
        def work() -> str:
            return asyncio.run(acall(helper.help, "?"))

        return await asyncio.to_thread(propagate(work))

    helper = Helper()
    with handler(harness()), handler(ScriptedModel("ok")):
        assert asyncio.run(main()) == "ok"


@pytest.mark.parametrize("depth", [0, 3])
def test_skills_that_call_each_other_for_ever_are_stopped_whatever_catches_errors_in_between(depth):
    class Pair(Agent):
        @Skill.define
        def ping(self) -> str:
            """Ping."""
            raise NotHandled

        @Skill.define
        def pong(self) -> str:
            """Pong."""
            raise NotHandled

    def model(**request: Any) -> Any:
        return calls("pong" if request["messages"][-1]["content"].endswith("Ping.") else "ping")

    loop = AgentLoop(depth=depth, system_prompt="brief")
    stack = Layers(loop, LexicalToolExtractor(), HistoryBuilder(), TenacityRetryer())
    with handler(stack), handler({completion: model}), pytest.raises(LimitExceeded, match="depth") as caught:
        Pair().ping()
    assert (caught.value.limit, caught.value.value) == ("depth", depth)


@pytest.mark.parametrize("depth", [-1, 2.5, "3"])
def test_no_depth_is_refused(depth):
    with pytest.raises(OptionError, match="depth"):
        AgentLoop(depth=depth)
