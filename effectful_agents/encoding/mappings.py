"""Core schemas of mappings: JSON has texts as keys, and Python anything that has a hash."""

from __future__ import annotations

import enum
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

from effectful_agents.encoding.choices import Among, choice, text_of_key, written_members
from effectful_agents.encoding.marks import CODEC, MARK, Writer
from effectful_agents.encoding.registry import find
from effectful_agents.encoding.scalars import written_literal
from effectful_agents.encoding.writers import Pairs

if TYPE_CHECKING:
    from effectful_agents.encoding.forms import Builder

__all__ = ["made_of_mapping", "mapping"]


def mapping(builder: Builder, node: Any, path: str) -> Any:
    """A mapping: an object where its keys can be texts, else a list of pairs."""
    keys = node.get("keys_schema", {"type": "any"})
    values = builder.rewrite(node.get("values_schema", {"type": "any"}), path + "{}")
    way = _as_keys(builder, keys)
    if way == "text":
        key = builder.rewrite(keys, path + "{key}")
        if key["type"] in ("int", "float"):  # behind a function of the user's the text is no longer JSON's
            key = {**key, "strict": False}
        plain = {**node, "keys_schema": key, "values_schema": values}
        return plain if _stay_apart(keys) else _of_different_keys(plain)
    if isinstance(way, list):
        key = choice(way, error="enum", as_keys=True)
        among = Among({(type(value), value): form for form, value in way})
        key["metadata"][MARK] = Writer(among, among.write, inner=False)
        return {**node, "keys_schema": key, "values_schema": values}
    pair = core_schema.typed_dict_schema(
        {
            "key": core_schema.typed_dict_field(builder.rewrite(keys, path + "{key}"), required=True),
            "value": core_schema.typed_dict_field(values, required=True),
        },
        extra_behavior="forbid",
    )
    limits = {key: value for key, value in node.items() if key in ("min_length", "max_length")}
    json_schema = core_schema.no_info_after_validator_function(
        _from_pairs, core_schema.list_schema(pair, **limits), metadata={MARK: Writer(Mapping, _to_pairs, inner=True)}
    )
    with builder.quietly():
        python_schema = builder.parts(node, path)
    return core_schema.json_or_python_schema(
        json_schema, core_schema.union_schema([python_schema, json_schema], mode="left_to_right")
    )


def made_of_mapping(builder: Builder, node: Any, path: str, kind: Any) -> Any:
    """A mapping of a class of its own, which is made of a dictionary."""
    plain = {key: value for key, value in node.items() if key != "ref"} | {"type": "dict"}
    json_schema = core_schema.no_info_after_validator_function(kind, mapping(builder, plain, path))
    with builder.quietly():
        python_schema = builder.parts(node, path)
    return core_schema.json_or_python_schema(json_schema, python_schema)


def _as_keys(builder: Builder, node: Any) -> Any:
    """How keys are written: "text", as texts; a list, as these texts; None, not as keys of an object."""
    kind = node["type"]
    if kind in _TEXT_KEYS:
        return "text"
    if kind == "bool":
        return [(True, True), (False, False)]
    if kind == "enum" and find(node["cls"]) is None:
        pairs = written_members(node["cls"])
        return None if issubclass(node["cls"], enum.Flag) else _plain_keys(pairs)
    if kind == "literal":
        return _plain_keys([(written_literal(value), value) for value in node["expected"]])
    if kind == "definition-ref":
        return _as_keys(builder, builder.given[node["schema_ref"]])
    cls = node.get("cls")
    found = node.get("metadata", {}).get(CODEC) or (find(cls) if isinstance(cls, type) else None)
    if found is not None:
        return "text" if found.form is str or typing.get_args(found.form)[:1] == (str,) else None
    if kind in ("lax-or-strict", "json-or-python"):
        return _as_keys(builder, node["strict_schema" if kind == "lax-or-strict" else "json_schema"])
    if kind in ("function-after", "function-before", "function-wrap", "custom-error"):
        return _as_keys(builder, node["schema"])
    return None


_TEXT_KEYS = frozenset(
    {"any", "str", "int", "float", "date", "datetime", "time", "timedelta", "uuid", "url", "multi-host-url"}
    | {"decimal", "bytes", "fraction", "complex", "function-plain"}
)


def _plain_keys(pairs: list[tuple[Any, Any]]) -> Any:
    if all(isinstance(form, str) for form, _ in pairs):
        return "text"
    texts = {text_of_key(form) for form, _ in pairs}
    return pairs if len(texts) == len(pairs) else None


def _stay_apart(keys: Any) -> bool:
    """Whether different texts are different keys."""
    changing = ("strip_whitespace", "to_lower", "to_upper")
    return keys["type"] in ("any", "enum", "literal") or (
        keys["type"] == "str" and not any(keys.get(option) for option in changing)
    )


class _Key:
    """A key as it was read, before it takes the place of an equal one."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _of_different_keys(node: Any) -> Any:
    """A mapping that refuses texts which are the same key: `1` and `01`."""
    outer = {key: node[key] for key in ("ref", "metadata") if key in node}
    plain: Any = {key: part for key, part in node.items() if key not in outer}
    apart: Any = {**plain, "keys_schema": core_schema.no_info_after_validator_function(_Key, plain["keys_schema"])}
    read = core_schema.no_info_after_validator_function(_together, apart)
    return {**core_schema.json_or_python_schema(read, plain), **outer}


def _together(entries: dict[_Key, Any]) -> dict[Any, Any]:
    return _made_of([(key.value, value) for key, value in entries.items()])


def _from_pairs(pairs: list[dict[str, Any]]) -> dict[Any, Any]:
    return _made_of([(pair["key"], pair["value"]) for pair in pairs])


def _made_of(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        result = dict(pairs)
    except TypeError as error:
        raise ValueError("a key cannot be one in Python") from error
    if len(result) < len(pairs):
        raise ValueError("a key stands twice")
    return result


def _to_pairs(value: Any) -> Pairs:
    return Pairs({"key": key, "value": part} for key, part in value.items())
