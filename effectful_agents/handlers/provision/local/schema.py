"""JSON schemas, as far as llama.cpp can hold a model to them.

llama.cpp turns a schema into a grammar. What it does not know must not reach it: depending on how it was built, it then
prints a warning, or leaves out the whole grammar without a word. So a schema is written anew with the keywords that are
known to work, some of them rewritten; what is lost here is checked by pydantic when the reply is decoded.

Two things are narrower than the type: an integer without bounds has at most 15 digits, and a number at most 15 before
the point and 6 behind it. A small model would otherwise write digits to the end of its context.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["free_schema", "known_pattern", "narrowed"]

_LARGEST = 10**15
# Decimal places of numbers: kept as a multiple, the one keyword that bounds them.
_SMALLEST_STEP = 1e-06

_DATE = "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])"
_HEX = "[0-9a-f]"
_FORMATS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}Z?$",
    "duration": "^P[0-9]{1,3}DT[0-9]{1,2}H[0-9]{1,2}M[0-9]{1,2}S$",
    "uuid": f"^{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$",
    "ipv4": rf"^({_OCTET}\.){{3}}{_OCTET}$",
}
"""Formats of texts, each with an end: llama.cpp's own let the fraction of a second go on for ever."""

_KEPT = frozenset({"type", "required", "minItems", "maxItems", "minLength", "maxLength", "enum", "const"})


def free_schema() -> dict[str, Any]:
    """The schema of any JSON value."""
    return {}


