"""Calls that are awaited: the same loop, on asyncio and on trio."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, fwd, handler, harness
from effectful_agents.errors import ConfigurationError
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now, sleep
from effectful_agents.runtime import can_wait, wait
from effectful_agents.testing import ScriptedModel, batch, calls, says

RUNNERS = {"asyncio": asyncio.run, "trio": trio.run}
events: list[str] = []
color: contextvars.ContextVar[str] = contextvars.ContextVar("color", default="none")


@pytest.fixture(params=RUNNERS)
def run_async(request: Any) -> Any:
    events.clear()
    return RUNNERS[request.param]


@Tool.define
async def nap(name: str) -> str:
    """Sleep a little."""
    events.append(f"{name} begins")
    try:
        await anyio.sleep(0)
    except BaseException:
        events.append(f"{name} stopped")
        raise
    events.append(f"{name} ends")
    return name


@Tool.define
async def forever() -> str:
    """Sleep for ever."""
    events.append("forever begins")
    try:
        await anyio.sleep_forever()
    finally:
        events.append("forever stopped")


@Tool.define
async def look() -> str:
    """Look around."""
    await anyio.sleep(0)
    return f"{color.get()} {now()}"


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    async def ask_async(self, question: str) -> str:
        """{question}"""
        raise NotHandled


@Skill.define
def plain(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
async def number(question: str) -> int:
    """{question}"""
    raise NotHandled


def roles(history: Any) -> list[str]:
    return [message["role"] for message in history]


def go(run_async: Any, main: Any) -> Any:
    return run_async(main) if run_async is trio.run else run_async(main())


def test_any_skill_is_awaited_with_its_asynchronous_tools(run_async):
    async def main():
        with handler(harness()), handler(ScriptedModel(calls("nap", name="a"), "done")):
            return await acall(plain, "?")

    assert go(run_async, main) == "done"
    assert events == ["a begins", "a ends"]


def test_asynchronous_skills_are_awaited_and_offered_as_tools(run_async):
    async def main():
        with handler(harness()), handler(ScriptedModel(3, calls("number", question="!"), 4, "four")):
            return await number("?"), await acall(plain, "?")

    assert go(run_async, main) == (3, "four")


def test_tools_see_the_handlers_and_the_context_of_the_call(run_async):
    model = ScriptedModel(calls("look"), "done")

    async def main():
        color.set("red")
        with handler(harness()), handler(model), handler({now: lambda: 7.0}):
            call = acall(plain, "?")
        color.set("blue")
        with handler({now: lambda: 8.0}):
            return await call

    assert go(run_async, main) == "done"
    assert model.requests[1]["messages"][-1]["content"] == "red 7.0"


def test_cancelling_stops_the_tool_and_leaves_no_trace(run_async):
    bot = Bot()

    async def main():
        with handler(harness()), handler(ScriptedModel("a", calls("forever"), "b")):
            await acall(bot.ask, "1")
            before = list(bot.__history__)
            with anyio.move_on_after(0.01) as scope:
                await acall(bot.ask, "2")
            assert scope.cancelled_caught
            assert bot.__history__ == before
            return await acall(bot.ask, "3")

    assert go(run_async, main) == "b"
    assert events == ["forever begins", "forever stopped"]
    assert roles(bot.__history__) == ["system", "user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("turn", range(4))
def test_cancelling_at_any_turn_leaves_no_trace(run_async, turn):
    """The model is waited for in each turn; the call is stopped while it waits in one of them."""
    bot = Bot()
    script = [calls("nap", name="a"), calls("nap", name="b"), calls("nap", name="c"), "done"]

    async def main():
        asked = 0
        scope = anyio.CancelScope()

        def waiting(**_: Any) -> Any:
            nonlocal asked
            if asked == turn:
                scope.cancel()
            asked += 1
            wait(anyio.sleep(0))
            return fwd()

        with handler(harness()), handler(ScriptedModel(*script)), handler({completion: waiting}):
            with scope:
                await acall(bot.ask, "?")
        return scope.cancelled_caught

    assert go(run_async, main)
    assert bot.__history__ == []


def test_many_calls_wait_at_once_without_a_thread(run_async):
    here = 0
    all_here: Any = None

    def together(**_: Any) -> Any:
        nonlocal here
        here += 1
        if here == 200:
            all_here.set()
        wait(all_here.wait())
        return says("done")

    async def main():
        nonlocal all_here
        all_here = anyio.Event()
        bots = [Bot() for _ in range(200)]
        before = threading.active_count()
        with handler(harness(system_prompt="brief")), handler({completion: together}):
            async with anyio.create_task_group() as tasks:
                for bot in bots:
                    tasks.start_soon(acall, bot.ask, "?")
        assert threading.active_count() == before
        return [roles(bot.__history__) for bot in bots]

    assert go(run_async, main) == [["user", "assistant"]] * 200


def test_sync_in_async_in_sync(run_async):
    @Tool.define
    async def deep() -> str:
        """Call another skill."""
        return await acall(inner, "deep")

    @Skill.define
    def inner(question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def outer() -> str:
        """Outer."""
        raise NotHandled

    async def main():
        with handler(harness()), handler(ScriptedModel(calls("deep"), calls("nap", name="x"), "inner", "outer")):
            return await acall(outer)

    assert go(run_async, main) == "outer"
    assert events == ["x begins", "x ends"]


def test_sleeping_lets_other_tasks_go_on(run_async):
    async def other():
        events.append("other")

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)

            def pausing(**_: Any) -> Any:
                for _ in range(1000):  # the other task may not be the next one that the loop takes
                    sleep(0.001)
                    if events:
                        break
                events.append("slept")
                return says("done")

            with handler(harness()), handler({completion: pausing}):
                await acall(plain, "?")

    go(run_async, main)
    assert events == ["other", "slept"]


def test_a_tool_error_in_an_asynchronous_tool_is_told_with_its_frames(run_async):
    @Tool.define
    async def fail() -> str:
        """Fail."""
        await anyio.sleep(0)
        raise KeyError("gone")

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    model = ScriptedModel(calls("fail"), "done")

    async def main():
        with handler(harness()), handler(model):
            return await acall(ask)

    assert go(run_async, main) == "done"
    assert 'raise KeyError("gone")' in model.requests[1]["messages"][-1]["content"]


def test_a_plain_call_in_a_running_loop_works_until_something_has_to_be_awaited(run_async):
    bot = Bot()

    async def main():
        with handler(harness()), handler(ScriptedModel("a", calls("nap", name="x"))):
            assert bot.ask("1") == "a"
            with pytest.raises(ConfigurationError, match="acall"):
                bot.ask("2")

    go(run_async, main)
    assert roles(bot.__history__) == ["system", "user", "assistant"]


def test_without_a_running_loop_asynchronous_tools_run_all_the_same():
    events.clear()
    model = ScriptedModel(batch(calls("nap", id="1", name="a"), calls("look", id="2")), "done")
    color.set("green")
    with handler(harness()), handler(model), handler({now: lambda: 9.0}):
        assert plain("?") == "done"
    assert events == ["a begins", "a ends"]
    assert model.requests[1]["messages"][-1]["content"] == "green 9.0"


def test_a_stub_of_an_asynchronous_skill_may_be_either():
    async def later(question: str) -> int:
        return 2

    async def main():
        with handler({number: lambda question: 1}):
            one = await number("?")
        with handler({number: later}):
            return one, await number("?")

    assert asyncio.run(main()) == (1, 2)


def test_a_call_that_is_never_awaited_does_nothing():
    bot = Bot()
    with handler(harness()), handler(ScriptedModel("a")):
        acall(bot.ask, "?").close()
        bot.ask_async("?").close()
    assert bot.__history__ == []


def test_closing_a_waiting_call_runs_what_stands_in_finally():
    events.clear()
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(calls("forever"))):
        call = acall(bot.ask, "?")

    async def main():
        task = asyncio.ensure_future(call)
        while not events:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert events == ["forever begins", "forever stopped"]
    assert bot.__history__ == []


def test_an_asyncio_timeout_ends_the_call():
    async def main():
        with handler(harness()), handler(ScriptedModel(calls("forever"))):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await acall(plain, "?")

    asyncio.run(main())


def test_one_call_may_be_driven_from_two_threads_in_turn():
    """Made in one thread and awaited in another."""
    with handler(harness()), handler(ScriptedModel(calls("nap", name="x"), "done")):
        call = acall(plain, "?")
    answers: list[str] = []

    async def main():
        answers.append(await call)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
    assert answers == ["done"]


def test_nothing_is_left_behind():
    import weakref

    bot = Bot()
    seen = weakref.ref(bot)

    async def main(bot: Bot):
        with handler(harness()), handler(ScriptedModel(calls("nap", name="x"), "done")):
            await acall(bot.ask, "?")

    asyncio.run(main(bot))
    del bot
    gc.collect()
    assert seen() is None
    assert not can_wait()


# What a second pair of fresh eyes broke


def test_a_tool_that_leaves_the_program_does_so_in_a_plain_call_and_the_next_call_works():
    @Tool.define
    async def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    for _ in range(2):
        with handler(harness()), handler(ScriptedModel(calls("leave"))), pytest.raises(SystemExit):
            ask()


def test_a_plain_call_through_an_asynchronous_skill_does_not_block_others():
    """A tool under it waits for a thread in which an asynchronous tool is awaited."""
    import concurrent.futures

    from effectful_agents.runtime import propagate

    @Tool.define
    async def leaf() -> str:
        """Leaf."""
        await anyio.sleep(0)
        return "x"

    @Skill.define
    def small() -> str:
        """Small."""
        raise NotHandled

    @Tool.define
    def fan() -> str:
        """Fan out."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(propagate(small)).result(30)

    @Skill.define
    async def middle() -> str:
        """Middle."""
        raise NotHandled

    @Skill.define
    def top() -> str:
        """Top."""
        raise NotHandled

    script = ScriptedModel(calls("middle"), calls("fan"), calls("leaf"), "small", "middle", "top")
    with handler(harness()), handler(script):
        assert top() == "top"


