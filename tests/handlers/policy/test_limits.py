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
from effectful_agents.handlers.policy import DecisionLog, Limits, Policy
from effectful_agents.messages import Usage
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Disposition
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.world import sleep
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.policy.routes import ROUTES, assistant, deputy, in_body, in_repl, look, sent, taking

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


# --- usage that is none -----------------------------------------------------------------------------------------------


def reporting(usage: Any, times: int = 6) -> ScriptedModel:
    """A model that looks again and again, whose service reports this to be the usage of each request."""
    return ScriptedModel(*({**calls("look", at=str(number)), "usage": usage} for number in range(times)), "done")


@pytest.mark.parametrize(
    ("usage", "requests"),
    [
        ({"prompt_tokens": 600, "completion_tokens": 5}, 1),
        ({"prompt_tokens": 600.0, "completion_tokens": 5.0}, 1),
        ({"prompt_tokens": "600"}, 1),
        ({"total_tokens": 600}, 1),
        ({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 600}, 1),
        ({"completion_tokens": 5, "total_tokens": 600}, 1),
        ({"input_tokens": 600, "output_tokens": 9}, 1),
        ({"prompt_tokens": -1000, "completion_tokens": 600}, 1),
        ({"prompt_tokens": 250, "completion_tokens": -(10**9)}, 2),
        ({"prompt_tokens": 250, "completion_tokens": 1, "total_tokens": -(10**9)}, 2),
    ],
)
def test_tokens_count_in_whatever_form_they_are_reported(usage, requests):
    model = reporting(usage)
    with handler(harness(**STACK)), handler(model), handler(Limits(tokens=500)), pytest.raises(LimitExceeded):
        assistant("?")
    assert len(model.requests) == requests


@pytest.mark.parametrize(
    "usage",
    [
        *(None, {}, [], "much", {"prompt_tokens": None}, {"prompt_tokens": float("nan")}, {"prompt_tokens": True}),
        *({"prompt_tokens": -1000, "completion_tokens": -5}, {"total_tokens": -7}, {"prompt_tokens": "-9"}),
        *({"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 0.5}, {"prompt_tokens": "²"}),
    ],
)
def test_tokens_are_estimated_where_none_that_can_be_are_reported(usage):
    model = reporting(usage, times=20)
    with handler(harness(**STACK)), handler(model), handler(Limits(tokens=10_000)), pytest.raises(LimitExceeded):
        assistant("?")
    asked = [estimate_tokens(request["messages"]) for request in model.requests]
    said = [estimate_tokens([calls("look", at="1")["choices"][0]["message"]]) for _ in asked]
    assert sum(asked[:-1]) + sum(said[:-1]) < 10_000 <= sum(asked) + sum(said)
    assert len(asked) > 1


def test_one_reply_gives_no_credit_for_others():
    replies = [calls("look", at="it", usage=Usage(input=6000, output=1)) for _ in range(3)]
    model = ScriptedModel(calls("look", at="it", usage=Usage(input=-(10**9), output=0)), *replies, "done")
    with handler(harness(**STACK)), handler(model), handler(Limits(tokens=10_000)), pytest.raises(LimitExceeded):
        assistant("?")
    assert len(model.requests) == 3


def test_money_for_tokens_that_were_estimated():
    seen: list[Usage] = []

    def price(model: str, usage: Usage) -> float:
        seen.append(usage)
        return 0.001 * sum(one or 0 for one in (usage.input, usage.output, usage.cache_read, usage.cache_write))

    for usage in (None, {"prompt_tokens": -(10**9), "prompt_tokens_details": {"cached_tokens": -(10**9)}}):
        model = reporting(usage, times=20)
        with handler(harness(**STACK)), handler(model), handler({cost_of: price}), handler(Limits(cost=10.0)):
            with pytest.raises(LimitExceeded, match="cost"):
                assistant("?")
        asked = [0.001 * estimate_tokens(request["messages"]) for request in model.requests]
        assert sum(asked[:-1]) < 10.0 < sum(asked) + 1.0
    assert all(one.estimated and one.input and one.output for one in seen)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), "1"])
def test_a_price_that_is_no_amount(price):
    with handler(harness(**STACK)), handler(ScriptedModel("done")), handler({cost_of: lambda model, usage: price}):
        with handler(Limits(cost=1.0)), pytest.raises(ConfigurationError, match="no amount"):
            assistant("?")


# --- limits that are eaten --------------------------------------------------------------------------------------------

EATEN = {
    "tool_calls": "for i in range(5):\n    try:\n        send('a')\n    except Exception as e:\n        print(e)\n",
    "turns": "for i in range(5):\n    try:\n        deputy('a')\n    except Exception as e:\n        print(e)\n",
    "nesting": "try:\n    deputy('a')\nexcept Exception as e:\n    print(e)\n",
    "tokens": "for i in range(5):\n    try:\n        deputy('a')\n    except Exception as e:\n        print(e)\n",
}


@pytest.mark.parametrize("executor", ["builtin", "restricted"])
@pytest.mark.parametrize("form", ["body", "snippet"])
@pytest.mark.parametrize("limit", EATEN)
@pytest.mark.parametrize("per", ["call", "run"])
def test_code_of_the_model_cannot_eat_a_limit(limit, form, executor, per):
    code = EATEN[limit]
    if form == "body":
        lines = "".join(f"    {line}\n" for line in code.splitlines())
        first = in_body(f"def assistant(request: str) -> str:\n{lines}    return 'fine'\n")
    else:
        first = in_repl(code)
    value = {"tool_calls": 3, "turns": 3, "nesting": 0, "tokens": 9}[limit]
    model = ScriptedModel(first, *["went"] * 9)
    with handler(harness(eval_provider=executor, type_checker="none")), handler(model):
        with handler(Limits(**{limit: value}, per=per)):
            with pytest.raises(LimitExceeded) as exceeded:
                assistant("?")
    assert exceeded.value.limit == limit
    assert len(model.requests) <= 3


def test_what_is_outside_of_the_limited_part_goes_on():
    @Tool.define
    def limited() -> str:
        """Do it within limits."""
        with handler(Limits(tool_calls=0)):
            try:
                return deputy("go")
            except LimitExceeded:
                return "too much"

    @Skill.define
    def outer() -> str:
        """Go."""
        raise NotHandled

    assert limited.__name__ == "limited"
    model = ScriptedModel(calls("limited"), calls("look", at="it"), calls("look", at="it"), "done")
    with handler(harness(**STACK)), handler(model):
        assert outer() == "done"
    assert "too much" in str(model.requests[-1]["messages"])


def test_the_program_goes_on_in_a_block_after_a_limit_of_it_was_reached():
    with handler(harness(**STACK)), handler(ScriptedModel(calls("look", at="it"), "done")):
        with handler(Limits(tool_calls=1, turns=1, per="run")):
            with pytest.raises(LimitExceeded, match="turns"):
                assistant("?")
            with pytest.raises(LimitExceeded, match="turns"):
                assistant("?")
            with pytest.raises(LimitExceeded, match="tool_calls"):
                look("it")
            sleep(0)


def test_what_a_limit_ends_is_in_the_log():
    log = DecisionLog()
    with handler(harness(**STACK)), handler(ScriptedModel(*looking(3))), handler(log), handler(Limits(tool_calls=1)):
        with pytest.raises(LimitExceeded):
            assistant("?")
    last = log.records[-1]
    assert last.effect is not None
    assert (last.effect.name, last.decision.disposition, last.decision.reason_code, last.decision.rule) == (
        "look",
        Disposition.TERMINATE_RUN,
        "limit_tool_calls",
        "limits",
    )