def narrowed(schema: Any, name: Callable[[str], str] = str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write a schema with the keywords that llama.cpp's grammar knows.

    Args:
        schema: A JSON schema, as pydantic makes them.
        name: What a definition is called in the result, so that those of several schemas can stand side by side.

    Returns:
        The schema without its definitions, and the definitions.

    >>> narrowed({"type": "integer", "exclusiveMinimum": 2, "maximum": 9, "title": "Size"})
    ({'type': 'integer', 'minimum': 3, 'maximum': 9}, {})
    """
    definitions = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}
    writer = _Writer(definitions, name)
    return writer.write(schema), {name(key): writer.write(value) for key, value in definitions.items()}


class _Writer:
    def __init__(self, definitions: Mapping[str, Any], name: Callable[[str], str]) -> None:
        self._definitions = definitions
        self._name = name

    def write(self, schema: Any) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            return free_schema()
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "const" in schema:
            return {"const": schema["const"]}
        if schema.get("enum"):
            return {"enum": list(schema["enum"])}
        for union in ("anyOf", "oneOf"):
            if schema.get(union):
                return {"anyOf": [self.write(choice) for choice in schema[union]]}
        if schema.get("allOf"):
            return self.write(schema["allOf"][0]) if len(schema["allOf"]) == 1 else free_schema()
        return self._plain(schema)

    def _reference(self, reference: str) -> dict[str, Any]:
        key = reference.removeprefix("#/$defs/")
        return {"$ref": f"#/$defs/{self._name(key)}"} if key in self._definitions else free_schema()

    def _plain(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        written = {key: value for key, value in schema.items() if key in _KEPT}
        match schema.get("type", "object" if "properties" in schema else None):
            case "integer":
                written |= _integer_bounds(schema)
            case "number":
                written |= _number_bounds(schema)
            case "string":
                written |= _string_form(schema)
            case "array":
                written |= self._items(schema)
            case "object":
                written |= self._members(schema)
            case list():
                # `{"type": ["string", "null"]}` is a union whose bounds belong to the kind they speak of.
                return {"anyOf": [self._plain({**schema, "type": kind}) for kind in schema["type"]]}
            case None:
                return free_schema()
        return written

    def _items(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {}
        if "prefixItems" in schema:
            written["prefixItems"] = [self.write(item) for item in schema["prefixItems"]]
            if schema.get("items") is False:
                written["maxItems"] = min(schema.get("maxItems", math.inf), len(schema["prefixItems"]))
        if isinstance(schema.get("items"), Mapping):
            written["items"] = self.write(schema["items"])
        return written

    def _members(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "object"}
        others = schema.get("additionalProperties", "properties" not in schema)
        if "properties" in schema:
            # What a class computes itself need not be written.
            written["properties"] = {
                key: self.write(value) for key, value in schema["properties"].items() if not _is_read_only(value)
            }
        elif not others:
            written["properties"] = {}
        elif keys := self._enumerated(schema.get("propertyNames")):
            return written | {"properties": dict.fromkeys(keys, self.write(others)), "additionalProperties": False}
        # Where nothing is said, JSON schema allows members that nobody has named; a model would invent some.
        written["additionalProperties"] = self.write(others) if isinstance(others, Mapping) else bool(others)
        return written

    def _enumerated(self, schema: Any) -> list[Any]:
        if not isinstance(schema, Mapping):
            return []
        if "$ref" in schema:
            return self._enumerated(self._definitions.get(schema["$ref"].removeprefix("#/$defs/")))
        return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _is_read_only(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("readOnly") is True


def _integer_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    low = max(
        math.ceil(schema.get("minimum", -_LARGEST)),
        math.floor(schema.get("exclusiveMinimum", -_LARGEST - 1)) + 1,
    )
    high = min(
        math.floor(schema.get("maximum", _LARGEST)),
        math.ceil(schema.get("exclusiveMaximum", _LARGEST + 1)) - 1,
    )
    if low > high:
        return {}
    bounds: dict[str, Any] = {"minimum": max(low, -_LARGEST), "maximum": min(high, _LARGEST)}
    step = schema.get("multipleOf")
    return bounds | {"multipleOf": step} if isinstance(step, int) and 0 < step <= 1000 else bounds


def _number_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    bounds: dict[str, Any] = {"minimum": -_LARGEST, "maximum": _LARGEST, "multipleOf": _SMALLEST_STEP}
    for side, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        for key in (side, strict):
            if key in schema and abs(schema[key]) <= _LARGEST:
                bounds.pop(side, None)
                bounds[key] = schema[key]
            elif key in schema:
                return {}
    return bounds


def _string_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("format") in _FORMATS:
        return {"pattern": _FORMATS[schema["format"]]}
    pattern = known_pattern(schema.get("pattern", ""))
    return {"pattern": pattern} if pattern else {}


# --- regular expressions ----------------------------------------------------------------------------------------------

_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": " "}
_TOKEN = re.compile(r"\\.|\(\?:|\(\?|[*+?}][?+]|.", re.DOTALL)


def known_pattern(pattern: str) -> str | None:
    r"""Rewrite a regular expression for llama.cpp's grammar.

    It knows the ones that describe the whole text, from `^` to `$`, without looking around, back references, lazy
    repetition and flags. `\d`, `\w` and `\s` become the ASCII characters that they stand for.

    Returns:
        The expression, or None where it is not one of those.

    >>> known_pattern(r"^\d{3}-[\w.]+$")
    '^[0-9]{3}-[a-zA-Z0-9_.]+$'
    >>> known_pattern(r"(?=a)b") is None
    True
    """
    if not (pattern.startswith("^") and pattern.endswith("$")) or pattern.endswith(r"\$"):
        return None
    parts, in_class, depth = [], False, 0
    for token in _TOKEN.findall(pattern[1:-1]):
        if token[0] == "\\":
            escaped = token[1]
            if escaped in _CLASSES:
                token = _CLASSES[escaped] if in_class else f"[{_CLASSES[escaped]}]"
            elif escaped.isalnum():
                return None
        elif in_class:
            in_class = token != "]"
        elif token == "[":
            in_class = True
        elif token in ("^", "$", "(?") or (len(token) == 2 and token[0] in "*+?}"):
            return None
        elif token == "|" and depth == 0:
            # The anchors would belong to the first and the last alternative only.
            return None
        else:
            depth += token.startswith("(") - (token == ")")
        parts.append(token)
    return None if in_class or depth else f"^{''.join(parts)}$"
