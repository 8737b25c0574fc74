"""`Deadline`: one time limit for a call and all that happens in it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import pytest
import trio

from effectful_agents import Agent, Deadline, NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import LimitExceeded, OptionError, RequestTimeoutError
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now, sleep
from effectful_agents.runtime import time_left
from effectful_agents.testing import ScriptedModel, batch, calls, says

SHORT, LONG = 0.02, 3600
done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture(params=["plain", "asyncio", "trio"])
def call(request: Any) -> Any:
    """Call a skill in one of the ways."""
    if request.param == "plain":
        return lambda skill, *args: skill(*args)
    if request.param == "asyncio":
        return lambda skill, *args: asyncio.run(acall(skill, *args))
    return lambda skill, *args: trio.run(lambda: acall(skill, *args))


@Tool.define
async def forever() -> str:
    """Sleep for ever."""
    done.append("begins")
    try:
        await anyio.sleep_forever()
    except BaseException:
        done.append("stopped")
        raise


@Tool.define
def doze() -> str:
    """Sleep for ever."""
    sleep(LONG)
    return "awake"


@Tool.define
def look() -> str:
    """Say how much time there is."""
    left = time_left()
    return "for ever" if left is None else "some time" if left < LONG + 1 else "too much"


@Tool.define
def busy() -> str:
    """Work, and perform no operation, until there is no time left."""
    while time_left():
        threading.Event().wait(0.001)
    done.append(threading.current_thread())
    inner("?")
    done.append("never")
    return "late"


@Tool.define(timeout=SHORT)
def hasty() -> str:
    """Work for too long."""
    sleep(LONG)
    return "never"


@Skill.define
def inner(question: str) -> str:
    """{question}"""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


@pytest.mark.parametrize("tool", ["forever", "doze"])
def test_a_tool_that_takes_too_long_ends_the_call(call, tool):
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(calls(tool), "never")), handler(Deadline(SHORT)):
        with pytest.raises(LimitExceeded) as caught:
            call(bot.ask, "?")
        assert (caught.value.limit, caught.value.value) == ("deadline", SHORT)
        assert "`ask`" in str(caught.value)
    assert bot.__history__ == []
    # On a busy machine the time may be over before the tool begins.
    assert done in ([], ["begins", "stopped"])


def test_a_tool_in_the_middle_of_its_work_comes_to_its_end_where_it_began(call, caplog):
    bot, model = Bot(), ScriptedModel(calls("busy"), "never")
    with handler(harness()), handler(model), handler(Deadline(0.2)), pytest.raises(LimitExceeded):
        call(bot.ask, "?")
    assert done == [threading.current_thread()]
    assert len(model.requests) == 1
    assert bot.__history__ == []


def test_the_late_result_of_a_tool_is_dropped_and_logged(call, caplog):
    @Tool.define
    def late() -> str:
        """Work until there is no time left."""
        while time_left():
            threading.Event().wait(0.001)
        return "late"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    model = ScriptedModel(calls("late"), "never")
    with handler(harness()), handler(model), handler(Deadline(0.2)), pytest.raises(LimitExceeded):
        call(go_on)
    assert "`late` came to its end too late; its result is dropped" in caplog.text


def test_the_model_takes_too_long(call):
    def slow(**_: Any) -> Any:
        sleep(LONG)

    with handler(harness()), handler({completion: slow}), handler(Deadline(SHORT)), pytest.raises(LimitExceeded):
        call(inner, "?")


def test_a_nested_call_and_a_repeated_turn_have_no_more_time_than_the_rest(call):
    def model(**request: Any) -> Any:
        if any("deeper" in str(message["content"]) for message in request["messages"]):
            sleep(LONG)
        return calls("inner", question="deeper")

    with handler(harness()), handler({completion: model}), handler(Deadline(SHORT)), pytest.raises(LimitExceeded):
        call(Bot().ask, "?")


def test_tools_that_run_together_end_together(call):
    reply = batch(calls("forever"), calls("forever"), calls("forever"))
    with handler(harness()), handler(ScriptedModel(reply)), handler(Deadline(SHORT)), pytest.raises(LimitExceeded):
        call(inner, "?")
    assert done.count("stopped") == done.count("begins")


def test_a_call_in_time_is_as_without_a_deadline(call):
    model = ScriptedModel(calls("look"), "done", "again")
    with handler(harness()), handler(model), handler(Deadline(LONG)):
        assert call(inner, "?") == "done"
        assert call(inner, "?") == "again"
    assert model.requests[1]["messages"][-1]["content"] == "some time"
    assert time_left() is None


def test_the_shorter_of_two_deadlines_counts(call):
    for outer, short in ((LONG, SHORT), (SHORT, LONG)):
        with handler(harness()), handler(ScriptedModel(calls("forever"))):
            with handler(Deadline(outer)), handler(Deadline(short)), pytest.raises(LimitExceeded) as caught:
                call(inner, "?")
        assert caught.value.value == SHORT


def test_each_call_of_the_program_has_the_time_for_itself():
    times = []

    def model(**_: Any) -> Any:
        times.append(time_left())
        return says("ok")

    with handler(harness()), handler({completion: model}), handler(Deadline(LONG)):
        inner("1")
        inner("2")
    assert LONG - 1 < min(times) <= max(times) <= LONG


def test_a_tool_with_a_shorter_time_of_its_own_is_told_to_the_model(call):
    model = ScriptedModel(calls("hasty"), "done")
    with handler(harness()), handler(model), handler(Deadline(LONG)):
        assert call(inner, "?") == "done"
    assert "took longer than 0.02 s" in model.requests[1]["messages"][-1]["content"]


def test_a_request_that_was_given_the_time_left_ends_as_the_deadline():
    def model(**_: Any) -> Any:
        left = time_left()
        assert left is not None
        threading.Event().wait(left)
        raise RequestTimeoutError("nothing came", retryable=False)

    with handler(harness()), handler({completion: model}), handler(Deadline(SHORT)), pytest.raises(LimitExceeded):
        inner("?")


def test_what_a_tool_ate_is_raised_again():
    @Tool.define
    def deaf() -> str:
        """Eat everything."""
        for _ in range(3):
            try:
                sleep(LONG)
            except Exception as error:
                done.append(type(error))
        return "fine"

    @Skill.define
    def go_on() -> str:
        """Go on."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("deaf"))), handler(Deadline(SHORT)):
        with pytest.raises(LimitExceeded):
            go_on()


def test_a_thousand_calls_with_deadlines_at_once():
    async def main():
        with handler(harness(system_prompt="brief")), handler({completion: slow}), handler(Deadline(0.2)):
            results = await asyncio.gather(*(acall(inner, "?") for _ in range(1000)), return_exceptions=True)
        return {type(result) for result in results}

    def slow(**_: Any) -> Any:
        sleep(LONG)

    before = threading.active_count()
    assert asyncio.run(main()) == {LimitExceeded}
    assert threading.active_count() <= before


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", None])
def test_no_time_is_refused(seconds):
    with pytest.raises(OptionError, match="seconds"):
        Deadline(seconds)


def test_operations_outside_of_calls_have_no_deadline():
    with handler(Deadline(1e-9)):
        assert now() > 0
