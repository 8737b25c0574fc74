"""Types with few values: enums, flags and literals.

Pydantic looks values up by equality, for which `True` is 1, and does not find a member of an enum that a `Literal`
names, nor one whose value JSON has no word for. Here each value has one written form, and is found by it and its kind.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic_core import PydanticKnownError, core_schema

from effectful_agents.encoding.marks import FORMS, shown

__all__ = ["Among", "choice", "flag_names", "flag_of", "text_of_key", "written_members"]

type Written = str | int | float | bool | None
"""A value as JSON writes it alone."""


def written_members(kind: type[enum.Enum]) -> list[tuple[Written, enum.Enum]]:
    """The members of an enum as they are written: by their values, or by their names where JSON has no such value."""
    members = list(kind)
    if issubclass(kind, enum.Flag):
        # Also the names of combinations: a flag may have no others.
        return [(name, member) for name, member in kind.__members__.items()]
    if all(_is_plain(member.value) for member in members):
        return [(member.value, member) for member in members]
    return [(member.name, member) for member in members]


def _is_plain(value: Any) -> bool:
    return type(value) in (str, int, bool, type(None)) or (type(value) is float and value - value == 0)


def choice(
    pairs: Iterable[tuple[Written, Any]],
    *,
    error: Literal["enum", "literal_error"],
    kind: type | None = None,
    as_keys: bool = False,
) -> core_schema.CoreSchema:
    """A core schema of some values.

    Args:
        pairs: The written form of each value, and the value.
        error: Pydantic's type of the error: "enum" or "literal_error".
        kind: A class whose instances, where Python code gives one, are taken as they are.
        as_keys: Whether they are keys of an object, which are always texts.
    """
    written = [((text_of_key(form) if as_keys else form), value) for form, value in pairs]
    table = {_key(form): value for form, value in written}
    expected = _listed([form for form, _ in written])
    own = {_key(value): value for _, value in written if kind is None and not isinstance(value, enum.Enum)}
    missing: Callable[[Any], Any] | None = kind if kind is not None and _has_missing(kind) else None

    def look_up(value: Any) -> Any:
        if isinstance(value, enum.Enum if kind is None else kind):
            if any(value is one for _, one in written):
                return value
        elif isinstance(value, str | int | float | bytes | None):
            key = _key(value)
            if key not in table and type(value) is int:  # a whole number is a number
                key = (float, value)
            if key in table:
                return table[key]
            if key in own:
                return own[key]
            if missing is not None:
                try:
                    return missing(value)
                except ValueError:
                    pass
        raise PydanticKnownError(error, {"expected": expected})

    schema = schema_of_choices([form for form, _ in written])
    return core_schema.no_info_plain_validator_function(
        look_up, metadata=shown(schema) | {FORMS: [form for form, _ in written]}
    )


class Among:
    """Stands for a class whose instances are a few values; each is told by its type as well, since `True == 1`.

    Args:
        forms: How the values are written, by their type and themselves.
    """

    def __init__(self, forms: dict[tuple[type, Any], Any]) -> None:
        self._forms = forms

    def holds(self, value: Any) -> bool:
        """Whether it is one of the values."""
        try:
            return (type(value), value) in self._forms
        except TypeError:
            return False

    def write(self, value: Any) -> Any:
        """The written form of one of them."""
        return self._forms[type(value), value]


def schema_of_choices(forms: list[Written]) -> dict[str, Any]:
    """The JSON schema of written values."""
    names: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    # Gemini lists texts and numbers only.
    listed = [form for form in forms if not isinstance(form, bool | None)]
    kinds = {names[type(form)] for form in listed}
    parts: list[dict[str, Any]] = []
    if listed:
        parts = [{"const": listed[0]} if len(listed) == 1 else {"enum": listed}]
        if len(kinds) == 1:
            parts = [{"type": kinds.pop(), **parts[0]}]
    truths = [form for form in forms if isinstance(form, bool)]
    parts += [{"type": "boolean"} if len(truths) == 2 else {"type": "boolean", "const": truths[0]}] if truths else []
    parts += [{"type": "null"}] if None in forms else []
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _has_missing(kind: type) -> bool:
    return issubclass(kind, enum.Enum) and kind._missing_.__func__ is not enum.Enum._missing_.__func__


def _key(value: Any) -> tuple[Any, Any]:
    """What tells values apart that are equal in Python: 1, 1.0 and true."""
    return (str if isinstance(value, str) else type(value), value)


def text_of_key(form: Written) -> str:
    """A written value as the key of an object."""
    return form if isinstance(form, str) else "None" if form is None else json.dumps(form)


def _listed(forms: list[Written]) -> str:
    shown = [repr(form) if isinstance(form, str) else json.dumps(form) for form in forms]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def flag_names(kind: type[enum.Flag], value: enum.Flag) -> list[str]:
    """The names of the flags that are set.

    Raises:
        ValueError: A bit is set that has no name.
    """
    names, left = [], value.value
    canonical = {member.name for member in kind}
    ordered = sorted(kind.__members__.items(), key=lambda item: item[0] not in canonical)  # single bits first
    for name, member in ordered:
        bits = member.value
        if bits and left & bits == bits:
            names.append(name)
            left &= ~bits
    if left:
        raise ValueError("a bit without a name is set")
    return names


def flag_of(kind: type[enum.Flag], members: Iterable[enum.Flag]) -> enum.Flag:
    """The flags together."""
    result = kind(0)
    for member in members:
        result |= member
    return result
