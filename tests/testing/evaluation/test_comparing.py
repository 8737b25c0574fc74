"""Comparing two evaluations: the statistics, the cases, and what may be said."""

from __future__ import annotations

import builtins
import importlib.util
import io
import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from effectful_agents.errors import OptionError
from effectful_agents.testing import Case, Evaluation, compare, evaluate
from effectful_agents.testing.evaluation import Failure, Row, comparing
from effectful_agents.testing.evaluation.paired import bootstrap_interval, permutation_test, rank_direction, sign_test

FAILED = (Failure("", "ValueError", "no"),)


def table(scores: Any, name: str = "n", score: str = "s") -> Evaluation[Any]:
    """An evaluation with these scores of the cases a, b, c…; None where the skill failed, a list for trials."""
    if not isinstance(scores, dict):
        scores = {chr(ord("a") + place) if place < 26 else f"case {place}": each for place, each in enumerate(scores)}
    rows = []
    for case, values in scores.items():
        for trial, value in enumerate(values if isinstance(values, list) else [values], 1):
            known = {} if value is None else {score: value}
            rows.append(Row(Case(case, name=case), case, known, failures=() if known else FAILED, trial=trial))
    return Evaluation(name, rows)


def difference(one: Any, other: Any, **options: Any) -> Any:
    return compare(table(one), table(other), **options).scores["s"]


# Statistics


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    # By hand: twice the sum of the binomial coefficients up to the smaller, over 2 to the power of both.
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (6, 0, 2 / 64), (7, 1, 18 / 256), (10, 2, 158 / 4096), (3, 3, 1.0)],
)
def test_sign_test(better: int, worse: int, p: float) -> None:
    assert sign_test(better, worse) == sign_test(worse, better) == pytest.approx(p)


def test_sign_test_of_many_is_exact() -> None:
    assert sign_test(600, 400) == pytest.approx(2.728596e-10, rel=1e-5)


def test_permutation_test_tries_all_signs() -> None:
    values = [0.5, -0.1, 0.3, 0.7, 0.0, 0.2]
    observed = abs(sum(values))
    flips = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in itertools.product((-1, 1), repeat=6)
    ]
    assert permutation_test(values) == sum(flip >= observed - 1e-9 for flip in flips) / 64


def test_permutation_test_of_many_estimates_the_same() -> None:
    draw = random.Random(1)
    values = [draw.gauss(0.1, 1) for _ in range(15)]
    flips = (abs(math.fsum(x if bits >> place & 1 else -x for place, x in enumerate(values))) for bits in range(2**15))
    exact = sum(flip >= abs(math.fsum(values)) - 1e-9 for flip in flips) / 2**15
    assert permutation_test(values) == pytest.approx(exact, abs=0.015)


def test_the_interval_is_that_of_the_normal_distribution_where_that_holds() -> None:
    draw = random.Random(2)
    values = [draw.gauss(0.3, 1) for _ in range(400)]
    low, high = bootstrap_interval(values)
    middle = math.fsum(values) / 400
    error = math.sqrt(sum((value - middle) ** 2 for value in values) / 399 / 400)
    assert (low, high) == (
        pytest.approx(middle - 1.96 * error, abs=0.02),
        pytest.approx(middle + 1.96 * error, abs=0.02),
    )


numbers = st.floats(-5, 5) | st.sampled_from([0.0, 0.5, 1.0])
truths = st.booleans()
pairs = st.sampled_from([numbers, truths]).flatmap(
    lambda kind: st.lists(
        st.tuples(st.lists(kind, min_size=1, max_size=2), st.lists(kind, min_size=1, max_size=2)),
        min_size=1,
        max_size=9,
    )
)


@settings(max_examples=30)
@given(pairs)
def test_two_that_change_places_give_the_opposite(given_pairs: Any) -> None:
    one, other = ([*values] for values in zip(*given_pairs, strict=True))
    there, back = difference(one, other), difference(other, one)
    assert 0 < there.p <= 1
    assert there.p == back.p
    assert there.difference == -back.difference
    assert (there.better, there.worse, there.same) == (back.worse, back.better, back.same)
    if there.interval is not None:
        assert there.interval == (-back.interval[1], -back.interval[0])
        assert there.interval[0] <= there.interval[1]


