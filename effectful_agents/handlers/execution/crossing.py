"""What goes from one process to another and back: plain data, read so that it can be nothing else.

A value is written as a table. Each row is one object that holds others, named by the numbers of their rows, so that
what is shared or holds itself comes out as it was, and the reader follows nothing: the other side may have been taken
over by foreign code, and what it writes could be deeper, larger or slower to read than any text should be. No class is
called that makes much of little.
"""

from __future__ import annotations

import base64
import builtins
import collections
import datetime
import decimal
import fractions
import itertools
import json
import uuid
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["NotData", "dump", "load", "unpacked_error"]


class NotData(TypeError):
    """A value that only makes sense in the process in which it is."""


_DIRECT = 1 << 62
_DEEPEST = 400
"""Tuples in tuples: to hash them, the interpreter follows them with its own stack."""
_HEAVIEST = 200_000
"""Values in a tuple, those in its tuples and so on, as often as they stand there: that is how long it takes to hash."""

_DEFAULTS: dict[str, Any] = {cls.__name__: cls for cls in (int, float, str, bool, bytes, list, tuple, dict, set)}
_DATES = (datetime.datetime, datetime.date, datetime.time)


# --- writing ------------------------------------------------------------------------------------------------------


def dump(value: Any) -> bytes:
    """A value as bytes.

    Raises:
        NotData: It is, or holds, something that is not plain data.

    >>> load(dump({"a": [1, 2.5, ("x", {3})]}))
    {'a': [1, 2.5, ('x', {3})]}
    >>> dump(print)
    Traceback (most recent call last):
    effectful_agents.handlers.execution.crossing.NotData: a `builtin_function_or_method` is no plain data, and cannot \
go from one process to another.
    """
    return _Writer().written(value)


