"""What the interpreter goes through to its end in one step: counted where it may be long, and held to a size."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable, Generator, Mapping
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.hints import check_either, either
from effectful_agents.handlers.execution.kinds import SANDBOX, is_own, opened, replace
from effectful_agents.handlers.execution.sizes import (
    WORTH_COUNTING,
    check_added,
    check_power,
    check_product,
    check_shift,
    check_size,
    check_sum,
    check_template,
    check_work,
    length,
    repeated,
)
from effectful_agents.handlers.execution.streams import LONG, in_pieces, len_of, mapped, stream, taken

__all__ = [
    "MET",
    "both",
    "contained",
    "each",
    "either_of",
    "exclusive",
    "inplace",
    "meet",
    "slice_",
    "slices",
    "spread",
    "spread_names",
    "spread_pairs",
    "sub",
    "unpacked",
]


def spread(values: Any, count: int) -> Any:
    """What stands behind one of so many stars in a display or a call."""
    try:
        size = len(values)
    except (TypeError, OverflowError):
        return taken(values, kept=True)
    check_size(size * count)
    return in_pieces(taken(values, kept=True))


def spread_pairs(values: Any, count: int) -> Any:
    """What stands behind one of so many double stars in a display."""
    return spread(mapped(values), count)


def spread_names(values: Any, count: int) -> Any:
    """What stands behind one of so many double stars in a call: its keys are the names of arguments, plain texts."""
    values = spread(mapped(values), count)
    if type(values) is dict and all(type(name) is str for name in values):
        return values
    if not isinstance(values, Mapping | collections.ChainMap) and not hasattr(values, "keys"):
        return values  # the interpreter says what is wrong
    return {exact(name): value for name, value in dict(values).items()}


def unpacked(values: Any, levels: int) -> Any:
    """What is unpacked into names of which one has a star, so many levels deep."""
    if levels > 1 and isinstance(values, list | tuple):
        for value in values:
            if type(value) is range:
                check_size(len_of(value))
            elif isinstance(value, list | tuple):
                unpacked(value, levels - 1)
            elif hasattr(type(value), "__next__") and type(value) is not types.GeneratorType:
                raise TypeError(f"a `{type(value).__name__}` cannot be unpacked here; make a list of it.")
    return taken(values, kept=True)


def each(values: Any, levels: int) -> Generator[Any]:
    """The values of a loop, each of which is unpacked in this way."""
    for value in values:
        yield unpacked(value, levels)


def contained(values: Any) -> Any:
    """What `in` looks into."""
    kind = type(values)
    if kind is set or kind is dict or kind is list or kind is str:
        return values
    if kind is range:
        return _Range(values) if len_of(values) > LONG else values
    if isinstance(values, EnumType) and not is_own(values):
        return _Members(values)
    return values if kind.__module__ == SANDBOX else taken(values, kept=False)


class _Members:
    """An enumeration of the program: it makes a member of what is looked for, and keeps that."""

    def __init__(self, members: EnumType) -> None:
        self._members = members

    def __contains__(self, value: Any) -> bool:
        return exact(value) in self._members


@replace(operator.contains)
def contains(a: Any, b: Any, /) -> bool:
    """`operator.contains`."""
    return b in contained(opened(a))


class _Range:
    """A long range: C goes through it for what is no integer."""

    def __init__(self, values: range) -> None:
        self._values = values

    def __contains__(self, value: Any) -> bool:
        if type(value) is int or type(value) is bool:
            return value in self._values
        return value in stream(self._values)


_SHRINKING = frozenset({"+=", "-=", "/=", ">>=", "&="})
"""What makes an integer no larger than its operands, but for a digit."""


_INPLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "&=": operator.iand,
    "^=": operator.ixor,
    "|=": operator.ior,
    "@=": operator.imatmul,
}


# --- sets of keys -------------------------------------------------------------------------------------------------

_VIEWS = frozenset({type({}.keys()), type({}.items())} | {type(collections.OrderedDict().keys())})


def _both(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator that goes through the other side where one is a set of keys."""

    def operate(a: Any, b: Any, /) -> Any:
        kind = type(a)
        if kind is not int and kind is not float and (kind in _VIEWS or type(b) in _VIEWS):
            a, b = taken(a, kept=True), taken(b, kept=True)
        return function(a, b)

    return operate


sub, both, exclusive = map(_both, (operator.sub, operator.and_, operator.xor))
either_of = _both(either)
for _function, _other in (
    *((operator.sub, sub), (operator.and_, both), (operator.xor, exclusive), (operator.or_, either_of)),
):
    replace(_function)(_other)


def inplace(symbol: str, a: Any, b: Any) -> Any:
    """`a += b`, or with another symbol."""
    kind = type(a)
    if kind is float or (kind is int and symbol in _SHRINKING):
        pass
    elif symbol == "+=":
        opened(b)
        if isinstance(a, _GROWING):
            b = taken(b, kept=True)
            check_sum(a, b)
        else:
            check_added(a, b)
    elif symbol == "*=":
        a, b = repeated(a, b), repeated(b, a)
        check_product(a, b)
    elif symbol == "**=":
        check_power(a, b)
    elif symbol == "<<=":
        check_shift(a, b)
    elif symbol == "//=":
        check_work(a, b)
    elif symbol == "%=":
        check_work(a, b)
        check_template(a, b)
    elif symbol in _OF_SETS:
        opened(b)
        if type(a) in _VIEWS or type(b) in _VIEWS:
            a, b = taken(a, kept=True), taken(b, kept=True)
        if symbol == "|=":
            check_either(a, b)
        if isinstance(a, dict):
            b = in_pieces(taken(mapped(b), kept=True))
    return _INPLACE[symbol](a, b)


_OF_SETS = frozenset({"|=", "&=", "^=", "-="})

_GROWING = (list, bytearray, collections.deque, collections.UserList)
"""What takes all that there is of a range or an iterator."""


# --- slices that are written to -----------------------------------------------------------------------------------

MET: list[bool] = []
"""Is not empty when the code has got a slice as a value, so that any key may be one."""


def slice_(*args: Any) -> slice:
    """`slice`."""
    meet()
    return slice(*args)


def meet() -> None:
    """Remember that the code has a slice as a value."""
    if not MET:
        MET.append(True)


_SLICED = (list, bytearray, collections.UserList)


def slices(target: Any) -> Any:
    """What is written to by a slice."""
    if type(target) is list or isinstance(target, _SLICED) or type(target).__module__ == "array":
        return _Slices(target)
    if type(target).__module__ == SANDBOX:
        meet()  # the code gets the slice as a value
    return target


class _Slices:
    """Stands for a sequence that is written to, and looks at how much that would make it."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is list and len(value) + len(self._target) <= WORTH_COUNTING:
            pass
        elif isinstance(key, slice):
            value = taken(value, kept=True)
            check_sum(self._target, value)
            check_size(length(self._target) + (len_of(value) if type(value) is range else 0))
        self._target[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._target[key]
