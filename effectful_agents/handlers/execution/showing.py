"""How long the text of a value will be: estimated before it is made.

A list that has another one ten times, which has another one ten times, is small, and its text is not.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

from effectful_agents.handlers.execution.limits import current
from effectful_agents.handlers.execution.sizes import SHOWN, WORTH_COUNTING, check_number, check_size

__all__ = ["ascii_", "check_shown", "joined", "length_shown", "repr_", "shown", "text"]

_FLAT = frozenset({int, float, bool, str, complex, type(None)})
_HOLDERS = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.deque,
    BaseException,
    collections.UserList,
    collections.UserDict,
)


def shown(value: Any) -> Any:
    """A value that is about to be made into text, if that is not too long."""
    if type(value) not in _FLAT:
        check_shown(value)
    return value


def text(*args: Any, **kwargs: Any) -> str:
    """`str`."""
    if args and type(args[0]) not in _FLAT:
        check_shown(args[0])
    return str(*args, **kwargs)


def repr_(value: Any, /) -> str:
    """`repr`."""
    return repr(shown(value))


def ascii_(value: Any, /) -> str:
    """`ascii`."""
    return ascii(shown(value))


def joined(*parts: str) -> str:
    """The parts of an f-string, together."""
    if sum(map(len, parts)) > WORTH_COUNTING:
        check_size(sum(map(len, parts)))
    return "".join(parts)


def check_shown(value: Any) -> None:
    """Raise if the text of a value would be too long."""
    if isinstance(value, _HOLDERS):
        check_size(length_shown(value)[0], "The text of the value")
    else:
        check_number(value)


SHOWN.append(check_shown)


def length_shown(value: Any) -> tuple[int, int]:
    """About how many characters the text of a value has, and how many values are in it; no more than is allowed."""
    limit = current().size
    return _length(value, limit, set())


def _length(value: Any, limit: int, path: set[int]) -> tuple[int, int]:
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) + 2, 1
    if kind is int:
        return value.bit_length() * 3 // 10 + 2, 1
    if not isinstance(value, _HOLDERS) or id(value) in path:
        return 8, 1
    characters, count = 2, 1
    path.add(id(value))
    for parts in _parts(value):
        kinds = set(map(type, parts))
        characters += 2 * len(parts)
        count += len(parts)
        if kinds <= _FLAT:
            if int in kinds or str in kinds:
                characters += sum([_length_of_flat(one) for one in parts]) if len(kinds) > 1 else _length_of_all(parts)
            continue
        for one in parts:
            more, others = _length(one, limit, path)
            characters += more
            count += others
            if characters > limit:
                return characters, count
    path.discard(id(value))
    return characters, count


def _length_of_flat(value: Any) -> int:
    return len(value) if type(value) is str else value.bit_length() * 3 // 10 + 1 if type(value) is int else 8


def _length_of_all(parts: Iterable[Any]) -> int:
    first = next(iter(parts))
    return sum(map(len, parts)) if type(first) is str else sum(map(int.bit_length, parts)) * 3 // 10


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [list(dict.keys(value)), list(dict.values(value))]
    if isinstance(value, BaseException):
        return [value.args]
    if isinstance(value, collections.UserList | collections.UserDict):
        return [(value.data,)]
    for cls in (list, tuple, set, frozenset):
        if isinstance(value, cls):
            return [value if type(value) is cls else list(cls.__iter__(value))]  # a class may go through it otherwise
    return [list(collections.deque.__iter__(value))]
