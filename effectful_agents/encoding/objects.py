"""Core schemas of classes with fields: closed, and with what their constructors compute."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

from effectful_agents.encoding.fields import computed_fields, with_substituted
from effectful_agents.encoding.marks import ARGUMENTS
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.trees import fields_inside, with_parts
from effectful_agents.encoding.writers import UNSET, part_of

if TYPE_CHECKING:
    from effectful_agents.encoding.annotations import OwnField
    from effectful_agents.encoding.forms import Builder

__all__ = ["attrs_class", "dataclass", "model", "typed_dict"]


def typed_dict(builder: Builder, node: Any, path: str) -> Any:
    """A typed dictionary."""
    return _closed(builder.parts(with_substituted(node, node.get("cls")), path), node.get("cls"))


def dataclass(builder: Builder, node: Any, path: str) -> Any:
    """A dataclass. Fields that its constructor computes are shown, and ignored where they come back."""
    node = builder.parts(with_substituted(node, node["cls"]), path)
    inner = fields_inside(node)
    if inner["type"] != "dataclass-args":
        return node
    # Fields without a default that a constructor computes are missing there.
    known = {field["name"] for field in inner["fields"]}
    computed = {name: tp for name, tp in computed_fields(node["cls"]).items() if name not in known}
    with builder.quietly():
        inner["computed_fields"] = [
            *inner.get("computed_fields", ()),
            *(
                core_schema.computed_field(name, builder.annotation(tp, f"{path}.{name}"))
                for name, tp in computed.items()
            ),
        ]
    return _closed(node, node["cls"])


def model(builder: Builder, node: Any, path: str) -> Any:
    """A model of pydantic."""
    node = builder.parts(_with_arguments(node, node["cls"]), path)
    return node if node.get("root_model") else _closed(node, node["cls"])


def attrs_class(builder: Builder, tp: Any, fields: dict[str, OwnField], path: str) -> Any:
    """A class of the attrs library, made by its constructor, with the fields that the constructor makes as well."""
    cls: Any = typing.get_origin(tp) or tp
    builder.kept.append(tp)
    ref = ":".join([f"{cls.__module__}.{cls.__qualname__}", *map(str, map(id, (cls, *typing.get_args(tp))))])
    if ref in builder.definitions:
        return core_schema.definition_reference_schema(ref)
    builder.definitions[ref] = None  # its place: it may contain itself
    parts = {
        field.alias: core_schema.typed_dict_field(
            _with_default(builder.annotation(field.type, f"{path}.{name}"), field), required=not field.optional
        )
        for name, field in fields.items()
        if field.init
    }
    with builder.quietly():
        made = [
            core_schema.computed_field(field.alias, builder.annotation(field.type, f"{path}.{name}"))
            for name, field in fields.items()
            if not field.init
        ]
    form = core_schema.typed_dict_schema(parts, cls_name=cls.__name__, extra_behavior="forbid", computed_fields=made)
    form |= {"config": {"title": type_name(tp)}, "cls": cls}
    names = [(field.alias, name) for name, field in fields.items()]
    written = builder.written(
        cls,
        form,
        lambda value, _: cls(**value),
        lambda value: {key: part for key, name in names if (part := part_of(value, name)) is not UNSET},
        otherwise=core_schema.is_instance_schema(cls),
        exact=True,
    )
    builder.definitions[ref] = {**written, "ref": ref}
    return core_schema.definition_reference_schema(ref)


def _with_default(schema: Any, field: OwnField) -> Any:
    return core_schema.with_default_schema(schema, **field.default) if field.default else schema


def _with_arguments(node: Any, cls: Any) -> Any:
    """The core schema of a model, in whose fields pydantic has kept of generic attrs classes the class alone."""
    fields = getattr(cls, "__pydantic_fields__", {})
    given = {name: dict(_generics(field.annotation)) for name, field in fields.items()}
    if not any(given.values()):
        return node

    def of(node: Any, known: dict[Any, Any]) -> Any:
        if node.get("cls", cls) not in (cls, *known):
            return node
        if node["type"] == "is-instance":
            tp = known.get(node["cls"])
            return {**node, "metadata": {**node.get("metadata", {}), ARGUMENTS: tp}} if tp is not None else node
        if node["type"] == "model-fields":
            return {**node, "fields": {name: of(field, given.get(name, {})) for name, field in node["fields"].items()}}
        return with_parts(node, lambda part: of(part, known))

    return of(node, {})


def _generics(tp: Any) -> Iterator[tuple[Any, Any]]:
    """The generic classes of the attrs library in an annotation, and with what arguments they stand there."""
    origin = typing.get_origin(tp)
    if hasattr(origin, "__attrs_attrs__"):
        yield origin, tp
        return
    for part in typing.get_args(tp):
        yield from _generics(part)


def _closed(node: Any, cls: Any) -> Any:
    """The node, refusing what it does not know, as its schema says, unless its class decides about that itself."""
    config = node.get("config", {})
    own = getattr(cls, "__pydantic_config__", None) or getattr(cls, "model_config", {})
    if getattr(cls, "__closed__", None) is False:
        return {**node, "extra_behavior": "allow"}
    if "extra" in own or "extra_fields_behavior" in config or node.get("extras_schema"):
        return node
    if node["type"] == "typed-dict":
        return {**node, "extra_behavior": "forbid"}
    return {**node, "config": {**config, "extra_fields_behavior": "forbid"}}
