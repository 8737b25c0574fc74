"""JSON schemas in the form that the strictest modes of providers ask for.

Strict mode means that the provider holds the model to the schema, and for that it takes few keywords: objects are
closed and all their keys required, lists have one schema for their parts. What cannot be said so is said in the
description, and enforced when the answer is decoded. What strict mode cannot say at all stays as it was, with the
reason: the schema is then sent without the mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from effectful_agents.messages import ResponseFormat

__all__ = [
    "PREFIX",
    "StrictForm",
    "admits_null",
    "is_strict",
    "strict_form",
    "strict_response_format",
]

PREFIX = "#/$defs/"

# What OpenAI's strict mode knows, the strictest of all. Lengths of strings, formats beyond these, defaults and tuples
# are not among it.
_STRICT = frozenset(
    re.split(
        r"\s+",
        "$ref $defs type description const enum anyOf pattern format properties required additionalProperties items "
        "minItems maxItems multipleOf minimum maximum exclusiveMinimum exclusiveMaximum",
    )
)
_STRICT_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_LOOKAROUND = re.compile(r"\(\?(=|!|<=|<!)")
_DEEPEST, _MOST_PROPERTIES, _MOST_VALUES, _MOST_CHARACTERS = 10, 5000, 1000, 120_000
_MANY_VALUES, _MOST_LISTED = 250, 15_000

_WORDS = {
    "pattern": "matches the regular expression {}",
    "format": "format: {}",
    "contentEncoding": "encoding: {}",
    "examples": "for example {}",
    "contentMediaType": "media type: {}",
}


class StrictForm(NamedTuple):
    """A schema for strict mode.

    Attributes:
        schema: The schema, in strict form where there is one, else as it was.
        reason: Why there is none; None where there is.
    """

    schema: dict[str, Any]
    reason: str | None


type Definitions = Mapping[str, Any]
"""The definitions of a schema, by their names."""


class _Impossible(Exception):
    """There is no strict form."""


def strict_form(schema: dict[str, Any]) -> StrictForm:
    """The strict form of a schema.

    A property with a default becomes required, and null stands for the default. Lists whose parts differ by place
    become lists of alternatives with a fixed length. A whole value has the same JSON in both forms.

    Args:
        schema: The schema of an object, as this package makes them.

    >>> strict_form({"type": "object", "properties": {"a": {"type": "integer", "default": 3}}}).schema["required"]
    ['a']
    >>> strict_form({"type": "object", "properties": {"a": {}}, "required": ["a"]}).reason
    'any value at all has no strict form'
    """
    try:
        given = schema.get("$defs", {})
        strict = _strict(schema, given)
        if given:
            strict["$defs"] = {name: _strict(part, given) for name, part in given.items()}
        _check_size(strict)
    except _Impossible as error:
        return StrictForm(schema, str(error))
    return StrictForm(strict, None)


def strict_response_format(form: ResponseFormat) -> ResponseFormat:
    """The form of an answer with its schema in strict form, where there is one; for one form always the same object.

    It is for handlers that send requests to providers with a strict mode.
    """
    kept = _forms.get(id(form))
    if kept is not None and kept[0] is form:
        return kept[1]
    given = form.get("json_schema")
    made: Any = form
    if given is not None and not given.get("strict"):
        strict, reason = strict_form(given["schema"])
        made = form if reason else {**form, "json_schema": {**given, "schema": strict, "strict": True}}
    if len(_forms) >= _MOST_FORMS:
        _forms.clear()
    _forms[id(form)] = (form, made)
    return cast(ResponseFormat, made)


_MOST_FORMS = 1024
_forms: dict[int, tuple[Any, Any]] = {}


def _strict(node: Any, given: Definitions) -> dict[str, Any]:
    if not isinstance(node, dict) or not node.keys() & {"type", "const", "enum", "anyOf", "$ref"}:
        raise _Impossible("any value at all has no strict form")
    if unknown := node.keys() & {"allOf", "not", "if", "patternProperties", "dependentSchemas", "contains"}:
        raise _Impossible(f"`{min(unknown)}` has no strict form")
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    kept = {key: value for key, value in node.items() if key in _STRICT and key != "$defs"}
    words = [
        *_lengths(node.get("minLength", 0), node.get("maxLength")),
        *(
            _WORDS[key].format(_shown(value))
            for key, value in node.items()
            if key in _WORDS and not _is_kept(key, value)
        ),
    ]
    for key in ("pattern", "format"):
        if key in kept and not _is_kept(key, kept[key]):
            del kept[key]
    if "anyOf" in kept:
        kept["anyOf"] = [_strict(part, given) for part in kept["anyOf"]]
    if node.get("type") == "array":
        words += _make_list(node, kept, given)
    if node.get("type") == "object":
        _close(node, kept, given)
    return _described(kept, words)


def _lengths(least: int, most: int | None) -> list[str]:
    """How long a text may be, in words."""
    if most is None:
        return [f"at least {least} character{'s' * (least != 1)}"] if least else []
    if least == most:
        return [f"exactly {most} character{'s' * (most != 1)}"]
    return [f"{least} to {most} characters" if least else f"at most {most} character{'s' * (most != 1)}"]


def _is_kept(key: str, value: Any) -> bool:
    if key == "pattern":
        return not _LOOKAROUND.search(value)
    return key == "format" and value in _STRICT_FORMATS


def _make_list(node: dict[str, Any], kept: dict[str, Any], given: Definitions) -> list[str]:
    """Give a list one schema for its parts; returns what is to be said about it."""
    if "prefixItems" not in node:
        if not node.get("items") and node.get("maxItems") == 0:
            kept["items"] = {"type": "null"}
            return []
        kept["items"] = _strict(node.get("items", {}), given)
        return []
    firsts = [_strict(part, given) for part in node["prefixItems"]]
    further = node.get("items")
    parts = [*firsts, _strict(further, given)] if isinstance(further, dict) and further else firsts
    distinct = [part for place, part in enumerate(parts) if part not in parts[:place]]
    kept["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    if not (isinstance(further, dict) and further):
        kept["maxItems"] = min(node.get("maxItems", len(firsts)), len(firsts))
    names = [part.get("description") or _kind(part) for part in node["prefixItems"]]
    return [] if len(distinct) == 1 and len(set(names)) == 1 else [f"in this order: {', '.join(names)}"]


def _kind(node: dict[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(map(_kind, node["anyOf"])))
    if "const" in node or "enum" in node:
        return " or ".join(map(json.dumps, node.get("enum", [node.get("const")])))
    return str(node.get("type") or node.get("$ref", "any value").removeprefix(PREFIX))


def _close(node: dict[str, Any], kept: dict[str, Any], given: Definitions) -> None:
    properties = node.get("properties")
    if properties is None or node.get("additionalProperties", False) is not False:
        raise _Impossible("a mapping has no strict form: no schema can name its keys")
    required = node.get("required", [])
    kept["properties"] = {
        name: _strict(part, given) if name in required else _nullable(name, part, given)
        for name, part in properties.items()
    }
    kept["required"] = list(properties)
    kept["additionalProperties"] = False


def _nullable(name: str, part: Any, given: Definitions) -> dict[str, Any]:
    """A property that may be left out, as one that may be null."""
    if "default" not in part and not part.get("readOnly"):
        raise _Impossible(f"`{name}` may be absent, and has no default that null could stand for")
    strict = _strict(part, given)
    default = part.get("default")
    if part.get("readOnly"):
        words = ["it is computed; write null"]
    elif _admits_null(part, given):
        return strict if default is None else _described(strict, [f"the default is {_shown(default)}"])
    else:
        words = ["null for the default" + ("" if default is None else f", {_shown(default)}")]
    description = strict.pop("description", None)
    wider = {"anyOf": [*strict["anyOf"], {"type": "null"}]} if strict.keys() == {"anyOf"} else None
    result = wider or {"anyOf": [strict, {"type": "null"}]}
    return _described(result if description is None else {"description": description, **result}, words)


def _described(node: dict[str, Any], words: list[str]) -> dict[str, Any]:
    if not words:
        return node
    given = node.get("description", "")
    text = f"{given.rstrip('.')} ({'; '.join(words)})" if given else "; ".join(words)
    if "$ref" in node:
        return {"description": text, "anyOf": [{"$ref": node["$ref"]}]}
    return {
        **({"type": node["type"]} if "type" in node else {}),
        "description": text,
        **_without(node, "type", "description"),
    }


def _without(node: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _check_size(schema: dict[str, Any]) -> None:
    nodes = list(_nodes(schema))
    names = [name for node in nodes for name in (*node.get("properties", ()), *node.get("$defs", ()))]
    lists = [node["enum"] for node in nodes if "enum" in node]
    values = [str(value) for listed in lists for value in listed] + [
        str(node["const"]) for node in nodes if "const" in node
    ]
    long = any(
        len(listed) > _MANY_VALUES and sum(len(one) for one in listed if isinstance(one, str)) > _MOST_LISTED
        for listed in lists
    )
    if _depth(schema) > _DEEPEST:
        raise _Impossible(f"objects lie more than {_DEEPEST} levels deep")
    if len(names) > _MOST_PROPERTIES or sum(map(len, lists)) > _MOST_VALUES or long:
        raise _Impossible("it is too large")
    if sum(map(len, (*names, *values))) > _MOST_CHARACTERS:
        raise _Impossible("its names and values are too long")


def _children(node: dict[str, Any]) -> list[Any]:
    parts = [*node.get("properties", {}).values(), *node.get("anyOf", ())]
    return [*parts, node["items"]] if "items" in node else parts


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [*_children(node), *node.get("$defs", {}).values()]
    return [node, *(inner for part in parts for inner in _nodes(part))]


def _depth(node: dict[str, Any]) -> int:
    own = (node.get("type") == "object") + max(map(_depth, _children(node)), default=0)
    return max(own, *map(_depth, node.get("$defs", {}).values()), 0)


def admits_null(schema: dict[str, Any]) -> bool:
    """Whether a schema offers null by name, alone or as an alternative. That of `Any` does not.

    >>> admits_null({"anyOf": [{"type": "integer"}, {"type": "null"}]}), admits_null({})
    (True, False)
    """
    return _admits_null(schema, schema.get("$defs", {}))


def _admits_null(schema: Any, given: Definitions, passed: frozenset[str] = frozenset()) -> bool:
    ref = schema.get("$ref")
    if ref is not None:
        inner = {} if ref in passed else given.get(ref.removeprefix(PREFIX), {})
        return _admits_null(inner, given, passed | {ref})
    if schema.get("type") == "null" or None in schema.get("enum", ()):
        return True
    return any(_admits_null(part, given, passed) for part in schema.get("anyOf", ()))


def is_strict(schema: dict[str, Any]) -> bool:
    """Whether OpenAI's strict mode takes the schema: closed objects, every property required, no unknown keyword.

    >>> is_strict({"type": "object", "properties": {}, "additionalProperties": False})
    True
    >>> is_strict({"type": "object", "additionalProperties": {"type": "integer"}})
    False
    """
    if not isinstance(schema, dict) or not schema.keys() <= _STRICT:
        return False
    if "$ref" in schema and not schema.keys() <= {"$ref", "$defs"}:
        return False
    if not schema.keys() & {"type", "const", "enum", "anyOf", "$ref"}:
        return False
    if schema.get("format", "date") not in _STRICT_FORMATS:
        return False
    if schema.get("type") == "array" and "items" not in schema:
        return False
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False
        or list(schema.get("properties", ())) != schema.get("required", [])
    ):
        return False
    parts = [part for name in ("properties", "$defs") for part in schema.get(name, {}).values()]
    parts += schema.get("anyOf", [])
    parts += [schema["items"]] if "items" in schema else []
    return all(map(is_strict, parts))
