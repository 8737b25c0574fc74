"""Several tool calls in one turn: at the same time where they can be, with their results in order always."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, fwd, handler, harness, run
from effectful_agents.errors import Cancelled, OptionError
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.messages.mending import mended
from effectful_agents.operations.loop import call_tool
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, batch, calls

RUNNERS = {"asyncio": anyio.run, "trio": trio.run}
met: Any = None


@pytest.fixture(params=["asyncio", "trio", "plain"])
def talk(request: Any) -> Any:
    """Call a skill in each of the three ways; the result has the messages too."""

    def go(skill: Any, *replies: Any, stack: Any = None) -> Any:
        with handler(stack or harness()), handler(ScriptedModel(*replies)):
            if request.param == "plain":
                return run(skill)

            async def main() -> Any:
                return await acall(lambda: run(skill))

            return RUNNERS[request.param](main)

    return go


def results(messages: Any) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


@Tool.define(concurrent=True)
def meet(name: str) -> str:
    """Wait for the other one."""
    met.wait()
    return name


@Skill.define
def work() -> str:
    """Work."""
    raise NotHandled


def test_calls_of_concurrent_tools_run_at_the_same_time(talk):
    global met
    met = threading.Barrier(2, timeout=30)
    result = talk(work, batch(calls("meet", id="1", name="a"), calls("meet", id="2", name="b")), "done")
    assert results(result.messages) == ["a", "b"]


async_met: dict[str, anyio.Event] = {}


@Tool.define
async def first_waits(name: str) -> str:
    """Wait for the second."""
    await async_met["second"].wait()
    return name


@Tool.define
async def second_frees(name: str) -> str:
    """Free the first."""
    async_met["second"].set()
    return name


@pytest.mark.parametrize("runner", RUNNERS)
def test_asynchronous_tools_run_at_the_same_time_and_their_results_are_in_order(runner):
    async def main() -> Any:
        async_met["second"] = anyio.Event()
        several = batch(calls("first_waits", id="1", name="a"), calls("second_frees", id="2", name="b"))
        with handler(harness()), handler(ScriptedModel(several, "done")):
            return await acall(lambda: run(work))

    result = RUNNERS[runner](main)
    assert results(result.messages) == ["a", "b"]
    assert mended(result.messages) == result.messages


@Tool.define(concurrent=True)
def fail(why: str) -> str:
    """Fail."""
    raise KeyError(why)


@Tool.define(concurrent=True)
def echo(text: str) -> str:
    """Echo."""
    return text


@Tool.define
def alone(text: str) -> str:
    """Run alone."""
    return text


def test_one_failure_does_not_lose_the_other_results(talk):
    several = batch(calls("echo", id="1", text="a"), calls("fail", id="2", why="x"), calls("echo", id="3", text="b"))
    one, two, three = results(talk(work, several, "done").messages)
    assert (one, three) == ("a", "b")
    assert "KeyError" in two


def test_a_bad_call_among_them_is_answered_in_its_place(talk):
    several = batch(calls("echo", id="1", text="a"), calls("echo", id="2"), calls("echo", id="3", text="b"))
    one, two, three = results(talk(work, several, "done").messages)
    assert (one, three) == ("a", "b")
    assert "could not be decoded" in two


def test_a_tool_that_is_not_concurrent_makes_them_run_one_after_the_other(talk):
    order: list[str] = []

    def watching(tool_call: Any) -> Any:
        order.append(f"{tool_call.id} begins")
        result = fwd()
        order.append(f"{tool_call.id} ends")
        return result

    several = batch(calls("echo", id="1", text="a"), calls("alone", id="2", text="b"))
    talk(work, several, "done", stack=Layers(*harness().layers, {call_tool: watching}))
    assert order[:4] == ["1 begins", "1 ends", "2 begins", "2 ends"]


def test_no_more_run_at_once_than_are_allowed(talk):
    lock = threading.Lock()
    now_running, highest = 0, 0

    def watching(tool_call: Any) -> Any:
        nonlocal now_running, highest
        with lock:
            now_running += 1
            highest = max(highest, now_running)
        try:
            return fwd()
        finally:
            with lock:
                now_running -= 1

    stack = Layers(
        AgentLoop(tools_at_once=2), LexicalToolExtractor(), HistoryBuilder(), TenacityRetryer(), {call_tool: watching}
    )
    several = batch(*(calls("echo", id=str(n), text=str(n)) for n in range(9)))
    assert results(talk(work, several, "done", stack=stack).messages) == [str(n) for n in range(9)]
    assert highest <= 2


def test_the_number_of_calls_at_once_is_checked():
    for wrong in (0, -1, "2", None):
        with pytest.raises(OptionError, match="tools_at_once"):
            AgentLoop(tools_at_once=wrong)


def test_the_first_final_call_in_order_counts(talk):
    def final(tool_call: Any) -> Any:
        message, value, _ = fwd()
        return message, value, value != "a"

    several = batch(*(calls("echo", id=text, text=text) for text in "abc"))
    result = talk(work, several, stack=Layers(*harness().layers, {call_tool: final}))
    assert result.value == "b"
    assert results(result.messages) == ["a", "b", "c"]


def test_a_signal_of_one_ends_the_call(talk):
    def stop(tool_call: Any) -> Any:
        if tool_call.id == "b":
            raise Cancelled("enough")
        return fwd()

    several = batch(*(calls("echo", id=text, text=text) for text in "abc"))
    with pytest.raises(Cancelled, match="enough"):
        talk(work, several, stack=Layers(*harness().layers, {call_tool: stop}))


class Bot(Agent):
    @Skill.define
    def lead(self) -> str:
        """Lead."""
        raise NotHandled

    @Skill.define
    def side(self, topic: str) -> str:
        """Think about {topic}."""
        raise NotHandled

    @Tool.define(concurrent=True)
    def think(self, topic: str) -> str:
        """Think."""
        return self.side(topic)


def test_calls_of_the_same_agent_beside_each_other_leave_a_valid_history(talk):
    bot = Bot()
    several = batch(calls("think", id="1", topic="x"), calls("think", id="2", topic="y"))

    def reply(request: Any) -> Any:
        last = request["messages"][-1]
        if last["role"] == "tool":
            return "inner" if len(request["messages"]) > 5 and "Think" in str(request["messages"][-2]) else "done"
        return calls("echo", id="same", text="z") if "Think" in str(last["content"]) else several

    @Tool.define(concurrent=True)
    def echo(text: str) -> str:
        """Echo."""
        return text

    bot.echo = echo
    talk(bot.lead, *[reply] * 7)
    assert mended(bot.__history__) == bot.__history__
    assert [m["role"] for m in bot.__history__].count("user") == 3


@pytest.mark.parametrize("runner", RUNNERS)
def test_cancelling_stops_all_of_them_and_leaves_no_trace(runner):
    begun: list[str] = []
    stopped: list[str] = []
    scopes: list[anyio.CancelScope] = []

    @Tool.define
    async def forever(name: str) -> str:
        """Wait for ever."""
        begun.append(name)
        if len(begun) == 2:
            scopes[0].cancel()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(name)

    class Waiter(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    waiter = Waiter()
    waiter.forever = forever

    async def main() -> bool:
        several = batch(calls("forever", id="1", name="a"), calls("forever", id="2", name="b"))
        with handler(harness()), handler(ScriptedModel(several)), anyio.CancelScope() as scope:
            scopes.append(scope)
            await acall(waiter.ask)
        return scope.cancelled_caught

    assert RUNNERS[runner](main)
    assert sorted(stopped) == ["a", "b"]
    assert waiter.__history__ == []


def test_a_tool_that_was_cancelled_is_not_called_again():
    import asyncio

    ran: list[int] = []

    @Tool.define
    async def pay(x: int) -> str:
        """Pay."""
        ran.append(x)
        if x == 1:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        return "ok"

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    async def main() -> None:
        several = batch(calls("pay", id="1", x=1), calls("pay", id="2", x=2))
        with handler(harness()), handler(ScriptedModel(several, "done")), pytest.raises(asyncio.CancelledError):
            await acall(ask)

    asyncio.run(main())
    assert ran.count(1) == 1
