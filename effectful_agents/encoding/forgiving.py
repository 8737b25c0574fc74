"""Everything that is forgiven in what a model writes, in one place. `docs/encodable.md` has the table for users.

A value is strict first: a text is no number, true is no 1. Only where that fails is it looked at again, at the places
that failed, and read another way where there is no other reading and nothing is lost. What was read so is validated
anew; it is never a guess between two alternatives of a union. `strict` refuses all of it, except `FORMS`, which are
what schemas and `encode` themselves ask for where JSON, or a provider, has no other form.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails, from_json

__all__ = [
    "ARM",
    "DEFAULT",
    "FENCE",
    "FORMS",
    "LOOSE",
    "TAG",
    "Loose",
    "Place",
    "WrittenFloat",
    "has_double_keys",
    "parsed",
    "place",
    "reread",
    "unpack",
    "well_formed",
    "written",
]

DEFAULT = "\0default"
"""Stands in the location of an error behind a key that has a default, and no null of its own."""
ARM = "\0arm"
"""Begins the label of an alternative of a union in the location of an error."""
TAG = "\0tag"
"""Stands in the location of an error behind the value of a discriminator."""

# --- packaging: around the whole value --------------------------------------------------------------------------------

FENCE = re.compile(r"```[\w-]*[ \t]*\n")
"""The opening of a Markdown code fence."""
_SURROGATE = re.compile(
    r"(\\[^u])|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def unpack(text: str) -> str | None:
    """The text inside a code fence or inside a JSON string; None where there is no such packaging."""
    text = text.strip()
    fence = FENCE.match(text)
    if fence and text.endswith("```") and len(text) >= fence.end() + 3:
        return text[fence.end() : -3].rstrip()
    if text.startswith('"'):
        try:
            return from_json(text)
        except ValueError:
            return None
    return None


def well_formed(text: str) -> str:
    r"""The text with U+FFFD for escapes of lone surrogates, at which parsers stop.

    >>> well_formed(r'"a\ud800" "\ud83d\ude00"')
    '"a\\ufffd" "\\ud83d\\ude00"'
    """
    return _SURROGATE.sub(lambda match: r"\ufffd" if match[2] else match[0], text) if r"\u" in text else text


_SPACED = re.compile(r'"\s+:')


def has_double_keys(text: str) -> bool:
    """Whether a key stands twice in an object: one of the two values would be lost.

    Raises:
        ValueError: It is no JSON.
    """
    colons = text.count(":")
    if colons < 2:
        return False
    # Each key ends so, and parsers leave out one of two that are alike. The next step is slower.
    ends = text.count('":')
    if (ends == colons or not _SPACED.search(text)) and _count_keys(from_json(text)) == ends:
        return False
    try:
        json.loads(text, object_pairs_hook=_refuse_doubles, parse_int=len)  # of any number of digits
    except _Double:
        return True
    return False


def _count_keys(data: Any) -> int:
    if type(data) is dict:
        return len(data) + sum(
            [_count_keys(part) for part in data.values() if type(part) is dict or type(part) is list]
        )
    if type(data) is list:
        return sum([_count_keys(part) for part in data if type(part) is dict or type(part) is list])
    return 0


class _Double(Exception):
    """A key stands twice."""


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) < len(pairs):
        raise _Double


# --- values: at one place ---------------------------------------------------------------------------------------------

_NOTHING: Any = object()
"""There is no such reading."""
_LEFT_OUT: Any = object()
"""The key is left out."""


class Loose(NamedTuple):
    """A reading of a value that is not quite what the type says.

    Attributes:
        name: What is read so.
        errors: Pydantic's types of the errors at which it is tried; none stands for all.
        read: Makes the value that is tried instead.
    """

    name: str
    errors: frozenset[str]
    read: Callable[[Any], Any]


_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_EXACT = 2**53
_LONGEST_EXPONENT = 400
"""Of a number whose digits are written out."""
_LONGEST_INTEGER = 4300
"""Digits of the longest integer that Python reads from text."""

_SEQUENCES = frozenset(
    {"list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type", "iterable_type", "named_tuple_type"}
)
_OBJECTS = frozenset(
    {"dict_type", "model_type", "dataclass_type", "model_attributes_type", "mapping_type", "counter_type"}
)


class WrittenFloat(float):
    """A number with a fraction or an exponent, which still knows its digits."""

    __slots__ = ("text",)

    text: str

    @classmethod
    def of(cls, text: str) -> WrittenFloat:
        """The number that a text stands for."""
        number = cls(text)
        number.text = text
        return number


def parsed(text: str) -> Any:
    """JSON text as data, whose numbers know their digits.

    Raises:
        ValueError: It is no JSON, or a whole number has more digits than Python reads.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, parse_float=WrittenFloat.of)


def written(data: Any) -> str:
    """Data as JSON text again, its numbers with all their digits."""
    if isinstance(data, WrittenFloat):
        return data.text
    if isinstance(data, dict):
        return f"{{{','.join([f'{json.dumps(key)}:{written(part)}' for key, part in data.items()])}}}"
    if isinstance(data, list):
        return f"[{','.join(map(written, data))}]"
    return json.dumps(data)


def _exact_text(value: Any) -> str:
    """The digits of a number."""
    if not isinstance(value, float):
        return str(value)
    text = value.text if isinstance(value, WrittenFloat) else repr(value)
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:  # its exponent is beyond all use
        return text
    return format(number, "f") if number.is_finite() and abs(number.adjusted()) < _LONGEST_EXPONENT else str(number)