class _Writer:
    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._objects: list[Any] = []

    def written(self, value: Any) -> bytes:
        top = self._place(value)
        rows: list[Any] = []
        for obj in self._objects:  # grows meanwhile
            rows.append(self._row(obj))
        return json.dumps([top, rows], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _place(self, value: Any) -> Any:
        """A value as it stands within a row: itself, or the number of its own row."""
        kind = type(value)
        if (
            value is None
            or kind is bool
            or kind is str
            or kind is float
            or (kind is int and -_DIRECT < value < _DIRECT)
        ):
            return value
        row = self._rows.get(id(value))
        if row is None:
            row = self._rows[id(value)] = len(self._objects)
            self._objects.append(value)
        return [row]

    def _row(self, value: Any) -> list[Any]:
        kind = type(value)
        write = _WRITE.get(kind)
        if write is None:
            kind = value if isinstance(value, type) else kind
            raise NotData(f"a `{kind.__name__}` is no plain data, and cannot go from one process to another.")
        return [kind.__name__, *write(value, self._place)]


type _Place = Callable[[Any], Any]


def _items(value: Iterable[Any], place: _Place) -> list[Any]:
    return [[place(one) for one in value]]


def _pairs(value: Any, place: _Place) -> list[Any]:
    return [[[place(key), place(one)] for key, one in value.items()]]


def _defaults(value: Any, place: _Place) -> list[Any]:
    factory = value.default_factory
    if factory is not None and _DEFAULTS.get(getattr(factory, "__name__", "")) is not factory:
        raise NotData("a `defaultdict` with such a function is no plain data, and cannot go to another process.")
    return [*_pairs(value, place), factory and factory.__name__]


def _zoned(value: Any, place: _Place) -> list[Any]:
    zone = getattr(value, "tzinfo", None)
    if zone is not None and type(zone) is not datetime.timezone:
        raise NotData(f"a `{type(zone).__name__}` is no plain data, and cannot go from one process to another.")
    plain = value.replace(tzinfo=None) if zone is not None else value
    return [plain.isoformat(), place(zone), getattr(value, "fold", 0)]


def _as_timezone(value: datetime.timezone, place: _Place) -> list[Any]:
    offset, *name = value.__getinitargs__()  # ty: ignore[missing-attribute]
    return [[offset.days, offset.seconds, offset.microseconds], *name]


_WRITE: dict[type, Callable[[Any, _Place], list[Any]]] = {
    **dict.fromkeys((list, tuple, set, frozenset), _items),
    **dict.fromkeys((dict, collections.OrderedDict, collections.Counter), _pairs),
    **dict.fromkeys(_DATES, _zoned),
    **dict.fromkeys((bytes, bytearray), lambda value, place: [base64.b64encode(value).decode()]),
    collections.defaultdict: _defaults,
    collections.deque: lambda value, place: [*_items(value, place), value.maxlen],
    int: lambda value, place: [hex(value)],
    complex: lambda value, place: [value.real, value.imag],
    range: lambda value, place: [place(value.start), place(value.stop), place(value.step)],
    slice: lambda value, place: [place(value.start), place(value.stop), place(value.step)],
    datetime.timedelta: lambda value, place: [value.days, value.seconds, value.microseconds],
    datetime.timezone: _as_timezone,
    decimal.Decimal: lambda value, place: [str(value)],
    fractions.Fraction: lambda value, place: [place(value.numerator), place(value.denominator)],
    uuid.UUID: lambda value, place: [value.hex],
}


# --- reading ------------------------------------------------------------------------------------------------------


def load(data: bytes) -> Any:
    """The value of such bytes.

    Raises:
        NotData: They hold something else.
    """
    try:
        top, rows = json.loads(data.decode("utf-8", "surrogatepass"))
        return _Reader(rows).value(top)
    except NotData:
        raise
    except (ValueError, TypeError, LookupError, RecursionError, ArithmeticError, AttributeError) as error:
        raise NotData(f"what came from the other process is no plain data: {type(error).__name__}.") from None


class _Reader:
    """Makes the objects of a table: first those that can be filled afterwards, then the others, the innermost first."""

    def __init__(self, rows: list[Any]) -> None:
        if type(rows) is not list:
            raise NotData("what came from the other process is no plain data.")
        self._rows = rows
        self._made: dict[int, Any] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        for number, (kind, *_) in enumerate(rows):
            if kind in _FILLED:
                self._made[number] = _FILLED[kind]()
        for number in range(len(rows)):
            if number not in self._made:
                self._make(number)
        for number, (kind, *parts) in enumerate(rows):
            if kind in _FILLED:
                self._fill(number, kind, parts)

    def value(self, place: Any) -> Any:
        """What stands at a place in a row."""
        if type(place) is list:
            (number,) = place
            return self._made[_whole(number)]
        if place is None or type(place) in (bool, str, float, int):
            return place
        raise NotData("what came from the other process is no plain data.")

    def _make(self, first: int) -> None:
        """Make an object that cannot be changed, and before it those within."""
        path = [first]
        while path:
            number = path[-1]
            kind, *parts = self._rows[number]
            if number in self._made:
                path.pop()
                continue
            places = parts[0] if kind in ("tuple", "frozenset", "deque") else parts
            within = [_whole(one[0]) for one in places if type(one) is list and len(one) == 1 and type(one[0]) is int]
            missing = [one for one in within if one not in self._made]
            if missing:
                if len(path) > _DEEPEST or missing[0] in path or not 0 <= missing[0] < len(self._rows):
                    raise NotData("what came from the other process lies too deep in itself.")
                path.append(missing[0])
                continue
            sizes = [self._sizes[one] for one in within if one in self._sizes]
            depth = 1 + max([depth for depth, _ in sizes], default=0)
            weight = 1 + len(places) + sum(weight for _, weight in sizes)
            if depth > _DEEPEST or (weight > _HEAVIEST and weight > 2 * len(places)):
                raise NotData("what came from the other process lies too deep in itself.")
            self._sizes[number] = depth, weight
            self._made[number] = _READ[kind](self, *parts)
            path.pop()

    def _fill(self, number: int, kind: str, parts: list[Any]) -> None:
        target, values = self._made[number], parts[0]
        if kind == "list":
            target.extend([self.value(one) for one in values])
        elif kind == "set":
            target.update(_spread([self.value(one) for one in values]))
        else:
            pairs = [(self.value(key), self.value(one)) for key, one in values]
            _spread([key for key, _ in pairs])
            for key, one in pairs:
                target[key] = one
            if kind == "defaultdict":
                target.default_factory = None if parts[1] is None else _DEFAULTS[parts[1]]


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise NotData("what came from the other process is no plain data.")
    return number


def _spread(keys: list[Any]) -> list[Any]:
    """Refuse keys that were chosen to lie all in one place, where to find each takes as long as all."""
    if len(keys) > 1000:
        hashes = sorted(map(hash, keys))
        same = sum(one == other for one, other in itertools.pairwise(hashes))
        if same > 1000:
            raise NotData("what came from the other process has keys that are too much alike.")
    return keys


_FILLED: dict[str, Callable[[], Any]] = {
    "list": list,
    "dict": dict,
    "set": set,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
    "defaultdict": collections.defaultdict,
}


def _read_date(cls: Any) -> Callable[..., Any]:
    def read(reader: _Reader, text: str, zone: Any, fold: int) -> Any:
        value = cls.fromisoformat(text)
        zone = reader.value(zone)
        if cls is datetime.date or (zone is None and fold == 0):
            return value
        return value.replace(tzinfo=_of(datetime.timezone, zone), fold=_whole(fold))

    return read


def _of(cls: type, value: Any) -> Any:
    if value is not None and type(value) is not cls:
        raise NotData("what came from the other process is no plain data.")
    return value


def _whole_or_none(value: Any) -> Any:
    return value if value is None else _whole(value)


_READ: dict[str, Callable[..., Any]] = {
    "tuple": lambda reader, values: tuple([reader.value(one) for one in values]),
    "frozenset": lambda reader, values: frozenset(_spread([reader.value(one) for one in values])),
    "deque": lambda reader, values, most: collections.deque(
        [reader.value(one) for one in values], _whole_or_none(most)
    ),
    "bytes": lambda reader, text: base64.b64decode(_of(str, text), validate=True),
    "bytearray": lambda reader, text: bytearray(base64.b64decode(_of(str, text), validate=True)),
    "int": lambda reader, text: int(_of(str, text), 16),
    "complex": lambda reader, real, imag: complex(_of(float, real), _of(float, imag)),
    "range": lambda reader, *ends: range(*[_whole(reader.value(one)) for one in ends]),
    "slice": lambda reader, *ends: slice(*[_whole_or_none(reader.value(one)) for one in ends]),
    "timedelta": lambda reader, *parts: datetime.timedelta(*map(_whole, parts)),
    "timezone": lambda reader, offset, *name: datetime.timezone(datetime.timedelta(*map(_whole, offset)), *name),
    "Decimal": lambda reader, text: decimal.Decimal(_of(str, text)),
    "Fraction": lambda reader, over, under: fractions.Fraction(_whole(reader.value(over)), _whole(reader.value(under))),
    "UUID": lambda reader, text: uuid.UUID(hex=_of(str, text)),
    **{cls.__name__: _read_date(cls) for cls in _DATES},
}


# --- exceptions ---------------------------------------------------------------------------------------------------


def unpacked_error(kind: str, text: str) -> Exception:
    """An exception that was raised in another process: of a class of the language where it was one."""
    cls = NotData if kind == "NotData" else getattr(builtins, kind, None)
    if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, _MADE_OF_MORE):
        return cls(text)
    return RuntimeError(f"{kind}: {text}" if text else kind)


_MADE_OF_MORE = (UnicodeError, OSError, ExceptionGroup)
"""Exceptions that a text does not make."""
