"""The alternatives of a recursive union, told apart by a look at a value.

Pydantic tries the alternatives one after the other, each down to the leaves. Where two of them have the same keys and
contain the union again, a tree of depth n takes 2ⁿ steps. Here an object is given only to the alternative whose keys
and texts it has; where there is none such, to the nearest one, whose errors say best what is wrong. Lists are told
apart by their length and by the texts in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from effectful_agents.encoding.marks import FORMS
from effectful_agents.encoding.trees import parts_of

__all__ = ["Chooser", "Shape", "chooser", "has_few_values", "read_as", "recursive_refs", "shape_of"]


class Shape(NamedTuple):
    """What can be told of an object, or a list, by a look at it.

    Attributes:
        of: `dict` or `list`.
        required: Keys that it must have; of a list the places.
        known: Keys that it may have; None for any.
        few: The values of keys that admit a few only, as `_written_as` gives them.
    """

    of: type
    required: frozenset[Any]
    known: frozenset[Any] | None
    few: dict[Any, frozenset[Any]]

    def faults(self, value: Mapping[Any, Any]) -> tuple[int, int]:
        """How many keys have a value that they cannot have; and how many are missing or not known."""
        wrong = sum(key in value and not self.admits(key, value[key]) for key in self.few)
        missing = sum(key not in value for key in self.required)
        unknown = 0 if self.known is None else sum(key not in self.known for key in value)
        return wrong, missing + unknown

    def admits(self, key: Any, value: Any) -> bool:
        """Whether a key with few values can have this one, be it read loosely; null may stand for a default."""
        if value is None and key not in self.required:
            return True
        few = self.few[key]
        return _written_as(value) in few or (type(value) is int and _written_as(str(value)) in few)


def _written_as(value: Any) -> Any:
    """What tells written values apart that are equal in Python; None for a list and an object."""
    return (type(value), value) if isinstance(value, str | int | float | None) else None


_OPAQUE: Any = object()
"""An alternative of which a look says nothing."""
_SCALARS = frozenset({"none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime", "fraction",
                      "timedelta", "uuid", "url", "multi-host-url", "literal", "enum", "complex"})  # fmt: skip
_LISTS = frozenset({"list", "set", "frozenset", "deque", "generator"})
_INNER = {"function-after": "schema", "json-or-python": "json_schema", "lax-or-strict": "strict_schema",
          "model": "schema", "dataclass": "schema", "nullable": "schema"}  # fmt: skip


class Chooser:
    """Finds the alternatives that a value can be of.

    Args:
        shapes: Those of the alternatives that have one, by their labels.
        others: The labels of alternatives that may be of the same kind, and of which a look says nothing.

    Attributes:
        refusals: What is wrong with an object, or a list, whose tag no alternative has.
        combinations: What calls may give.
    """

    def __init__(self, shapes: dict[str, Shape], others: dict[type, list[str]]) -> None:
        self._by_kind: dict[type, dict[str, Shape]] = {
            kind: {label: shape for label, shape in shapes.items() if shape.of is kind} for kind in (dict, list)
        }
        self._others = others
        self._tags = {kind: _common_tag([*some.values()]) for kind, some in self._by_kind.items() if some}
        self.refusals = {
            kind: f"Input should have as `{tag}` one of {', '.join(map(repr, values))}"
            for kind, (tag, values) in self._tags.items()
            if values
        }
        self.combinations = {*((label,) for label in shapes), *(tuple(some) for some in others.values() if some)}

    def __call__(self, value: Any) -> tuple[str, ...] | type | None:
        """The labels of the alternatives to try; None for all; the kind of a value whose tag is none of theirs."""
        kind = dict if isinstance(value, dict) else list if isinstance(value, list) else None
        if kind is None or len(shapes := self._by_kind[kind]) + len(self._others[kind]) < 2 or not shapes:
            return None
        keys: Any = value if kind is dict else dict(enumerate(value))
        faults = {label: shape.faults(keys) for label, shape in shapes.items()}
        least = min(faults.values())
        nearest = [label for label, number in faults.items() if number == least]
        if least == (0, 0):
            return (nearest[0],) if len(nearest) == 1 else None
        if self._others[kind]:
            # One of them at a time: both may contain the union. A tag that fits says which it is.
            tagged = not least[0] and any(key in keys for key in shapes[nearest[0]].few)
            return (nearest[0],) if tagged else tuple(self._others[kind])
        tag, values = self._tags[kind]
        return kind if values and tag in keys and least[0] else (nearest[0],)


def _common_tag(shapes: list[Shape]) -> tuple[Any, list[Any]]:
    """A key that has few values in each, and these values; no values where there is none."""
    first, *others = shapes
    for key in first.few:
        if all(key in one.few for one in others):
            return key, [value for shape in shapes for _, value in sorted(shape.few[key], key=repr)]
    return None, []


def chooser(arms: Mapping[str, Any], definitions: Mapping[str, Any]) -> Chooser | None:
    """The chooser among alternatives; None where a look tells nothing.

    Args:
        arms: The core schemas of the alternatives, by their labels.
        definitions: Core schemas by reference.
    """
    shapes = {label: shape_of(arm, definitions) for label, arm in arms.items()}
    known = {label: shape for label, shape in shapes.items() if isinstance(shape, Shape)}
    others: dict[type, list[str]] = {
        kind: [label for label, shape in shapes.items() if shape is _OPAQUE or shape is kind] for kind in (dict, list)
    }
    return Chooser(known, others) if known and len(known) + sum(map(len, others.values())) > 1 else None


def shape_of(node: Any, definitions: Mapping[str, Any], config: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The shape of an alternative.

    Returns:
        The shape; `dict` or `list` for one of that kind without a shape; None for a scalar; `_OPAQUE` for anything.
    """
    kind = node["type"]
    config = {**config, **node.get("config", {})}
    if kind == "definition-ref":
        return shape_of(definitions[node["schema_ref"]], definitions)
    if kind in _SCALARS or (kind == "function-plain" and FORMS in node.get("metadata", {})):
        return None
    if kind in _LISTS or (kind == "tuple" and "variadic_item_index" in node):
        return list
    if kind == "tuple":
        return _shape_of_places([(part, True) for part in node["items_schema"]])
    if kind == "named-tuple":
        return _shape_of_places([(field["schema"], field["schema"]["type"] != "default") for field in node["fields"]])
    if kind == "dict":
        return dict
    if kind == "json-or-python" and node["python_schema"]["type"] in _SCALARS:  # its JSON is read by a function
        return None
    if kind in _INNER:
        return shape_of(node[_INNER[kind]], definitions, config)
    by_name = config.get("validate_by_name") or config.get("populate_by_name")
    if kind not in ("model-fields", "dataclass-args", "typed-dict") or by_name:
        return _OPAQUE
    closed = "forbid" in (config.get("extra_fields_behavior"), node.get("extra_behavior"))
    return _shape_of_fields(node, closed=closed)