@settings(max_examples=30)
@given(pairs, st.randoms())
def test_the_order_of_the_rows_does_not_matter(given_pairs: Any, shuffle: random.Random) -> None:
    one, other = (table([*values]) for values in zip(*given_pairs, strict=True))
    mixed = list(one.rows)
    shuffle.shuffle(mixed)
    again, first = (compare(each, other).scores["s"] for each in (Evaluation("n", mixed), one))
    assert (again.p, again.interval, again.verdict) == (first.p, first.interval, first.verdict)
    assert sorted(again.better) == sorted(first.better)


@settings(max_examples=30)
@given(pairs)
def test_one_beside_itself_is_no_difference(given_pairs: Any) -> None:
    one, _ = ([*values] for values in zip(*given_pairs, strict=True))
    same = difference(one, one)
    assert (same.difference, same.p, same.better, same.worse, same.same) == (0, 1, [], [], len(one))
    assert same.verdict in ("no difference shown", "too few cases to say")
    assert same.interval in (None, (0, 0))


@settings(max_examples=30)
@given(st.lists(st.tuples(truths, truths), min_size=1, max_size=14))
def test_for_truths_both_tests_agree(given_pairs: Any) -> None:
    one, other = zip(*given_pairs, strict=True)
    assert difference([*one], [*other]).p == pytest.approx(difference([*map(float, one)], [*map(float, other)]).p)


# What may be said


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([False] * 5, [True] * 5, "too few cases to say"),
        ([False] * 6, [True] * 6, "better"),
        ([True] * 6, [False] * 6, "worse"),
        ([False] * 6 + [True], [True] * 5 + [False] * 2, "no difference shown"),
        ([0.1] * 8, [0.2] * 8, "better"),
        ([0.1, 0.2] * 4, [0.2, 0.1] * 4, "no difference shown"),
        ([], [], None),
    ],
    ids=["five", "six", "six worse", "mixed", "numbers", "numbers that change places", "none"],
)
def test_verdicts(one: Any, other: Any, verdict: str | None) -> None:
    comparison = compare(table(one), table(other))
    assert [each.verdict for each in comparison.scores.values()] == ([] if verdict is None else [verdict])


def test_the_test_is_named() -> None:
    assert difference([True] * 6, [False] * 6).method == "exact sign test"
    assert difference([True] * 6, [0.5] * 6).method == "permutation test"
    assert difference([[True, False]] * 6, [[False, False]] * 6).method == "permutation test"


def test_rounding_is_no_difference() -> None:
    assert difference([[1 / 3] * 3, [0.1] * 3] * 4, [1 / 3, 0.1] * 4).same == 8


def test_a_lower_score_may_be_the_better_one() -> None:
    found = difference([3.0] * 6 + [1.0], [1.0] * 6 + [2.0], lower_is_better="s")
    assert (found.better, found.worse, found.difference < 0) == (list("abcdef"), ["g"], True)
    assert difference([3.0] * 6, [1.0] * 6, lower_is_better=["s"]).verdict == "better"
    assert difference([1.0] * 6, [3.0] * 6, lower_is_better=["s"]).verdict == "worse"
    with pytest.raises(OptionError, match="names `t`"):
        difference([1.0], [2.0], lower_is_better=["t"])


def test_trials_make_no_more_cases() -> None:
    many = difference([[0.0] * 50] * 3, [[1.0] * 50] * 3)
    assert (many.cases, many.p, many.verdict) == (3, 0.25, "too few cases to say")


def test_cases_that_got_better_or_worse_are_named_the_largest_difference_first() -> None:
    found = difference([0.5, 0.5, 0.5, 0.5, 0.5], [0.6, 1.0, 0.5, 0.1, 0.4])
    assert (found.better, found.worse, found.same) == (["b", "a"], ["d", "e"], 1)


def test_cases_and_scores_that_only_one_has_are_named() -> None:
    one = Evaluation("old", [*table({"a": 1.0, "b": 1.0}).rows, *table({"x": 1.0}, score="t").rows])
    comparison = compare(one, table({"b": 0.0, "c": 0.0}, "new"))
    assert (comparison.only_in_one, comparison.only_in_other, comparison.cases) == (["a", "x"], ["c"], 1)
    assert comparison.notes == ["the score `t` is only in old"]
    assert "only in old: a, x" in str(comparison)


