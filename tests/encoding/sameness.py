"""When two values are the same: equal, of one kind, and NaN is NaN."""

import collections
import dataclasses
import datetime
import decimal
import math
import re
import zoneinfo
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import pydantic


def same(one: Any, other: Any) -> bool:
    """Whether a value came back: equal, part by part of the same type.

    What may differ, and nothing else may:

    - NaN is NaN, which Python's `==` denies;
    - the zone of a time may be another object with the same offset;
    - the flags of a pattern may stand inside it;
    - what a type does not tell: `Iterable` and `Sequence` come back as lists, `Set` as a frozen set, `Mapping` as a
      dictionary; the factory of a `defaultdict`.
    """
    if isinstance(one, datetime.datetime | datetime.time):
        return type(one) is type(other) and one.utcoffset() == other.utcoffset() and _wall(one) == _wall(other)
    if isinstance(one, zoneinfo.ZoneInfo):
        return isinstance(other, zoneinfo.ZoneInfo) and one.key == other.key
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, decimal.Decimal):
        return one.as_tuple() == other.as_tuple()
    if isinstance(one, re.Pattern):
        return _bare(one) == _bare(other)
    if isinstance(one, Mapping):
        return len(one) == len(other) and all(same(a, b) and same(one[a], other.get(b)) for a, b in _paired(one, other))
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and all(same(a, b) for a, b in _paired(one, other))
    if isinstance(one, list | tuple | collections.deque):
        return len(one) == len(other) and all(map(same, one, other))
    if attrs.has(type(one)) or dataclasses.is_dataclass(one):
        names = [field.name for field in (attrs.fields(type(one)) if attrs.has(type(one)) else dataclasses.fields(one))]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, pydantic.BaseModel):
        return same(one.__dict__, other.__dict__)
    return one == other


def _wall(moment: Any) -> Any:
    return moment.replace(tzinfo=None, fold=0)


def _bare(pattern: re.Pattern[Any]) -> tuple[Any, int]:
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    return re.sub(r"^\(\?[aiLmsux]+\)", "", source), pattern.flags


def _paired(one: Any, other: Any) -> Iterable[tuple[Any, Any]]:
    """The elements of two collections of hashable ones, each beside the one that is the same."""
    there = {element: element for element in other}
    return [
        (element, there[element] if element in there else next((one for one in other if same(element, one)), None))
        for element in one
    ]
