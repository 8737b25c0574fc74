"""`CallControl`: ending a call from outside, and saying something to it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents import Agent, CallControl, NotHandled, Skill, Tool, acall, fwd, handler, harness, propagate
from effectful_agents.errors import Cancelled, Suspended
from effectful_agents.operations.loop import call_agent, call_assistant, call_tool, completion
from effectful_agents.operations.world import now, sleep
from effectful_agents.testing import ScriptedModel, batch, calls, says

control = CallControl()
done: list[Any] = []


@pytest.fixture(autouse=True)
def _new() -> None:
    global control
    control = CallControl()
    done.clear()


@Tool.define
def stop() -> str:
    """Have the call ended."""
    control.cancel("enough")
    return "stopped"


@Tool.define
def stubborn() -> str:
    """Have the call ended, and eat what that raises."""
    control.cancel("enough")
    for _ in range(3):
        try:
            now()
        except:  # noqa: E722
            done.append("eaten")
    return "still here"


@Tool.define
def talk() -> str:
    """Say something to the call."""
    control.say("one")
    control.say([{"type": "text", "text": "two"}])
    return "said"


@Tool.define
async def forever() -> str:
    """Sleep for ever."""
    done.append("begins")
    try:
        await anyio.sleep_forever()
    except BaseException as error:
        done.append(type(error).__name__)
        raise


@Tool.define(concurrent=True)
def beside(name: str) -> str:
    """Work beside others."""
    done.append(name)
    return name


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def outer(self) -> str:
        """Do it."""
        raise NotHandled


# --- ending -----------------------------------------------------------------------------------------------------------


def test_a_call_ends_at_its_next_operation_and_leaves_no_trace(caplog):
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(calls("stop"), "never", "again")):
        with handler(control), pytest.raises(Cancelled, match="enough"):
            bot.ask("?")
        assert bot.__history__ == []
        assert control.cancelled
        assert "`stop` came to its end too late; its result is dropped" in caplog.text
        assert bot.ask("?") == "never"


def test_a_cancelled_control_ends_further_calls_before_they_begin():
    control.cancel()
    model = ScriptedModel()
    with handler(harness()), handler(model), handler(control), pytest.raises(Cancelled):
        ask("?")
    assert model.requests == []


def test_a_bare_except_does_not_keep_a_call_alive():
    model = ScriptedModel(calls("stubborn"), "never")
    with handler(harness()), handler(model), handler(control), pytest.raises(Cancelled):
        ask("?")
    assert done == ["eaten"] * 3
    assert len(model.requests) == 1


@pytest.mark.parametrize("signal", [Suspended, Cancelled])
def test_a_signal_that_a_tool_ate_is_raised_again(signal):
    @Tool.define
    def deaf() -> str:
        """Eat everything."""
        try:
            now()
        except BaseException:
            done.append("eaten")
        return "fine"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    def suspend() -> float:
        raise signal("wait")

    model = ScriptedModel(calls("deaf"), "never")
    with handler(harness()), handler(model), handler({now: suspend}), pytest.raises(signal, match="wait"):
        go_on()
    assert (done, len(model.requests)) == (["eaten"], 1)


def test_a_signal_that_a_handler_ate_is_raised_again():
    def deaf(tool_call):
        try:
            return fwd()
        except BaseException:
            return {"role": "tool", "tool_call_id": tool_call.id, "content": "fine"}, None, False

    @Tool.define
    def suspend() -> str:
        """Wait for somebody."""
        raise Suspended("wait")

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    model = ScriptedModel(calls("suspend"), "never")
    with handler(harness()), handler(model), handler({call_tool: deaf}), pytest.raises(Suspended):
        go_on()
    assert len(model.requests) == 1


def test_a_signal_of_one_call_lets_those_beside_it_come_to_their_ends():
    @Tool.define(concurrent=True)
    def suspend() -> str:
        """Wait for somebody."""
        raise Suspended("wait")

    results = []

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    def look(tool_call):
        result = fwd()
        results.append(result[1])
        return result

    reply = batch(calls("beside", name="a"), calls("suspend"), calls("beside", name="b"))
    with handler(harness()), handler(ScriptedModel(reply)), handler({call_tool: look}), pytest.raises(Suspended):
        go_on()
    assert sorted(results) == ["a", "b"]


def test_a_nested_call_that_is_cancelled_alone_is_an_event_for_the_tool_that_made_it():
    @Tool.define
    def try_it() -> str:
        """Try it."""
        inner = CallControl()
        inner.cancel("no time")
        try:
            with handler(inner):
                return ask("!")
        except Cancelled as cancelled:
            return f"given up: {cancelled}"

    @Skill.define
    def outer() -> str:
        """Do it."""
        raise NotHandled

    model = ScriptedModel(calls("try_it"), "done")
    with handler(harness()), handler(model):
        assert outer() == "done"
    assert model.requests[1]["messages"][-1]["content"] == "given up: no time"


def test_cancelled_is_told_from_a_cancellation_of_the_event_loop(go):
    async def main():
        with handler(harness()), handler(ScriptedModel(calls("forever"), calls("forever"))):
            with handler(control):
                call = acall(ask, "?")
            async with anyio.create_task_group() as tasks:

                async def cancel_when_it_waits():
                    while not done:
                        await anyio.sleep(0)
                    control.cancel("mine")

                tasks.start_soon(cancel_when_it_waits)
                with pytest.raises(Cancelled, match="mine"):
                    await call
            assert done == ["begins", "Cancelled" if go is trio.run else "CancelledError"]
            done.clear()
            with anyio.move_on_after(0.01) as scope, handler(CallControl()):
                await acall(ask, "?")
            assert scope.cancelled_caught

    go(main)


@pytest.mark.parametrize("where", ["tool", "sleep", "model"])
def test_a_call_that_waits_in_a_thread_is_ended_from_another(where):
    waiting = threading.Event()

    def wait_for_ever(*_: Any, **__: Any) -> Any:
        waiting.set()
        sleep(3600)

    @Tool.define
    def doze() -> str:
        """Sleep for ever."""
        return wait_for_ever()

    async def rest() -> str:
        """Sleep for ever."""
        waiting.set()
        await anyio.sleep_forever()
        return ""

    tool = Tool.define(rest) if where == "tool" else doze

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    def cancel() -> None:
        waiting.wait(30)
        control.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    model = {completion: wait_for_ever} if where == "model" else ScriptedModel(calls(tool.__name__), "never")
    with handler(harness()), handler(model), handler(control), pytest.raises(Cancelled):
        go_on()
    thread.join()


def test_what_a_cancelled_call_has_left_running_in_threads_ends_at_its_next_operation(caplog):
    caplog.set_level(logging.WARNING)
    going_on, cancelled = threading.Event(), threading.Event()
    ended = threading.Event()

    @Tool.define(concurrent=True)
    def slow() -> str:
        """Work slowly."""
        going_on.set()
        cancelled.wait(30)
        try:
            now()
        except BaseException as error:
            done.append(type(error))
            raise
        finally:
            ended.set()
        return "late"

    @Tool.define(concurrent=True)
    def interrupt() -> str:
        """Press Ctrl-C."""
        going_on.wait(30)
        raise KeyboardInterrupt

    @Skill.define
    def both() -> str:
        """Do both."""
        raise NotHandled

    reply = batch(calls("interrupt"), calls("slow"))
    with handler(harness()), handler(ScriptedModel(reply)), pytest.raises(KeyboardInterrupt):
        both()
    cancelled.set()
    assert ended.wait(30)
    assert done == [Cancelled]


def test_nested_calls_end_with_the_outer_one():
    bot = Bot()
    script = (calls("ask", question="!"), calls("stop"), "never")
    with handler(harness()), handler(ScriptedModel(*script)), handler(control), pytest.raises(Cancelled):
        bot.outer()
    assert bot.__history__ == []


def test_a_handler_outside_sees_the_cancellation_pass():
    def look(skill, /, *args, **kwargs):
        try:
            return fwd()
        except BaseException as error:
            done.append(type(error))
            raise

    with handler(harness()), handler({call_agent: look}), handler(ScriptedModel(calls("stop"))), handler(control):
        with pytest.raises(Cancelled):
            ask("?")
    assert done == [Cancelled]


# --- saying -----------------------------------------------------------------------------------------------------------


def test_what_is_said_joins_at_the_next_turn_in_order_and_stays_in_the_history():
    bot, model = Bot(), ScriptedModel(calls("talk"), "done", "more")
    with handler(harness()), handler(model), handler(control):
        assert bot.ask("?") == "done"
        assert control.unsaid == ()
        bot.ask("!")
    said = [{"role": "user", "content": "one"}, {"role": "user", "content": [{"type": "text", "text": "two"}]}]
    assert model.requests[1]["messages"][-2:] == said
    assert bot.__history__[4:6] == said
    assert [message["role"] for message in bot.__history__] == [
        *("system", "user", "assistant", "tool", "user", "user", "assistant"),
        *("user", "assistant"),
    ]


@pytest.mark.parametrize("outside", [True, False])
def test_a_repeated_turn_keeps_what_was_said(outside):
    """The handler may stand on either side of what repeats a turn."""
    bot = Bot()
    count = 0

    def malformed(**_: Any) -> Any:
        nonlocal count
        count += 1
        if count == 1:
            control.say("before")
            return calls("nothing")
        return says("done")

    layers = [handler(harness()), handler({completion: malformed})]
    layers.insert(2 if outside else 1, handler(control))
    with layers[0], layers[1], layers[2]:
        assert bot.ask("?") == "done"
    assert [message["role"] for message in bot.__history__] == ["system", "user", "assistant"]
    assert [message["content"] for message in control.unsaid] == ["before"]
    with layers[0], handler(ScriptedModel("ok")), handler(control):
        bot.ask("!")
    assert [message["content"] for message in bot.__history__ if message["role"] == "user"][-1] == "before"


def test_what_is_said_too_late_waits_for_the_next_call():
    with handler(harness()), handler(ScriptedModel("a", "b")), handler(control):
        ask("?")
        control.say("late")
        assert [message["content"] for message in control.unsaid] == ["late"]
        ask("!")
        assert control.unsaid == ()


def test_what_is_said_is_for_the_call_of_the_program_not_for_one_inside_it():
    bot, model = Bot(), ScriptedModel(calls("ask", question="!"), calls("talk"), "inner", "outer")
    with handler(harness()), handler(model), handler(control):
        assert bot.outer() == "outer"
    contents = [[message.get("content") for message in request["messages"]] for request in model.requests]
    assert ["one" in content for content in contents] == [False, False, False, True]


def test_two_controls_both_say_something():
    other = CallControl()
    other.say("outer")
    control.say("inner")
    model = ScriptedModel("ok")
    with handler(harness()), handler(model), handler(other), handler(control):
        ask("?")
    assert [message["content"] for message in model.requests[0]["messages"][-2:]] == ["outer", "inner"]


def test_a_lone_surrogate_is_made_safe():
    control.say("\ud800")
    model = ScriptedModel("ok")
    with handler(harness()), handler(model), handler(control):
        ask("?")
    assert model.requests[0]["messages"][-1]["content"].encode()


def test_saying_from_another_thread_while_the_model_works():
    said = threading.Event()

    def reply(_: Any) -> Any:
        thread = threading.Thread(target=lambda: (control.say("meanwhile"), said.set()))
        thread.start()
        thread.join()
        return calls("talk")

    model = ScriptedModel(reply, "done")
    with handler(harness()), handler(model), handler(control):
        ask("?")
    assert [message["content"] for message in model.requests[1]["messages"][-3:]][:2] == ["meanwhile", "one"]


def test_a_handler_of_turns_sees_what_was_said():
    seen = []

    def look(messages, *rest):
        seen.append([message["content"] for message in messages][-1])
        return fwd()

    control.say("hello")
    with handler(harness()), handler(ScriptedModel("ok")), handler(control), handler({call_assistant: look}):
        ask("?")
    assert seen == ["hello"]


def test_the_control_is_carried_into_threads():
    model = ScriptedModel("one")
    with handler(harness()), handler(model), handler(control):
        work = propagate(lambda: ask("?"))
    control.cancel()
    errors = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert errors == [Cancelled]


def test_what_was_said_to_a_call_that_failed_is_not_lost():
    control.say("hello")
    with handler(harness()), handler(ScriptedModel(ValueError("broken"), "fine")) as model, handler(control):
        with pytest.raises(ValueError, match="broken"):
            ask("?")
        assert [message["content"] for message in control.unsaid] == ["hello"]
        ask("?")
    assert model.requests[1]["messages"][-1]["content"] == "hello"
    assert control.unsaid == ()


def test_cancelling_from_a_handler_of_a_signal_while_calls_begin_to_wait():
    async def main() -> set[Any]:
        loop = asyncio.get_running_loop()
        before = signal.signal(signal.SIGALRM, lambda *_: control.cancel("terminated"))
        try:
            with handler(harness()), handler(ScriptedModel(*[calls("forever")] * 200)), handler(control):
                work = [loop.create_task(acall(ask, "?")) for _ in range(200)]
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return {type(result) for result in await asyncio.gather(*work, return_exceptions=True)}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    assert asyncio.run(main()) == {Cancelled}
