"""The functions that write values of one kind, and the errors of values that cannot be written."""

from __future__ import annotations

import contextvars
import datetime
import decimal
import fractions
import inspect
import io
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Any

from effectful_agents.encoding.names import type_name
from effectful_agents.errors import AgentsError, EncodingError
from effectful_agents.messages.text import safe_text

__all__ = [
    "SCALARS",
    "TOO_MANY_DIGITS",
    "UNSET",
    "Pairs",
    "Write",
    "as_key",
    "in_minutes",
    "in_order",
    "mapping",
    "number",
    "one_of",
    "other_kind",
    "pairs_of",
    "part_of",
    "parts",
    "sort",
    "unwritable",
]

TOO_MANY_DIGITS = "it is, or holds, a whole number with more digits than can be written"

type Write = Callable[[Any], Any]
"""Makes JSON of a value; raises `EncodingError` where the value is not of the type."""


def unwritable(value: Any, why: str = "it has no JSON form") -> EncodingError:
    """The error for a value that cannot be written; it names the type and never shows the value."""
    return EncodingError(f"a value of type `{type_name(type(value))}` cannot be encoded; {why}.")


def number(value: float) -> float | str:
    """A float, or the text that stands for one that JSON does not have."""
    if value - value == 0:
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def sort(parts: list[Any]) -> list[Any]:
    """The parts of a set in an order that does not depend on the process."""
    try:
        return sorted(parts)
    except TypeError:  # several kinds: by their text
        return sorted(parts, key=_text)


def _text(part: Any) -> str:
    try:
        return json.dumps(part, sort_keys=True)
    except ValueError as error:  # of the number of digits
        raise unwritable(part, TOO_MANY_DIGITS) from error


def other_kind(value: Any, wanted: str) -> EncodingError:
    """The error for a value that is not of the declared type."""
    if isinstance(value, Iterator | io.IOBase):
        return unwritable(value, "it can be read only once. Pass a list")
    return unwritable(value, f"the type says {wanted}, and it is something else")


class Pairs(list[Any]):
    """A mapping on the way to be written, as a list of its keys and values."""


in_order: contextvars.ContextVar[bool] = contextvars.ContextVar("in_order", default=False)
"""Whether pairs are written sorted, as `dumps` wants them, and not in the order of the mapping."""


def pairs_of(written: list[Any]) -> list[Any]:
    """The written pairs of a mapping in the order that is wanted."""
    return sort(written) if in_order.get() else written


UNSET: Any = object()
"""Stands for a field that the constructor has not set."""


def part_of(value: Any, name: str) -> Any:
    """A field of an object, or what a property of it makes; `UNSET` where there is no such thing.

    Raises:
        EncodingError: The user's code raised, an `AttributeError` too: only where no code stands behind a name does
            that mean that it is not set.
    """
    try:
        return getattr(value, name)
    except (AgentsError, RecursionError):
        raise
    except Exception as error:
        plain = inspect.getattr_static(type(value), name, None)
        if isinstance(error, AttributeError) and (plain is None or inspect.ismemberdescriptor(plain)):
            return UNSET
        raise unwritable(value, f"its `{name}` raised {type(error).__name__}") from error


# --- scalars ----------------------------------------------------------------------------------------------------------


def _write_str(value: Any) -> str:
    if isinstance(value, str):
        return safe_text(value if type(value) is str else str.__str__(value))
    raise other_kind(value, "text")


def _write_int(value: Any) -> int:
    if type(value) is int or type(value) is bool:
        return value
    if isinstance(value, int):
        return int(value)
    raise other_kind(value, "a whole number")


def _write_float(value: Any) -> Any:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError as error:  # it would be read as infinity
            raise unwritable(value, "it is too large for a `float`") from error
        return int(value) if type(value) is not bool else value
    raise other_kind(value, "a number")


def _write_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise other_kind(value, "true or false")


def _write_none(value: Any) -> None:
    if value is not None:
        raise other_kind(value, "None")


def _write_decimal(value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        return "NaN" if value.is_nan() else str(value)
    raise other_kind(value, "a decimal number")


def _write_fraction(value: Any) -> str:
    if not isinstance(value, fractions.Fraction):
        raise other_kind(value, "a fraction")
    try:
        return str(value)
    except ValueError as error:  # of the number of digits
        raise unwritable(value, TOO_MANY_DIGITS) from error


def in_minutes(value: Any) -> Any:
    """A time whose offset has no seconds, for which ISO 8601 has no form: the same moment, where there is one."""
    offset = value.utcoffset() if isinstance(value, datetime.datetime | datetime.time) else None
    if offset is None or (not offset.seconds % 60 and not offset.microseconds):
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC)
    raise unwritable(value, "its offset has seconds")


SCALARS: dict[str, Write] = {
    "str": _write_str,
    "int": _write_int,
    "float": _write_float,
    "bool": _write_bool,
    "none": _write_none,
    "decimal": _write_decimal,
    "fraction": _write_fraction,
}
"""By the type of the core schema."""

# --- containers -----------------------------------------------------------------------------------------------------


def one_of(choices: list[Write]) -> Write:
    """Writes a value by the first alternative that it fits."""

    def write(value: Any) -> Any:
        for choice in choices:
            try:
                return choice(value)
            except EncodingError:
                continue
        raise other_kind(value, "one of several types")

    return write


def parts(inner: Write, kind: Any = Collection) -> Write:
    """Writes a container of any length as a list."""

    def write(value: Any) -> list[Any]:
        if type(value) is list and kind is Collection:
            return [inner(part) for part in value]
        if not isinstance(value, kind) or isinstance(value, str | bytes | bytearray | Mapping):
            raise other_kind(value, "a list" if kind is Collection else "a tuple")
        written = [inner(part) for part in value]
        return sort(written) if isinstance(value, Set) else written

    return write


def mapping(key_of: Write, value_of: Write) -> Write:
    """Writes a mapping as an object."""

    def write(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise other_kind(value, "a mapping")
        written = {as_key(key_of(key), key): value_of(part) for key, part in value.items()}
        if len(written) < len(value):
            raise unwritable(value, "several of its keys are the same text in JSON")
        return written

    return write


def as_key(written: Any, key: Any) -> str:
    """A written value as the key of an object."""
    if type(written) is str:
        return written
    if isinstance(written, bool):
        return "true" if written else "false"
    if written is None or isinstance(written, int | float):
        try:
            return repr(written)
        except ValueError as error:  # of the number of digits
            raise unwritable(key, TOO_MANY_DIGITS) from error
    raise unwritable(key, "JSON has no keys of this type")
