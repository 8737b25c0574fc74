"""Writing values: a core schema compiled to a function that makes JSON of a value.

Pydantic's own serializers lose what a schema cannot say (fields of subclasses, keys that become the same text), guess
between the alternatives of a union, and write sets in the order of the process. Here every kind of core schema has one
function; what users wrote themselves (serializers of fields and models) is run by pydantic.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Any

from pydantic_core import SchemaSerializer, core_schema

from effectful_agents.encoding.marks import MARK, Writer
from effectful_agents.encoding.names import type_name
from effectful_agents.encoding.shapes import few_texts, read_as
from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import safe_text

__all__ = ["TOO_MANY_DIGITS", "Write", "as_key", "compiled", "number", "sort", "unwritable"]

TOO_MANY_DIGITS = "it is, or holds, a whole number with more digits than can be written"

type Write = Callable[[Any], Any]
"""Makes JSON of a value; raises `EncodingError` where the value is not of the type."""


def compiled(schema: Any, anything: Write) -> Write:
    """The function that writes values of a core schema.

    Args:
        schema: The core schema.
        anything: Writes a value by its own type.
    """
    return _Compiler(schema, anything).write(schema)


def unwritable(value: Any, why: str = "it has no JSON form") -> EncodingError:
    """The error for a value that cannot be written; it names the type and never shows the value."""
    return EncodingError(f"a value of type `{type_name(type(value))}` cannot be encoded; {why}.")


def number(value: float) -> float | str:
    """A float, or the text that stands for one that JSON does not have."""
    if value - value == 0:
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def sort(parts: list[Any]) -> list[Any]:
    """The parts of a set in an order that does not depend on the process."""
    try:
        return sorted(parts)
    except TypeError:  # several kinds: by their text
        return sorted(parts, key=lambda part: json.dumps(part, sort_keys=True))


def _other(value: Any, wanted: str) -> EncodingError:
    if isinstance(value, Iterator | io.IOBase):
        return unwritable(value, "it can be read only once. Pass a list")
    return unwritable(value, f"the type says {wanted}, and it is something else")


# --- scalars ----------------------------------------------------------------------------------------------------------


def _write_str(value: Any) -> str:
    if isinstance(value, str):
        return safe_text(value if type(value) is str else str.__str__(value))
    raise _other(value, "text")


def _write_int(value: Any) -> int:
    if type(value) is int or type(value) is bool:
        return value
    if isinstance(value, int):
        return int(value)
    raise _other(value, "a whole number")


def _write_float(value: Any) -> Any:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        return int(value) if type(value) is not bool else value
    raise _other(value, "a number")


def _write_bool(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise _other(value, "true or false")


def _write_none(value: Any) -> None:
    if value is not None:
        raise _other(value, "None")


def _write_decimal(value: Any) -> str:
    if isinstance(value, decimal.Decimal):
        return "NaN" if value.is_nan() else str(value)
    raise _other(value, "a decimal number")


def _in_minutes(value: Any) -> Any:
    """A time whose offset has no seconds, for which ISO 8601 has no form: the same moment, where there is one."""
    offset = value.utcoffset() if isinstance(value, datetime.datetime | datetime.time) else None
    if offset is None or (not offset.seconds % 60 and not offset.microseconds):
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC)
    raise unwritable(value, "its offset has seconds")


_SCALARS: dict[str, Write] = {
    "str": _write_str,
    "int": _write_int,
    "float": _write_float,
    "bool": _write_bool,
    "none": _write_none,
    "decimal": _write_decimal,
}

# The parts of these hold for what is written as well.
_TRANSPARENT = {
    "default": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "custom-error": "schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "strict_schema",
    "definitions": "schema",
}


class _Compiler:
    def __init__(self, schema: Any, anything: Write) -> None:
        self._definitions: list[Any] = schema.get("definitions", []) if schema["type"] == "definitions" else []
        self._by_ref = {one["ref"]: one for one in self._definitions}
        self._made: dict[str, Write] = {}
        self._anything = anything

    def write(self, node: Any) -> Write:
        kind = node["type"]
        writer = node.get("metadata", {}).get(MARK)
        if writer is not None:
            return self._marked(node, writer)
        own = node.get("serialization")
        if own is not None and not _is_redundant(own):
            return self._pydantic(node)
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind in _TRANSPARENT:
            return self.write(node[_TRANSPARENT[kind]])
        special = getattr(self, "_" + kind.replace("-", "_"), None)
        return self._pydantic(node) if special is None else special(node)

    def _marked(self, node: Any, writer: Writer) -> Write:
        kind, make = writer.kind, writer.write
        holds = getattr(kind, "holds", None) or (lambda value: kind is None or isinstance(value, kind))
        wanted = type_name(kind) if isinstance(kind, type) else "one of a few values"
        inner = self.write(node["schema"]) if writer.inner else None

        def write(value: Any) -> Any:
            if not holds(value):
                raise _other(value, wanted)
            try:
                made = make(value)
            except EncodingError:
                raise
            except Exception as error:  # a user's codec may raise anything
                raise unwritable(value, f"{type(error).__name__} while it was written") from error
            return made if inner is None else inner(made)

        return write

    def _pydantic(self, node: Any) -> Write:
        """What users wrote, and scalars that have one form only, by pydantic."""
        dump, anything = self._dump(node), self._anything

        def write(value: Any) -> Any:
            written = dump(value)
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
                    raise _other(value, wanted) from error
                raise unwritable(value, f"{type(error).__name__} while it was written") from error

        return dump

    def _datetime(self, node: Any) -> Write:
        write = self._pydantic(node)
        return lambda value: write(_in_minutes(value))

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

    _is_instance = _callable = _is_subclass = _any

    def _nullable(self, node: Any) -> Write:
        inner = self.write(node["schema"])
        return lambda value: None if value is None else inner(value)

    def _union(self, node: Any) -> Write:
        choices = [self.write(one[0] if isinstance(one, tuple) else one) for one in node["choices"]]
        return _one_of(choices)

    def _tagged_union(self, node: Any) -> Write:
        return _one_of([self.write(one) for one in node["choices"].values() if isinstance(one, dict)])

    def _chain(self, node: Any) -> Write:
        return self.write(node["steps"][0])

    # --- containers ---

    def _list(self, node: Any) -> Write:
        return _parts(self._items(node))

    _deque = _list

    def _set(self, node: Any) -> Write:
        inner = self._items(node)

        def write(value: Any) -> list[Any]:
            if not isinstance(value, Set):
                raise _other(value, "a set")
            return sort([inner(part) for part in value])

        return write

    _frozenset = _set

    def _items(self, node: Any) -> Write:
        return self.write(node.get("items_schema", {"type": "any"}))

    def _tuple(self, node: Any) -> Write:
        inners = [self.write(one) for one in node["items_schema"]]
        place = node.get("variadic_item_index")
        if place is not None and len(inners) == 1:
            return _parts(inners[0], tuple)

        def write(value: Any) -> list[Any]:
            if not isinstance(value, tuple):
                raise _other(value, "a tuple")
            here = inners
            if place is not None:
                repeated = [inners[place]] * (len(value) - len(inners) + 1)
                here = inners[:place] + repeated + inners[place + 1 :]
            if len(value) != len(here):
                raise unwritable(value, f"it has {len(value)} parts, and the type says {len(here)}")
            return [inner(part) for inner, part in zip(here, value, strict=True)]

        return write

    def _dict(self, node: Any) -> Write:
        key_of = self.write(node.get("keys_schema", {"type": "any"}))
        value_of = self.write(node.get("values_schema", {"type": "any"}))
        return _mapping(key_of, value_of)

    def _counter(self, node: Any) -> Write:
        return _mapping(self.write(node["keys_schema"]), _write_int)

    # --- objects ---

    def _dataclass(self, node: Any) -> Write:
        inner = _bare(node["schema"])
        if inner["type"] != "dataclass-args":
            return self._pydantic(node)
        fields = {field["name"]: field for field in inner["fields"] if not field.get("init_only")}
        return self._object(node, fields, inner)

    def _model(self, node: Any) -> Write:
        inner = _bare(node["schema"])
        if node.get("root_model"):
            root = self.write(node["schema"])
            return self._by_class(node["cls"], lambda value: root(value.root))
        if inner["type"] != "model-fields":
            return self._pydantic(node)
        return self._object(node, inner["fields"], inner)

    def _object(self, node: Any, fields: Mapping[str, Any], inner: Any) -> Write:
        anything = self._anything
        # What a method of the class writes, or leaves out, is written by pydantic: it hands on the instance.
        by_method = {name for name, field in fields.items() if _has_own_serializer(field)}
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
                try:
                    part = getattr(value, name)
                except AttributeError:  # a field that the constructor has not set
                    continue
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
                raise _other(value, type_name(cls))
            return (
                write(value) if origin in getattr(kind, "__bases__", ()) and "[" in kind.__name__ else anything(value)
            )

        return by_class

    def _typed_dict(self, node: Any) -> Write:
        fields = {
            name: (read_as(name, field) or name, self.write(field["schema"]), field.get("required", True))
            for name, field in node["fields"].items()
        }
        further = self.write(node["extras_schema"]) if node.get("extras_schema") else self._anything
        required = {name for name, (_, _, needed) in fields.items() if needed}
        closed = node.get("extra_behavior") == "forbid"
        tags = {name: few for name, field in node["fields"].items() if (few := few_texts(field["schema"]))}

        def write(value: Any) -> dict[str, Any]:
            if not isinstance(value, Mapping):
                raise _other(value, "a dictionary")
            # All that a look at the keys can tell comes first: this may be the wrong alternative of a deep union.
            if not required <= value.keys():
                raise unwritable(value, "it lacks keys that the type asks for")
            if closed and not value.keys() <= fields.keys():
                raise unwritable(value, "it has keys that the type does not know")
            for name, few in tags.items():
                if name in value and not (isinstance(value[name], str) and value[name] in few):
                    raise unwritable(value, "a text in it is none of those that the type names")
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
                raise _other(value, type_name(cls))
            return [inner(part) for inner, part in zip(inners, value, strict=True)]

        return write


def _one_of(choices: list[Write]) -> Write:
    def write(value: Any) -> Any:
        for choice in choices:
            try:
                return choice(value)
            except EncodingError:
                continue
        raise _other(value, "one of several types")

    return write


def _parts(inner: Write, kind: Any = Collection) -> Write:
    def write(value: Any) -> list[Any]:
        if type(value) is list and kind is Collection:
            return [inner(part) for part in value]
        if not isinstance(value, kind) or isinstance(value, str | bytes | bytearray | Mapping):
            raise _other(value, "a list" if kind is Collection else "a tuple")
        written = [inner(part) for part in value]
        return sort(written) if isinstance(value, Set) else written

    return write


def _mapping(key_of: Write, value_of: Write) -> Write:
    def write(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _other(value, "a mapping")
        written = {as_key(key_of(key), key): value_of(part) for key, part in value.items()}
        if len(written) < len(value):
            raise unwritable(value, "several of its keys are the same text in JSON")
        return written

    return write


def as_key(written: Any, key: Any) -> str:
    """A written value as the key of an object."""
    if type(written) is str:
        return written
    if isinstance(written, bool):
        return "true" if written else "false"
    if written is None or isinstance(written, int | float):
        try:
            return repr(written)
        except ValueError as error:  # of the number of digits
            raise unwritable(key, TOO_MANY_DIGITS) from error
    raise unwritable(key, "JSON has no keys of this type")


# --- what users and pydantic wrote ------------------------------------------------------------------------------------


def _bare(node: Any) -> Any:
    """The fields of a class, without the validators around them."""
    while node["type"] in ("function-before", "function-after", "function-wrap") and "serialization" not in node:
        node = node["schema"]
    return node


def _has_own_serializer(field: Any) -> bool:
    left_out = field.get("serialization_exclude") or field.get("serialization_exclude_if")
    return bool(left_out) or _serializes_itself(field["schema"])


def _serializes_itself(node: Any) -> bool:
    """Whether a method of the class serializes the field: it wants the instance, which only pydantic hands on."""
    if node.get("serialization", {}).get("is_field_serializer"):
        return True
    return node["type"] in ("default", "nullable") and _serializes_itself(node["schema"])


def _is_redundant(serialization: Any) -> bool:
    """Whether pydantic put a serializer there that only goes through a container."""
    return (
        serialization["type"] == "function-wrap"
        and not serialization.get("is_field_serializer")
        and getattr(serialization["function"], "__module__", "").startswith("pydantic.")
    )
