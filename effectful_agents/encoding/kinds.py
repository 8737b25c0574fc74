"""Whether a Python value is of the type that a core schema says.

Writers of our own look at the kind of what they write. A serializer that a user wrote need not: it takes what it is
given, also a value of another alternative of a union. So it is asked only about values that hold here.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple

from effectful_agents.encoding.marks import MARK
from effectful_agents.encoding.trees import INSIDE

__all__ = ["Holds", "Kind", "Kinds"]

type Holds = Callable[[Any], bool]
"""Whether a value is of a type."""


class Kind(NamedTuple):
    """What a core schema says of Python values.

    Attributes:
        holds: Whether a value is of the type, if the functions in it leave the kind of a value as it is.
        certain: Whether there are no functions in it that may make a value of another kind.
    """

    holds: Holds
    certain: bool


class Kinds:
    """The kinds of core schemas that share definitions.

    Args:
        definitions: The core schemas that are referred to, by reference.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, Holds] = {}
        self._certain = True

    def of(self, node: Any) -> Kind:
        """The kind of a core schema."""
        self._certain, self._made = True, {}
        return Kind(self._of(node), self._certain)

    def _of(self, node: Any) -> Holds:
        kind = node["type"]
        writer = node.get("metadata", {}).get(MARK)
        if writer is not None and writer.kind is not None:
            return writer.holds
        if kind in _CLASSES:
            return _instance_of(*_CLASSES[kind])
        if kind in _INNER:
            self._certain &= kind not in ("function-after", "function-wrap")
            return self._of(node[_INNER[kind]])
        special = getattr(self, "_" + kind.replace("-", "_"), None)
        if special is not None:
            return special(node)
        self._certain = False  # a function alone, and what pydantic will add
        return lambda value: False

    def _definition_ref(self, node: Any) -> Holds:
        ref, made = node["schema_ref"], self._made
        if ref not in made:
            made[ref] = lambda value: made[ref](value)  # until it is there: it may contain itself
            made[ref] = self._of(self._definitions[ref])
        return made[ref]

    def _any(self, _: Any) -> Holds:
        return lambda value: True

    def _callable(self, _: Any) -> Holds:
        return callable

    def _is_instance(self, node: Any) -> Holds:
        return _instance_of(node["cls"])

    def _class(self, node: Any) -> Holds:
        return _instance_of(getattr(node["cls"], "__pydantic_generic_metadata__", {}).get("origin") or node["cls"])

    _model = _dataclass = _named_tuple = _class

    def _literal(self, node: Any) -> Holds:
        return lambda value: isinstance(value, str) and value in node["expected"]

    def _nullable(self, node: Any) -> Holds:
        inner = self._of(node["schema"])
        return lambda value: value is None or inner(value)

    def _union(self, node: Any) -> Holds:
        return _any_of([self._of(one[0] if isinstance(one, tuple) else one) for one in node["choices"]])

    def _tagged_union(self, node: Any) -> Holds:
        return _any_of([self._of(one) for one in node["choices"].values() if isinstance(one, dict)])

    def _json(self, node: Any) -> Holds:
        return self._of(node.get("schema", {"type": "any"}))

    # --- containers ---

    def _list(self, node: Any) -> Holds:
        return self._container(node, Collection)

    _deque = _list

    def _set(self, node: Any) -> Holds:
        return self._container(node, Set)

    _frozenset = _set

    def _container(self, node: Any, kind: Any) -> Holds:
        is_one, inner = _instance_of(kind, but=(str, bytes, bytearray, Mapping)), self._items(node)
        return lambda value: is_one(value) and all(map(inner, value))

    def _items(self, node: Any) -> Holds:
        return self._of(node.get("items_schema", {"type": "any"}))

    def _tuple(self, node: Any) -> Holds:
        inners = [self._of(one) for one in node["items_schema"]]
        place = node.get("variadic_item_index")

        def holds(value: Any) -> bool:
            if not isinstance(value, tuple):
                return False
            here: Sequence[Holds] = inners
            if place is not None:
                here = [*inners[:place], *[inners[place]] * (len(value) - len(inners) + 1), *inners[place + 1 :]]
            return len(value) == len(here) and all(inner(part) for inner, part in zip(here, value, strict=True))

        return holds

    def _dict(self, node: Any) -> Holds:
        keys = self._of(node.get("keys_schema", {"type": "any"}))
        values = self._of(node.get("values_schema", {"type": "any"}))
        return lambda value: (
            isinstance(value, Mapping) and all(keys(key) and values(part) for key, part in value.items())
        )

    def _typed_dict(self, node: Any) -> Holds:
        fields = {name: self._of(field["schema"]) for name, field in node["fields"].items()}
        required = {name for name, field in node["fields"].items() if field.get("required", True)}
        return lambda value: (
            isinstance(value, Mapping)
            and required <= value.keys()
            and all(fields[name](part) for name, part in value.items() if name in fields)
        )


def _instance_of(cls: Any, but: Any = ()) -> Holds:
    return lambda value: isinstance(value, cls) and not isinstance(value, but)


def _any_of(choices: list[Holds]) -> Holds:
    return lambda value: any(holds(value) for holds in choices)


_CLASSES: dict[str, tuple[Any, Any]] = {
    "none": (type(None), ()),
    "bool": (bool, ()),
    "int": (int, bool),
    "float": ((float, int), bool),
    "complex": (complex, ()),
    "decimal": (decimal.Decimal, ()),
    "fraction": (fractions.Fraction, ()),
    "str": (str, ()),
    "bytes": (bytes, ()),
    "date": (datetime.date, datetime.datetime),
    "datetime": (datetime.datetime, ()),
    "time": (datetime.time, ()),
    "timedelta": (datetime.timedelta, ()),
    "uuid": (uuid.UUID, ()),
    "is-subclass": (type, ()),
}
"""By the type of the core schema: what a value is an instance of, and of what it is not."""

# Where the part is that holds for a Python value.
_INNER = {**INSIDE, "json-or-python": "python_schema"}
