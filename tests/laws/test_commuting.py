"""Two handlers that are said to commute do, and those whose order is said to matter do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from effectful_agents import harness
from effectful_agents.handlers.synthesis import ExpressionToolCaller, FinalBodySynthesizer, StatefulReplSynthesizer
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from tests.laws import table
from tests.laws.programs import PROGRAMS, Outcome, outcome
from tests.laws.registry import (
    EXCLUSIVE,
    NEEDED,
    ORDERED,
    SAMPLES,
    WITH_SECTIONS,
    Ordered,
    Sections,
    handlers_of_the_package,
    pairs,
    verdict,
)

PLACES = {cls: place for place, cls in enumerate(SAMPLES)}


def names(value: object) -> str | None:
    return value.__name__ if isinstance(value, type) else None


def stack_with(*handlers: type, at: type) -> list[type]:
    """The needed handlers, and these side by side at the place where one of them usually stands."""
    around = [cls for cls in NEEDED if cls not in handlers]
    place = sum(PLACES[cls] < PLACES[at] for cls in around)
    return [*around[:place], *handlers, *around[place:]]


def both_orders(one: type, other: type) -> Iterator[tuple[Outcome, Outcome]]:
    """What each program does with the two in one order and in the other, at the place of each of the two."""
    claim = verdict(one, other)
    samples = {**SAMPLES, **(claim.samples if isinstance(claim, Ordered) else {})}
    orders = {
        (tuple(stack_with(one, other, at=place)), tuple(stack_with(other, one, at=place))) for place in (one, other)
    }
    for first, second in orders:
        for program in PROGRAMS.values():
            yield outcome(program, first, samples), outcome(program, second, samples)


def test_every_handler_of_the_package_is_in_the_registry():
    assert {cls.__name__ for cls in handlers_of_the_package()} == {cls.__name__ for cls in SAMPLES}
    assert handlers_of_the_package() == set(SAMPLES)


def test_no_pair_has_two_entries():
    entries = [frozenset({entry.outer, entry.inner}) for entry in ORDERED]
    assert len(set(entries)) == len(entries)
    assert all(PLACES[entry.outer] < PLACES[entry.inner] for entry in ORDERED)


WRITING_CODE = {ExpressionToolCaller, StatefulReplSynthesizer, FinalBodySynthesizer}


def each_pair() -> Iterator[object]:
    """Every two handlers, with a mark on those that are tried less often."""
    for one, other in pairs():
        # These are the most, and seldom fail: what has no operation in common meets only in what it does to a program.
        strangers = not one.implementations.keys() & other.implementations.keys()
        asks_mypy = MypyTypeChecker in (one, other) and {one, other} & WRITING_CODE
        yield pytest.param(one, other, marks=[pytest.mark.slow] if strangers or asks_mypy else [])


@pytest.mark.parametrize(("one", "other"), list(each_pair()), ids=names)
def test_two_handlers_do_in_both_orders_what_is_claimed_of_them(one, other):
    outcomes = list(both_orders(one, other))
    match verdict(one, other):
        case None:
            for first, second in outcomes:
                assert first == second
        case Sections():
            for first, second in outcomes:
                assert first.with_sections_in_any_order() == second.with_sections_in_any_order()
            assert any(first != second for first, second in outcomes)
        case Ordered():
            assert any(
                first.with_sections_in_any_order() != second.with_sections_in_any_order() for first, second in outcomes
            )


@pytest.mark.parametrize("cls", SAMPLES, ids=names)
def test_two_of_a_kind_do_what_is_claimed_of_them(cls):
    for program in PROGRAMS.values():
        once, twice = (outcome(program, stack_with(*[cls] * count, at=cls)) for count in (1, 2))
        if cls in WITH_SECTIONS:
            assert once.with_sections_in_any_order() == twice.with_sections_in_any_order()
        elif cls not in EXCLUSIVE:
            assert once == twice


@pytest.mark.parametrize("cls", EXCLUSIVE, ids=names)
def test_of_what_excludes_itself_two_are_not_as_one(cls):
    kinds = [[outcome(program, stack_with(*[cls] * n, at=cls)) for program in PROGRAMS.values()] for n in (1, 2)]
    assert kinds[0] != kinds[1]


@pytest.mark.parametrize(
    "options", [{}, {"model": "local/smollm2"}, {"model": "gpt-5-mini", "dump_system_prompt": "prompt.md"}]
)
def test_the_standard_stack_keeps_to_the_order(options):
    classes = [type(layer) for layer in harness(**options).layers]
    assert len(set(classes)) == len(classes)
    for entry in ORDERED:
        if entry.outer in classes and entry.inner in classes:
            assert classes.index(entry.outer) < classes.index(entry.inner), entry.reason


def test_the_page_of_the_documentation_says_the_same():
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), "run `uv run python -m tests.laws.table`"
