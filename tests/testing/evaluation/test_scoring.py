"""Scorers: what they are given, what they may return, and what is wrong with them."""

from __future__ import annotations

import dataclasses
import functools
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.errors import OptionError
from effectful_agents.messages import Usage
from effectful_agents.testing import Case, ScriptedModel, evaluate
from effectful_agents.testing.evaluation import Row, close, contains, exact, matches, similar


def same(question: str, strict: bool = False) -> str:
    return question


def row(scorers: Any, case: Any = "a", skill: Any = same) -> Row[Any]:
    (only,) = evaluate(skill, [case], scorers)
    return only


# What they are given


def test_a_scorer_gets_what_it_names() -> None:
    def scorer(
        output: str,
        expected: str,
        case: Case,
        row: Row[str],
        messages: Any,
        usage: Usage,
        seconds: float,
        question: str,
        strict: bool,
    ) -> bool:
        assert (output, expected, case.name, row.case, question, strict) == ("q", "e", "n", case, "q", False)
        assert (len(messages), usage, row.seconds) == (0, Usage(), seconds)
        return True

    assert row(scorer, Case("q", name="n", expected="e")).scores == {"scorer": True}


@pytest.mark.parametrize(
    "scorer",
    [lambda *, output: True, lambda output, /: True, lambda output, missing=1: True, lambda: True, lambda **all: True],
    ids=["keyword", "position", "default", "nothing", "anything"],
)
def test_parameters_may_be_of_every_kind(scorer: Any) -> None:
    assert row(scorer).scores == {"scorer 1": True}


def test_an_async_scorer_is_awaited() -> None:
    async def scorer(output: str) -> float:
        return 0.5

    assert row(scorer).scores == {"scorer": 0.5}


def test_a_scorer_that_needs_what_is_expected_is_asked_where_that_is() -> None:
    result = evaluate(same, ["a", Case("b", expected=None)], {"s": lambda output, expected: expected is None})
    assert [each.scores for each in result] == [{}, {"s": True}]
    assert row({"s": lambda output, expected="default": expected == "default"}).scores == {"s": True}


def test_a_skill_is_a_judge() -> None:
    @dataclasses.dataclass
    class Verdict:
        right: bool
        reason: str

    @Skill.define
    def judge(question: str, output: str) -> Verdict:
        """Is {output} an answer to {question}?"""
        raise NotHandled

    with handler(ScriptedModel(Verdict(True, "It is."))) as model, handler(harness(system_prompt="brief")):
        scored = row(judge)
    assert scored.scores == {"judge.right": True}
    assert scored.notes == {"judge.reason": "It is."}
    assert model.requests[0]["messages"][-1]["content"] == "Is a an answer to a?"
    assert scored.usage == Usage()


def test_a_judge_that_fails_is_written_down() -> None:
    @Skill.define
    def judge(output: str) -> bool:
        """Is {output} right?"""
        raise NotHandled

    (failure,) = row(judge).failures
    assert (failure.scorer, failure.kind) == ("judge", "MissingHandlerError")


def test_of_a_skill_of_which_nobody_knows_what_it_takes_the_output_is_scored() -> None:
    assert row([exact], ([1, 3, 2], 3), skill=max).scores == {"exact": True}


# Their names


def test_scores_have_the_names_of_their_scorers() -> None:
    assert list(row([exact, lambda output: 1, lambda output: 2], ("a", "a")).scores) == [
        *("exact", "scorer 2", "scorer 3")
    ]
    assert list(row({"x": exact, "y": exact}, ("a", "a")).scores) == ["x", "y"]
    assert list(row({"p": functools.partial(operator_like, expected="a")}).scores) == ["p"]


def operator_like(output: str, expected: str) -> bool:
    return output == expected


