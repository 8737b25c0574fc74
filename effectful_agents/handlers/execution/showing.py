"""How long the text of a value will be: estimated before it is made.

A list that has another one ten times, which has another one ten times, is small, and its text is not.
"""

from __future__ import annotations

import collections
import functools
import gc
import operator
import types
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from effectful_agents.handlers.execution.growing import check_growth
from effectful_agents.handlers.execution.kinds import SANDBOX
from effectful_agents.handlers.execution.limits import current, tick
from effectful_agents.handlers.execution.names import is_standard
from effectful_agents.handlers.execution.sizes import SHOWN, WORTH_COUNTING, check_number, check_size

__all__ = [
    "ascii_",
    "check_shown",
    "check_texts",
    "joined",
    "length_shown",
    "repr_",
    "shown",
    "shown_as_ascii",
    "shown_as_repr",
    "text",
]

_FLAT = frozenset({int, float, bool, str, complex, type(None)})
_SHOWING = (
    *(type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType, types.SimpleNamespace),
    *(slice, functools.partial, operator.itemgetter, types.GenericAlias, Enum, collections.ChainMap),
)
"""Classes whose objects show all that they have, whatever that is."""

_HOLDERS = (
    *_SHOWING,
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


def shown(value: Any, conversion: Any = None) -> Any:
    """A value that is about to be made into text, if that is not too long."""
    kind = type(value)
    if kind not in _FLAT or (kind is str and conversion is not None):
        check_shown(value, conversion or str)
    return value


def text(*args: Any, **kwargs: Any) -> str:
    """`str`."""
    if args and type(args[0]) not in _FLAT:
        check_shown(args[0])
        return _at_home(str(*args, **kwargs))
    return str(*args, **kwargs)


def repr_(value: Any, /) -> str:
    """`repr`."""
    return _at_home(repr(shown(value, repr)))


def ascii_(value: Any, /) -> str:
    """`ascii`."""
    return _at_home(ascii(shown(value, ascii)))


def shown_as_repr(value: Any) -> Any:
    """What an f-string shows with `!r`."""
    if type(value) is str and len(value) < WORTH_COUNTING // _ESCAPED:
        return value
    return shown(value, repr)


def shown_as_ascii(value: Any) -> Any:
    """What an f-string shows with `!a`."""
    if type(value) is str and len(value) < WORTH_COUNTING // _ESCAPED:
        return value
    return shown(value, ascii)


def joined(*parts: str) -> str:
    """The parts of an f-string, together."""
    if sum(map(len, parts)) > WORTH_COUNTING:
        check_size(sum(map(len, parts)))
    return _at_home("".join(parts))


_HOME = f"{SANDBOX}."


def _at_home(made: str) -> str:
    """A text in which classes of the code are shown as they are where nothing is restricted."""
    return made.replace(_HOME, "__main__.") if _HOME in made else made


_ESCAPED = 10
"""Characters that one letter may become: `\\U0001f600`."""


def check_shown(value: Any, make: Callable[[Any], str] = str) -> None:
    """Raise if the text of a value would be too long.

    Args:
        value: The value.
        make: What makes the text: `str`, `repr` or `ascii`.
    """
    if isinstance(value, str | bytes | bytearray):
        if make is not str or not isinstance(value, str):
            check_growth(value, ascii if make is ascii else repr, _ESCAPED)
    elif isinstance(value, _HOLDERS) or _is_shown_by_fields(type(value)):
        characters = length_shown(value)[0]
        check_size(characters, "The text of the value")
        if characters * _ESCAPED > max(WORTH_COUNTING, current().size):
            check_texts(value, ascii if make is ascii else repr)
    else:
        check_number(value)


def check_texts(value: Any, make: Callable[[Any], str]) -> None:
    """Raise if the texts in a value, each as it is shown, would be too long together."""
    total, waiting, seen = 0, [(value,)], set[int]()
    while waiting:
        one = waiting.pop()
        for parts in _parts(one):
            texts = [part for part in parts if type(part) is str]
            for kind, found in ((str, texts), (bytes, [part for part in parts if type(part) is bytes])):
                for start in range(0, len(found), _TOGETHER):
                    whole = kind().join(found[start : start + _TOGETHER])
                    total += sum([len(make(whole[at : at + _PIECE])) for at in range(0, len(whole), _PIECE)])
                    tick()
                    check_size(total, "The text of the value")
            if len(texts) == len(parts):
                continue
            for part in parts:
                if (isinstance(part, _HOLDERS) or _is_shown_by_fields(type(part))) and id(part) not in seen:
                    seen.add(id(part))
                    waiting.append(part)


_TOGETHER, _PIECE = 1_000, 65_536


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
    if not (isinstance(value, _HOLDERS) or _is_shown_by_fields(kind)) or id(value) in path:
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


def _is_shown_by_fields(kind: type) -> bool:
    """Whether objects of a class are shown as `dataclass` does it, and not by a function of the code."""
    if not hasattr(kind, "__dataclass_fields__"):
        return False
    function = kind.__repr__
    return isinstance(function, types.FunctionType) and is_standard(function.__globals__.get("__name__"))


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
    if _is_shown_by_fields(type(value)):
        return [[getattr(value, name, None) for name in type(value).__dataclass_fields__]]
    if isinstance(value, _SHOWING):
        return [gc.get_referents(value)]
    for cls in (list, tuple, set, frozenset):
        if isinstance(value, cls):
            return [value if type(value) is cls else list(cls.__iter__(value))]  # a class may go through it otherwise
    return [list(collections.deque.__iter__(value))]
