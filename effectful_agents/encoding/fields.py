"""The annotations of the fields of classes, which pydantic reads by itself.

In the core schema of a class, fields are described anew whose annotations would be substituted in a parameter. Where
pydantic refuses a class because of such a field, it is given a copy of the class without it.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Annotated, Any, TypeAliasType

import typing_extensions

from effectful_agents.encoding.annotations import QUALIFIERS, NoTypeError, substituted
from effectful_agents.types.local_types import hints_of, names_beside

__all__ = ["SUBSTITUTE", "Copies", "computed_fields", "with_substituted"]

SUBSTITUTE = "substitute"
"""The type of a core schema that stands for an annotation, which is to be described in its place."""


def type_hints(cls: Any) -> dict[str, Any]:
    """The annotations of the fields of a class, without what is said around them about the fields."""
    hints = hints_of(cls, names_beside(cls) or None)
    return {name: _unqualified(hint) for name, hint in hints.items()}


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return type_hints(cls) if isinstance(cls, type) else {}
    except (NameError, TypeError):  # names of a function that has returned; pydantic found them
        return {}


def computed_fields(cls: Any) -> dict[str, Any]:
    """The fields of a dataclass that are no parameters of its constructor, and their annotations."""
    hints = _hints(cls)
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(cls) if not field.init}


def _unqualified(hint: Any) -> Any:
    while typing.get_origin(hint) in (*QUALIFIERS, typing.ClassVar):
        [hint] = typing.get_args(hint)
    return hint


def _replace_fields(node: Any, annotations: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_replace_fields(part, annotations) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("type", "").endswith("-field"):
        if node.get("name") not in annotations:
            return node
        schema = {"type": SUBSTITUTE, "annotation": annotations[node["name"]]}
        return {
            **node,
            "schema": {**node["schema"], "schema": schema} if node["schema"]["type"] == "default" else schema,
        }
    if node["type"] == "typed-dict":
        fields = {name: _replace_fields({**field, "name": name}, annotations) for name, field in node["fields"].items()}
        return {
            **node,
            "fields": {name: {k: v for k, v in field.items() if k != "name"} for name, field in fields.items()},
        }
    return {
        key: _replace_fields(part, annotations) if key in ("schema", "fields") else part for key, part in node.items()
    }


def with_substituted(node: Any, cls: Any) -> Any:
    """The core schema of a class, with the annotations of its fields substituted as those of parameters are."""
    replaced = {
        name: new
        for name, hint in _hints(cls).items()
        if (new := _replacement(cls, name, hint)) is not None and not getattr(hint, "__parameters__", ())
    }
    node = _replace_fields(node, replaced) if replaced else node
    further = getattr(cls, "__extra_items__", None)
    if node.get("extras_schema") and (new := _replacement(cls, "", further)) is not None:
        return {**node, "extras_schema": {"type": SUBSTITUTE, "annotation": new}}
    return node


def _replacement(cls: Any, name: str, hint: Any) -> Any:
    """The annotation that is described in the place of a field's; None where pydantic's reading of it stands."""
    try:
        new: Any = substituted(hint)
    except NoTypeError:
        return hint  # where it is described, it is refused with its path
    if new is hint:
        return None
    # A class of pydantic keeps limits that stand in the default.
    field = getattr(cls, "__pydantic_fields__", {}).get(name)
    return Annotated[new, *field.metadata] if field is not None and field.metadata else new


class Copies:
    """Copies of dataclasses, named tuples and typed dictionaries, with the annotations of their fields substituted.

    Attributes:
        originals: The classes that were copied, by their copies.
        changed: Whether anything was substituted.
    """

    def __init__(self) -> None:
        self.originals: dict[Any, Any] = {}
        self.changed = False
        self._made: dict[Any, Any] = {}

    def of(self, cls: Any) -> Any:
        """The copy of a class, or what an alias stands for; the same where there is nothing to substitute."""
        named = (TypeAliasType, typing.NewType)
        if isinstance(cls, named) or isinstance(typing.get_origin(cls), TypeAliasType):
            return self._unaliased(cls)
        if not isinstance(cls, type) or not _is_record(cls):
            return cls
        if cls not in self._made:
            self._made[cls] = cls  # while it is being made: it may contain itself
            hints = hints_of(cls, names_beside(cls) or None)
            new = {name: self._substituted(hint) for name, hint in hints.items()}
            if any(new[name] is not hint for name, hint in hints.items()):
                self._made[cls] = _copy(cls, new)
                self.originals[self._made[cls]] = cls
                self.changed = True
        return self._made[cls]

    def _unaliased(self, alias: Any) -> Any:
        if alias not in self._made:
            self._made[alias] = alias  # as above
            arguments = typing.get_args(alias)
            value = getattr(alias, "__supertype__", None)  # of a NewType
            if value is None:
                value = typing.get_origin(alias).__value__[arguments] if arguments else alias.__value__
            new = substituted(value, self.of)
            if new is not value:
                self._made[alias], self.changed = new, True
        return self._made[alias]

    def _substituted(self, hint: Any) -> Any:
        qualifier = typing.get_origin(hint)
        if qualifier in QUALIFIERS:
            [inner] = typing.get_args(hint)
            new = self._substituted(inner)
            return hint if new is inner else qualifier[new]
        return substituted(hint, self.of)


def _is_record(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) or typing_extensions.is_typeddict(cls) or hasattr(cls, "_field_defaults")


def _copy(cls: Any, hints: dict[str, Any]) -> Any:
    if typing_extensions.is_typeddict(cls):
        make: Any = typing_extensions.TypedDict
        made = make(cls.__name__, hints, total=cls.__total__)
        for name in _KEYS:
            if hasattr(cls, name):
                setattr(made, name, getattr(cls, name))
        if getattr(cls, "__extra_items__", None) is not None:
            made.__extra_items__ = substituted(cls.__extra_items__)
        return made
    if dataclasses.is_dataclass(cls):
        fields = [
            (one.name, hints[one.name], dataclasses.field(**{key: getattr(one, key) for key in _OPTIONS}))
            for one in dataclasses.fields(cls)
        ]
        return dataclasses.make_dataclass(cls.__name__, fields, module=cls.__module__)
    named: Any = typing.NamedTuple
    copied = named(cls.__name__, list(hints.items()))
    copied.__new__.__defaults__ = cls.__new__.__defaults__
    copied._field_defaults = cls._field_defaults
    return copied


_KEYS = ("__required_keys__", "__optional_keys__", "__closed__", "__extra_items__")
_OPTIONS = ("default", "default_factory", "init", "kw_only")
