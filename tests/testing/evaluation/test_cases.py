"""The cases of an evaluation: their forms, their names, and what is wrong with them."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from effectful_agents import NotHandled, Skill
from effectful_agents.errors import OptionError
from effectful_agents.testing import Case, evaluate
from effectful_agents.testing.evaluation.cases import read_cases


def call(text: Any = "", *more: Any, **options: Any) -> Any:
    return text


def names(cases: Any, skill: Any = call, **options: Any) -> list[str]:
    return [case.name for case in read_cases(cases, skill, **options)]


class Pair(NamedTuple):
    one: int
    other: int


@pytest.mark.parametrize(
    ("given", "case"),
    [
        (Case("a", 1, b=2), Case("a", 1, b=2)),
        ("a", Case("a")),
        (("a", "b"), Case("a", expected="b")),
        (("a", None), Case("a", expected=None)),
        (["a", "b"], Case(["a", "b"])),
        (Pair(1, 2), Case(Pair(1, 2))),
        ({"input": "a"}, Case("a")),
        ({"input": {"x": 1}, "expected": None}, Case({"x": 1}, expected=None)),
        ({"args": ["a", 1], "kwargs": {"b": 2}, "metadata": {"m": 1}}, Case("a", 1, b=2, metadata={"m": 1})),
        ({}, Case()),
        (None, Case(None)),
    ],
    ids=lambda value: repr(value),
)
def test_a_case_may_be_written_in_several_ways(given: Any, case: Case) -> None:
    (read,) = read_cases([given], call)
    assert read.named("") == case


def test_a_parameter_that_is_called_like_an_option_is_given_by_a_mapping_or_by_position() -> None:
    def about(name: str, expected: int) -> tuple[str, int]:
        return name, expected

    (row,) = evaluate(about, [{"name": "n", "kwargs": {"name": "Ann", "expected": 3}, "expected": 4}])
    assert (row.output, row.case.expected, row.case.name) == (("Ann", 3), 4, "n")
    assert evaluate(about, [Case("Ann", 3)]).rows[0].output == ("Ann", 3)


def test_a_case_is_written_as_the_call() -> None:
    case = Case("a", b=[1], name="n", expected=None, metadata={"m": 1})
    assert eval(repr(case)) == case
    assert pickle.loads(pickle.dumps(case)) == case


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a",), "a tuple of 1"),
        (("a", "b", "c"), "a tuple of 3"),
        ({"inputs": "a"}, "the key 'inputs'.*`input`"),
        ({"input": "a", "args": []}, "`input`.*`args`"),
        ({"args": "a"}, "`args` of a case is a list"),
        ({"input": "a", "name": 3}, "`name` of a case is 3"),
    ],
    ids=lambda value: repr(value),
)
def test_what_is_no_case_is_refused(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_cases([given], call)


@pytest.mark.parametrize("given", [None, 3, {"input": "a"}, b"a"], ids=repr)
def test_what_is_no_table_is_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="`cases` is"):
        read_cases(given, call)


def test_arguments_that_do_not_fit_are_said_before_anything_is_asked() -> None:
    asked: list[str] = []

    def ask(text: str) -> None:
        asked.append(text)

    with pytest.raises(OptionError, match=r"case 2 \(`short`\) does not fit `ask\(.*missing.*'text'"):
        evaluate(ask, ["a", Case(name="short")])
    assert asked == []


# Names


def test_names_are_given_or_the_arguments_or_the_number() -> None:
    cases = [Case("a", name="given\n name"), Case("a\nb", c=1), Case([1]), Case(), "x" * 99]
    assert names(cases) == ["given name", "a b, 1", "case 3", "case 4", "x" * 39 + "…"]


def test_equal_names_are_numbered() -> None:
    assert names(["a", "a (2)", "a", "a", "a (2)"]) == ["a", "a (2)", "a (3)", "a (4)", "a (2) (2)"]


def test_names_hold_no_addresses() -> None:
    assert names([object(), Case(object(), name="n")]) == ["case 1", "n"]


# How many


def test_an_iterator_without_end_needs_a_limit() -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        for number in itertools.count():
            taken.append(number)
            yield number

    assert len(evaluate(call, endless(), limit=3)) == 3
    assert taken == [0, 1, 2]
    assert len(evaluate(call, ["ab"], limit=9)) == 1
    assert len(evaluate(call, endless(), limit=0)) == 0


# Files


@dataclasses.dataclass(frozen=True)
class Trip:
    city: str
    day: datetime.date


@Skill.define
def plan(trip: Trip, days: int = 1) -> Trip:
    """Plan {trip} for {days} days."""
    raise NotHandled


def written(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


ROME = {"city": "Rome", "day": "2026-05-01"}


def test_a_file_is_read_as_the_types_of_the_skill(tmp_path: Path) -> None:
    path = written(tmp_path / "c.jsonl", {"input": ROME, "expected": ROME}, "", {"kwargs": {"trip": ROME, "days": 2}})
    one, two = read_cases(path, plan)
    rome = Trip("Rome", datetime.date(2026, 5, 1))
    assert (one.args, one.expected, one.name) == ((rome,), rome, "case 1")
    assert two.args == (rome, 2)
    assert [case.args for case in read_cases(str(path), plan, limit=1)] == [(rome,)]


def test_what_is_expected_need_not_be_an_answer(tmp_path: Path) -> None:
    (case,) = read_cases(written(tmp_path / "c.jsonl", {"input": ROME, "expected": ["sunny"]}), plan)
    assert case.expected == ["sunny"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 of c.jsonl: "),
        ("[1]", "line 2 of c.jsonl: a case is an object"),
        ({"input": {"city": "Rome"}}, "line 2 of c.jsonl: `trip` does not fit.*day"),
        ({"question": 1}, "line 2 of c.jsonl: .*'question'"),
        ({"args": [ROME, 1, 2]}, "case 2 does not fit `plan"),
    ],
    ids=lambda value: repr(value),
)
def test_a_line_that_is_no_case_is_named(line: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=message):
        read_cases(written(tmp_path / "c.jsonl", {"input": ROME}, line), plan)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot be read.*none\.jsonl"):
        read_cases(tmp_path / "none.jsonl", plan)


def test_functions_are_given_what_their_annotations_say(tmp_path: Path) -> None:
    def typed(trip: Trip, *more: int, note: Any = "", untyped=None) -> Any:
        return trip

    def unknown(trip: Any, day: Any) -> Any:
        return trip

    line = {"args": [ROME, 1], "kwargs": {"note": "n", "untyped": {}}}
    (case,) = read_cases(written(tmp_path / "c.jsonl", line), typed)
    assert (case.args[0].city, case.args[1], case.kwargs) == ("Rome", 1, {"note": "n", "untyped": {}})
    unknown.__annotations__ = {"trip": "Nowhere", "day": "int"}
    (case,) = read_cases(written(tmp_path / "c.jsonl", {"args": [ROME, 1]}), unknown)
    assert case.args == (ROME, 1)


def test_of_what_nobody_knows_nothing_is_checked(tmp_path: Path) -> None:
    (case,) = read_cases(written(tmp_path / "c.jsonl", {"args": [[1, 2]]}), max)
    assert case.args == ([1, 2],)
