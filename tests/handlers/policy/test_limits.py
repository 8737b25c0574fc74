"""`Limits`: how much a call, or a block, may take."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import AgentsError, ConfigurationError, LimitExceeded, OptionError
from effectful_agents.handlers.policy import Limits, Policy
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Disposition
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.world import sleep
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.policy.routes import ROUTES, assistant, deputy, look, sent, taking

STACK = {"eval_provider": "none", "type_checker": "none"}


def looking(times: int) -> list[Any]:
    return [calls("look", at=str(number)) for number in range(times)]


@pytest.mark.parametrize("route", ROUTES)
def test_no_tool_calls(route):
    """By whatever way, and though code should catch the error."""
    with taking(route), handler(Limits(tool_calls=0)), contextlib.suppress(AgentsError):
        assistant("Send it.")
    assert sent == []


@given(limit=st.integers(1, 6), wanted=st.integers(0, 8))
def test_turns_and_tool_calls_are_counted(limit, wanted):
    def made(**limits: Any) -> tuple[int, int, bool]:
        model = ScriptedModel(*looking(wanted), "done")
        with handler(harness(**STACK)), handler(model), handler(Limits(**limits)):
            try:
                assistant("?")
            except LimitExceeded as error:
                return len(model.requests), 0, error.limit in limits
            return len(model.requests), 0, False

    assert made(turns=limit) == (min(limit, wanted + 1), 0, wanted + 1 > limit)
    assert made(tool_calls=limit) == (min(limit + 1, wanted + 1), 0, wanted > limit)


def test_nested_calls_share_what_is_allowed():
    model = ScriptedModel(calls("deputy", request="go"), *looking(5), "done", "done")
    with handler(harness(**STACK)), handler(model), handler(Limits(turns=4)):
        with pytest.raises(LimitExceeded) as exceeded:
            assistant("?")
    assert (exceeded.value.limit, exceeded.value.value, len(model.requests)) == ("turns", 4, 4)


def test_each_call_of_the_program_has_its_own_unless_it_is_for_the_run():
    for per, expected in (("call", ["done", "done", "done"]), ("run", ["done", "done"])):
        results = []
        with handler(harness(**STACK)), handler(ScriptedModel("done", "done", "done")):
            with handler(Limits(turns=2 if per == "run" else 1, per=per)), contextlib.suppress(LimitExceeded):
                for _ in range(3):
                    results.append(assistant("?"))
        assert results == expected


def test_calls_of_one_turn_are_counted_each():
    reply = batch(*(calls("look", id=str(n), at=str(n)) for n in range(4)))
    with handler(harness(**STACK)), handler(ScriptedModel(reply, "done")), handler(Limits(tool_calls=3)):
        with pytest.raises(LimitExceeded, match="tool_calls"):
            assistant("?")
    with handler(harness(**STACK)), handler(ScriptedModel(reply, "done")), handler(Limits(tool_calls=4)):
        assert assistant("?") == "done"


def test_tools_at_the_same_time_do_not_pass_the_limit():
    done: list[int] = []

    @Tool.define(concurrent=True)
    def work(n: int) -> int:
        """Work."""
        done.append(n)
        return n

    @Skill.define
    def go() -> str:
        """Go."""
        raise NotHandled

    assert work.concurrent
    reply = batch(*(calls("work", id=str(n), n=n) for n in range(20)))
    with handler(harness(**STACK)), handler(ScriptedModel(reply, "done")), handler(Limits(tool_calls=7)):
        with pytest.raises(LimitExceeded):
            go()
    assert len(done) <= 7


def test_tokens_and_money_end_the_call_before_the_next_request():
    usage = Usage(input=100, output=50)
    replies = [calls("look", at=str(n), usage=usage) for n in range(9)]
    model = ScriptedModel(*replies)
    with handler(harness(**STACK)), handler(model), handler(Limits(tokens=300)):
        with pytest.raises(LimitExceeded, match="tokens"):
            assistant("?")
    assert len(model.requests) == 2
    model = ScriptedModel(*replies)
    with handler(harness(**STACK)), handler(model), handler({cost_of: lambda model, usage: 0.01}):
        with handler(Limits(cost=0.025)), pytest.raises(LimitExceeded, match="cost"):
            assistant("?")
    assert len(model.requests) == 3


def test_a_price_that_nobody_knows_is_an_error():
    with handler(harness(**STACK)), handler(ScriptedModel("done")), handler(Limits(cost=1.0)):
        with pytest.raises(ConfigurationError, match="price"):
            assistant("?")


@pytest.mark.parametrize("per", ["call", "run"])
@pytest.mark.parametrize("way", ["plain", "asyncio"])
def test_time(per, way):
    def slow(**_: Any) -> Any:
        sleep(3600)

    call = (lambda: asyncio.run(acall(assistant, "?"))) if way == "asyncio" else (lambda: assistant("?"))
    with handler(harness(**STACK)), handler({completion: slow}), pytest.raises(LimitExceeded, match="seconds"):
        with handler(Limits(seconds=0.02, per=per)):
            call()


def test_nesting():
    for nesting, expected in ((0, "done"), (1, "done")):
        model = ScriptedModel(calls("deputy", request="go"), *(["went"] if nesting else []), "done")
        with handler(harness(**STACK)), handler(model), handler(Limits(nesting=nesting)):
            if nesting:
                assert assistant("?") == expected
            else:
                with pytest.raises(LimitExceeded, match="nesting"):
                    assistant("?")


def test_the_model_is_told_before_its_last_turn_and_only_then():
    model = ScriptedModel(*looking(2), "done")
    with handler(harness(**STACK)), handler(model), handler(Limits(turns=3, finish="Finish now.")):
        assert assistant("?") == "done"
    assert [str(request["messages"]).count("Finish now.") for request in model.requests] == [0, 0, 1]


def test_history_stays_as_it_was_when_a_limit_ends_the_call():
    class Bot(Agent):
        """You look."""

        @Tool.define
        def peek(self) -> str:
            """Peek."""
            return "nothing"

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    bot = Bot()
    with handler(harness(**STACK)), handler(ScriptedModel("hi", calls("peek"), calls("peek"))):
        with handler(Limits(turns=2)):
            bot.ask("?")
            before = list(bot.__history__)
            with pytest.raises(LimitExceeded):
                bot.ask("again")
    assert list(bot.__history__) == before


def test_a_denied_call_counts_so_that_a_stubborn_model_comes_to_an_end():
    deny = Policy(lambda effect: Disposition.DENY_STEP if effect.tool == look else None)
    with handler(harness(**STACK)), handler(ScriptedModel(*looking(9))), handler(deny), handler(Limits(tool_calls=3)):
        with pytest.raises(LimitExceeded):
            assistant("?")


def test_an_amended_call_is_counted_once():
    amend = Policy(lambda effect: None if effect.tool != look else _to_it(effect))
    with handler(harness(**STACK)), handler(ScriptedModel(*looking(2), "done")), handler(amend):
        with handler(Limits(tool_calls=2)):
            assert assistant("?") == "done"


def _to_it(effect: Any) -> Any:
    from effectful_agents.operations.policy import Decision

    return Decision(arguments={"at": "it"})


@pytest.mark.parametrize(
    "options",
    [
        *({"turns": value} for value in (0, -1, 1.5, True, "3")),
        *({"tokens": value} for value in (0, "9")),
        *({"seconds": value} for value in (0, -1, float("inf"), float("nan"), True)),
        *({"cost": value} for value in (-1, float("nan"), "1")),
        *({"nesting": value} for value in (-1, 0.5)),
        {"per": "day"},
    ],
)
def test_limits_that_make_no_sense_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Limits(**options)


def test_says_has_no_part_in_it():
    with handler(harness(**STACK)), handler(ScriptedModel(says("done"))), handler(Limits()):
        assert deputy("?") == "done"
