"""Core schemas of dates and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from effectful_agents.encoding.trees import with_parts

__all__ = ["limits_of", "moment", "told_apart"]

_APART = "told_apart"
_DIGITS = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")
_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}\s*")
_NO_NUMBER = PydanticCustomError("iso_8601", "Input should be text in ISO 8601, and no number")
_NO_DATE = PydanticCustomError("iso_8601", "Input should be a date without a time")
_NO_TIME = PydanticCustomError("iso_8601", "Input should be a date with a time")
_LIMITS = {"ge": "at least {}", "gt": "greater than {}", "le": "at most {}", "lt": "less than {}",
           "multiple_of": "a multiple of {}", "max_digits": "of at most {} digits",
           "decimal_places": "with at most {} decimal places"}  # fmt: skip


def limits_of(node: Any) -> str:
    """The limits of a core schema, in words."""
    return ", ".join(text.format(node[key]) for key, text in _LIMITS.items() if node.get(key) is not None)


def _no_timestamp(value: Any) -> Any:
    """Refuse numbers, whose unit and zone would be a guess."""
    if isinstance(value, int | float) or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        raise _NO_NUMBER
    return value


def _only_date(value: Any) -> Any:
    if isinstance(value, str) and not _DATE.fullmatch(value):
        raise _NO_DATE
    return _no_timestamp(value)


def _with_time(value: Any) -> Any:
    if isinstance(value, str) and _DATE.fullmatch(value):
        raise _NO_TIME
    return _no_timestamp(value)


_FORMS: dict[str, Callable[[Any], Any]] = {"date": _only_date, "datetime": _with_time}


def moment(given: Any) -> Any:
    """A core schema of a date or a time, or of the difference of two."""
    before = _FORMS[given["type"]] if given.get(_APART) else _no_timestamp
    node: Any = {key: part for key, part in given.items() if key != _APART}
    # The function hands on a Python text, which the strict form of the node would refuse.
    read = core_schema.no_info_before_validator_function(before, {**node, "strict": False})
    if limits := limits_of(node):  # JSON schema has no words for them
        read["metadata"] = {"pydantic_js_functions": [lambda core, handler: {"description": limits, **handler(core)}]}
    return core_schema.json_or_python_schema(read, node)


def told_apart(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A union in which a date is told from a date with a time, where it has both: alone, each reads both forms.

    Args:
        node: The core schema of the union.
        definitions: Core schemas by reference.
    """
    kinds: set[str] = set()

    def marked(part: Any) -> Any:
        named = part
        while named["type"] == "definition-ref":
            named = definitions[named["schema_ref"]]
        if named["type"] in _FORMS:
            kinds.add(named["type"])
            return {key: value for key, value in named.items() if key != "ref"} | {_APART: True}
        # What a class says holds for it everywhere.
        return part if named is not part or "ref" in part or "cls" in part else with_parts(part, marked)

    made = with_parts(node, marked)
    return made if kinds == _FORMS.keys() else node
