"""The keywords of a JSON schema: what each must be, since users may write them into a type as they like."""

from __future__ import annotations

from typing import Any

from effectful_agents.errors import EncodingError

__all__ = ["LISTS", "MAPS", "SINGLE", "check_keyword"]

MAPS = ("properties", "patternProperties", "dependentSchemas")
SINGLE = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
LISTS = ("prefixItems", "anyOf", "oneOf", "allOf")
"""Those that stand for schemas: by name, one, and several."""
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("$ref", "description", "pattern", "format", "contentEncoding", "contentMediaType"), str),
    **dict.fromkeys((*MAPS, "dependentRequired"), dict),
    **dict.fromkeys((*LISTS, "enum", "required"), list),
    **dict.fromkeys(SINGLE, dict | bool),
    **dict.fromkeys(_COUNTS, int),
    "type": str | list,
}
"""What a keyword must be, of those that users may write as well."""


def check_keyword(name: str, value: Any) -> None:
    """Refuse a keyword with a value of which nothing could be made, here or at a provider.

    Raises:
        EncodingError: The message names the keyword.
    """
    if name in _KINDS and not isinstance(value, _KINDS[name]):
        kind = type(value).__name__
        raise EncodingError(f"the keyword `{name}` of its JSON schema is of type `{kind}`, which says nothing")
