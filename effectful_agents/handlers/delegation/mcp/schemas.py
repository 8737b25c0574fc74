"""Schemas of servers, without what could keep us from ever coming to an end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import printable_lines

__all__ = ["tamed"]

# Characters; parts of a schema, each counted as often as something refers to it.
_LARGEST, _MOST_PARTS = 100_000, 20_000
_LONGEST_TEXT = 2_000
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_INNER = frozenset(
    {
        *("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "anyOf", "oneOf", "allOf", "prefixItems"),
    }
)
# A regular expression, and a comparison of all elements with each other, may take for ever.
_LEFT_OUT = frozenset({"pattern", "patternProperties", "uniqueItems", "$schema"})
_TEXTS = frozenset({"description", "title"})


def tamed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of somebody else's, as values are held to it and a model is shown it.

    Patterns become a part of the description: a value is not held to them, since a pattern can be made that takes for
    ever. Texts are cut, and what steers a terminal is taken out.

    Raises:
        EncodingError: It is too large, or refers to its parts too often.

    >>> tamed({"type": "string", "pattern": "^a+$"})
    {'type': 'string', 'description': '(pattern: ^a+$)'}
    """
    size = len(json.dumps(schema))
    if size > _LARGEST:
        raise EncodingError(f"its schema has {size:,} characters")
    made = _tamed(schema)
    _check_parts(made)
    return made


def _tamed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_tamed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _LEFT_OUT:
            continue
        if key in _NAMED and isinstance(value, Mapping):
            made[key] = {name: _tamed(one) for name, one in value.items()}
        elif key in _INNER:
            made[key] = _tamed(value)
        elif key in _TEXTS and isinstance(value, str):
            made[key] = printable_lines(value)[:_LONGEST_TEXT]
        else:
            made[key] = value
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        told = f"{made.get('description', '')} (pattern: {printable_lines(pattern)[:200]})"
        made["description"] = told.strip()
    return made


def _check_parts(schema: dict[str, Any]) -> None:
    """Refuse a schema of which a check would go through some part too often, by way of references in references."""
    counts: dict[int, int] = {}

    def count(part: Any, around: frozenset[int]) -> int:
        if isinstance(part, list):
            return sum(count(one, around) for one in part)
        if not isinstance(part, dict):
            return 1
        if id(part) in around:
            return 1  # a circle is refused elsewhere, or goes down in the value
        if id(part) not in counts:
            inside = around | {id(part)}
            total = 1 + sum(count(value, inside) for key, value in part.items() if key not in ("$defs", "definitions"))
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/"):
                total += count(_at(schema, reference), inside)
            if total > _MOST_PARTS:
                raise EncodingError("its schema refers to its parts too often")
            counts[id(part)] = total
        return counts[id(part)]

    count(schema, frozenset())


def _at(schema: Any, reference: str) -> Any:
    found = schema
    for name in reference[2:].split("/"):
        name = name.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found
