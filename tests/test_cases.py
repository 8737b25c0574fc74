"""The cases from the field that concern the loop, the history and retries; numbers as in the list of cases."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run
from effectful_agents.errors import ToolCallExecutionError
from effectful_agents.messages.mending import mended
from effectful_agents.operations.history import CompactionScope, compact_
from effectful_agents.operations.loop import call_tool
from effectful_agents.testing import ScriptedModel, batch, calls

effects: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    effects.clear()


@Tool.define
def write(text: str) -> str:
    """Write."""
    effects.append(text)
    return f"wrote {text}"


@Tool.define
def broken() -> str:
    """Fail."""
    raise RuntimeError("broken")


@Tool.define
def final(text: str) -> str:
    """Finish."""
    effects.append(f"final {text}")
    return text


def finalizing(tool_call):
    """A handler in the manner of those who offer a finalizing tool."""
    message, value, _ = fwd()
    return message, value, tool_call.tool == final


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


def roles(messages) -> list[str]:
    return [message["role"] for message in messages]


def results(messages) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_2_a_history_that_ends_in_an_open_call_is_mended_and_not_changed():
    open_call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": "{}"}}
    given = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [open_call]}]
    before = copy.deepcopy(given)
    model = ScriptedModel("ok")
    with handler(harness()), handler(model):
        result = run(ask, "go on", history=given)
    assert given == before
    assert roles(model.requests[0]["messages"]) == ["system", "user", "assistant", "tool", "user"]
    assert "no result" in model.requests[0]["messages"][3]["content"]
    assert result.value == "ok"


def test_3_one_bad_call_among_good_ones():
    model = ScriptedModel(batch(calls("write", id="a", text="x"), calls("write", id="b", wrong=1)), "ok")
    with handler(harness()), handler(model):
        result = run(ask, "?")
    assert effects == ["x"]
    assert [m["tool_call_id"] for m in model.requests[1]["messages"] if m["role"] == "tool"] == ["a", "b"]
    assert result.value == "ok"


@pytest.mark.parametrize("scope", CompactionScope)
def test_5_and_6_compaction_keeps_calls_and_results_together(scope):
    def turn(number: int) -> list[Any]:
        names = [f"c{number}{letter}" for letter in "abc"]
        tool_calls = [{"id": n, "type": "function", "function": {"name": "t", "arguments": "{}"}} for n in names]
        answers = [{"role": "tool", "tool_call_id": n, "content": n} for n in names]
        return [{"role": "assistant", "content": None, "tool_calls": tool_calls}, *answers]

    head = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "1"},
        *turn(0),
        {"role": "assistant", "content": "a"},
    ]
    history = [*head, {"role": "user", "content": "2"}, *turn(1), *turn(2)]
    compact_(history, "c2b", scope)
    assert mended(history) == history
    assert history[-4:] == turn(2)
    assert {"role": "user", "content": "2"} in history
    only_turns = turn(1)
    compact_(only_turns, "c1a", scope)
    assert only_turns == turn(1)


def test_7_the_history_grows_by_exactly_the_new_messages():
    bot = Bot()
    with handler(harness()), handler(ScriptedModel("a", calls("write", text="x"), "b")):
        bot.ask("1")
        first = list(bot.__history__)
        bot.ask("2")
    assert bot.__history__[: len(first)] == first
    assert roles(bot.__history__[len(first) :]) == ["user", "assistant", "tool", "assistant"]


def test_9_every_call_that_observers_saw_has_its_result():
    attempts = iter([RuntimeError("again"), None])
    seen = []

    @Tool.define
    def flaky() -> str:
        """Fail once."""
        error = next(attempts)
        if error:
            raise error
        return "done"

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    def observing(tool_call):
        result = fwd()
        seen.append((tool_call.id, result[0]["tool_call_id"]))
        return result

    with handler(harness()), handler({call_tool: observing}):
        with handler(ScriptedModel(calls("flaky", id="1"), calls("flaky", id="2"), "ok")):
            assert work() == "ok"
    assert seen == [("1", "1"), ("2", "2")]


def test_10_a_caught_error_leaves_the_history_as_it_was():
    bot = Bot()
    with handler(harness(num_retries=0)), handler(ScriptedModel("a", calls("broken"), "b")):
        bot.ask("1")
        before = list(bot.__history__)
        with pytest.raises(ToolCallExecutionError):
            bot.ask("2")
        assert bot.__history__ == before
        assert bot.ask("3") == "b"


def test_11_a_good_call_beside_a_malformed_one_is_not_dropped():
    model = ScriptedModel(batch(calls("write", id="a", text="x"), calls("nope", id="b")), "text")
    with handler(harness()), handler(model):
        assert run(ask, "?").value == "text"
    assert effects == ["x"]


def test_12_calls_without_and_with_the_same_identifier_both_run():
    for name in ("", "same"):
        effects.clear()
        with (
            handler(harness()),
            handler(ScriptedModel(batch(calls("write", id=name, text="1"), calls("write", id=name, text="2")), "ok")),
        ):
            result = run(ask, "?")
        assert effects == ["1", "2"]
        assert results(result.messages) == ["wrote 1", "wrote 2"]


def test_13_the_middle_of_three_calls_raises():
    several = batch(calls("write", id="a", text="1"), calls("broken", id="b"), calls("write", id="c", text="2"))
    with handler(harness()), handler(ScriptedModel(several, "ok")):
        result = run(ask, "?")
    one, two, three = results(result.messages)
    assert (one, three) == ("wrote 1", "wrote 2")
    assert "RuntimeError: broken" in two


def test_14_and_16_the_first_final_call_ends_the_call_and_those_behind_it_are_not_made():
    several = batch(
        calls("write", id="a", text="1"),
        calls("final", id="b", text="2"),
        calls("write", id="c", text="3"),
        calls("final", id="d", text="4"),
    )
    with handler(harness()), handler({call_tool: finalizing}), handler(ScriptedModel(several)):
        result = run(ask, "?")
    assert result.value == "2"
    assert effects == ["1", "final 2"]
    assert len(results(result.messages)) == 4
    assert mended(result.messages) == result.messages


def test_a_failing_final_call_is_no_answer():
    def final_anyway(tool_call):
        message, value, _ = fwd()
        return message, value, True

    with handler(harness()), handler({call_tool: final_anyway}), handler(ScriptedModel(calls("broken"), "ok")):
        assert run(ask, "?").value == "ok"


@pytest.mark.parametrize("reply", [KeyboardInterrupt(), GeneratorExit(), RuntimeError("down")])
@pytest.mark.parametrize("place", range(3))
def test_an_exception_at_any_turn_leaves_the_history_as_it_was(reply, place):
    bot = Bot()
    script: list[Any] = [calls("write", id=str(i), text="x") for i in range(place)]
    with handler(harness()), handler(ScriptedModel("a", *script, reply, "b")):
        bot.ask("1")
        before = list(bot.__history__)
        with pytest.raises(type(reply)):
            bot.ask("2")
        assert bot.__history__ == before
        assert bot.ask("3") == "b"
