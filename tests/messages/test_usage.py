"""Adding usage, and reading it from the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.messages import Usage

counts = st.none() | st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts, st.booleans())
COUNTS = ["input", "output", "reasoning", "cache_read", "cache_write"]


@given(usages, usages, usages)
def test_the_grouping_of_a_sum_does_not_matter(a, b, c):
    assert (a + b) + c == a + (b + c)


@given(usages, usages)
def test_the_order_of_a_sum_does_not_matter(a, b):
    assert a + b == b + a


@given(usages)
def test_adding_what_nobody_measured_changes_nothing(a):
    assert a + Usage() == a
    assert Usage() + a == a


@given(usages, usages)
def test_a_count_is_known_where_one_of_the_two_is(a, b):
    total = a + b
    for name in COUNTS:
        one, other = getattr(a, name), getattr(b, name)
        known = [count for count in (one, other) if count is not None]
        assert getattr(total, name) == (sum(known) if known else None)


@pytest.mark.parametrize("name", COUNTS)
def test_zero_is_measured_and_none_is_not(name):
    measured = Usage(**{name: 0})
    assert measured != Usage()
    assert getattr(measured + Usage(), name) == 0
    assert getattr(Usage() + Usage(), name) is None


def test_a_sum_that_holds_an_estimate_is_one():
    assert (Usage(input=1, estimated=True) + Usage(input=1)).estimated
    assert not (Usage(input=1) + Usage(input=1)).estimated


def test_usage_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Usage().input = 1  # ty: ignore


@pytest.mark.parametrize("wire", [None, {}, {"prompt_tokens": None}, {"prompt_tokens_details": None}])
def test_what_a_provider_leaves_out_was_not_measured(wire: Any):
    assert Usage.from_wire(wire) == Usage()


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 3}},
        {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 3},
    ],
)
def test_cached_tokens_are_read_in_both_spellings_and_zero_stays_zero(cached):
    usage = Usage.from_wire({"prompt_tokens": 10, "completion_tokens": 0, **cached})
    assert usage == Usage(input=10, output=0, cache_read=0, cache_write=3)