def test_failures_are_a_line_of_their_own_and_no_scores() -> None:
    comparison = compare(table([1.0] * 8, "old"), table([*[1.0] * 2, *[None] * 6], "new"))
    assert comparison.scores["s"].cases == 2
    assert comparison.scores["(answered)"].verdict == "worse"
    assert comparison.scores["(answered)"].worse == list("cdefgh")
    assert comparison.notes == ["6 of 8 cases have no `s` in both"]
    assert "(answered)" not in compare(table([1.0]), table([1.0])).scores


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(OptionError, match="no case in common"):
        compare(table({"a": 1.0}), table({"b": 1.0}))
    with pytest.raises(OptionError, match="`test` is 't'"):
        compare(table([]), table([]), test="t")  # ty: ignore


COMPARED = """\
old → new, 7 cases in both

score  one    other  difference  95 %            p       better  worse  same
-----  -----  -----  ----------  --------------  ------  ------  -----  ----  ------
s      0.143  1      +0.857      +0.571 to +1    0.0312  6       0      1     better

s, better: a, b, c, d, e, f
only in new: h"""


def test_printed_it_is_a_table() -> None:
    text = str(compare(table([*[False] * 6, True], "old"), table([True] * 8, "new")))
    assert [line.split() for line in text.splitlines() if "--" not in line] == [
        line.split() for line in COMPARED.splitlines() if "--" not in line
    ]
    assert text.startswith("old → new")
    assert str(compare(table([1.0]), table([1.0]))).startswith("one → other, 1 case in both")
    assert str(compare(table([1.0]), table([1.0]), names=("x", "y"))).startswith("x → y")


def test_on_a_terminal_it_is_drawn() -> None:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(compare(table([False] * 6, "old"), table([True] * 6, "new")))
    text = console.export_text()
    assert "better" in text
    assert "old → new" in text


def test_a_large_comparison_is_bounded() -> None:
    draw = random.Random(3)
    one = {f"{number}": draw.random() for number in range(1000)}
    found = difference(one, {name: value + draw.random() / 10 for name, value in one.items()})
    assert (found.verdict, found.cases) == ("better", 1000)


# Wilcoxon


@pytest.mark.slow  # importing scipy is
@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="scipy is not installed")
@pytest.mark.filterwarnings("ignore")
def test_wilcoxon() -> None:
    one, other = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.4, 0.6, 0.8, 1.0, 1.2]
    found = difference(one, other, test="wilcoxon")
    assert (found.method, found.p) == ("Wilcoxon signed-rank test", pytest.approx(2 / 64))
    assert difference(one, one, test="wilcoxon").p == 1.0
    assert difference([True], [False], test="wilcoxon").method == "exact sign test"


def test_without_scipy_the_permutation_test_is_made_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    comparison = compare(table([0.1] * 6), table([0.2] * 6), test="wilcoxon")
    assert comparison.scores["s"].method == "permutation test"
    assert comparison.notes == ["scipy is not installed: permutation tests, and not those of Wilcoxon"]


def test_scipy_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refusing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("scipy", "numpy"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    assert difference([0.1] * 20, [0.2] * 20).verdict == "better"


# Which cases belong together


def longer(given: Any) -> Any:
    return given


LENGTH = {"length": lambda output: len(output)}


def test_cases_with_names_that_were_made_up_are_paired_by_their_arguments() -> None:
    cases = [[0] * number for number in range(1, 9)]  # no plain values: named "case 1", "case 2", …
    compared = compare(evaluate(longer, cases, LENGTH), evaluate(longer, cases[1:], LENGTH))
    assert (compared.scores["length"].same, compared.cases) == (7, 7)
    assert (compared.only_in_one, compared.only_in_other) == (["case 1"], [])


@settings(max_examples=30)
@given(st.lists(st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2), min_size=1), st.randoms())
def test_the_order_of_the_cases_changes_no_comparison(cases: list[Any], shuffled: random.Random) -> None:
    others = list(cases)
    shuffled.shuffle(others)
    compared = compare(evaluate(longer, cases, LENGTH), evaluate(longer, others, LENGTH))
    assert compared.scores["length"].same == compared.cases == len(cases)
    assert not [*compared.only_in_one, *compared.only_in_other, *compared.notes]


