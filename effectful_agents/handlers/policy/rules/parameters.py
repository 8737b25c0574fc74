"""What tools can be called with, and whether a rule is about any of it."""

from __future__ import annotations

import inspect
import os
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.types import Tool

__all__ = ["check_names", "check_schema"]

_ANY = "**"
_OF_THE_SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_ABOUT_ARGUMENTS = (
    *("properties", "required", "patternProperties", "additionalProperties", "propertyNames", "minProperties"),
    *("maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "enum", "const"),
    *("$ref", "$dynamicRef", *_OF_THE_SAME),
)
"""The words of a JSON schema that hold an object to something."""
_HOLDS_NOTHING: tuple[Any, ...] = ({}, [], True, None)
_TELLS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "then"),
        *("else", "minContains", "maxContains", "contentEncoding", "contentMediaType", "contentSchema"),
        *("$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$vocabulary"),
    }
)
"""Words that are known, and hold nothing to anything by themselves."""


def check_schema(schema: Mapping[str, Any], tools: Iterable[Tool[..., Any]] | None, rule: str) -> None:
    """Refuse a schema that holds no argument to anything, such as one about a name that no tool has.

    Raises:
        OptionError: It is one; the error says why.
    """
    whose = f"the `schema` of the rule `{rule}`"
    if all(schema.get(word) in _HOLDS_NOTHING for word in _ABOUT_ARGUMENTS):
        shown = ", ".join(f"`{word}`" for word in schema) or "nothing"
        raise OptionError(
            f"{whose} says nothing of any argument; it has {shown}. Write "
            '`{"properties": {"amount": {"maximum": 100}}}`.'
        )
    for word in _words_in(schema):
        if word not in _known_words() and not word.startswith("x-"):
            raise OptionError(f"{whose} has the word `{word}`, which is none of JSON schema, and would do nothing.")
    if tools is not None:
        _check(tools, _named_in(schema), whose, {_ANY})


def check_names(names: Iterable[str], tools: Iterable[Tool[..., Any]] | None, rule: str) -> None:
    """Refuse names of arguments that no tool has, and that nothing inside of an argument could have.

    Raises:
        OptionError: One is such a name.
    """
    if tools is not None:
        _check(tools, names, f"`arguments` of the rule `{rule}`", {_ANY, _OBJECT})


def _check(tools: Iterable[Tool[..., Any]], names: Iterable[str], whose: str, open_: set[str]) -> None:
    known = {name for tool in tools for name in _names_of(tool)}
    if known & open_:
        return
    for name in names:
        if name not in known:
            has = ", ".join(f"`{one}`" for one in sorted(known - {_OBJECT})) or "none"
            raise OptionError(f"{whose} is about `{name}`, which no tool of the rule has; they have {has}.")


_OBJECT = "."


def _names_of(tool: Tool[..., Any]) -> Iterator[str]:
    """What a tool can be called with, by name; with `**` and `.` for one that takes any, or what has parts."""
    if tool.parameters is not None:
        properties = tool.parameters.get("properties", {})
        yield from properties or (_ANY,)
        yield _OBJECT
        return
    for name, parameter in tool.__signature__.parameters.items():
        yield _ANY if parameter.kind is inspect.Parameter.VAR_KEYWORD else name
        if not _is_plain(parameter.annotation):
            yield _OBJECT


def _is_plain(annotation: Any) -> bool:
    """Whether values of a type have no parts with names."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _is_plain(inner[0])
    if origin in (typing.Union, types.UnionType, list, set, tuple, frozenset):
        return all(one is ... or _is_plain(one) for one in inner)
    if annotation is None:
        return True
    return isinstance(annotation, type) and issubclass(
        annotation, str | int | float | bytes | types.NoneType | os.PathLike
    )


def _named_in(schema: Any) -> Iterator[str]:
    """The arguments that a schema is about, by name."""
    if isinstance(schema, Mapping):
        yield from schema.get("properties", {})
        yield from schema.get("required", ())
        for one in _same_in(schema):
            yield from _named_in(one)


def _words_in(schema: Any) -> Iterator[str]:
    """The words of a schema and of those in it, but for definitions."""
    if isinstance(schema, Mapping):
        yield from schema
        for one in (*_same_in(schema), *schema.get("properties", {}).values(), schema.get("items")):
            yield from _words_in(one)


def _same_in(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in _OF_THE_SAME:
        inner = schema.get(word)
        yield from inner if isinstance(inner, list) else [inner]


def _known_words() -> frozenset[str]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to load, and rarely needed

    return _TELLS | frozenset(Draft202012Validator.VALIDATORS)
