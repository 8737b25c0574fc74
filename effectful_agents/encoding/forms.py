"""The form of a type on the wire: pydantic's core schema, rewritten.

Pydantic reads the annotation: fields, generics, references forward, constraints. What it makes of it is a tree of plain
dictionaries, the core schema; from that come validation and the JSON schema. Between the two, `describe` goes over the
tree and puts the forms of this package in the place of pydantic's where those lose or guess something, everywhere at
once: in containers, dataclasses, typed dictionaries and models.
"""

from __future__ import annotations

import collections
import collections.abc
import enum
import re
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

import pydantic
import typing_extensions
from pydantic_core import CoreSchema, core_schema

from effectful_agents.encoding import binary
from effectful_agents.encoding.annotations import CODEC, own_fields, substituted
from effectful_agents.encoding.choices import choice, flag_names, flag_of, written_members
from effectful_agents.encoding.names import full_name
from effectful_agents.encoding.registry import Codec, find
from effectful_agents.errors import EncodingError

__all__ = ["MARK", "Form", "Refused", "Writer", "describe"]

MARK = "effectful_agents"
"""The key in the metadata of a core schema under which a `Writer` stands."""


class Writer(NamedTuple):
    """How values are written whose core schema is not pydantic's.

    Attributes:
        kind: What values must be an instance of.
        write: Makes the written value; for `inner` to write further where that is true.
        inner: Whether what `write` makes is written by the core schema inside.
    """

    kind: Any
    write: Callable[[Any], Any]
    inner: bool


class Refused(EncodingError):
    """A part of a type has no form.

    Attributes:
        path: Where in the type: `[].socket`.
        reason: What is wrong with it.
    """

    def __init__(self, within: str, path: str, reason: str) -> None:
        super().__init__(f"{within}{path}: {reason}")
        self.path = path
        self.reason = reason


class Form(NamedTuple):
    """A described type.

    Attributes:
        schema: The core schema.
        refusals: The paths of parts that a model cannot be asked for, and the reasons.
    """

    schema: CoreSchema
    refusals: list[tuple[str, str]]


def describe(tp: Any) -> Form:
    """Describe a type.

    Raises:
        Exception: Pydantic cannot; the type's own code may raise anything.
    """
    builder = _Builder()
    schema = builder.annotation(tp, "")
    definitions = [*builder.definitions.values()]
    return Form(core_schema.definitions_schema(schema, definitions) if definitions else schema, builder.refusals)


# Of unknown classes pydantic makes a test for instances, which is found here and refused with its path.
_CONFIG = pydantic.ConfigDict(arbitrary_types_allowed=True)

_NO_SCHEMAS = frozenset({"type", "metadata", "serialization", "config", "default", "default_factory", "cls", "function",
                         "ref", "expected", "members", "discriminator", "computed_fields", "name"})  # fmt: skip
_ITEMS = {"items_schema": "[]", "values_schema": "{}", "keys_schema": "{key}", "extras_schema": "{}"}
_DIGITS = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")


