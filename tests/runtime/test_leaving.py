"""Leaving handlers, in order or not, takes out what was installed and nothing else."""

from collections.abc import Iterator
from typing import Any

from effectful.ops import semantics
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.runtime import Layers, Operation, fwd, handler, interpretation


@Operation.define
def path() -> str:
    return ""


@Operation.define
def other() -> str:
    return "default"


def layer(name: str) -> dict[Any, Any]:
    return {path: lambda: name + fwd(), other: lambda: name}


def standing(name: str) -> Iterator[str]:
    """Stands at a `yield` inside of its handler."""
    with handler(layer(name)):
        while True:
            yield name


def test_two_interleaved_generators() -> None:
    before = interpretation()
    first, second = standing("a"), standing("b")
    next(first), next(second)
    assert path() == "ba"
    first.close()
    assert (path(), other()) == ("b", "b")
    second.close()
    assert path() == ""
    assert dict(interpretation()) == dict(before)


@given(order=st.permutations("abcd"))
def test_any_order_leaves_the_others(order: list[str]) -> None:
    generators = {name: standing(name) for name in "abcd"}
    for generator in generators.values():
        next(generator)
    names = "dcba"
    for name in order:
        assert path() == names
        generators[name].close()
        names = names.replace(name, "")
    assert path() == ""
    assert dict(interpretation()) == {}


def test_several_layers_installed_at_once_leave_at_once() -> None:
    several = handler(Layers(layer("a"), layer("b")))
    several.__enter__()
    single = standing("c")
    next(single)
    assert path() == "cba"
    several.__exit__(None, None, None)
    assert path() == "c"
    single.close()
    assert dict(interpretation()) == {}


def test_what_the_library_installed_before_stays() -> None:
    with semantics.handler(layer("x")):
        first, second = standing("a"), standing("b")
        next(first), next(second)
        first.close()
        assert path() == "bx"
        second.close()
        assert path() == "x"


def test_one_handler_object_entered_again_while_it_is_entered() -> None:
    again = handler(layer("a"))
    with again, again:
        assert path() == "aa"
        with again:
            assert path() == "aaa"
        assert path() == "aa"
    assert path() == ""


def test_in_order_the_very_interpretation_comes_back() -> None:
    before = interpretation()
    with handler(layer("a")):
        between = interpretation()
        with handler(layer("b")):
            pass
        assert interpretation() is between
    assert interpretation() is before
