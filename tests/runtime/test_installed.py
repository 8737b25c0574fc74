"""Finding the installed handlers again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from effectful.ops.semantics import coproduct as library_coproduct
from effectful.ops.semantics import handler as library_handler
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.runtime import (
    Layers,
    ObjectInterpretation,
    Operation,
    coproduct,
    fwd,
    handler,
    implements,
    installed,
    propagate,
)

OPERATIONS = [Operation.define(str, name=name) for name in ("first", "second", "third")]
first, second, third = OPERATIONS


class Both(ObjectInterpretation[Any, Any]):
    """Handles two of them."""

    @implements(first)
    def first(self) -> Any:
        return fwd()

    @implements(second)
    def second(self) -> Any:
        return fwd()


class Third(ObjectInterpretation[Any, Any]):
    """Handles the third."""

    @implements(third)
    def third(self) -> Any:
        return fwd()


class Nothing(ObjectInterpretation[Any, Any]):
    """Handles nothing."""


def same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(one is other for one, other in zip(found, expected, strict=True))


def test_nothing_is_installed():
    assert installed() == []


def test_handlers_are_found_outermost_first_whatever_they_share():
    one, other, more = Both(), Third(), Both()
    for order in ((one, other, more), (other, more, one), (more, one, other)):
        with handler(order[0]), handler(order[1]), handler(order[2]):
            assert same(installed(), list(order))
        with handler(Layers(*order)):
            assert same(installed(), list(order))
    assert installed() == []


def test_one_that_is_installed_twice_is_there_twice():
    one, other = Both(), Third()
    with handler(one), handler(other), handler(one):
        assert same(installed(), [one, other, one])


def test_what_handles_nothing_is_not_there():
    with handler(Nothing()), handler({}), handler(Layers(Nothing(), Third())) as layers:
        assert same(installed(), [layers.layers[1]])


def test_functions_are_as_they_were_given():
    given = {first: lambda: "1", third: lambda: "3"}
    with handler(given), handler(Both()) as both:
        assert installed() == [given, both]


def test_what_a_coproduct_made_is_taken_apart():
    one, other, more = Both(), Third(), Both()
    for combine in (coproduct, library_coproduct):
        together: Any = combine(combine(one, other), more)
        with handler(Third()) as outer, handler(together):
            assert same(sorted(installed(), key=id), sorted([outer, one, other, more], key=id))
            assert installed()[0] is outer
        assert len(installed(together)) == 3


def test_an_interpretation_need_not_be_installed():
    one, other = Both(), Third()
    assert same(installed(Layers(one, Layers(other))), [one, other])
    assert same(installed(one), [one])


def test_what_the_library_installs_is_found():
    one, other, more = Both(), Third(), Both()
    with library_handler(one), handler(other):
        assert same(installed(), [one, other])
    with handler(one), library_handler(more), handler(other):
        assert {id(layer) for layer in installed()} == {id(one), id(more), id(other)}
        assert same([layer for layer in installed() if layer is not other], [one, more])
    with handler(one), library_handler({first: lambda: "1"}):
        assert installed()[0] is one
        assert [operation for layer in installed()[1:] for operation in layer] == [first]


def test_who_leaves_out_of_order_is_gone():
    one, other = handler(Both()), handler(Third())
    one.__enter__()
    layer = other.__enter__()
    one.__exit__(None, None, None)
    assert same(installed(), [layer])
    other.__exit__(None, None, None)
    assert installed() == []


def test_handlers_are_found_in_tasks_and_threads():
    with handler(Both()) as one, handler(Third()) as other:

        async def look() -> list[Any]:
            return await asyncio.to_thread(propagate(installed))

        assert same(asyncio.run(look()), [one, other])


@given(st.lists(st.sets(st.sampled_from(range(3)), min_size=1), max_size=8), st.randoms(use_true_random=False))
def test_law_the_order_is_that_in_which_they_were_installed(kinds, chance: random.Random):
    layers: list[Any] = [{OPERATIONS[place]: lambda: fwd() for place in sorted(kind)} for kind in kinds]

    def nested(rest: list[Any]) -> None:
        if not rest:
            assert installed() == layers
            return
        count = chance.randint(1, len(rest))
        with handler(Layers(*rest[:count])):
            nested(rest[count:])

    nested(layers)


@pytest.mark.parametrize("wrong", [Both, 3])
def test_what_is_no_interpretation_is_told(wrong):
    with pytest.raises(TypeError):
        installed(wrong)
