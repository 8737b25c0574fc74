"""Core schemas of classes with fields: closed, and with what their constructors compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import core_schema

from effectful_agents.encoding.fields import computed_fields, with_substituted

if TYPE_CHECKING:
    from effectful_agents.encoding.forms import Builder

__all__ = ["dataclass", "model", "typed_dict"]


def typed_dict(builder: Builder, node: Any, path: str) -> Any:
    """A typed dictionary."""
    return _closed(builder.parts(with_substituted(node, node.get("cls")), path), node.get("cls"))


def dataclass(builder: Builder, node: Any, path: str) -> Any:
    """A dataclass. Fields that its constructor computes are shown, and ignored where they come back."""
    node = builder.parts(with_substituted(node, node["cls"]), path)
    inner = _fields_of(node, "dataclass-args")
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
    whole = not inner["computed_fields"] and all(field.get("init", True) for field in inner["fields"])
    return _closed(node, node["cls"]) if whole else node


def model(builder: Builder, node: Any, path: str) -> Any:
    """A model of pydantic."""
    node = builder.parts(node, path)
    has_more = _fields_of(node, "model-fields").get("computed_fields") or node.get("root_model")
    return node if has_more else _closed(node, node["cls"])


def _fields_of(node: Any, kind: str) -> Any:
    """The fields of a class, inside the validators around them."""
    inner = node["schema"]
    while inner["type"] != kind and "schema" in inner:
        inner = inner["schema"]
    return inner


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