@pytest.mark.parametrize(
    ("scorers", "message"),
    [
        ([exact, exact], "two scorers are called `exact`"),
        ([lambda outptu: True], r"wants `outptu`.*Is `output` meant\?"),
        ([operator.eq], "wants `a`"),
        ([max], "nobody knows what the scorer `max` takes"),
        (["exact"], "a scorer is 'exact'"),
        ("exact", "a scorer is 'e'"),
        (exact, "`exact` wants `expected`, and no case has it"),
        ({"x": lambda output, anything: True}, "`x` wants `anything`.*`question`, `strict`"),
    ],
    ids=["twice", "typo", "operator", "builtin", "text", "a text", "nothing expected", "unknown"],
)
def test_scorers_that_could_not_be_called_are_refused(scorers: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        evaluate(same, ["a"], scorers)


# What they return


@pytest.mark.parametrize(
    ("returned", "scores"),
    [
        (True, {"s": True}),
        (1, {"s": 1.0}),
        (0.25, {"s": 0.25}),
        (Fraction(1, 4), {"s": 0.25}),
        (Decimal("0.25"), {"s": 0.25}),
        (np.float32(0.25), {"s": 0.25}),
        (np.bool_(True), {"s": True}),
        (np.array(3), {"s": 3.0}),
        ({"a": 1, "b": False, "why": "text"}, {"s.a": 1.0, "s.b": False}),
        ({}, {}),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "mapping",
)
def test_what_is_a_score(returned: Any, scores: Any) -> None:
    scored = row({"s": lambda output: returned})
    assert scored.scores == scores
    assert [type(value) for value in scored.scores.values()] == [type(value) for value in scores.values()]
    assert scored.failures == ()


class Strange:
    def __float__(self) -> float:
        raise AssertionError


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        (None, "TypeError", "returned None"),
        ("yes", "TypeError", "the text 'yes'"),
        ([1], "TypeError", "class `list`"),
        (1j, "TypeError", "class `complex`"),
        (Strange(), "TypeError", "class `Strange`"),
        (np.array([1, 2]), "TypeError", "class `ndarray`"),
        (np.complex64(1j), "TypeError", "class `complex64`"),
        (float("nan"), "ValueError", "nan"),
        (float("-inf"), "ValueError", "-inf"),
        (10**400, "OverflowError", ""),
        ({1: True}, "TypeError", "the key 1"),
        ({"": True}, "TypeError", "the key ''"),
        ({"a": None}, "TypeError", "`a` is NoneType"),
        ({"a": float("nan")}, "ValueError", "nan"),
        ({"a": {"b": 1}}, "TypeError", "`a` is dict"),
    ],
    ids=[
        "None",
        "text",
        "list",
        "complex",
        "object",
        "array",
        "numpy's complex",
        "nan",
        "inf",
        "huge",
        "key",
        "no key",
        "none",
        "nan in",
        "deep",
    ],
)
def test_what_is_no_score_is_a_failure_of_the_scorer(returned: Any, kind: str, message: str) -> None:
    scored = row({"s": lambda output: returned, "good": lambda output: 1})
    assert scored.scores == {"good": 1.0}
    (failure,) = scored.failures
    assert (failure.scorer, failure.kind) == ("s", kind)
    assert message in failure.message


# Those that are ready


class Vague:
    def __eq__(self, other: object) -> Any:
        raise ValueError("vague")

    __hash__ = None  # ty: ignore


def test_exact_fails_where_outputs_cannot_be_compared() -> None:
    scored = row({"e": exact}, Case("a", expected=1), skill=lambda question: Vague())
    assert [failure.kind for failure in scored.failures] == ["ValueError"]


@pytest.mark.parametrize(
    ("scorer", "output", "expected", "score"),
    [
        (exact, {"a": [1]}, {"a": [1]}, True),
        (exact, 1, True, True),
        (exact, " a", "a\n", True),
        (contains, "Straße", "STRASSE", True),
        (contains, "1, 2", [1, 2], True),
        (contains, {"a": 1}, "a", True),
        (contains, [1, 2], {3}, False),
        (similar, "", "", 1.0),
        (similar, "abc", "xyz", 0.0),
        (close(relative=0.1), 100, 105, True),
        (close(), {"a": [0.1 + 0.2]}, {"a": [0.3]}, True),
        (close(), {"a": 1}, {"b": 1}, False),
        (close(), [1], [1, 2], False),
        (close(), "a", "a", True),
    ],
)
def test_ready_scorers(scorer: Any, output: Any, expected: Any, score: Any) -> None:
    assert scorer(output, expected) == score


def test_contains_looks_into_nothing_else() -> None:
    with pytest.raises(TypeError, match="the output is int"):
        contains(3, 3)


def test_ready_scorers_that_are_made() -> None:
    scored = row([close(), matches("^A")], Case("Ab", expected="Ab"))
    assert scored.scores == {"close": True, "matches": True}
