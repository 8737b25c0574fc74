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


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        (
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 60},
                "output_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(input=100, output=20, reasoning=5, cache_read=60),
        ),
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 30,
                "output_tokens": 20,
            },
            Usage(input=100, output=20, cache_read=60, cache_write=30),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cache_write_tokens": 30}},
            Usage(input=100, output=20, cache_write=30),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 60},
            Usage(input=100, output=20, cache_read=60),
        ),
    ],
    ids=["responses of OpenAI", "messages of Anthropic", "a cache that is written to", "DeepSeek"],
)
def test_forms_of_services_come_to_the_same(wire: Any, usage: Usage):
    assert Usage.from_wire(wire) == usage


@pytest.mark.parametrize(
    ("value", "count"),
    [(3.0, 3), ("12", 12), (0, 0), (10**14, 10**14)]
    + [
        (odd, None)
        for odd in (-1, 2.5, True, "many", "", "-3", "٣", [3], {}, 10**30, float("inf"), float("nan"), 1e300)
    ],
    ids=str,
)
def test_a_count_in_any_form_is_a_count_or_nothing(value: Any, count: int | None):
    usage = Usage.from_wire({"prompt_tokens": value, "prompt_tokens_details": {"cached_tokens": value}})
    assert (usage.input, usage.cache_read) == (count, count)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cached_tokens", "x"]), inner),
    max_leaves=6,
)
NAMES = ["prompt_tokens", "completion_tokens", "input_tokens", "prompt_tokens_details", "output_tokens_details"]
NAMES += ["completion_tokens_details", "cache_read_input_tokens", "cache_creation_input_tokens"]


@given(junk | st.dictionaries(st.sampled_from(NAMES), junk))
def test_nothing_that_is_reported_raises_and_no_count_is_negative(wire: Any):
    usage = Usage.from_wire(wire)
    for name in COUNTS:
        count = getattr(usage, name)
        assert count is None or (type(count) is int and count >= 0)


def test_the_total_is_known_where_both_are():
    assert Usage(input=3, output=0).total == 3
    assert Usage(input=3).total is None
