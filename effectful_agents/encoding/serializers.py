"""What users and pydantic wrote into a core schema about writing."""

from __future__ import annotations

import operator
from typing import Any

from pydantic_core import core_schema

from effectful_agents.encoding.marks import MARK

__all__ = ["bare", "has_own_serializer", "has_serializer", "with_serializer"]


def bare(node: Any) -> Any:
    """The fields of a class, without the validators around them."""
    while node["type"] in ("function-before", "function-after", "function-wrap") and "serialization" not in node:
        node = node["schema"]
    return node


def has_own_serializer(field: Any) -> bool:
    """Whether a method of the class writes the field, or leaves it out."""
    left_out = field.get("serialization_exclude") or field.get("serialization_exclude_if")
    return bool(left_out) or _serializes_itself(field["schema"])


def _serializes_itself(node: Any) -> bool:
    """Whether a method of the class serializes the field: it wants the instance, which only pydantic hands on."""
    if node.get("serialization", {}).get("is_field_serializer"):
        return True
    return node["type"] in ("default", "nullable") and _serializes_itself(node["schema"])


def has_serializer(node: Any) -> bool:
    """Whether something else than this package writes the values."""
    own = node.get("serialization")
    return own is not None and MARK not in node.get("metadata", {}) and not _is_redundant(own)


def with_serializer(node: Any, form: Any) -> Any:
    """A form with the serializer that a user gave the node whose place it takes."""
    own = node.get("serialization")
    if own is None or form.get("serialization") is own or not _is_of_a_user(own):
        return form
    if MARK in form.get("metadata", {}):  # it has a writer of ours, which is asked first
        form = core_schema.json_or_python_schema(form, form)
    return {**form, "serialization": own}


def _is_of_a_user(serialization: Any) -> bool:
    function = serialization.get("function")
    # That of pydantic for regular expressions.
    theirs = isinstance(function, operator.attrgetter) and serialization.get("when_used") == "json"
    return function is not None and not theirs and not _module(function).startswith("pydantic.")


def _module(function: Any) -> str:
    return getattr(function, "__module__", None) or ""


def _is_redundant(serialization: Any) -> bool:
    """Whether pydantic put a serializer there that only goes through a container."""
    return (
        serialization["type"] == "function-wrap"
        and not serialization.get("is_field_serializer")
        and _module(serialization["function"]).startswith("pydantic.")
    )
