"""What a person is shown of a value: JSON that leaves nothing out."""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Any

import pydantic

from effectful_agents.encoding.decoding import decode
from effectful_agents.encoding.records import dumps
from effectful_agents.encoding.values import encode
from effectful_agents.errors import EncodingError

__all__ = ["faithful"]


def faithful(value: Any, tp: Any = Any) -> Any:
    """A value as plain JSON that makes the same value again, read as its type or else as its own class.

    Types say themselves how they are written, and may leave out a field, or write stars for it.

    Raises:
        EncodingError: There is no such JSON.

    >>> faithful((1, "a"))
    [1, 'a']
    >>> faithful(pydantic.SecretStr("a"), pydantic.SecretStr)
    Traceback (most recent call last):
        ...
    effectful_agents.errors.EncodingError: what is written of `SecretStr` leaves something of it out.
    """
    for each in (tp, Any):
        try:
            shown = json.loads(dumps(encode(value, each)))
            if _makes(shown, value, each):
                return shown
        except Exception:  # code of the type's own may raise anything; the other one may do
            continue
    encode(value)  # says why there is none, if that is so
    raise EncodingError(f"what is written of `{type(value).__name__}` leaves something of it out.")


_PARTS = (list, tuple, set, frozenset)
_PLAIN = (type(None), bool, int, float, str)


def _makes(shown: Any, value: Any, tp: Any) -> bool:
    """Whether JSON that was written of a value makes the same one."""
    kind = type(value)
    if inspect.isfunction(value):  # its source, which is not run once more for this
        return True
    if tp is not Any:
        return _is_same(value, decode(json.dumps(shown), tp, strict=True))
    if kind in _PLAIN:
        return type(shown) is kind and shown == value
    if kind in _PARTS:
        return all(_makes(json.loads(dumps(encode(part))), part, Any) for part in value)
    if kind is dict:
        return all(isinstance(key, str) for key in value) and all(
            key in shown and _makes(shown[key], part, Any) for key, part in value.items()
        )
    return _is_same(value, decode(json.dumps(shown), kind, strict=True))


def _is_same(value: Any, again: Any) -> bool:
    """Whether two values are equal, also in what their comparison leaves out."""
    kind = type(value)
    if type(again) is not kind:
        return False
    if inspect.isfunction(value):
        return True
    if kind in (list, tuple):
        return len(value) == len(again) and all(map(_is_same, value, again))
    if kind is dict:
        return value.keys() == again.keys() and all(_is_same(part, again[key]) for key, part in value.items())
    says = value == again
    # An array says something else than yes or no; what compares by identity says nothing. Functions are never equal.
    if says is False and kind.__eq__ is not object.__eq__ and not any(map(inspect.isfunction, _fields(value))):
        return False
    return all(map(_is_same, _fields(value), _fields(again)))


def _fields(value: Any) -> list[Any]:
    """What an object consists of."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif isinstance(value, pydantic.BaseModel):
        names = [*kind.model_fields, *(value.model_extra or {})]
    else:
        names = [name for name in getattr(value, "__dict__", {}) if not hasattr(kind, name)]
    return [getattr(value, name, None) for name in names]