def _shape_of_places(parts: list[tuple[Any, bool]]) -> Shape:
    few = {place: values for place, (part, _) in enumerate(parts) if (values := _few(part))}
    required = frozenset(place for place, (_, needed) in enumerate(parts) if needed)
    return Shape(list, required, frozenset(range(len(parts))), few)


def _shape_of_fields(node: Any, *, closed: bool) -> Any:
    given = node["fields"]
    fields = given.items() if isinstance(given, dict) else [(field["name"], field) for field in given]
    required, known, few = set(), set(), {}
    for name, field in fields:
        keys, schema = _keys(name, field), field["schema"]
        if not keys:
            return _OPAQUE
        known.update(keys)
        needed = field.get("required", schema["type"] != "default") and field.get("init", True)
        if needed and len(keys) == 1:
            required.add(keys[0])
        if values := _few(schema):
            few |= dict.fromkeys(keys, values)
    known.update(one.get("alias") or one["property_name"] for one in node.get("computed_fields", ()))
    return Shape(dict, frozenset(required), frozenset(known) if closed else None, few)


def _few(schema: Any) -> frozenset[Any]:
    inner = schema["schema"] if schema["type"] == "default" else schema
    forms = inner["expected"] if inner["type"] == "literal" else inner.get("metadata", {}).get(FORMS, ())
    return frozenset(map(_written_as, forms))


def has_few_values(schema: Any) -> bool:
    """Whether it is known of a few values that a core schema admits no others."""
    return bool(_few(schema))


def _keys(name: str, field: Mapping[str, Any]) -> list[str]:
    """The keys that a field is read from; none where it is read from places further inside only."""
    alias = field.get("validation_alias", name)
    if isinstance(alias, str):
        return [alias]
    paths = alias if isinstance(alias[0], list) else [alias]
    return [path[0] for path in paths if len(path) == 1]


def read_as(name: str, field: Mapping[str, Any]) -> str | None:
    """The key that a field is read from; of several the first. None where it is read from a place further inside."""
    return next(iter(_keys(name, field)), None)


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
    if node["type"] == "definition-ref":
        yield node["schema_ref"]
    for part in parts_of(node):
        yield from _refs(part)
