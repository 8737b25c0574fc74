"""Writing values: a core schema compiled to a function that makes JSON of a value.

Pydantic's own serializers lose what a schema cannot say (fields of subclasses, keys that become the same text), guess
between the alternatives of a union, and write sets in the order of the process. Here every kind of core schema has one
function; what users wrote themselves (serializers of fields and models) is run by pydantic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from typing import Any

from pydantic_core import SchemaSerializer, core_schema

from effectful_agents.encoding.kinds import Kinds
from effectful_agents.encoding.marks import MARK, Writer
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.serializers import bare, has_own_serializer, has_serializer
from effectful_agents.encoding.shapes import has_few_values, read_as
from effectful_agents.encoding.trees import INSIDE
from effectful_agents.encoding.writers import (
    SCALARS,
    UNSET,
    Pairs,
    Write,
    in_minutes,
    mapping,
    one_of,
    other_kind,
    pairs_of,
    part_of,
    parts,
    sort,
    unwritable,
)
from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import safe_text

__all__ = ["compiled"]


def compiled(schema: Any, anything: Write) -> Write:
    """The function that writes values of a core schema.

    Args:
        schema: The core schema.
        anything: Writes a value by its own type.
    """
    return _Compiler(schema, anything).write(schema)


class _Compiler:
    def __init__(self, schema: Any, anything: Write) -> None:
        self._definitions: list[Any] = schema.get("definitions", []) if schema["type"] == "definitions" else []
        self._by_ref = {one["ref"]: one for one in self._definitions}
        self._kinds = Kinds(self._by_ref)
        self._made: dict[str, Write] = {}
        self._anything = anything

    def write(self, node: Any) -> Write:
        kind = node["type"]
        writer = node.get("metadata", {}).get(MARK)
        if writer is not None:
            return self._marked(node, writer)
        if has_serializer(node):
            return self._serialized(node)
        if kind in SCALARS:
            return SCALARS[kind]
        if kind in INSIDE:
            return self.write(node[INSIDE[kind]])
        special = getattr(self, "_" + kind.replace("-", "_"), None)
        return self._pydantic(node) if special is None else special(node)

    def _marked(self, node: Any, writer: Writer) -> Write:
        kind, make, holds, anything = writer.kind, writer.write, writer.holds, self._anything
        wanted = type_name(kind) if isinstance(kind, type) else "one of a few values"
        inner = self.write(node["schema"]) if writer.inner else None

        def write(value: Any) -> Any:
            if not holds(value):
                raise other_kind(value, wanted)
            if writer.exact and type(value) is not kind:
                return anything(value)
            try:
                made = make(value)
            except EncodingError:
                raise
            except Exception as error:  # a user's codec may raise anything
                raise unwritable(value, f"{type(error).__name__} while it was written") from error
            if inner is None:
                return made
            written = inner(made)
            return pairs_of(written) if type(made) is Pairs else written

        return write

    def _serialized(self, node: Any, *, surely: bool = False) -> Write:
        """What a serializer of the user's writes, given values of its type.

        Where a function of the user's may have made something else of them, whatever it is given; but `surely` then
        wants them to be of the type nevertheless.
        """
        write, (holds, certain) = self._pydantic(node), self._kinds.of(node)
        if not certain and not surely:
            return write

        def checked(value: Any) -> Any:
            if not holds(value):
                raise other_kind(value, node["type"])
            return write(value)

        return checked

    def _pydantic(self, node: Any) -> Write:
        """What users wrote, and scalars that have one form only, by pydantic."""
        dump, anything = self._dump(node), self._anything

        def write(value: Any) -> Any:
            written = dump(value)
            if written == f"<unprintable {type(value).__name__} object>" and not isinstance(value, str):
                raise unwritable(value, "its `__str__` failed")
            if written is value and not isinstance(value, str | int | float | list | dict | None):
                raise unwritable(value)
            return anything(written)

        return write

    def _dump(self, node: Any) -> Callable[..., Any]:
        """Pydantic's function that writes values of a core schema."""
        whole = core_schema.definitions_schema(node, self._definitions) if self._definitions else node
        # Not the serializers that classes keep of themselves: those know nothing of what was rewritten.
        to_python = SchemaSerializer(whole, _use_prebuilt=False).to_python
        anything, wanted = self._anything, node["type"]

        def dump(value: Any, **options: Any) -> Any:
            try:
                return to_python(value, mode="json", by_alias=True, warnings="error", fallback=anything, **options)
            except EncodingError:
                raise
            except Exception as error:  # a type may bring its own serializer, whose code can raise anything
                if "UnexpectedValue" in str(error):
                    raise other_kind(value, wanted) from error
                raise unwritable(value, f"{type(error).__name__} while it was written") from error

        return dump

    def _datetime(self, node: Any) -> Write:
        write = self._pydantic(node)
        return lambda value: write(in_minutes(value))

    _time = _datetime

    def _json(self, node: Any) -> Write:
        inner = self.write(node["schema"]) if "schema" in node else self._anything
        return lambda value: json.dumps(inner(value), ensure_ascii=False, separators=(",", ":"))

    def _definition_ref(self, node: Any) -> Write:
        ref, made = node["schema_ref"], self._made
        if ref in made:
            return made[ref]
        made[ref] = lambda value: made[ref](value)  # until it is there: it may contain itself
        made[ref] = self.write(self._by_ref[ref])
        return made[ref]

    def _any(self, node: Any) -> Write:
        return self._anything

    # A function that reads says nothing of how it is written.
    _callable = _is_subclass = _function_plain = _any

    def _is_instance(self, node: Any) -> Write:
        cls, anything = node["cls"], self._anything

        def write(value: Any) -> Any:
            if not isinstance(value, cls):
                raise other_kind(value, type_name(cls))
            return anything(value)

        return write

    def _literal(self, node: Any) -> Write:
        # All of them are texts: the others are choices.
        few = frozenset(node["expected"])

        def write(value: Any) -> Any:
            if not isinstance(value, str) or value not in few:
                raise other_kind(value, "one of a few texts")
            return safe_text(str.__str__(value))

        return write

    def _nullable(self, node: Any) -> Write:
        inner = self.write(node["schema"])
        return lambda value: None if value is None else inner(value)

    def _union(self, node: Any) -> Write:
        return self._one_of([one[0] if isinstance(one, tuple) else one for one in node["choices"]])

    def _tagged_union(self, node: Any) -> Write:
        return self._one_of([one for one in node["choices"].values() if isinstance(one, dict)])

    def _one_of(self, arms: list[Any]) -> Write:
        first, last = [], []
        for arm in arms:
            own = arm if has_serializer(arm) else self._by_ref.get(arm.get("schema_ref"), arm)
            if not has_serializer(own):
                first.append(self.write(arm))
                continue
            first.append(self._serialized(own, surely=True))
            if not self._kinds.of(own).certain:  # it may be of another kind than its type says, if nothing else fits
                last.append(self._serialized(own))
        return one_of([*first, *last])

    def _chain(self, node: Any) -> Write:
        return self.write(node["steps"][0])

    # --- containers ---

    def _list(self, node: Any) -> Write:
        return parts(self._items(node))

    _deque = _list

    def _set(self, node: Any) -> Write:
        inner = self._items(node)

        def write(value: Any) -> list[Any]:
            if not isinstance(value, Set):
                raise other_kind(value, "a set")
            return sort([inner(part) for part in value])

        return write

    _frozenset = _set

    def _items(self, node: Any) -> Write:
        return self.write(node.get("items_schema", {"type": "any"}))

    def _tuple(self, node: Any) -> Write:
        inners = [self.write(one) for one in node["items_schema"]]
        place = node.get("variadic_item_index")
        if place is not None and len(inners) == 1:
            return parts(inners[0], tuple)
        before = len(inners) if place is None else place
        tags = [number for number, one in enumerate(node["items_schema"][:before]) if has_few_values(one)]

        def write(value: Any) -> list[Any]:
            if not isinstance(value, tuple):
                raise other_kind(value, "a tuple")
            here = inners
            if place is not None:
                repeated = [inners[place]] * (len(value) - len(inners) + 1)
                here = inners[:place] + repeated + inners[place + 1 :]
            if len(value) != len(here):
                raise unwritable(value, f"it has {len(value)} parts, and the type says {len(here)}")
            for number in tags:  # first what can tell soon that this is the wrong alternative
                inners[number](value[number])
            return [inner(part) for inner, part in zip(here, value, strict=True)]

        return write

    def _dict(self, node: Any) -> Write:
        key_of = self.write(node.get("keys_schema", {"type": "any"}))
        value_of = self.write(node.get("values_schema", {"type": "any"}))
        return mapping(key_of, value_of)

    def _counter(self, node: Any) -> Write:
        return mapping(self.write(node["keys_schema"]), SCALARS["int"])

    # --- objects ---

    def _dataclass(self, node: Any) -> Write:
        inner = bare(node["schema"])
        if inner["type"] != "dataclass-args":
            return self._pydantic(node)
        fields = {field["name"]: field for field in inner["fields"] if not field.get("init_only")}
        return self._object(node, fields, inner)

    def _model(self, node: Any) -> Write:
        inner = bare(node["schema"])
        if node.get("root_model"):
            root = self.write(node["schema"])
            return self._by_class(node["cls"], lambda value: root(value.root))
        if inner["type"] != "model-fields":
            return self._pydantic(node)
        return self._object(node, inner["fields"], inner)

    def _object(self, node: Any, fields: Mapping[str, Any], inner: Any) -> Write:
        anything = self._anything
        # What a method of the class writes, or leaves out, is written by pydantic: it hands on the instance.
        by_method = {name for name, field in fields.items() if has_own_serializer(field)}
        dump = self._dump(node) if by_method else None
        plan = [
            (read_as(name, field) or name, name, None if name in by_method else self.write(field["schema"]))
            for name, field in fields.items()
        ]
        dumped_as = {name: fields[name].get("serialization_alias", name) for name in by_method}
        for one in inner.get("computed_fields", ()):
            name = one["property_name"]
            plan.append((one.get("alias") or name, name, self.write(one["return_schema"])))

        def write(value: Any) -> dict[str, Any]:
            dumped = {} if dump is None else dump(value, include=by_method)
            written = {}
            for key, name, write_field in plan:
                if write_field is None:
                    if dumped_as[name] in dumped:
                        written[key] = anything(dumped[dumped_as[name]])
                    continue
                part = part_of(value, name)
                if part is not UNSET:
                    written[key] = write_field(part)
            extra = getattr(value, "__pydantic_extra__", None)
            if extra:
                written.update((safe_text(key), anything(part)) for key, part in extra.items())
            return written

        return self._by_class(node["cls"], write)

    def _by_class(self, cls: type, write: Write) -> Write:
        """Write instances of the class itself; those of subclasses have more to show, and are written by their own."""
        anything = self._anything
        # A generic model is a class of its own; its base is the one that other code makes instances of.
        origin = getattr(cls, "__pydantic_generic_metadata__", {}).get("origin") or cls

        def by_class(value: Any) -> Any:
            kind = type(value)
            if kind is cls or kind is origin:
                return write(value)
            if not isinstance(value, origin):
                raise other_kind(value, type_name(cls))
            return (
                write(value) if origin in getattr(kind, "__bases__", ()) and "[" in kind.__name__ else anything(value)
            )

        return by_class

    def _typed_dict(self, node: Any) -> Write:
        fields = {
            name: (read_as(name, field) or name, self.write(field["schema"]), field.get("required", True))
            for name, field in node["fields"].items()
        }
        for one in node.get("computed_fields", ()):
            fields[one["property_name"]] = (one["property_name"], self.write(one["return_schema"]), False)
        further = self.write(node["extras_schema"]) if node.get("extras_schema") else self._anything
        required = {name for name, (_, _, needed) in fields.items() if needed}
        closed = node.get("extra_behavior") == "forbid"
        tags = [name for name, field in node["fields"].items() if has_few_values(field["schema"])]

        def write(value: Any) -> dict[str, Any]:
            if not isinstance(value, Mapping):
                raise other_kind(value, "a dictionary")
            # All that a look at the keys can tell comes first: this may be the wrong alternative of a deep union.
            if not required <= value.keys():
                raise unwritable(value, "it lacks keys that the type asks for")
            if closed and not value.keys() <= fields.keys():
                raise unwritable(value, "it has keys that the type does not know")
            for name in tags:
                if name in value:
                    fields[name][1](value[name])
            written = {}
            for name, part in value.items():
                if name in fields:
                    key, inner, _ = fields[name]
                    written[key] = inner(part)
                elif isinstance(name, str):
                    written[safe_text(name)] = further(part)
                else:
                    raise unwritable(value, "it has keys that are no texts")
            return written

        return write

    def _named_tuple(self, node: Any) -> Write:
        cls = node["cls"]
        inners = [self.write(field["schema"]) for field in node["fields"]]

        def write(value: Any) -> list[Any]:
            if not isinstance(value, cls):
                raise other_kind(value, type_name(cls))
            return [inner(part) for inner, part in zip(inners, value, strict=True)]

        return write
