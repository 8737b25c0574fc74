"""Core schemas as what they are: trees of dictionaries, which several passes go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["INSIDE", "NO_SCHEMAS", "fields_inside", "parts_of", "with_parts"]

NO_SCHEMAS = frozenset({"type", "metadata", "serialization", "config", "default", "default_factory", "cls", "function",
                        "ref", "expected", "members", "discriminator", "name"})  # fmt: skip
"""What in a core schema holds none."""

INSIDE = {
    "default": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "custom-error": "schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "strict_schema",
    "definitions": "schema",
}
"""Where the core schema of the very same JSON stands inside of another, by the type of that."""


def with_parts(node: Any, of: Callable[[Any], Any]) -> Any:
    """A core schema in which a function has replaced each of those directly inside."""
    return {key: part if key in NO_SCHEMAS else _replaced(part, of) for key, part in node.items()}


def _replaced(part: Any, of: Callable[[Any], Any]) -> Any:
    if isinstance(part, list | tuple):
        return type(part)([_replaced(one, of) for one in part])
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("type"), str):
        return of(part)
    return {name: _replaced(one, of) for name, one in part.items()}  # schemas by name; a name may be any word


def parts_of(node: Any) -> Iterator[Any]:
    """The core schemas directly inside of one."""
    for key, part in node.items():
        if key not in NO_SCHEMAS:
            yield from _found(part)


def _found(part: Any) -> Iterator[Any]:
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        yield part
    elif isinstance(part, dict | list | tuple):
        for one in part.values() if isinstance(part, dict) else part:
            yield from _found(one)


def fields_inside(node: Any) -> Any:
    """The core schema of the fields of a class, inside the validators around them; what is innermost, where it is none.

    Args:
        node: The core schema of the class.
    """
    inner = node.get("schema", node)
    while "schema" in inner and "fields" not in inner:
        inner = inner["schema"]
    return inner
