"""The alternatives of a recursive union, told apart by the keys of an object.

Pydantic tries the alternatives one after the other, each down to the leaves. Where two of them have the same keys and
contain the union again, a tree of depth n takes 2ⁿ steps. Here an object is given only to the alternative whose keys it
has; where there is none such, to the nearest one, whose errors say best what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from effectful_agents.encoding.marks import NO_SCHEMAS

__all__ = ["Chooser", "chooser", "few_texts", "read_as", "recursive_refs"]


class _Shape(NamedTuple):
    """What can be told of an object by a look at it.

    Attributes:
        required: Keys that it must have.
        known: Keys that it may have; None for any.
        texts: The values of keys that admit a few texts only.
    """

    required: frozenset[str]
    known: frozenset[str] | None
    texts: dict[str, frozenset[str]]

    def faults(self, value: Mapping[str, Any]) -> int:
        """How many keys are missing, not known, or have a value that they cannot have."""
        missing = sum(key not in value for key in self.required)
        unknown = 0 if self.known is None else sum(key not in self.known for key in value)
        wrong = sum(key in value and not _is_among(value[key], few) for key, few in self.texts.items())
        return missing + unknown + wrong


def _is_among(value: Any, few: Collection[str]) -> bool:
    return isinstance(value, str) and value in few


_OPAQUE: Any = object()
"""An alternative of which a look at its keys says nothing."""
_NO_OBJECTS = frozenset({"none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime",
                         "timedelta", "uuid", "url", "list", "tuple", "set", "frozenset", "deque", "literal", "enum",
                         "fraction", "complex", "named-tuple"})  # fmt: skip
_INNER = {"function-after": "schema", "json-or-python": "json_schema", "model": "schema", "dataclass": "schema"}


class Chooser:
    """Finds the alternative that an object can be of.

    Args:
        shapes: Those of the alternatives that are objects, by their labels.

    Attributes:
        refusal: What is wrong with an object whose tag no alternative has; None where they have no tag in common.
    """

    def __init__(self, shapes: dict[str, _Shape]) -> None:
        self._shapes = shapes
        first, *others = shapes.values()
        self._tag = next((key for key in first.texts if all(key in one.texts for one in others)), None)
        self.refusal: str | None = None
        if self._tag is not None:
            self._tags = [text for shape in shapes.values() for text in sorted(shape.texts[self._tag])]
            listed = ", ".join(map(repr, dict.fromkeys(self._tags)))
            self.refusal = f"Input should have as `{self._tag}` one of {listed}"

    def __call__(self, value: Any) -> str | None:
        """The label of an alternative; None where several can be meant, an empty one where they lack its tag."""
        if not isinstance(value, dict):
            return None
        if self._tag in value and not _is_among(value[self._tag], self._tags):
            return ""
        faults = {label: shape.faults(value) for label, shape in self._shapes.items()}
        fewest = min(faults.values())
        nearest = [label for label, number in faults.items() if number == fewest]
        return None if fewest == 0 and len(nearest) > 1 else nearest[0]


def chooser(arms: Mapping[str, Any], definitions: Mapping[str, Any]) -> Chooser | None:
    """The chooser among alternatives; None where fewer than two are objects, or one may be an object of any kind.

    Args:
        arms: The core schemas of the alternatives, by their labels.
        definitions: Core schemas by reference.
    """
    shapes = {label: _shape(arm, definitions) for label, arm in arms.items()}
    known = {label: shape for label, shape in shapes.items() if isinstance(shape, _Shape)}
    return None if len(known) < 2 or _OPAQUE in shapes.values() else Chooser(known)


def _shape(node: Any, definitions: Mapping[str, Any], config: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The shape of an object; None for what is no object, `_OPAQUE` for what may be one."""
    kind = node["type"]
    config = {**config, **node.get("config", {})}
    if kind == "definition-ref":
        return _shape(definitions[node["schema_ref"]], definitions)
    if kind in _NO_OBJECTS:
        return None
    if kind in _INNER:
        return _shape(node[_INNER[kind]], definitions, config)
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    if kind not in ("model-fields", "dataclass-args", "typed-dict") or by_name:
        return _OPAQUE
    closed = "forbid" in (config.get("extra_fields_behavior"), node.get("extra_behavior"))
    return _shape_of_fields(node["fields"], closed=closed)


def _shape_of_fields(given: Any, *, closed: bool) -> Any:
    fields = given.items() if isinstance(given, dict) else [(field["name"], field) for field in given]
    required, known, texts = set(), set(), {}
    for name, field in fields:
        key, schema = field.get("validation_alias", name), field["schema"]
        if not isinstance(key, str):  # one of several
            return _OPAQUE
        known.add(key)
        if field.get("required", schema["type"] != "default") and field.get("init", True):
            required.add(key)
        if few := few_texts(schema):
            texts[key] = few
    return _Shape(frozenset(required), frozenset(known) if closed else None, texts)


def few_texts(schema: Any) -> frozenset[str]:
    """The texts that a `Literal` admits; none for any other core schema."""
    inner = schema["schema"] if schema["type"] == "default" else schema
    return frozenset(inner["expected"]) if inner["type"] == "literal" else frozenset()


def read_as(name: str, field: Mapping[str, Any]) -> str | None:
    """The key that a field is read from; of several the first. None where it is read from a place further inside."""
    alias = field.get("validation_alias", name)
    if isinstance(alias, str):
        return alias
    paths = alias if isinstance(alias[0], list) else [alias]
    return next((path[0] for path in paths if len(path) == 1), None)


def recursive_refs(definitions: Mapping[str, Any]) -> frozenset[str]:
    """The definitions that contain themselves."""
    leads = {ref: frozenset(_refs(node)) for ref, node in definitions.items()}
    return frozenset(ref for ref in leads if ref in _reached(leads, ref))


def _reached(leads: Mapping[str, frozenset[str]], start: str) -> set[str]:
    reached: set[str] = set()
    todo = [*leads[start]]
    while todo:
        ref = todo.pop()
        if ref not in reached:
            reached.add(ref)
            todo += leads.get(ref, ())
    return reached


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "definition-ref":
            yield node["schema_ref"]
        for key, part in node.items():
            if key not in NO_SCHEMAS:
                yield from _refs(part)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _refs(part)
