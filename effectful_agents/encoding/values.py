"""Values as JSON."""

from __future__ import annotations

import json
from typing import Any

from effectful_agents.encoding.adapters import type_adapter, write_anything
from effectful_agents.encoding.writing import unwritable
from effectful_agents.messages.text import safe_text

__all__ = ["encode", "text_of"]


def text_of(encoded: Any) -> str:
    """An encoded value as compact JSON text, characters outside ASCII written as they are."""
    return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"))


def encode(value: Any, tp: Any = Any) -> Any:
    """A value as JSON: lists, dictionaries with text as keys, text, numbers, booleans and None.

    Nothing is lost in silence. NaN and the infinities, which JSON does not have, become the texts `"NaN"`,
    `"Infinity"` and `"-Infinity"`, which decode as floats. Bytes are their text, or base64 where they are none. A set
    is written sorted, so that it is the same in every process. An instance of a subclass is written with all that it
    has. Lone surrogates become U+FFFD.

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
    if tp is Any or tp is str:
        if type(value) is str:
            return safe_text(value)
        write = write_anything if tp is Any else type_adapter(tp).write
    else:
        write = type_adapter(tp).write
    try:
        return write(value)
    except RecursionError as error:
        raise unwritable(value, "it contains itself") from error
