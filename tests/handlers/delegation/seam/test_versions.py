"""Which version two sides agree on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.errors import SeamVersionError
from effectful_agents.handlers.delegation import SEAM_VERSION, SUPPORT_WINDOW, negotiate, supported_versions

numbers = st.tuples(st.integers(0, 3), st.integers(0, 9)).filter(any)
versions = numbers.map(lambda pair: f"{pair[0]}.{pair[1]}")


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@given(versions, st.integers(1, 12))
def test_a_window_begins_with_the_newest_and_goes_down_by_one(current, window):
    spoken = supported_versions(current, window)
    assert spoken[0] == current
    assert 1 <= len(spoken) <= window
    assert len({as_numbers(one)[0] for one in spoken}) == 1
    assert [as_numbers(one)[1] for one in spoken] == [as_numbers(current)[1] - down for down in range(len(spoken))]
    assert "0.0" not in spoken


@given(versions, versions)
def test_two_sides_agree_on_the_newest_that_both_speak(one, other):
    common = set(supported_versions(one)) & set(supported_versions(other))
    if not common:
        with pytest.raises(SeamVersionError):
            negotiate(supported_versions(other), current=one)
        return
    chosen = negotiate(supported_versions(other), current=one)
    assert chosen == max(common, key=as_numbers)
    assert chosen == negotiate(supported_versions(one), current=other)


@given(versions, st.lists(st.one_of(versions, st.text(max_size=5))), st.randoms(use_true_random=False))
def test_the_order_does_not_matter_nor_what_is_no_version(current, peer, random):
    def agreed(spoken):
        try:
            return negotiate(spoken, current=current)
        except SeamVersionError:
            return None

    shuffled = [*peer, "latest", "1.02", ""]
    random.shuffle(shuffled)
    assert agreed(shuffled) == agreed(peer)


@given(st.integers(1, 9))
def test_the_side_before_is_still_spoken_to(minor):
    assert SUPPORT_WINDOW == 2
    assert negotiate(supported_versions(f"1.{minor - 1}"), current=f"1.{minor}") == f"1.{minor - 1}"


def test_our_own_version_is_spoken():
    assert negotiate([SEAM_VERSION]) == SEAM_VERSION


@pytest.mark.parametrize("wrong", ["", "1", "01.2", "1.2.3", "0.0", "x"])
def test_what_is_no_version_is_refused(wrong):
    with pytest.raises(SeamVersionError, match="no version of the seam"):
        supported_versions(wrong)


def test_an_error_names_both_sides():
    with pytest.raises(SeamVersionError, match=r"this one speaks 0\.3, 0\.2, and the other 1\.0"):
        negotiate(["1.0", "\x1b[2J"], current="0.3")
