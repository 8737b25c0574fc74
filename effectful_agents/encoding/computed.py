"""What a class computes itself: values show it, and where it comes back it is ignored.

The schema says so with `readOnly`, and the object is closed all the same. So the validator knows these keys, and drops
what they hold; a validator that did not know them would have to let every unknown key pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from effectful_agents.encoding.trees import fields_inside, with_parts

__all__ = ["computed_keys", "ignoring_computed"]

_HIDDEN = "\0"  # names of fields that no class can have


def computed_keys(node: Any) -> dict[str, Any]:
    """The keys of computed values in the core schema of fields, and their core schemas."""
    keys = {one.get("alias") or one["property_name"]: one["return_schema"] for one in node.get("computed_fields", ())}
    for field in node["fields"] if node["type"] == "dataclass-args" else ():
        if not field.get("init", True):
            inner = field["schema"]
            keys[field["name"]] = inner["schema"] if inner["type"] == "default" else inner
    return keys


def ignoring_computed(node: Any) -> Any:
    """A core schema, for validation, that takes what classes compute and ignores it."""
    made: Any = with_parts(node, ignoring_computed)
    if made["type"] == "model" and made.get("custom_init"):
        return _with_constructor(node, made)
    make_field = _FIELDS.get(made["type"])
    if make_field is None:
        return made
    fields = made["fields"]
    named = fields.items() if isinstance(fields, dict) else [(one["name"], one) for one in fields]
    read = [field.get("validation_alias", name) for name, field in named if field.get("init", True)]
    keys = [key for key in computed_keys(node) if key not in read]
    if not keys:
        return made
    anything = core_schema.with_default_schema(core_schema.any_schema(), default=None)
    hidden = {_HIDDEN + key: make_field(_HIDDEN + key, anything, key) for key in keys}
    made["fields"] = {**fields, **hidden} if isinstance(fields, dict) else [*fields, *hidden.values()]
    outer: Any = {key: made.pop(key) for key in ("ref", "metadata") if key in made}
    # Not by a look at the JSON beforehand: what a function was given is no JSON to the validators behind it.
    return {**core_schema.no_info_after_validator_function(_without_hidden, made), **outer}


def _with_constructor(node: Any, made: Any) -> Any:
    """A model whose constructor a user wrote: it is called with the keys as they are, which the schema must know."""
    inner = fields_inside(node)
    if inner["type"] != "model-fields" or node.get("root_model"):
        return made
    computed, known = computed_keys(inner).keys() - inner["fields"].keys(), set(inner["fields"])
    for field in inner["fields"].values():
        known.update(_texts(field.get("validation_alias", ())))
    closed = node.get("config", {}).get("extra_fields_behavior") == "forbid"

    def known_only(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {key: part for key, part in value.items() if key not in computed or key in known}
        unknown = [key for key in kept if key not in known] if closed else []
        if unknown:
            raise PydanticCustomError("unknown_keys", "{unknown} is not known", {"unknown": f"`{unknown[0]}`"})
        return kept

    outer: Any = {key: made.pop(key) for key in ("ref",) if key in made}
    return {**core_schema.no_info_before_validator_function(known_only, made), **outer}


def _texts(alias: Any) -> Iterator[str]:
    """The first keys of the places that a field is read from."""
    if isinstance(alias, str):
        yield alias
    for one in () if isinstance(alias, str) else alias:
        yield from _texts(one) if isinstance(one, str | list) else ()


def _without_hidden(read: Any) -> Any:
    values = read if isinstance(read, dict) else read[0]
    for name in [name for name in values if name.startswith(_HIDDEN)]:
        del values[name]
        if isinstance(read, tuple) and len(read) == 3:  # the fields of a model, further ones, and those that were given
            read[2].discard(name)
    return read


_FIELDS: Any = {
    "model-fields": lambda name, schema, key: core_schema.model_field(schema, validation_alias=key),
    "dataclass-args": lambda name, schema, key: core_schema.dataclass_field(name, schema, validation_alias=key),
    "typed-dict": lambda name, schema, key: core_schema.typed_dict_field(schema, required=False, validation_alias=key),
}
"""What makes a field that is read from a key, by the type of the core schema that it stands in."""
