"""Values as JSON."""

from __future__ import annotations

import collections
import dataclasses
import io
import json
import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

import pydantic
from pydantic_core import PydanticSerializationError

from effectful_agents.encoding.adapters import plain_type, type_adapter, type_name
from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import safe_text

__all__ = ["encode", "text_of"]


def text_of(encoded: Any) -> str:
    """An encoded value as compact JSON text, characters outside ASCII written as they are."""
    return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"))


def encode(value: Any, tp: Any = Any) -> Any:
    """A value as JSON: lists, dictionaries with text as keys, text, numbers, booleans and None.

    Nothing is lost in silence. NaN and the infinities, which JSON does not have, become the texts `"NaN"`,
    `"Infinity"` and `"-Infinity"`, which decode as floats. A set is written sorted, so that it is the same in every
    process. Lone surrogates become U+FFFD.

    Args:
        value: The value.
        tp: The type by which it is written. For `Any` and `object` that is the type of the value.

    Raises:
        EncodingError: The value has no JSON form, or is not what the type says; its keys are the same text; it is an
            iterator, which can be read only once. The message names its type and never shows it.

    >>> import datetime
    >>> encode({datetime.date(2026, 5, 1): {3, 1}})
    {'2026-05-01': [1, 3]}
    """
    kind = type(value)
    if kind is str and (tp is Any or tp is str):
        return safe_text(value)
    if tp is Any or plain_type(tp) in (Any, object):
        # Pydantic looks at a dataclass in an `Any` field by field and forgets what their annotations say.
        tp = kind if dataclasses.is_dataclass(kind) else Any
    adapter = type_adapter(tp)
    try:
        written = adapter.dump_python(value, mode="json", by_alias=True, warnings="error", fallback=_encode_unknown)
    except EncodingError:
        raise
    except UnicodeEncodeError as error:  # a lone surrogate where pydantic does not expect one: in a key
        safe = _made_safe(value)
        if safe == value:
            raise _not_encodable(value, tp, error) from error
        return encode(safe, tp)
    except Exception as error:  # a type may bring its own serializer, whose code can raise anything
        raise _not_encodable(value, tp, error) from error
    return _settle(value, written)


def _made_safe(value: Any) -> Any:
    """The value with safe text in its plain containers, keys included."""
    if isinstance(value, str):
        return safe_text(str.__str__(value))
    if type(value) is dict:
        safe = {_made_safe(key): _made_safe(part) for key, part in value.items()}
        if len(safe) < len(value):
            raise _same_keys(value)
        return safe
    return type(value)(map(_made_safe, value)) if type(value) in (list, tuple) else value


def _encode_unknown(value: Any) -> Any:
    """Write a value inside an `Any` that pydantic does not know at sight; perhaps its class says more."""
    kind = type(value)
    if isinstance(value, type) or kind is object:
        raise _no_json(kind)
    try:
        written = type_adapter(kind).dump_python(value, mode="json", by_alias=True)
    except EncodingError:
        raise _no_json(kind) from None
    if written is value:  # pydantic would ask again
        raise _no_json(kind)
    return written


def _no_json(kind: type) -> EncodingError:
    return EncodingError(f"a value of type `{type_name(kind)}` cannot be encoded; it has no JSON form.")


def _not_encodable(value: Any, tp: Any, error: Exception) -> EncodingError:
    name = type_name(type(value))
    if isinstance(error, PydanticSerializationError) and "UnexpectedValue" in str(error):
        # Pydantic's text shows the value.
        return EncodingError(f"a value of type `{name}` cannot be encoded as `{type_name(tp)}`; it is something else.")
    if isinstance(error, UnicodeDecodeError):
        return EncodingError(f"a value of type `{name}` cannot be encoded; its bytes are not UTF-8 text.")
    if isinstance(error, ValueError) and "Circular reference" in str(error):
        return EncodingError(f"a value of type `{name}` cannot be encoded; it contains itself.")
    return EncodingError(f"a value of type `{name}` cannot be encoded; {type(error).__name__} while it was written.")


# --- what pydantic's own form would lose ------------------------------------------------------------------------------


def _settle(value: Any, written: Any) -> Any:
    """The written form, made safe and deterministic, beside the value that it was written from.

    The two are walked together as far as they have the same shape; where a type writes itself in its own way only the
    written form is looked at.
    """
    kind = type(written)
    if kind is str:
        return safe_text(written)
    if kind is bool or kind is int:
        return written
    if kind is float:
        return written if math.isfinite(written) else _non_finite(written)
    if written is None:  # pydantic writes NaN so inside an `Any`
        return _non_finite(value) if isinstance(value, float) and not math.isfinite(value) else None
    if kind is list:
        return _settle_list(value, written)
    if kind is dict:
        return _settle_dict(value, written)
    raise _no_json(kind)


def _non_finite(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _settle_list(value: Any, written: list[Any]) -> list[Any]:
    if isinstance(value, Iterator | io.IOBase):
        raise EncodingError(
            f"a value of type `{type_name(type(value))}` cannot be encoded; it can be read only once. Pass a list."
        )
    if not isinstance(value, list | tuple | Set | collections.deque) or len(value) != len(written):
        value = written
    settled = [_settle(part, form) for part, form in zip(value, written, strict=True)]
    return _sorted(settled) if isinstance(value, Set) else settled


def _sorted(parts: list[Any]) -> list[Any]:
    try:
        return sorted(parts)
    except TypeError:  # several kinds: by their text
        return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True))


def _settle_dict(value: Any, written: dict[Any, Any]) -> dict[str, Any]:
    if type(value) is dict:
        parts = value
    elif isinstance(value, pydantic.BaseModel):
        parts = _fields_of_model(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        parts = value
    else:
        parts = written
    if not all(map(_stays_itself, parts)):
        if len(parts) > len(written):
            raise _same_keys(value)
        parts = dict(zip(written, parts.values(), strict=False))
    return {key: _settle(parts.get(key, form), form) for key, form in written.items()}


def _stays_itself(key: Any) -> bool:
    """Whether a key is the same text in JSON, so that no other key can become it."""
    return isinstance(key, str) and (key.isascii() or safe_text(key) == key)


def _fields_of_model(model: pydantic.BaseModel) -> dict[str, Any]:
    parts = {**model.__dict__, **(model.__pydantic_extra__ or {})}
    for name, field in type(model).model_fields.items():
        alias = field.serialization_alias or field.alias
        if alias is not None and name in parts:
            parts[alias] = parts.pop(name)
    return parts


def _same_keys(value: Any) -> EncodingError:
    return EncodingError(
        f"a value of type `{type_name(type(value))}` cannot be encoded; several of its keys are the same text in JSON."
    )