def test_a_name_of_two_different_calls_is_no_pair_and_a_note_says_so() -> None:
    one = evaluate(longer, [Case("ab", name="x"), Case("c", name="y"), Case("d", expected=1, name="z")], LENGTH)
    other = evaluate(longer, [Case("abc", name="x"), Case("c", name="y"), Case("d", expected=2, name="z")], LENGTH)
    compared = compare(one, other)
    assert (compared.cases, compared.only_in_one, compared.only_in_other) == (1, ["x", "z"], ["x", "z"])
    assert "the name is the same and the arguments, or what is expected, not: `x`, `z`" in str(compared)
    assert compare(one, other, by="name").scores["length"].better == ["x"]


def test_another_name_of_the_same_call_is_a_pair() -> None:
    compared = compare(
        evaluate(longer, [Case("ab", name="x")], LENGTH), evaluate(longer, [Case("ab", name="y")], LENGTH)
    )
    assert compared.cases == 1


def test_of_equal_calls_those_of_the_same_name_belong_together() -> None:
    one, other = (Evaluation("n", [Row(Case("a").named(name), scores={"s": at}) for at, name in enumerate(names)])
                  for names in ("xyz", "zxy"))  # fmt: skip
    assert compare(one, other).scores["s"].better == ["x", "y"]


class Opaque:
    def __len__(self) -> int:
        return 1


class Cut(Opaque):
    def __repr__(self) -> str:
        return "Cut([0, 1, ..., 9])"


@pytest.mark.parametrize("kind", [Opaque, Cut])
def test_arguments_that_have_no_form_are_paired_by_name_and_a_note_says_so(kind: Any) -> None:
    cases = [Case(kind(), name=name) for name in "abc"]
    compared = compare(evaluate(longer, cases, LENGTH), evaluate(longer, cases[1:], LENGTH))
    assert (compared.cases, compared.only_in_one) == (2, ["a"])
    assert "2 of 2 cases are paired by name alone" in str(compared)


def test_cases_that_were_written_and_read_are_paired_with_those_that_were_not(tmp_path: Any) -> None:
    cases = [{"x", "y"}, {"k": 1.5}, ("a", "b"), "\ud83d", None, [Opaque()], float("nan")]
    one = evaluate(longer, [Case(each, expected=each) for each in cases], {"s": lambda output: True})
    one.write(tmp_path / "e.jsonl")
    compared = compare(one, Evaluation.read(tmp_path / "e.jsonl"))
    assert (compared.cases, compared.only_in_one) == (len(cases), [])


def test_nothing_in_common_names_the_other_way() -> None:
    one, other = evaluate(longer, [Case("a", name="n")], LENGTH), evaluate(longer, [Case("b", name="n")], LENGTH)
    with pytest.raises(OptionError, match='`by="name"`'):
        compare(one, other)
    with pytest.raises(OptionError, match="`by` is 'case'"):
        compare(one, other, by="case")  # ty: ignore


# What a verdict goes by


def test_the_verdict_of_ranks_goes_by_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of scipy 0.0007; it is slow to load.
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(comparing, "wilcoxon_test", lambda differences: 0.0007)
    after = [-1000.0, *(1 + place / 100 for place in range(19))]
    for lower, verdict in (((), "better"), (["s"], "worse")):
        compared = compare(table([0.0] * 20), table(after), test="wilcoxon", lower_is_better=lower)
        found = compared.scores["s"]
        assert (found.p < 0.01, found.difference < 0, found.verdict) == (True, True, verdict)
        assert any("their mean to the other" in note for note in compared.notes)


@given(st.lists(st.integers(-5, 5)))
def test_ranks_of_measurements_that_change_places_point_the_other_way(values: list[int]) -> None:
    assert rank_direction([-value for value in values]) == -rank_direction(values)


def test_what_steers_a_terminal_is_not_printed() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\n"
    one = evaluate(longer, [Case("a", name="a" + evil), Case("b", name="b" + evil), Case("c")], LENGTH, name=evil)
    other = evaluate(
        lambda given: given + "!", [Case("a"), Case("b")], {**LENGTH, evil: lambda output: 1}, name="n" + evil
    )
    compared = compare(one, other)
    out = io.StringIO()
    Console(file=out, width=200).print(compared)
    for text in (str(compared), str(one), out.getvalue()):
        assert "\x1b" not in text
        assert "\x07" not in text
