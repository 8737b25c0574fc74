"""`steps`: a call that is followed, and stopped or gone on with between two steps."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import anyio
import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, steps
from effectful_agents.errors import Cancelled, ConfigurationError, ProviderError
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.steps import (
    DelegateStep,
    Durability,
    FinalStep,
    ModelStep,
    Phase,
    ToolStep,
    emit,
    idempotency_key,
)
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel, batch, calls
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


def test_each_step_comes_before_and_after_it_happens():
    run = followed([calls("add", a=1, b=2), "3"])
    seen = []
    for step in run:
        seen.append((told(step), list(done)))
    assert seen == [
        ("000001-model attempted", []),
        ("000001-model completed", []),
        ("000002-tool attempted", []),
        ("000002-tool completed", ["1+2"]),
        ("000003-model attempted", ["1+2"]),
        ("000003-model completed", ["1+2"]),
        ("000004-final completed", ["1+2"]),
    ]
    assert run.value == "3"


def test_steps_say_what_happens():
    model, answered, tool, called, *_, end = followed([calls("add", a=1, b=2), "3"])
    assert isinstance(model, ModelStep)
    assert isinstance(tool, ToolStep)
    assert isinstance(end, FinalStep)
    assert "\n\n?\n" in model.request["messages"][-1]["content"]
    assert model.response is None
    assert answered.response["choices"][0]["message"]["tool_calls"]
    assert (tool.tool_call.name, tool.tool_call.bound_args.arguments, tool.value) == ("add", {"a": 1, "b": 2}, None)
    assert (called.value, called.message["content"]) == (3, "3")
    assert end.value == "3"
    assert end.skill.__name__ == "ask"
    assert end.depth == 0


def test_the_value_is_that_of_the_iterator():
    def program():
        return (yield from followed(["hello"]))

    def last(iterator: Any) -> Any:
        while True:
            try:
                next(iterator)
            except StopIteration as end:
                return end.value

    assert last(program()) == last(followed(["hello"])) == "hello"


def test_stopping_before_a_tool_call_leaves_no_trace():
    bot = Bot()
    with handler(harness()), handler(ScriptedModel("one", calls("add", a=1, b=2), "three")):
        bot.ask("1")
        before = list(bot.__history__)
        for step in steps(bot.ask, "2"):
            if isinstance(step, ToolStep):
                break
        assert (done, bot.__history__) == ([], before)
        assert bot.ask("3") == "three"


@pytest.mark.parametrize("number", range(1, 8))
@pytest.mark.parametrize("way", ["close", "with", "del", "throw"])
def test_stopping_after_any_step_rolls_back(number, way):
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(calls("add", a=1, b=2), "3", "four")):
        run = steps(bot.ask, "?")
        for _ in range(number):
            next(run)
        if way == "close":
            run.close()
        elif way == "with":
            with run:
                pass
        elif way == "throw":
            with pytest.raises(KeyError):
                run.throw(KeyError("stop"))
        else:
            del run
        assert bot.__history__ == []
        if way == "close":
            assert list(run) == []
            with pytest.raises(ConfigurationError):
                run.value  # noqa: B018


def test_closing_before_the_beginning_is_as_if_nothing_was():
    run = followed([])
    run.close()
    assert list(run) == []


def test_an_error_comes_out_of_the_iteration():
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(ProviderError("down", retryable=False))):
        run = steps(bot.ask, "?")
        assert told(next(run)) == "000001-model attempted"
        failed = next(run)
        assert failed.phase is Phase.COMPLETED
        assert str(failed.error) == "down"
        with pytest.raises(ProviderError, match="down"):
            next(run)
    assert bot.__history__ == []
    assert list(run) == []


def test_a_tool_that_raises_has_its_error_in_the_step():
    *_, failed, _, _, _ = followed([calls("broken"), "a pity"])
    assert isinstance(failed, ToolStep)
    assert isinstance(failed.error.original_error, LookupError)
    assert failed.value is None
    assert "gone" in failed.message["content"]


def test_handlers_are_those_of_the_moment_of_the_call():
    with handler({now: lambda: 7.0}):
        run = followed([calls("look"), "done"])
    with handler({now: lambda: 8.0}):
        values = [step.value for step in run if isinstance(step, ToolStep)]
    assert values == [None, "it is 7.0"]
    assert now() > 8


def test_the_handlers_of_the_call_are_not_those_of_who_follows_it():
    for _ in followed(["hello"]):
        assert emit not in handler({}).__enter__()
        assert now() > 8


def test_nested_calls_have_their_steps_below():
    run = followed([calls("inner", question="!"), "deep", "done"])
    seen = list(run)
    assert [told(step) for step in seen] == [
        "000001-model attempted",
        "000001-model completed",
        "000002-delegate attempted",
        "000002-delegate/000001-call/000001-model attempted",
        "000002-delegate/000001-call/000001-model completed",
        "000002-delegate completed",
        "000003-model attempted",
        "000003-model completed",
        "000004-final completed",
    ]
    assert [step.depth for step in seen] == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert isinstance(seen[2], DelegateStep)
    assert seen[3].skill == inner
    assert seen[5].value == "deep"
    assert sorted(map(told, seen), key=lambda text: text.split()[0]) == [
        *map(told, sorted(seen, key=lambda step: step.step_id))
    ]


def in_parallel(names: str) -> list[Any]:
    by_question = {f"{name}!": name.upper() for name in names}

    def reply(request: Any) -> str:
        content = str(request["messages"][-1]["content"])
        return next((value for question, value in by_question.items() if question[0] in content[-3:]), "done")

    together = batch(*(calls("beside", name=name) for name in names))
    return [together, *([reply] * len(names)), "done"]


EXPECTED_TOGETHER = [
    "000001-model attempted",
    "000001-model completed",
    "000002-tool attempted",
    "000003-tool attempted",
    "000004-tool attempted",
    "000002-tool/000001-call/000001-model attempted",
    "000002-tool/000001-call/000001-model completed",
    "000002-tool completed",
    "000003-tool/000001-call/000001-model attempted",
    "000003-tool/000001-call/000001-model completed",
    "000003-tool completed",
    "000004-tool/000001-call/000001-model attempted",
    "000004-tool/000001-call/000001-model completed",
    "000004-tool completed",
    "000005-model attempted",
    "000005-model completed",
    "000006-final completed",
]


def test_tools_that_run_together_are_told_in_the_order_of_the_calls():
    assert [told(step) for step in followed(in_parallel("abc"))] == EXPECTED_TOGETHER


def test_tools_that_run_together_are_told_in_the_order_of_the_calls_in_an_event_loop(go):
    async def main():
        return [told(step) async for step in followed(in_parallel("abc"))]

    assert go(main) == EXPECTED_TOGETHER


def test_stopping_before_tools_that_run_together_makes_none_of_the_calls():
    for step in followed([batch(calls("nap", name="a"), calls("nap", name="b")), "done"]):
        if isinstance(step, ToolStep):
            break
    assert done == []


@pytest.mark.parametrize("skill", ["ask", "ask_async"])
def test_an_event_loop_follows_a_call(go, skill):
    bot = Bot()

    async def main():
        with handler(harness()), handler(ScriptedModel(calls("nap", name="a"), "done")):
            run = steps(getattr(bot, skill), "?")
            seen = [(told(step), list(done)) async for step in run]
        return seen, run.value

    seen, value = go(main)
    assert value == "done"
    assert len(bot.__history__) == 5
    assert seen[2:4] == [("000002-tool attempted", []), ("000002-tool completed", ["a"])]
    assert len(seen) == 7


@pytest.mark.parametrize("skill", ["ask", "ask_async"])
def test_a_plain_loop_follows_a_call_with_asynchronous_tools(skill):
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(calls("nap", name="a"), "done")):
        run = steps(getattr(bot, skill), "?")
        assert [told(step).split()[0] for step in run][2:4] == ["000002-tool", "000002-tool"]
    assert (run.value, done) == ("done", ["a"])


def test_leaving_in_an_event_loop_rolls_back(go):
    bot = Bot()

    async def main():
        with handler(harness()), handler(ScriptedModel(calls("nap", name="a"), "done", "again")):
            async for step in steps(bot.ask, "?"):
                if isinstance(step, ToolStep):
                    break
            assert bot.__history__ == []
            async with steps(bot.ask, "?") as run:
                await anext(run)
            assert bot.__history__ == []
            assert done == []

    go(main)


def test_cancelling_who_follows_ends_the_call(go):
    bot = Bot()
    stopped = []

    @Tool.define
    async def forever() -> str:
        """Sleep for ever."""
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    @Skill.define
    def wait_for_it() -> str:
        """Wait."""
        raise NotHandled

    async def main():
        with handler(harness()), handler(ScriptedModel(calls("forever"))):
            run = steps(wait_for_it)
            with anyio.move_on_after(0.01):
                async for _ in run:
                    pass
        assert stopped == [True]
        assert [step async for step in run] == []

    go(main)
    assert bot.__history__ == []


def test_a_scope_may_be_opened_and_left_between_two_steps(go):
    async def main():
        run = followed([calls("ask_inside", name="x"), "deep", calls("nap", name="a"), "done"])
        seen = []
        while True:
            try:
                with anyio.fail_after(10):
                    step = await anext(run)
            except StopAsyncIteration:
                return seen, run.value
            seen.append(told(step))

    seen, value = go(main)
    assert value == "done"
    assert seen[2:6] == [
        "000002-tool attempted",
        "000002-tool/000001-call/000001-model attempted",
        "000002-tool/000001-call/000001-model completed",
        "000002-tool completed",
    ]


def test_another_thread_is_refused_and_nothing_is_lost():
    run = followed(["hello"])
    first = next(run)
    errors = []

    def intrude():
        for action in (lambda: next(run), run.close):
            try:
                action()
            except ConfigurationError as error:
                errors.append(str(error))

    thread = threading.Thread(target=intrude)
    thread.start()
    thread.join()
    assert len(errors) == 2
    assert all("thread" in error and "async for" in error for error in errors)
    assert [told(first), *map(told, run)][-1] == "000002-final completed"
    assert run.value == "hello"


def test_for_and_async_for_are_not_mixed():
    run = followed(["hello"])
    next(run)
    with pytest.raises(ConfigurationError, match="goes on with `for`"):
        asyncio.run(anext(run))
    assert len(list(run)) == 2


def test_who_is_called_by_the_call_cannot_go_on_with_it():
    run: Any = None

    def intruder(skill, /, *args, **kwargs):
        next(run)

    with handler(harness()), handler({call_agent: intruder}):
        run = steps(inner, "?")
    with pytest.raises(ConfigurationError, match="on its way"):
        next(run)


def test_a_plain_loop_in_an_event_loop_says_what_to_write():
    async def main():
        with pytest.raises(ConfigurationError, match="async for"):
            list(followed([calls("nap", name="a"), "done"]))

    asyncio.run(main())


def test_calls_are_followed_inside_of_calls():
    inside = []

    @Tool.define
    def follow(name: str) -> str:
        """Follow another call."""
        run = steps(inner, name)
        inside.extend(map(told, run))
        return run.value

    @Skill.define
    def outer() -> str:
        """Follow."""
        raise NotHandled

    run = []
    with handler(harness()), handler(ScriptedModel(calls("follow", name="x"), "deep", "done")):
        followed_call = steps(outer)
        run.extend(map(told, followed_call))
    assert followed_call.value == "done"
    assert inside == [
        "000002-tool/000001-call/000001-model attempted",
        "000002-tool/000001-call/000001-model completed",
    ]
    assert run[3:5] == inside


def test_what_is_said_between_two_steps_is_in_the_next_turn():
    model = ScriptedModel(calls("add", a=1, b=2), "3")
    with handler(harness()), handler(model):
        run = steps(inner, "?")
        for step in run:
            if isinstance(step, ToolStep) and step.phase is Phase.COMPLETED:
                run.say("Be brief.")
    assert [message["role"] for message in model.requests[1]["messages"]][-3:] == ["assistant", "tool", "user"]
    assert model.requests[1]["messages"][-1]["content"] == "Be brief."


def test_cancelling_between_two_steps_is_seen_at_the_next():
    run = followed([calls("add", a=1, b=2), "3"])
    next(run)
    run.control.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        next(run)
    assert done == []


def test_others_hear_of_the_steps_too():
    heard = []

    def hear(event):
        heard.append(event)
        fwd()

    with handler(harness()), handler(ScriptedModel("hi")), handler({emit: hear}):
        assert inner("?") == "hi"
    assert [told(event) for event in heard if hasattr(event, "step_id")][-1] == "000002-final completed"


def test_durability_and_keys():
    model, _, tool, *_ = followed([calls("add", a=1, b=2), "3"])
    _, _, again, seen, *_ = followed([calls("look"), "3"])
    assert (model.durability, tool.durability, again.durability) == (
        Durability.DURABLE,
        Durability.DURABLE,
        Durability.DEFERRABLE,
    )
    assert idempotency_key(again) == ("", "000002-tool.1", "attempted")
    assert idempotency_key(again) != idempotency_key(seen)


def test_a_tool_that_eats_everything_does_not_keep_a_call_from_being_closed():
    @Tool.define
    def stubborn() -> str:
        """Go on for ever."""
        while True:
            try:
                inner("?")
            except:  # noqa: E722
                done.append("eaten")
                if len(done) > 3:
                    return "at last"

    @Skill.define
    def outer() -> str:
        """Do it."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("stubborn"))):
        run = steps(outer)
        for _ in range(4):
            next(run)
    run.close()
    assert done == ["eaten"] * 4
    assert list(run) == []


def test_nothing_is_left_of_a_call_that_was_left():
    class Thing(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    def leave() -> Any:
        thing = Thing()
        with handler(harness()), handler(ScriptedModel("a")):
            for _ in steps(thing.ask):
                break
        return weakref.ref(thing)

    kept = leave()
    gc.collect()
    assert kept() is None
