"""JSON schemas that users wrote by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from effectful_agents.encoding.decoding import path_of
from effectful_agents.errors import EncodingError
from effectful_agents.tracebacks import summary

__all__ = ["held_to"]

_SHOWN_ERRORS, _SHOWN = 8, 300

# What stands in these is about the value itself and not about a part of it.
_ABOUT_THE_SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")


def held_to(schema: dict[str, Any], name: str) -> Callable[[Any], list[str]]:
    """A function that tells what keeps a JSON value from fitting a schema, a line for each place.

    Args:
        schema: The JSON schema.
        name: What it is called where it is none.

    Raises:
        EncodingError: It is none, or a reference in it leads nowhere or in a circle.
    """
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - slow to load, and rarely needed

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise EncodingError(f"{name} is no JSON schema: {error.message}") from error
    _refuse_dangling(schema, name)
    validator = Draft202012Validator(schema)

    def problems(value: Any) -> list[str]:
        try:
            errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)[:_SHOWN_ERRORS]
        except (ArithmeticError, RecursionError) as error:
            return [f"it cannot be checked: {summary(error)}"]
        lines = [(path_of(list(error.absolute_path)), error.message[:_SHOWN]) for error in errors]
        return [f"{place}: {text}" if place else text for place, text in lines]

    return problems


def _refuse_dangling(schema: dict[str, Any], name: str) -> None:
    """Refuse references that lead nowhere, out of the schema, or in a circle."""
    from jsonschema_specifications import REGISTRY  # noqa: PLC0415 - slow to load, and rarely needed
    from referencing.exceptions import Unresolvable  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    def visit(resource: Any, resolver: Any) -> None:
        follow(resource.contents, resolver, ())
        for inner in resource.subresources():
            visit(inner, resolver.in_subresource(inner))

    def follow(node: Any, resolver: Any, around: tuple[int, ...]) -> None:
        if not isinstance(node, dict):
            return
        if id(node) in around:
            raise EncodingError(f"{name} has references in a circle: {node.get('$ref', 'a part of it')}")
        here = (*around, id(node))
        for ref in (node[key] for key in ("$ref", "$dynamicRef") if key in node):
            try:
                found = resolver.lookup(ref)
            except Unresolvable as error:
                raise EncodingError(
                    f"{name} has a reference that leads nowhere: {ref}; put what it names into `$defs`"
                ) from error
            follow(found.contents, found.resolver, here)
        for key in _ABOUT_THE_SAME:
            parts = node.get(key, ())
            for part in parts if isinstance(parts, list | tuple) else [parts]:
                follow(part, resolver, here)

    resource = DRAFT202012.create_resource(schema)
    registry = REGISTRY.with_resource("", resource)
    visit(resource, registry.resolver_with_root(resource))
