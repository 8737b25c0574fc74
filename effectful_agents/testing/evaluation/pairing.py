"""Which cases of two evaluations are the same."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.files import as_json, is_vague
from effectful_agents.testing.evaluation.rows import Row

__all__ = ["CaseRows", "Pairs", "pairs_of"]


@dataclasses.dataclass(frozen=True, eq=False)
class CaseRows:
    """The trials of one case.

    Attributes:
        name: What the case is called.
        call: What stands for its arguments and what it expects: equal for equal ones, in every process.
        vague: Whether some of these have no form of their own, so that different ones may look the same.
        rows: A row for each trial.
    """

    name: str
    call: str
    vague: bool
    rows: list[Row[Any]]


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The cases of two evaluations, paired.

    Attributes:
        both: Those that are in both, in the order of their names.
        only_in_one: Names of those that only the first has.
        only_in_other: Names of those that only the second has.
        changed: Names that stand in both, for different calls.
        vague: How many pairs rest on names, as the arguments do not tell whether the calls are the same.
    """

    both: Sequence[tuple[CaseRows, CaseRows]]
    only_in_one: Sequence[str]
    only_in_other: Sequence[str]
    changed: Sequence[str]
    vague: int


def pairs_of(one: Iterable[Row[Any]], other: Iterable[Row[Any]], by: Literal["call", "name"]) -> Pairs:
    """Pair the cases of two evaluations.

    By the call: its arguments and what is expected. Of several that are the same, those of the same name belong
    together, and the rest in their order.
    """
    mine, theirs = _cases(one, by), _cases(other, by)
    both: list[tuple[CaseRows, CaseRows]] = []
    paired: set[CaseRows] = set()
    for same_name in (True, False):
        waiting: dict[Any, list[CaseRows]] = {}
        for case in reversed(theirs):
            if case not in paired:
                waiting.setdefault(_key(case, same_name), []).append(case)
        for case in mine:
            if case not in paired and (found := waiting.get(_key(case, same_name))):
                pair = case, found.pop()
                both.append(pair)
                paired.update(pair)
    left, others_left = ([case.name for case in cases if case not in paired] for cases in (mine, theirs))
    return Pairs(
        sorted(both, key=lambda pair: (pair[0].name, pair[1].name)),
        left,
        others_left,
        [name for name in left if name in set(others_left)],
        sum(case.vague for case, _ in both),
    )


def _key(case: CaseRows, same_name: bool) -> tuple[str, str | None]:
    # What looks the same and may be different is no pair for its order alone.
    return case.call, case.name if same_name or case.vague else None


def _cases(rows: Iterable[Row[Any]], by: str) -> list[CaseRows]:
    found: dict[tuple[str, str], CaseRows] = {}
    for row in rows:
        call, vague = _call(row.case) if by == "call" else (row.case.name, False)
        case = found.setdefault((row.case.name, call), CaseRows(row.case.name, call, vague, []))
        case.rows.append(row)
    return list(found.values())


def _call(case: Case) -> tuple[str, bool]:
    args = [as_json(value) for value in case.args]
    kwargs = {name: as_json(value) for name, value in case.kwargs.items()}
    parts = [args, kwargs, [as_json(case.expected)] if case.has_expected else []]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), is_vague(parts)
