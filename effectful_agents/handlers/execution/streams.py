"""Iterators that count their steps: whatever takes from them, in C too, can be stopped in between."""

from __future__ import annotations

import array
import builtins
import collections
import functools
import itertools
from collections.abc import Callable, Generator, Iterator
from types import GeneratorType
from typing import Any

from effectful_agents.handlers.execution.exact import exact_count
from effectful_agents.handlers.execution.kinds import is_own, opened
from effectful_agents.handlers.execution.limits import check, tick
from effectful_agents.handlers.execution.sizes import check_count, check_size

__all__ = [
    "LONG",
    "UNCOUNTED",
    "batched",
    "chain",
    "counted_values",
    "guarded_iter",
    "guarded_reversed",
    "in_pieces",
    "iterate",
    "looped",
    "mapped",
    "stream",
    "taken",
    "tee",
]

LONG = 100_000
"""A range that is longer is counted step by step."""

_SHORT_LIVED = (list, tuple, str, dict, set, frozenset, bytes, GeneratorType)


def stream(values: Any) -> Generator[Any]:
    """The values, with a tick for each."""
    for value in opened(values):
        tick()
        yield value


def looped(values: Any) -> Any:
    """What a loop goes through: the values, counted where there may be many and nothing else counts them."""
    tick()
    kind = type(values)
    if kind in _SHORT_LIVED:
        return values
    if kind is range:
        return values if len_of(values) <= LONG else stream(values)
    return iterate(opened(values))


def iterate(values: Any) -> Any:
    """`iter`, checked: a text or a list is as it is."""
    return values


def len_of(values: range) -> int:
    """The length of a range, which may be more than `len` can say."""
    if values.step > 0:
        return max(0, (values.stop - values.start + values.step - 1) // values.step)
    return max(0, (values.start - values.stop - values.step - 1) // -values.step)


UNCOUNTED = frozenset(
    {type(iter(range(1))), type(iter(range(1 << 64))), type(iter(int, 0)), itertools.chain, itertools.starmap}
    | {getattr(itertools, name) for name in ("repeat", "cycle", "count", "product", "permutations", "combinations")}
    | {itertools.combinations_with_replacement}
)
"""Iterators in C that may go on for long, or for ever."""


def taken(values: Any, *, kept: bool) -> Any:
    """What a function in C takes values from.

    Args:
        values: The values.
        kept: Whether the function keeps all of them at once, so that their number is bounded.

    Raises:
        TypeError: They come from something that the code cannot look into.
    """
    kind = type(values)
    if kind is range:
        length = len_of(values)
        if length > LONG:
            if kept:
                check_size(length)
            return stream(values)
        return values
    if not isinstance(values, Iterator) or (kind is GeneratorType and not kept):
        return values
    opened(values)
    return _bounded(values) if kept else stream(values)


def mapped(values: Any) -> Any:
    """What a dictionary is made of, or filled with: C makes a list of all that the `keys` of the code give."""
    kind = type(values)
    if not is_own(kind) or (isinstance(values, dict) and kind.__iter__ is dict.__iter__):
        return values  # C takes a dictionary as it is, unless it is gone through in another way
    if not hasattr(values, "keys"):
        return values
    return {key: values[key] for key in taken(iter(values.keys()), kept=True)}


_MANY = 10_000
_PIECE = 1_024
_LISTED = (list, tuple, collections.deque, array.array, type({}.values()), type({}.items()))


def in_pieces(values: Any) -> Any:
    """What is put into a set or a dictionary in C: the time is looked at in between.

    Numbers that were chosen for it all lie in one place there, and each is compared with all before it.
    """
    if not isinstance(values, _LISTED) or len(values) <= _MANY:
        return values
    return itertools.chain.from_iterable(_slices(values) if type(values) is list else _pieces(iter(values)))


def _slices(values: list[Any]) -> Generator[list[Any]]:
    for start in range(0, len(values), _PIECE):
        check()
        yield values[start : start + _PIECE]


def _pieces(values: Iterator[Any]) -> Generator[tuple[Any, ...]]:
    while piece := tuple(itertools.islice(values, _PIECE)):
        check()
        yield piece


def _bounded(values: Any) -> Generator[Any]:
    for number, value in enumerate(values):
        tick()
        if number & 0xFFFF == 0xFFFF:
            check_size(number)
        yield value


def counted_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """An iterator of `itertools` that counts: it may never end, or go on for a very long time."""

    @functools.wraps(function, assigned=("__name__", "__doc__", "__qualname__"), updated=())
    def counted(*args: Any, **kwargs: Any) -> Generator[Any]:
        for value in (*args, *kwargs.values()):
            if type(value) is range:
                check_size(len_of(value))
            opened(value)
        args, kwargs = _with_length(function, args, kwargs)
        return stream(function(*args, **kwargs))

    del counted.__wrapped__
    return counted


def _with_length(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The arguments, with what says how long each of the tuples is: they are so long before anything is in them."""
    if function in (itertools.count, itertools.repeat):
        return args, kwargs
    kwargs = {name: value if name == "iterable" else exact_count(value) for name, value in kwargs.items()}
    if function is itertools.product:
        check_count(kwargs.get("repeat"))
        check_count(len(args) * kwargs.get("repeat", 1))
        return args, kwargs
    args = (*args[:1], *map(exact_count, args[1:]))
    for value in (*args[1:], kwargs.get("r")):
        check_count(value)
    return args, kwargs


def batched(iterable: Any, n: Any, **options: Any) -> Generator[Any]:
    """`itertools.batched`."""
    n = exact_count(n)
    check_count(n)
    return stream(itertools.batched(taken(iterable, kept=False), n, **options))


def tee(iterable: Any, n: Any = 2, /) -> tuple[Any, ...]:
    """`itertools.tee`."""
    n = exact_count(n)
    check_count(n)
    return itertools.tee(taken(iterable, kept=False), n)


def cycle(values: Any, /) -> Generator[Any]:
    """`itertools.cycle`."""
    return stream(itertools.cycle(taken(values, kept=True)))


class chain:
    """`itertools.chain`."""

    def __new__(cls, *iterables: Any) -> Any:
        return stream(itertools.chain(*map(opened, iterables)))

    @staticmethod
    def from_iterable(iterables: Any, /) -> Generator[Any]:
        """`itertools.chain.from_iterable`."""
        return stream(itertools.chain.from_iterable(map(opened, opened(iterables))))


def guarded_iter(*args: Any) -> Any:
    """`iter`."""
    if len(args) == 2:
        return stream(builtins.iter(*args))
    made = builtins.iter(*args)
    return stream(made) if len(args) == 1 and type(args[0]) is range and len_of(args[0]) > LONG else made


def guarded_reversed(values: Any, /) -> Any:
    """`reversed`."""
    made = builtins.reversed(values)
    return stream(made) if type(values) is range and len_of(values) > LONG else made
