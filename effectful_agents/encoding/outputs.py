"""Forms of output, for code that asks a model without a skill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from pydantic_core import from_json

from effectful_agents.encoding.decoding import decode, refuse_double_keys
from effectful_agents.encoding.forgiving import unpack, well_formed
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.schema import json_schema
from effectful_agents.messages.text import safe_text

__all__ = ["Schema", "schema_for"]


@runtime_checkable
class Schema(Protocol):
    """A form of output: what a model is told of it, and how what comes back is validated."""

    @property
    def name(self) -> str:
        """A short name."""
        ...

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON schema."""
        ...

    def validate(self, text: str) -> Any:
        """The value of JSON text.

        Raises:
            ValueError: It does not fit.
        """
        ...


def schema_for(spec: Any) -> Schema:
    """Make a `Schema` of what one has at hand.

    Args:
        spec: A `Schema`, which is returned as it is; a JSON schema as a dictionary; or any type that has a form: a
            dataclass, a pydantic model, `list[int]`.

    Raises:
        EncodingError: It has no form, or the dictionary is no JSON schema.

    >>> schema_for(list[int]).validate("[1, 2]")
    [1, 2]
    >>> schema_for({"type": "object", "required": ["a"]}).validate('{"b": 1}')
    Traceback (most recent call last):
    ValueError: 'a' is a required property
    """
    if isinstance(spec, Schema) and not isinstance(spec, type):
        return spec
    return _OfSchema(spec) if isinstance(spec, Mapping) else _OfType(spec)


class _OfType:
    def __init__(self, tp: Any) -> None:
        self.name = type_name(tp)
        self.json_schema = json_schema(tp)
        self._type = tp

    def validate(self, text: str) -> Any:
        return decode(text, self._type)


class _OfSchema:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.name = str(schema.get("title", "object"))
        self.json_schema = dict(schema)
        self._problems = held_to(self.json_schema, "the schema")

    def validate(self, text: str) -> Any:
        text = well_formed(safe_text(text))
        inside = unpack(text)
        text = text if inside is None else inside
        try:
            value = from_json(text)
        except ValueError as error:
            raise ValueError(f"Invalid JSON: {error}") from error
        refuse_double_keys(text)
        if problems := self._problems(value):
            raise ValueError("\n".join(problems))
        return value