def _integer(value: Any) -> Any:
    if isinstance(value, str) and len(value) < _LONGEST_INTEGER and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        whole, _, fraction = _exact_text(value).partition(".")
        return _NOTHING if fraction.strip("0") else int(whole)
    return _NOTHING


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = float(value)
        return number if math.isfinite(number) else _NOTHING
    return _NOTHING


def _exact(value: Any) -> Any:
    return _exact_text(value) if type(value) in (int, float, WrittenFloat) else _NOTHING


def _complex(value: Any) -> Any:
    return str(value) if type(value) in (int, float, WrittenFloat) else _NOTHING


def _boolean(value: Any) -> Any:
    word = value.strip().lower() if isinstance(value, str) else ""
    return {"true": True, "false": False}.get(word, _NOTHING)


def _null(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in ("null", "none") else _NOTHING


def _choice(value: Any) -> Any:
    if isinstance(value, str):
        for read in (_integer, _number, _boolean):
            if (found := read(value)) is not _NOTHING:
                return found
    return str(value) if type(value) is int else _integer(value)


def _json_inside(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        inside = (unpack(value) or value) if isinstance(value, str) else None
        try:
            found = None if inside is None else parsed(inside)
        except (ValueError, RecursionError):
            return _NOTHING
        return found if isinstance(found, kind) and not has_double_keys(inside or "") else _NOTHING

    return read


def _not_finite(value: Any) -> Any:
    number = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    return number.get(value, _NOTHING) if isinstance(value, str) else _NOTHING


def _pairs(value: Any) -> Any:
    if not isinstance(value, list) or not all(
        isinstance(one, dict) and one.keys() == {"key", "value"} for one in value
    ):
        return _NOTHING
    if any(isinstance(one["key"], list | dict | None) for one in value):
        return _NOTHING
    result = {one["key"] if isinstance(one["key"], str) else json.dumps(one["key"]): one["value"] for one in value}
    return result if len(result) == len(value) else _NOTHING


LOOSE = (
    Loose("a whole number as text, or with a fraction of zero", frozenset({"int_type"}), _integer),
    Loose("a number as text", frozenset({"float_type"}), _number),
    Loose("a number for a decimal or a fraction", frozenset({"decimal_type"}), _exact),
    Loose("a number for a complex one", frozenset({"complex_type", "complex_str_parsing"}), _complex),
    Loose("true or false as text, in any case", frozenset({"bool_type"}), _boolean),
    Loose("null as text", frozenset(), _null),
    Loose("one of several values as text, or a text as a whole number", frozenset({"enum", "literal_error"}), _choice),
    Loose("a list as JSON text", _SEQUENCES, _json_inside(list)),
    Loose("an object as JSON text", _OBJECTS, _json_inside(dict)),
    Loose("pairs of key and value for a mapping", _OBJECTS, _pairs),
)

FORMS = (
    Loose("NaN and the infinities as text", frozenset({"float_type"}), _not_finite),
    Loose("null where the default is meant", frozenset(), lambda value: _LEFT_OUT if value is None else _NOTHING),
)


class Place(NamedTuple):
    """Where an error is.

    Attributes:
        path: The keys and indices on the way.
        value: What stands there, or in the last place on the way that is there.
        is_there: Whether the whole way leads through the data.
        has_default: Whether there is a default that null could stand for.
    """

    path: list[int | str]
    value: Any
    is_there: bool
    has_default: bool


def place(location: Sequence[int | str], data: Any) -> Place:
    """Where in the data an error is, and what stands there.

    A location also has the labels of alternatives of a union, which are nowhere in the data. A key can be one that the
    data lacks, or that a validator made of another.
    """
    path: list[int | str] = []
    there, has_default = True, False
    for number, part in enumerate(location):
        if isinstance(part, str) and part.startswith("\0") and not _is_there(part, data):
            has_default = has_default or part == DEFAULT
        elif location[number + 1 : number + 2] != (TAG,):
            there = there and _is_there(part, data)
            data = data[part] if there else data
            path.append(part)
            has_default = False
    return Place(path, data, there, has_default)


def _is_there(part: int | str, data: Any) -> bool:
    if isinstance(data, dict):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def reread(details: list[ErrorDetails], data: Any, *, strict: bool) -> Any:
    """The data with everything read loosely that is wrong in it and can be.

    Args:
        details: What is wrong.
        data: The parsed JSON; it is changed.
        strict: Whether only `FORMS` are read.

    Returns:
        The new data; None where nothing can be read otherwise.
    """
    found: dict[tuple[int | str, ...], list[Any]] = {}
    for detail in details:
        path, value, is_there, has_default = place(detail["loc"], data)
        if not is_there:
            continue
        for loose in FORMS if strict else (*LOOSE, *FORMS):
            if not loose.errors or detail["type"] in loose.errors:
                other = loose.read(value)
                if other is not _NOTHING and (other is not _LEFT_OUT or has_default):
                    found.setdefault(tuple(path), []).append(other)
                    break
    changed = False
    for path, readings in found.items():
        first = readings[0]
        if any(other is not first and other != first for other in readings):
            continue  # alternatives of a union would read it differently
        if not path:
            if first is not _LEFT_OUT:
                return [first]
            continue
        holder = _at(data, path[:-1])
        if first is not _LEFT_OUT:
            holder[path[-1]] = first
        elif isinstance(holder, dict):
            del holder[path[-1]]
        else:
            continue
        changed = True
    return [data] if changed else None


def _at(data: Any, path: Sequence[int | str]) -> Any:
    for part in path:
        data = data[part]
    return data
