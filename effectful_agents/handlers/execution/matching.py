"""What patterns ask of a value: its parts, read by the guards, or None where the pattern does not match.

They answer what the interpreter answers, in the same order, for the conditions that the policy writes (`patterns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from effectful_agents.handlers.execution.attributes import get_attribute
from effectful_agents.handlers.execution.calls import callee
from effectful_agents.handlers.execution.kinds import PLAIN
from effectful_agents.handlers.execution.streams import taken

__all__ = ["instance_parts", "mapping_parts", "sequence_parts"]

_MISSING: Any = object()
_MATCH_SELF = 1 << 22
"""The flag of classes such as `int`, of which the one positional pattern is about the whole value."""


def sequence_parts(subject: Any, count: int, star: int | None) -> Sequence[Any] | None:
    """The items of a sequence, those of a star (the number of which is given) together as a list."""
    match subject:
        case [*_]:
            pass
        case _:
            return None
    size = len(subject)
    if size != count if star is None else size < count - 1:
        return None
    items = list(taken(subject, kept=True))
    if len(items) != size:
        raise ValueError(f"a sequence of {size} values gave {len(items)}.")
    if star is None:
        return items
    end = len(items) - (count - 1 - star)
    return [*items[:star], items[star:end], *items[end:]]


def mapping_parts(subject: Any, keys: tuple[Any, ...], rest: bool) -> list[Any] | None:
    """The values of these keys, and with `rest` a dictionary of the others."""
    match subject:
        case {}:
            pass
        case _:
            return None
    if len(subject) < len(keys):
        return None
    if len({*keys}) != len(keys):
        raise ValueError("a pattern of a mapping names a key twice.")
    get = subject.get if type(subject) in PLAIN else callee(get_attribute(subject, "get"))
    values = [get(key, _MISSING) for key in keys]
    if any(value is _MISSING for value in values):
        return None
    if rest:
        others = dict(subject)
        for key in keys:
            del others[key]
        values.append(others)
    return values


def instance_parts(subject: Any, cls: Any, count: int, names: tuple[str, ...]) -> list[Any] | None:
    """What an instance of a class has under the names of its `__match_args__`, as many as asked for, and these."""
    if not isinstance(cls, type):
        raise TypeError("called match pattern must be a class")
    if not isinstance(subject, cls):
        return None
    parts: list[Any] = []
    if count:
        positional = getattr(cls, "__match_args__", None)
        if positional is None and count == 1 and cls.__flags__ & _MATCH_SELF:
            parts.append(subject)
        else:
            names = (*_positional(cls, () if positional is None else positional, count), *names)
    if len({*names}) != len(names):
        raise TypeError(f"a pattern of `{cls.__name__}` names an attribute twice.")
    for name in names:
        # A default counts for what is not there, and not for what is not available: that is an error.
        value = get_attribute(subject, name, _MISSING)
        if value is _MISSING:
            return None
        parts.append(value)
    return parts


def _positional(cls: type, names: Any, count: int) -> tuple[str, ...]:
    if type(names) is not tuple:
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(names).__name__})")
    if count > len(names):
        raise TypeError(f"{cls.__name__}() accepts {len(names)} positional sub-patterns ({count} given)")
    return names[:count]
