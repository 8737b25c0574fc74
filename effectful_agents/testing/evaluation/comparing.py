"""Comparing two evaluations of the same cases."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, override

from effectful_agents.errors import OptionError
from effectful_agents.testing.evaluation import tables
from effectful_agents.testing.evaluation.evaluation import Evaluation, mean
from effectful_agents.testing.evaluation.paired import (
    bootstrap_interval,
    permutation_test,
    rank_direction,
    sign_test,
    wilcoxon_test,
)
from effectful_agents.testing.evaluation.pairing import CaseRows, Pairs, pairs_of

__all__ = ["Comparison", "Difference", "compare"]

_FEWEST = 6
"""Cases with fewer of which no split, however clear, is less likely than 0.05."""

_LEVEL = 0.05

ANSWERED = "(answered)"
"""The score that says whether the skill returned at all."""

type _Values = Mapping[str, Mapping[CaseRows, Sequence[bool | float]]]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How one score differs between two evaluations, over the cases that have it in both.

    Attributes:
        one: The mean of the first evaluation, each case by the mean of its trials.
        other: That of the second.
        difference: `other` less `one`.
        interval: Where that lies with 95 % confidence, by resampling the cases; None for less than six cases.
        p: How likely differences as large as these, or larger, are when there is none: a two-sided probability.
        method: How `p` was found.
        better: The cases with a better score in the second, the largest difference first.
        worse: Those with a worse one.
        same: How many cases have the same score in both.
        lower_is_better: Whether a lower score counts as the better one.
        direction: Where the statistic that `p` is of points to: 1 where the second is higher, -1 where it is lower, 0
            where neither. None: where the mean points to.
    """

    one: float
    other: float
    difference: float
    interval: tuple[float, float] | None
    p: float
    method: str
    better: Sequence[str]
    worse: Sequence[str]
    same: int
    lower_is_better: bool = False
    direction: int | None = None

    @property
    def cases(self) -> int:
        """How many cases have the score in both evaluations."""
        return len(self.better) + len(self.worse) + self.same

    @property
    def verdict(self) -> str:
        """What can be said: `better`, `worse`, `no difference shown`, or `too few cases to say`."""
        if self.cases < _FEWEST:
            return "too few cases to say"
        direction = _sign(self.difference) if self.direction is None else self.direction
        if self.p >= _LEVEL or not direction:
            return "no difference shown"
        return "better" if (direction > 0) is not self.lower_is_better else "worse"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same cases, compared case by case: `compare` makes it. Printed, it is a table.

    Attributes:
        one: The name of the first evaluation.
        other: That of the second.
        scores: How each score differs that both have. Where calls failed, `(answered)` among them says how the share of
            calls that returned differs; it is no score, and failures count nowhere else.
        cases: How many cases are in both.
        only_in_one: Cases that the second does not have, by their names.
        only_in_other: Cases that the first does not have.
        notes: What else has to be known: scores that only one of them has, cases that could not be paired, a test that
            could not be made, a test that says the opposite of the mean.
    """

    one: str
    other: str
    scores: Mapping[str, Difference]
    cases: int
    only_in_one: Sequence[str]
    only_in_other: Sequence[str]
    notes: Sequence[str] = ()

    @override
    def __str__(self) -> str:
        return tables.plain_comparison(self)

    def __rich__(self) -> Any:
        return tables.rich_comparison(self)


def compare(
    one: Evaluation[Any],
    other: Evaluation[Any],
    *,
    names: tuple[str, str] | None = None,
    lower_is_better: Collection[str] = (),
    test: Literal["auto", "wilcoxon"] = "auto",
    by: Literal["call", "name"] = "call",
) -> Comparison:
    """Compare two evaluations case by case: what a change has made better, and whether that may be chance.

    Cases belong together by what is called: by their arguments, and what they expect. Of each only the mean of its
    trials counts: repeating cases makes the scores of each more exact, and gives no more cases. Scores are looked at
    one by one: of twenty that did not change, one will seem to have.

    Args:
        one: The first: how it was.
        other: The second: how it is.
        names: What they are called; by default their own names, or "one" and "other" where these are the same.
        lower_is_better: The scores of which a lower one counts as better: tokens, say. Of all others a higher one does.
        test: How probable chance is. `auto`: by the exact sign test (that of McNemar) for True and False, by a
            permutation test for numbers. `wilcoxon`: for numbers by Wilcoxon's test, of scipy; where that is not
            installed by the permutation test, and a note says so.
        by: What pairs cases: `call`, or their `name` alone, where a change has given them other arguments. Then each
            has to have a name of its own in both, since one that is made up may be that of another call.

    Raises:
        OptionError: They have no case in common, or no score that `lower_is_better` names.

    >>> from effectful_agents.testing import Case, evaluate
    >>> cases = [Case(number) for number in range(8)]
    >>> before = evaluate(lambda n: n % 2, cases, {"even": lambda output: output == 0})
    >>> after = evaluate(lambda n: 0, cases, {"even": lambda output: output == 0})
    >>> even = compare(before, after).scores["even"]
    >>> even.difference, even.better, even.p, even.verdict
    (0.5, ['1', '3', '5', '7'], 0.125, 'no difference shown')
    """
    if test not in ("auto", "wilcoxon"):
        raise OptionError(f"`test` is {test!r}; it is 'auto' or 'wilcoxon'.")
    if by not in ("call", "name"):
        raise OptionError(f"`by` is {by!r}; it is 'call' or 'name'.")
    if isinstance(lower_is_better, str):
        lower_is_better = (lower_is_better,)
    if names is None:
        names = (one.name, other.name) if one.name != other.name else ("one", "other")
    pairs = pairs_of(one.rows, other.rows, by)
    if not pairs.both and (one.rows or other.rows):
        raise OptionError(
            "the two evaluations have no case in common: cases belong together by their arguments and what they "
            'expect. Where these have changed, `by="name"` pairs those of the same name.'
            if by == "call"
            else "the two evaluations have no case in common: none has the same name in both."
        )
    notes = _notes_on(pairs)
    values, other_values = (
        _values([pair[which] for pair in pairs.both], each) for which, each in enumerate((one, other))
    )
    if unknown := [name for name in lower_is_better if pairs.both and name not in values and name not in other_values]:
        raise OptionError(f"`lower_is_better` names `{unknown[0]}`, and there is no such score.")
    for whose, mine, theirs in ((names[0], values, other_values), (names[1], other_values, values)):
        notes += [f"the score `{name}` is only in {whose}" for name in mine if name not in theirs]
    scores = {}
    for name in [name for name in values if name in other_values]:
        found = {
            case.name: (values[name][case], other_values[name][match])
            for case, match in pairs.both
            if case in values[name] and match in other_values[name]
        }
        if name == ANSWERED and all(all(trials) for pair in found.values() for trials in pair):
            continue
        if found:
            scores[name] = _difference(found, test, notes, lower_is_better=name in lower_is_better)
            if scores[name].direction == -_sign(scores[name].difference) != 0:
                notes.append(f"`{name}`: most differences point to the one side, and their mean to the other")
            if name != ANSWERED and len(found) < len(pairs.both):
                notes.append(f"{len(pairs.both) - len(found)} of {len(pairs.both)} cases have no `{name}` in both")
    return Comparison(
        *names, scores, len(pairs.both), pairs.only_in_one, pairs.only_in_other, list(dict.fromkeys(notes))
    )


def _notes_on(pairs: Pairs) -> list[str]:
    notes = []
    if pairs.changed:
        listed = ", ".join(f"`{name}`" for name in pairs.changed[:10])
        more = f" and {len(pairs.changed) - 10} more" if len(pairs.changed) > 10 else ""
        notes.append(
            f"not compared, as the name is the same and the arguments, or what is expected, not: {listed}{more}"
        )
    if pairs.vague:
        notes.append(
            f"{pairs.vague} of {len(pairs.both)} cases are paired by name alone: "
            "nobody can tell whether arguments that have no JSON are the same"
        )
    return notes


def _values(cases: Iterable[CaseRows], evaluation: Evaluation[Any]) -> _Values:
    """The values of each score, by case."""
    values: dict[str, dict[CaseRows, list[bool | float]]] = {
        name: {} for row in evaluation.rows for name in [*row.scores, *([] if row.suspended else [ANSWERED])]
    }
    for case in cases:
        for row in case.rows:
            answered = {} if row.suspended else {ANSWERED: row.error is None}
            for name, value in {**row.scores, **answered}.items():
                values[name].setdefault(case, []).append(value)
    return values


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _difference(
    pairs: Mapping[str, tuple[Sequence[bool | float], Sequence[bool | float]]],
    test: str,
    notes: list[str],
    *,
    lower_is_better: bool,
) -> Difference:
    means = {case: (mean([*map(float, mine)]), mean([*map(float, theirs)])) for case, (mine, theirs) in pairs.items()}
    # Means of the same numbers, of which there are not as many, may differ in the last digit.
    differences = {
        case: 0.0 if math.isclose(mine, theirs, rel_tol=1e-12) else theirs - mine
        for case, (mine, theirs) in means.items()
    }
    higher = sorted((case for case in differences if differences[case] > 0), key=lambda case: -differences[case])
    lower = sorted((case for case in differences if differences[case] < 0), key=differences.__getitem__)
    better, worse = (lower, higher) if lower_is_better else (higher, lower)
    are_truths = all(len(trials) == 1 and isinstance(trials[0], bool) for pair in pairs.values() for trials in pair)
    direction: int | None = None
    method, found = "exact sign test", lambda _: sign_test(len(better), len(worse))
    if not are_truths:
        method, found = _test_of_numbers(test, notes)
    listed = list(differences.values())
    if found is wilcoxon_test:
        direction = rank_direction(listed)
    return Difference(
        mean([mine for mine, _ in means.values()]),
        mean([theirs for _, theirs in means.values()]),
        math.fsum(listed) / len(listed),
        bootstrap_interval(listed) if len(listed) >= _FEWEST else None,
        found(listed),
        method,
        better,
        worse,
        len(listed) - len(better) - len(worse),
        lower_is_better,
        direction,
    )


def _test_of_numbers(test: str, notes: list[str]) -> tuple[str, Callable[[Sequence[float]], float]]:
    if test == "wilcoxon":
        if importlib.util.find_spec("scipy") is not None:
            return "Wilcoxon signed-rank test", wilcoxon_test
        notes.append("scipy is not installed: permutation tests, and not those of Wilcoxon")
    return "permutation test", permutation_test
