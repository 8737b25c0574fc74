"""Values as JSON."""

from __future__ import annotations

import collections
import contextlib
import json
from collections.abc import Generator, Mapping, Set
from typing import Any

from effectful_agents.encoding.adapters import type_adapter, write_anything
from effectful_agents.encoding.writers import TOO_MANY_DIGITS, unwritable
from effectful_agents.errors import AgentsError, EncodingError
from effectful_agents.messages.text import safe_text

__all__ = ["encode", "text_of", "too_deep", "written_down"]


def text_of(encoded: Any) -> str:
    """An encoded value as compact JSON text, characters outside ASCII written as they are."""
    return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def written_down(value: Any) -> Generator[None]:
    """Tell of a value whose JSON has no text: Python writes neither endless digits nor endless depth.

    Raises:
        EncodingError: In place of what Python raises.
    """
    try:
        yield
    except RecursionError as error:
        raise too_deep(value) from error
    except ValueError as error:
        raise unwritable(value, TOO_MANY_DIGITS) from error


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
    except AgentsError:
        raise
    except Exception as error:
        raise not_encoded(value, error) from error


def not_encoded(value: Any, error: Exception) -> EncodingError:
    """The error for a value at which another was raised; properties and metaclasses of users may raise anything."""
    if isinstance(error, RecursionError):
        return too_deep(value)
    return unwritable(value, f"{type(error).__name__} while it was written")


def too_deep(value: Any) -> EncodingError:
    """The error for a value whose parts lie deeper than can be followed."""
    endless = _contains_itself(value)
    return unwritable(value, "it contains itself" if endless else "its parts are nested too deep")


def _contains_itself(value: Any) -> bool:
    """Whether a part of a value is, in turn, one that it is a part of."""
    around: set[int] = set()
    done: set[int] = set()
    kept: list[Any] = []  # what is made on the way: its identity must not be given to something else
    todo = [(value, True)]
    while todo:
        part, entering = todo.pop()
        key = id(part)
        if not entering:
            around.discard(key)
            done.add(key)
        elif key in around:
            return True
        elif key not in done and (inner := _inner(part)):
            kept.append(part)
            around.add(key)
            todo.append((part, False))
            todo += [(one, True) for one in inner]
    return False


def _inner(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | Set | collections.deque):
        return list(value)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name) for name in names)]
