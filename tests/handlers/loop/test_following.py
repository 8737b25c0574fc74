"""Calls that are followed, where that might go wrong: other tasks and threads, other loops, errors, copies."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from typing import Any

import anyio
import pytest

from effectful_agents import Deadline, NotHandled, Skill, Tool, acall, handler, harness, steps
from effectful_agents.errors import Cancelled, ConfigurationError
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.steps import (
    ToolStep,
    idempotency_key,
)
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.loop.stepping import (  # noqa: F401 - the skills of this module see them
    Bot,
    add,
    ask_inside,
    beside,
    broken,
    delete,
    done,
    followed,
    inner,
    look,
    nap,
    told,
)


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.mark.parametrize("around", ["nothing", "deadline", "timeout"])
def test_what_is_refused_one_call_deeper_does_not_happen_whatever_limits_the_time(around):
    @Skill.define(timeout=60 if around == "timeout" else None)
    def janitor() -> str:
        """Tidy up."""
        raise NotHandled

    @Skill.define
    def outer() -> str:
        """Have it tidied up."""
        raise NotHandled

    limit = handler(Deadline(60) if around == "deadline" else {})
    with handler(harness()), handler(ScriptedModel(calls("janitor"), calls("delete", path="/"))), limit:
        for step in steps(outer):
            if isinstance(step, ToolStep) and step.tool_call.name == "delete":
                break
    assert done == []


def test_a_call_on_its_way_is_neither_gone_on_with_nor_closed_by_another_task(go):
    async def main():
        intruded = anyio.Event()

        @Tool.define
        async def linger() -> str:
            """Wait for the intruder."""
            await intruded.wait()
            return "ok"

        @Skill.define
        def outer() -> str:
            """Do it."""
            raise NotHandled

        with handler(harness()), handler(ScriptedModel(calls("linger"), "done")):
            call = steps(outer)
        refused = []

        async def intrude():
            for action in (call.aclose, call.__anext__):
                try:
                    await action()
                except ConfigurationError as error:
                    refused.append(str(error))
            try:
                call.close()
            except ConfigurationError as error:
                refused.append(str(error))
            intruded.set()

        async with anyio.create_task_group() as tasks:
            async for step in call:
                if told(step) == "000002-tool attempted":
                    tasks.start_soon(intrude)
        return refused, call.value

    refused, value = go(main)
    assert value == "done"
    assert len(refused) == 3
    assert all("on its way" in error for error in refused)


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_what_ends_iterations_does_not_end_this_one_in_silence(kind, go):
    def ending(skill, /, *args, **kwargs):
        raise kind

    with handler(harness()), handler({call_agent: ending}):
        call, again = steps(inner, "?"), steps(inner, "?")
    with pytest.raises(RuntimeError, match=kind.__name__):
        list(call)

    async def main():
        with pytest.raises(RuntimeError, match=kind.__name__):
            await anext(again)

    go(main)


def test_a_program_of_several_calls_gives_each_its_place():
    def program():
        return inner("1") + inner("2")

    with handler(harness()), handler(ScriptedModel("one", "two")):
        run = steps(program)
    seen = list(run)
    assert [told(step) for step in seen] == [
        "000001-call/000001-model attempted",
        "000001-call/000001-model completed",
        "000001-call/000002-final completed",
        "000002-call/000001-model attempted",
        "000002-call/000001-model completed",
        "000002-call/000002-final completed",
    ]
    assert {step.depth for step in seen} == {0}
    assert len({idempotency_key(step) for step in seen}) == 6
    assert run.value == "onetwo"


def test_a_call_is_not_copied():
    run = followed(["hello"])
    next(run)
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copying(run)
    assert [told(step) for step in run][-1] == "000002-final completed"


def test_a_call_that_was_begun_in_a_thread_that_has_ended_says_so():
    run = followed(["hello"])
    thread = threading.Thread(target=lambda: next(run))
    thread.start()
    thread.join()
    with pytest.raises(ConfigurationError, match="thread"):
        next(run)


def test_steps_inside_an_event_loop_of_a_tool_come_when_the_tool_has_ended():
    loops = []

    @Tool.define
    def in_a_loop() -> str:
        """Ask in an event loop."""
        return asyncio.run(both())

    async def both() -> str:
        return " ".join(await asyncio.gather(acall(inner, "1"), acall(inner, "2")))

    @Skill.define
    def outer() -> str:
        """Do it."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("in_a_loop"), "a", "b", "done")):
        for step in steps(outer):
            loops.append((told(step), asyncio._get_running_loop()))
    assert {loop for _, loop in loops} == {None}
    assert [text for text, _ in loops][4:8] == [
        "000002-tool/000001-call/000001-model completed",
        "000002-tool/000002-call/000001-model attempted",
        "000002-tool/000002-call/000001-model completed",
        "000002-tool completed",
    ]


def test_an_eager_task_of_a_tool_does_not_take_over_who_follows_the_call():
    async def main() -> set[Any]:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        background = []

        @Tool.define
        def begin() -> str:
            """Begin a task."""
            background.append(asyncio.get_running_loop().create_task(acall(inner, "!")))
            return "begun"

        @Skill.define
        def outer() -> str:
            """Do it."""
            raise NotHandled

        with handler(harness()), handler(ScriptedModel(calls("begin"), "inside", "done")):
            tasks = {asyncio.current_task() async for _ in steps(outer)}
        assert await background[0] == "inside"
        return tasks - {asyncio.current_task()}

    assert asyncio.run(main()) == set()


def test_what_happened_before_an_error_is_told():
    @Tool.define
    async def ask_and_break() -> str:
        """Ask, and end everything."""
        await acall(inner, "?")
        raise Cancelled("enough")

    @Skill.define
    def outer() -> str:
        """Do it."""
        raise NotHandled

    seen = []

    def follow(call: Any) -> None:
        for step in call:
            seen.append(told(step))

    with handler(harness()), handler(ScriptedModel(calls("ask_and_break"), "deep")):
        call = steps(outer)
    with pytest.raises(Cancelled, match="enough"):
        follow(call)
    assert seen[3:] == [
        "000002-tool/000001-call/000001-model attempted",
        "000002-tool/000001-call/000001-model completed",
    ]


def test_with_ends_a_call_that_is_still_held():
    with followed([calls("add", a=1, b=2), "3"]) as run:
        for step in run:
            if isinstance(step, ToolStep):
                break
    assert list(run) == []
    assert done == []