def test_run_takes_asynchronous_skills(run_async):
    from effectful_agents import run

    with handler(harness()), handler(ScriptedModel(1)):
        assert run(number, "?").value == 1

    async def main():
        with handler(harness()), handler(ScriptedModel(2)):
            return await acall(run, number, "?")

    result = go(run_async, main)
    assert result.value == 2
    assert roles(result.messages) == ["system", "user", "assistant"]


def test_a_task_that_a_tool_leaves_behind_keeps_its_own_history():
    left: list[Any] = []

    class Starter(Agent):
        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

        @Tool.define
        async def later(self) -> str:
            """Go on later."""

            async def go_on() -> str:
                await ready.wait()
                return await acall(self.ask, "background")

            left.append(asyncio.create_task(go_on()))
            return "started"

    starter = Starter()

    async def main():
        nonlocal ready
        ready = asyncio.Event()
        with handler(harness()), handler(ScriptedModel(calls("later"), "done", "behind")):
            await acall(starter.ask, "x")
            ready.set()
            return await left[0]

    ready: Any = None
    assert asyncio.run(main()) == "behind"
    assert roles(starter.__history__) == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]


def test_a_call_that_is_forgotten_is_named_in_the_warning():
    for call in (number("?"), acall(number, "?")):
        assert call.__name__ == "number"
        call.close()