class _Builder:
    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.refusals: list[tuple[str, str]] = []
        self._given: dict[str, Any] = {}
        self._quiet = 0  # above 0 in a branch that is only for Python values

    def annotation(self, tp: Any, path: str) -> Any:
        # Inside a list: a configuration beside a class that may have its own is refused.
        wrapped: Any = list.__class_getitem__(substituted(tp))
        adapter = pydantic.TypeAdapter(wrapped, config=_CONFIG)
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True)
        given: Any = adapter.core_schema
        if given["type"] == "definitions":
            self._given.update((one["ref"], one) for one in given["definitions"])
            given = given["schema"]
        return self._rewrite(given["items_schema"], path)

    def _rewrite(self, node: Any, path: str) -> Any:
        if node["type"] == "definition-ref":
            return self._reference(node, path)
        if node["type"] == _SUBSTITUTE:
            return self.annotation(node["annotation"], path)
        ref = node.get("ref")
        if ref is None or self._quiet:
            return self._form(node, path)
        if ref not in self.definitions:
            self.definitions[ref] = None  # its place: it may contain itself
            self.definitions[ref] = {**self._form(node, path), "ref": ref}
        return core_schema.definition_reference_schema(ref)

    def _reference(self, node: Any, path: str) -> Any:
        ref = node["schema_ref"]
        if ref not in self.definitions:
            self._rewrite(self._given[ref], path)
        return node

    def _form(self, node: Any, path: str) -> Any:
        if MARK in node.get("metadata", {}):
            return self._parts(node, path)
        cls = node.get("cls")
        found = node.get("metadata", {}).get(CODEC) or (find(cls) if isinstance(cls, type) else None)
        if found is not None:
            return self._codec(found, cls, node, path)
        special = getattr(self, "_of_" + node["type"].replace("-", "_"), None)
        return self._parts(node, path) if special is None else special(node, path)

    def _parts(self, node: Any, path: str) -> Any:
        """The node with its parts rewritten."""
        return {key: value if key in _NO_SCHEMAS else self._part(key, value, path) for key, value in node.items()}

    def _part(self, key: str, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                name = value.get("name") if value["type"].endswith("-field") else None
                return self._rewrite(value, path + (f".{name}" if name else _ITEMS.get(key, "")))
            named = key == "fields"
            return {
                name: self._rewrite(part, f"{path}.{name}" if named else path) if isinstance(part, dict) else part
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [self._one(key, number, part, path, len(value)) for number, part in enumerate(value)]
        return value

    def _one(self, key: str, number: int, part: Any, path: str, count: int) -> Any:
        if isinstance(part, tuple):  # an alternative with a label
            return (self._rewrite(part[0], path), part[1])
        if not isinstance(part, dict):
            return part
        if key == "items_schema":
            path += f"[{number}]" if count > 1 else "[]"
        elif part["type"].endswith("-field"):
            path += f".{part['name']}"
        return self._rewrite(part, path)

    def _refuse(self, path: str, reason: str) -> None:
        if not self._quiet:
            self.refusals.append((path, reason))

    # --- codecs ---

    def _codec(self, codec: Codec, cls: type, node: Any, path: str) -> Any:
        form = self.annotation(codec.form, path)
        decode = codec.decoder()
        if decode is None:
            self._refuse(path, f"{full_name(cls)} can be shown to a model, but not written by one")
            decode = _unreadable
        return self._written(cls, form, decode, codec.encode, otherwise=core_schema.is_instance_schema(cls))

    def _written(
        self, cls: Any, form: Any, decode: Callable[[Any, Any], Any], encode: Callable[[Any], Any], otherwise: Any
    ) -> Any:
        """A core schema of values that are read from, and written to, another form."""

        def read(value: Any, info: core_schema.ValidationInfo) -> Any:
            return decode(value, info.context)

        json_schema = core_schema.with_info_after_validator_function(
            read,
            form,
            metadata={MARK: Writer(cls, encode, inner=True)},
            serialization=core_schema.plain_serializer_function_ser_schema(encode),
        )
        python_schema = core_schema.union_schema([otherwise, json_schema], mode="left_to_right")
        return core_schema.json_or_python_schema(json_schema, python_schema)

    def _of_is_instance(self, node: Any, path: str) -> Any:
        cls = node["cls"]
        if self._quiet or cls is collections.abc.Hashable:
            return node
        if (fields := own_fields(cls)) is not None:
            return self._attrs(cls, fields, path)
        if cls is type:
            self._refuse(path, _NO_CLASSES)
        else:
            self._refuse(
                path, f"{full_name(cls)} has no encoding; register one with `effectful_agents.encoding.register`"
            )
        return node

    def _attrs(self, cls: type, fields: dict[str, tuple[str, Any, bool]], path: str) -> Any:
        """A class of the attrs library: `fields` has the alias, the type and whether there is a default, by name."""
        ref = f"{cls.__module__}.{cls.__qualname__}:{id(cls)}"
        if ref not in self.definitions:
            self.definitions[ref] = None
            parts = {
                alias: core_schema.typed_dict_field(self.annotation(tp, f"{path}.{name}"), required=not optional)
                for name, (alias, tp, optional) in fields.items()
            }
            form = core_schema.typed_dict_schema(parts, cls_name=cls.__name__, extra_behavior="forbid")
            form["config"] = {"title": cls.__name__}
            written = self._written(
                cls,
                form,
                lambda value, _: cls(**value),
                lambda value: {alias: getattr(value, name) for name, (alias, _, _) in fields.items()},
                otherwise=core_schema.is_instance_schema(cls),
            )
            self.definitions[ref] = {**written, "ref": ref}
        return core_schema.definition_reference_schema(ref)

    def _of_callable(self, node: Any, path: str) -> Any:
        self._refuse(path, "a function is not written as JSON; it takes a handler that synthesizes code")
        return node

    def _of_is_subclass(self, node: Any, path: str) -> Any:
        self._refuse(path, _NO_CLASSES)
        return node

    # --- scalars: what pydantic would guess ---

    def _of_int(self, node: Any, path: str) -> Any:
        return {"strict": True, **node}

    _of_float = _of_bool = _of_str = _of_int

    def _of_bytes(self, node: Any, path: str) -> Any:
        schema = core_schema.no_info_before_validator_function(
            binary.read, node, metadata={MARK: Writer(bytes, binary.write, inner=False)} | _shown(binary.SCHEMA)
        )
        schema["serialization"] = core_schema.plain_serializer_function_ser_schema(binary.write)
        return core_schema.json_or_python_schema(schema, node)

    def _of_decimal(self, node: Any, path: str) -> Any:
        schema = {"type": "string", "pattern": _DECIMAL}
        if limits := _limits(node):
            schema["description"] = f"a decimal number, {limits}"
        read = core_schema.no_info_before_validator_function(_exact, {**node, "strict": False}, metadata=_shown(schema))
        return core_schema.json_or_python_schema(read, node)

    def _of_date(self, node: Any, path: str) -> Any:
        # The function hands on a Python text, which the strict form of the node would refuse.
        read = core_schema.no_info_before_validator_function(_no_timestamp, {**node, "strict": False})
        return core_schema.json_or_python_schema(read, node)

    _of_datetime = _of_time = _of_timedelta = _of_date

    def _of_generator(self, node: Any, path: str) -> Any:
        # Pydantic's generator would check the parts when they are asked for, too late to tell the model.
        return {**self._parts(node, path), "type": "list"}

    # --- few values ---

    def _of_enum(self, node: Any, path: str) -> Any:
        cls = node["cls"]
        pairs = written_members(cls)
        if issubclass(cls, enum.Flag):
            form = core_schema.list_schema(choice(pairs, error="enum"))
            shown = core_schema.no_info_after_validator_function(
                lambda members: flag_of(cls, members),
                form,
                metadata={MARK: Writer(cls, lambda value: flag_names(cls, value), inner=False)},
            )
            return core_schema.json_or_python_schema(
                shown, core_schema.union_schema([core_schema.is_instance_schema(cls), shown], mode="left_to_right")
            )
        forms = {member.name: form for form, member in pairs}
        schema: Any = choice(pairs, error="enum", kind=cls)
        schema["metadata"][MARK] = Writer(cls, lambda value: forms[value.name], inner=False)
        schema["metadata"]["pydantic_js_functions"] = _with_docstring(schema, cls)
        schema["serialization"] = core_schema.plain_serializer_function_ser_schema(lambda value: forms[value.name])
        return schema

    def _of_literal(self, node: Any, path: str) -> Any:
        expected = node["expected"]
        if all(type(value) is str for value in expected):
            return node
        pairs = [(_written_literal(value), value) for value in expected]
        forms = {(type(value), value): form for form, value in pairs}
        schema: Any = choice(pairs, error="literal_error")
        schema["metadata"][MARK] = Writer(_Among(forms), lambda value: forms[type(value), value], inner=False)
        schema["serialization"] = core_schema.plain_serializer_function_ser_schema(
            lambda value: forms[type(value), value]
        )
        return schema

    # --- mappings ---

    def _of_dict(self, node: Any, path: str) -> Any:
        keys = node.get("keys_schema", {"type": "any"})
        values = self._rewrite(node.get("values_schema", {"type": "any"}), path + "{}")
        way = self._as_keys(keys)
        if way == "text":
            return {**node, "keys_schema": self._rewrite(keys, path + "{key}"), "values_schema": values}
        if isinstance(way, list):
            key = choice(way, error="enum", as_keys=True)
            names = {(type(value), value): form for form, value in way}
            key["metadata"][MARK] = Writer(object, lambda value: names[type(value), value], inner=False)
            return {**node, "keys_schema": key, "values_schema": values}
        pair = core_schema.typed_dict_schema(
            {
                "key": core_schema.typed_dict_field(self._rewrite(keys, path + "{key}"), required=True),
                "value": core_schema.typed_dict_field(values, required=True),
            },
            extra_behavior="forbid",
        )
        limits = {key: value for key, value in node.items() if key in ("min_length", "max_length")}
        json_schema = core_schema.no_info_after_validator_function(
            _from_pairs, core_schema.list_schema(pair, **limits), metadata={MARK: Writer(None, _to_pairs, inner=True)}
        )
        self._quiet += 1
        python_schema = self._parts(node, path)
        self._quiet -= 1
        return core_schema.json_or_python_schema(
            json_schema, core_schema.union_schema([python_schema, json_schema], mode="left_to_right")
        )

    def _of_counter(self, node: Any, path: str) -> Any:
        counts = {"type": "int", "strict": True}
        mapping = self._of_dict({"type": "dict", "keys_schema": node["keys_schema"], "values_schema": counts}, path)
        json_schema = core_schema.no_info_after_validator_function(collections.Counter, mapping)
        return core_schema.json_or_python_schema(json_schema, node)

    def _as_keys(self, node: Any) -> Any:
        """How keys are written: "text", as texts; a list, as these texts; None, not as keys of an object."""
        kind = node["type"]
        if kind in _TEXT_KEYS:
            return "text"
        if kind == "enum" and find(node["cls"]) is None:
            pairs = written_members(node["cls"])
            return None if issubclass(node["cls"], enum.Flag) else _plain_keys(pairs)
        if kind == "literal":
            return _plain_keys([(_written_literal(value), value) for value in node["expected"]])
        if kind == "definition-ref":
            return self._as_keys(self._given[node["schema_ref"]])
        cls = node.get("cls")
        found = node.get("metadata", {}).get(CODEC) or (find(cls) if isinstance(cls, type) else None)
        if found is not None:
            return "text" if found.form is str or typing.get_args(found.form)[:1] == (str,) else None
        if kind in ("lax-or-strict", "json-or-python"):
            return self._as_keys(node["strict_schema" if kind == "lax-or-strict" else "json_schema"])
        if kind in ("function-after", "function-before", "function-wrap", "custom-error"):
            return self._as_keys(node["schema"])
        return None

    # --- branches and objects ---

    def _of_json_or_python(self, node: Any, path: str) -> Any:
        written = self._rewrite(node["json_schema"], path)
        self._quiet += 1
        otherwise = self._rewrite(node["python_schema"], path)
        self._quiet -= 1
        return {**node, "json_schema": written, "python_schema": otherwise}

    def _of_lax_or_strict(self, node: Any, path: str) -> Any:
        # Both branches read the same JSON; one is enough to find what is to be refused.
        self._quiet += 1
        lax = self._rewrite(node["lax_schema"], path)
        self._quiet -= 1
        return {**node, "strict_schema": self._rewrite(node["strict_schema"], path), "lax_schema": lax}

    def _of_function_before(self, node: Any, path: str) -> Any:
        inner = node["schema"]
        if inner["type"] in ("int", "float", "bool", "str"):  # what the user's function makes of the JSON may be lax
            node = {**node, "schema": {"strict": False, **inner}}
        return self._parts(node, path)

    _of_function_wrap = _of_function_before

    def _of_typed_dict(self, node: Any, path: str) -> Any:
        return self._closed(self._parts(self._with_substituted(node, node.get("cls")), path), node.get("cls"))

    def _of_dataclass(self, node: Any, path: str) -> Any:
        node = self._parts(self._with_substituted(node, node["cls"]), path)
        inner = node["schema"]
        while inner["type"] != "dataclass-args" and "schema" in inner:
            inner = inner["schema"]
        if inner["type"] == "dataclass-args" and all(field.get("init", True) for field in inner["fields"]):
            return self._closed(node, node["cls"])
        return node  # fields that a constructor computes are shown, and ignored where they come back

    def _of_model(self, node: Any, path: str) -> Any:
        node = self._parts(node, path)
        inner = node["schema"]
        while inner["type"] != "model-fields" and "schema" in inner:
            inner = inner["schema"]
        return node if inner.get("computed_fields") or node.get("root_model") else self._closed(node, node["cls"])

    def _of_named_tuple(self, node: Any, path: str) -> Any:
        return self._parts(self._with_substituted(node, node["cls"]), path)

    def _closed(self, node: Any, cls: Any) -> Any:
        """The node, refusing what it does not know, as its schema says, unless its class decides about that itself."""
        config = node.get("config", {})
        own = getattr(cls, "__pydantic_config__", None) or getattr(cls, "model_config", {})
        if "extra" in own or "extra_fields_behavior" in config or node.get("extras_schema"):
            return node
        if node["type"] == "typed-dict":
            return {**node, "extra_behavior": "forbid"}
        return {**node, "config": {**config, "extra_fields_behavior": "forbid"}}

    def _with_substituted(self, node: Any, cls: Any) -> Any:
        """The node with the annotations of its fields substituted as those of parameters are."""
        replaced = {
            name: new
            for name, hint in _hints(cls).items()
            if (new := substituted(hint)) is not hint and not getattr(hint, "__parameters__", ())
        }
        return _replace_fields(node, replaced) if replaced else node


_NO_CLASSES = "`type` has no encoding: a class is no value that a model could write"
_SUBSTITUTE = "substitute"


def _hints(cls: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(cls, include_extras=True) if isinstance(cls, type) else {}
    except (NameError, TypeError):  # names of a function that has returned; pydantic found them
        return {}
    return {name: _unqualified(hint) for name, hint in hints.items()}


def _unqualified(hint: Any) -> Any:
    while typing.get_origin(hint) in _QUALIFIERS:
        [hint] = typing.get_args(hint)
    return hint


_QUALIFIERS = (typing.Required, typing.NotRequired, typing_extensions.ReadOnly, typing.ClassVar)


def _replace_fields(node: Any, annotations: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_replace_fields(part, annotations) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("type", "").endswith("-field"):
        if node.get("name") not in annotations:
            return node
        schema = {"type": _SUBSTITUTE, "annotation": annotations[node["name"]]}
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


def _shown(schema: dict[str, Any]) -> dict[str, Any]:
    return {"pydantic_js_functions": [lambda _, __: dict(schema)]}


def _with_docstring(schema: Any, cls: type[enum.Enum]) -> list[Any]:
    [shown] = schema["metadata"]["pydantic_js_functions"]
    doc = (
        cls.__doc__
        if cls.__doc__ not in (None, "An enumeration.", *(base.__doc__ for base in cls.__mro__[1:]))
        else None
    )
    if doc is None:
        return [shown]
    text = " ".join(doc.split("\n\n")[0].split())
    return [lambda core, handler: {"description": text, **shown(core, handler)}]


def _unreadable(value: Any, _: Any) -> Any:
    raise ValueError("it cannot be written by a model")


class _Among:
    """Stands for a class whose instances are the values of a Literal."""

    def __init__(self, forms: dict[tuple[type, Any], Any]) -> None:
        self.forms = forms

    def holds(self, value: Any) -> bool:
        try:
            return (type(value), value) in self.forms
        except TypeError:
            return False


def _written_literal(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return next(form for form, member in written_members(type(value)) if member is value)
    return binary.write(value) if isinstance(value, bytes) else value


_TEXT_KEYS = frozenset(
    {"any", "str", "int", "float", "bool", "date", "datetime", "time", "timedelta", "uuid", "url", "multi-host-url"}
    | {"decimal", "bytes", "fraction", "complex", "function-plain"}
)


def _plain_keys(pairs: list[tuple[Any, Any]]) -> Any:
    if all(isinstance(form, str) for form, _ in pairs):
        return "text"
    texts = {form if isinstance(form, str) else repr(form) for form, _ in pairs}
    return pairs if len(texts) == len(pairs) else None


def _from_pairs(pairs: list[dict[str, Any]]) -> dict[Any, Any]:
    try:
        result = {pair["key"]: pair["value"] for pair in pairs}
    except TypeError as error:
        raise ValueError("a key cannot be one in Python") from error
    if len(result) < len(pairs):
        raise ValueError("a key stands twice")
    return result


def _to_pairs(value: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": part} for key, part in value.items()]


_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?(E[+-]?[0-9]+)?$"
_SAFE_DIGITS = 15


def _exact(value: Any) -> Any:
    """Refuse a number of which binary floating point has kept less than was written."""
    if isinstance(value, bool):
        raise ValueError("a decimal number is wanted, as text")
    if isinstance(value, float):
        digits = len(repr(value).partition("e")[0].replace(".", "").strip("-0"))
        if digits > _SAFE_DIGITS:
            raise ValueError("this many digits are lost in a JSON number; write it as text")
    return value


def _no_timestamp(value: Any) -> Any:
    """Refuse numbers, whose unit and zone would be a guess."""
    if isinstance(value, int | float) or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        raise ValueError("it is a number; write it in ISO 8601")
    return value


_LIMITS = {"ge": "at least {}", "gt": "greater than {}", "le": "at most {}", "lt": "less than {}",
           "multiple_of": "a multiple of {}", "max_digits": "of at most {} digits",
           "decimal_places": "with at most {} decimal places"}  # fmt: skip


def _limits(node: Any) -> str:
    return ", ".join(text.format(node[key]) for key, text in _LIMITS.items() if node.get(key) is not None)
