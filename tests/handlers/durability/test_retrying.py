"""Asking again: how often, with which pauses, who decides, and what is left of it in the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tenacity

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, run
from effectful_agents.errors import (
    DecodingError,
    NetworkError,
    ResultDecodingError,
    Suspended,
    ToolCallDecodingError,
    ToolCallExecutionError,
)
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.loop import call_assistant
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.messages.validity import faults

BAD = says("many")
BAD_CALL = calls("count", things="none")


@Tool.define
def count(things: int) -> int:
    """Count."""
    return things


@Tool.define
def fail(kind: str) -> int:
    """Fail."""
    raise {"value": ValueError, "key": KeyError, "interrupt": KeyboardInterrupt, "suspended": Suspended}[kind]("told")


class Bot(Agent):
    @Skill.define
    def number(self) -> int:
        """A number."""
        raise NotHandled


@Skill.define
def number() -> int:
    """A number."""
    raise NotHandled


class Conversation:
    """A call of `number` under a retryer, what came of it, and the pauses that were made."""

    def __init__(self, *replies: Any, inside: Any = None, skill: Any = number, **options: Any) -> None:
        self.model = ScriptedModel(*replies)
        self.pauses: list[float] = []
        self.value: Any = None
        self.error: Any = None
        self.messages: list[Any] = []
        stack = Layers(AgentLoop(turns=6), LexicalToolExtractor(), HistoryBuilder(), TenacityRetryer(**options))
        with handler(self.model), handler({sleep: self.pauses.append}), handler(stack), handler(inside or {}):
            try:
                result = run(skill)
            except BaseException as error:
                self.error = error
            else:
                self.value, self.messages = result.value, result.messages
        for request in self.model.requests:
            assert faults(request["messages"]) == []
        assert faults(self.messages) == []

    @property
    def asked(self) -> int:
        return len(self.model.requests)

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]


# How often


@pytest.mark.parametrize("bad", [BAD, BAD_CALL, says(""), batch(BAD_CALL, calls("nobody", id="c2"))])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_an_attempt_that_succeeds_ends_it_and_the_failed_ones_leave_no_trace(bad, before):
    talk = Conversation(*[bad] * before, 7)
    assert (talk.value, talk.asked) == (7, before + 1)
    assert talk.roles == ["system", "user", "assistant"]


@pytest.mark.parametrize(("bad", "error"), [(BAD, ResultDecodingError), (BAD_CALL, ToolCallDecodingError)])
def test_four_attempts_are_made_when_nothing_is_said(bad, error):
    talk = Conversation(*[bad] * 9)
    assert type(talk.error) is error
    assert talk.asked == 4


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_number_of_attempts_can_be_set(attempts):
    assert Conversation(*[BAD] * 9, stop=tenacity.stop_after_attempt(attempts)).asked == attempts


def test_stop_rules_are_combined_as_those_of_tenacity():
    either = tenacity.stop_after_attempt(3) | tenacity.stop_after_attempt(5)
    both = tenacity.stop_after_attempt(3) & tenacity.stop_after_attempt(5)
    assert [Conversation(*[BAD] * 9, stop=rule).asked for rule in (either, both)] == [3, 5]


def test_the_error_that_comes_out_is_that_of_the_last_attempt():
    talk = Conversation(BAD, says('{"value": "first"}'), says('{"value": "last"}'), stop=tenacity.stop_after_attempt(3))
    assert talk.error.raw_message["content"] == '{"value": "last"}'


def test_every_turn_has_its_attempts():
    talk = Conversation(BAD, BAD, calls("count", things=1), BAD, BAD, 5, stop=tenacity.stop_after_attempt(3))
    assert (talk.value, talk.asked) == (5, 6)
    assert talk.roles == ["system", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("error", [ValueError("x"), NetworkError("x"), KeyboardInterrupt(), Suspended()])
@pytest.mark.parametrize("before", [0, 1])
def test_what_is_no_bad_reply_is_not_asked_again(error, before):
    talk = Conversation(*[BAD] * before, error, 7)
    assert talk.error is error
    assert talk.asked == before + 1


@pytest.mark.parametrize("bad", [BAD, BAD_CALL])
@pytest.mark.parametrize("last", [BAD, RuntimeError("down")])
def test_attempts_that_come_to_nothing_leave_no_trace(bad, last):
    bot = Bot()
    assert Conversation(1, skill=bot.number).value == 1
    before = list(bot.__history__)
    assert len(before) == 3
    assert Conversation(bad, bad, bad, last, skill=bot.number).error is not None
    assert len(bot.__history__) == 3
    assert all(one is other for one, other in zip(bot.__history__, before, strict=True))


def test_a_failed_turn_leaves_no_trace_where_somebody_catches_its_error():
    """The messages of a turn that did not succeed are not in the history either while the call goes on."""
    lengths: list[int] = []

    def patient(messages: Any, *_: Any) -> Any:
        lengths.append(len(messages))
        try:
            return fwd()
        except DecodingError:
            lengths.append(len(messages))
            return fwd()

    talk = Conversation(*[BAD] * 4, 7, inside={call_assistant: patient})
    assert (talk.value, talk.asked) == (7, 5)
    assert lengths == [2, 2]


# What the model is shown


def test_the_model_reads_each_failed_attempt_and_what_was_wrong_with_it():
    talk = Conversation(BAD, BAD_CALL, 7)
    first, second, third = ([m["role"] for m in request["messages"]] for request in talk.model.requests)
    assert first == ["system", "user"]
    assert second == [*first, "assistant", "user"]
    assert third == [*second, "assistant", "tool"]
    shown = [json.dumps(request["messages"]) for request in talk.model.requests]
    assert shown[1].startswith(shown[0][:-1])
    assert shown[2].startswith(shown[1][:-1])


def test_the_turn_after_a_repeated_one_is_shown_nothing_of_it():
    talk = Conversation(BAD, calls("count", things=1), 7)
    assert [m["role"] for m in talk.model.requests[2]["messages"]] == ["system", "user", "assistant", "tool"]


# Pauses, and other rules of tenacity's


def test_pauses_are_made_between_attempts_by_the_operation_sleep():
    talk = Conversation(*[BAD] * 9, wait=tenacity.wait_incrementing(start=1, increment=2))
    assert talk.pauses == [1, 3, 5]


def test_no_pause_is_made_when_nothing_is_said():
    assert sum(Conversation(*[BAD] * 9).pauses) == 0


def test_a_pause_can_depend_on_the_error():
    def wait(state: Any) -> float:
        return 9 if isinstance(state.outcome.exception(), ToolCallDecodingError) else 1

    assert Conversation(BAD, BAD_CALL, BAD, 7, wait=wait).pauses == [1, 9, 1]


def test_hooks_are_told_of_every_attempt():
    told: list[Any] = []
    Conversation(
        BAD,
        BAD,
        7,
        before=lambda state: told.append(("before", state.attempt_number)),
        before_sleep=lambda state: told.append(("sleep", state.attempt_number)),
        after=lambda state: told.append(("after", state.attempt_number)),
    )
    assert [one for one in told if one[0] == "sleep"] == [("sleep", 1), ("sleep", 2)]
    assert [one for one in told if one[0] == "after"] == [("after", 1), ("after", 2)]
    assert ("before", 3) in told


def test_without_reraise_it_is_tenacitys_error():
    talk = Conversation(*[BAD] * 9, reraise=False)
    assert isinstance(talk.error, tenacity.RetryError)
    assert talk.asked == 4


def test_other_errors_are_asked_again_where_the_rule_says_so():
    rule = tenacity.retry_if_exception_type((DecodingError, NetworkError))
    assert Conversation(BAD, NetworkError("x"), 7, retry=rule).value == 7
    assert Conversation(NetworkError("x"), BAD, 7, retry=rule).value == 7


def test_bad_replies_are_not_asked_again_where_the_rule_says_so():
    talk = Conversation(BAD, 7, retry=tenacity.retry_if_exception_type(ToolCallDecodingError))
    assert type(talk.error) is ResultDecodingError
    assert talk.asked == 1


def test_one_retryer_serves_many_calls():
    retryer = TenacityRetryer(stop=tenacity.stop_after_attempt(2))
    model = ScriptedModel(BAD, 1, BAD, 2, BAD, BAD)
    with handler(model), handler(Layers(AgentLoop(), HistoryBuilder(), retryer)):
        assert [number(), number()] == [1, 2]
        with pytest.raises(ResultDecodingError):
            number()
    assert len(model.requests) == 6


# Several retryers


@pytest.mark.parametrize(("outer", "inner"), [(2, 5), (5, 2), (1, 4), (4, 1)])
def test_of_several_the_innermost_decides(outer, inner):
    talk = Conversation(
        *[BAD] * 50,
        stop=tenacity.stop_after_attempt(outer),
        inside=TenacityRetryer(stop=tenacity.stop_after_attempt(inner)),
    )
    assert type(talk.error) is ResultDecodingError
    assert talk.asked == inner


def test_three_of_them_do_not_multiply_either():
    several = Layers(*(TenacityRetryer(stop=tenacity.stop_after_attempt(n)) for n in (3, 4, 5)))
    assert Conversation(*[BAD] * 50, inside=several).asked == 5


def test_the_innermost_decides_which_errors_of_tools_are_told():
    outer_catches = {"inside": TenacityRetryer(catch_tool_errors=KeyError)}
    assert type(Conversation(calls("fail", kind="value"), 7, **outer_catches).error) is ToolCallExecutionError
    assert Conversation(calls("fail", kind="key"), 7, **outer_catches).value == 7


def test_the_same_retryer_twice_counts_once():
    retryer = TenacityRetryer(stop=tenacity.stop_after_attempt(3))
    model = ScriptedModel(*[BAD] * 50)
    with handler(model), handler(Layers(AgentLoop(), HistoryBuilder(), retryer, retryer)):
        with pytest.raises(ResultDecodingError):
            number()
    assert len(model.requests) == 3


# Tools that raise


def test_a_tool_that_raises_uses_up_no_attempt():
    talk = Conversation(*[calls("fail", kind="value")] * 4, 7, stop=tenacity.stop_after_attempt(1))
    assert talk.value == 7
    assert talk.roles == ["system", "user", *["assistant", "tool"] * 4, "assistant"]


@pytest.mark.parametrize("kind", ["interrupt", "suspended"])
def test_what_is_no_failure_of_a_tool_ends_the_call(kind):
    talk = Conversation(calls("fail", kind=kind), 7)
    assert isinstance(talk.error, KeyboardInterrupt | Suspended)
    assert talk.asked == 1


@pytest.mark.parametrize(
    ("caught", "kind", "told"),
    [
        (Exception, "value", True),
        (ValueError, "value", True),
        (ValueError, "key", False),
        ((ValueError, KeyError), "key", True),
        ((), "value", False),
    ],
)
def test_the_errors_of_tools_that_are_told_can_be_chosen(caught, kind, told):
    talk = Conversation(calls("fail", kind=kind), 7, catch_tool_errors=caught)
    assert (talk.value == 7) == told
    assert isinstance(talk.error, ToolCallExecutionError) != told


def test_what_tenacity_is_told_to_give_at_the_end_is_the_turn():
    last: Any = ({"role": "assistant", "content": "given up"}, [], -1)
    retryer = TenacityRetryer(stop=tenacity.stop_after_attempt(2), retry_error_callback=lambda state: last)
    with handler(ScriptedModel(BAD, BAD)), handler(Layers(AgentLoop(), HistoryBuilder(), retryer)):
        result = run(number)
    assert result.value == -1
    assert [message["role"] for message in result.messages] == ["system", "user", "assistant"]
