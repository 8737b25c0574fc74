"""The JSON schema of a type, tidied for models.

Pydantic's schema is meant for programs. For a model, titles that repeat a name are left out, objects with fixed
properties are closed, what is used once stands where it is used, and shared or recursive types have short names that do
not depend on the module or the process. Keywords come in one fixed order, properties in that of their definition.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, override

import typing_extensions
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from effectful_agents.encoding.adapters import Adapter, no_form, type_adapter, write_anything
from effectful_agents.encoding.computed import computed_keys
from effectful_agents.encoding.docstrings import described
from effectful_agents.encoding.keywords import LISTS, MAPS, SINGLE, check_keyword
from effectful_agents.encoding.names import TypeCache
from effectful_agents.encoding.strict import PREFIX
from effectful_agents.encoding.trees import fields_inside
from effectful_agents.encoding.writers import sort
from effectful_agents.errors import EncodingError

__all__ = ["adapter_schema", "json_schema"]

# `uniqueItems` is known neither to llama.cpp's grammar nor to OpenAI; a set takes out what is double. `discriminator`
# is OpenAPI's and repeats the names of definitions.
_DROPPED = frozenset({"title", "uniqueItems", "discriminator", "$defs"})
_KNOWN = frozenset(
    re.split(
        r"\s+",
        "$ref type description const enum properties required additionalProperties items prefixItems anyOf oneOf allOf "
        "not if then else contains minContains maxContains dependentSchemas dependentRequired minItems maxItems "
        "minLength maxLength minProperties maxProperties pattern format minimum maximum exclusiveMinimum "
        "exclusiveMaximum multipleOf contentEncoding contentMediaType default examples readOnly",
    )
)
# What is said in the description, since providers do not know it: the words of pydantic for what it knows no keyword
# for, and keywords that models are not held to. Anything else that classes bring along is for programs, and left out.
_WORDS = {
    "gt": "greater than {}",
    "ge": "at least {}",
    "lt": "less than {}",
    "le": "at most {}",
    "multiple_of": "a multiple of {}",
    "min_length": "of length {} at least",
    "max_length": "of length {} at most",
    "contentSchema": "the text is JSON of the schema {}",
    "propertyNames": "each key fits the schema {}",
}
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FIRST = ("$ref", "type", "description", "const", "enum", "properties", "required", "additionalProperties")
_PLACE = {name: place for place, name in enumerate(_FIRST)} | dict.fromkeys(("default", "examples"), 1000)


def json_schema(tp: Any) -> dict[str, Any]:
    """The JSON schema that a model is given for a type. It is kept and shared: do not change it.

    A set is an array, a tuple an array with `prefixItems`; a NamedTuple too, with the names of its fields as
    descriptions. Docstrings of classes and descriptions of fields are kept, defaults are shown.

    Raises:
        EncodingError: The type cannot be described; the message names it and says why.

    >>> json_schema(list[int])
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    schema = _schemas(tp)
    type_adapter(tp).check_executor()
    return schema


def adapter_schema(tp: Any, adapter: Adapter) -> dict[str, Any]:
    """The tidied schema of an adapter; `tp` is named in the error."""
    generated = _generated(tp, adapter)
    try:
        return _Tidying(generated).result()
    except Exception as error:  # keywords that a user wrote may stand for anything
        raise no_form(tp, error) from error


def _generated(tp: Any, adapter: Adapter) -> dict[str, Any]:
    adapter.check()
    try:
        return _Generator().generate(adapter.core_schema, mode="validation")
    except Exception as error:  # as in `type_adapter`: a type's own code may run here
        raise no_form(tp, error) from error


_schemas = TypeCache(lambda tp: adapter_schema(tp, type_adapter(tp)))


class _Generator(GenerateJsonSchema):
    @override
    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def encode_default(self, dft: Any) -> Any:
        try:
            return write_anything(dft)
        except (EncodingError, RecursionError) as error:
            raise PydanticSerializationError(str(error)) from error

    @override
    def default_schema(self, schema: Any) -> Any:
        empty = {list: [], dict: {}, set: [], frozenset: [], tuple: []}.get(schema.get("default_factory"))
        if empty is None:
            return super().default_schema(schema)
        return {**self.generate_inner(schema["schema"]), "default": empty}

    @override
    def tuple_schema(self, schema: Any) -> Any:
        written = super().tuple_schema(schema)
        parts, place = schema["items_schema"], schema.get("variadic_item_index")
        if place is not None and place + 1 < len(parts):  # JSON schema has no words for the parts behind it
            written["items"] = {"anyOf": [self.generate_inner(part) for part in parts[place:]]}
            written["minItems"] = len(parts) - 1
        return written

    @override
    def named_tuple_schema(self, schema: Any) -> Any:
        written = super().named_tuple_schema(schema)
        names = [field["name"] for field in schema["fields"]]
        about = described(_own_docstring(schema["cls"]), names)
        if about.text:
            written["description"] = about.text
        for name, item in zip(names, written.get("prefixItems", ()), strict=True):
            if name in about.names:
                item.setdefault("description", about.names[name])
        for field, item in zip(schema["fields"], written.get("prefixItems", ()), strict=True):
            said = item.get("description")
            item["description"] = f"{field['name']}: {said}" if said else field["name"]
        return written

    @override
    def model_schema(self, schema: Any) -> Any:
        return _with_descriptions(self._with_computed(super().model_schema(schema), schema), schema["cls"])

    @override
    def dataclass_schema(self, schema: Any) -> Any:
        return _with_descriptions(self._with_computed(super().dataclass_schema(schema), schema), schema["cls"])

    @override
    def typed_dict_schema(self, schema: Any) -> Any:
        return _with_descriptions(self._with_computed(super().typed_dict_schema(schema), schema), schema.get("cls"))

    def _with_computed(self, written: Any, schema: Any) -> Any:
        """The schema with what a class computes itself: values show it, and it need not come back."""
        inner = fields_inside(schema)
        properties = written.get("properties")
        if properties is None:
            return written
        for field in inner["fields"] if inner["type"] == "dataclass-args" else ():
            if field.get("init_only") and field["name"] in properties:
                # It is not kept: a value cannot show it, and does not have its default either.
                properties[field["name"]].pop("default", None)
        for name, part in computed_keys(inner).items():
            try:
                shown = self.generate_inner(part)
            except PydanticInvalidForJsonSchema:  # it is not asked for
                shown = {}
            properties[name] = {**shown, "readOnly": True}
            written["required"] = [one for one in written.get("required", ()) if one != name]
        return written

    @override
    def is_subclass_schema(self, schema: Any) -> Any:
        return self.handle_invalid_for_json_schema(schema, "a class")

    @override
    def emit_warning(self, kind: Any, detail: str) -> None:
        # An alternative of a union that cannot be described: left out, the model would not be told of it. The other
        # warnings are about defaults that have no JSON form; they are not shown.
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)


def _own_docstring(cls: Any) -> str | None:
    """The docstring that somebody wrote for a class."""
    doc = cls.__dict__.get("__doc__") if isinstance(cls, type) else None
    made = doc is None or re.match(rf"{re.escape(cls.__name__)}\(.*\)( -> None)?$", doc, re.DOTALL)
    return None if made else doc


def _with_descriptions(written: Any, cls: Any) -> Any:
    """The schema of a class, with the descriptions of its fields from the docstrings of it and its bases."""
    properties = written.get("properties")
    if not properties or not isinstance(cls, type):
        return written
    for base in cls.__mro__:
        about = described(_own_docstring(base), properties)
        for name, text in about.names.items():
            properties[name].setdefault("description", text)
        if base is cls and about.names:
            written["description"] = about.text
            if not about.text:
                del written["description"]
    for name, field in getattr(cls, "model_fields", {}).items():
        text = next((one.documentation for one in field.metadata if isinstance(one, typing_extensions.Doc)), None)
        if text is not None and name in properties:
            properties[name].setdefault("description", text)
    return written


class _Tidying:
    """One schema being rewritten; definitions are met, named and written in the order of their first use."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._given: dict[str, Any] = schema.get("$defs", {})
        nodes = [schema, *self._given.values()]
        self._uses = Counter(
            self._target(ref)
            for node in nodes
            if "$ref" not in node or node is schema or len(node) > 1
            for ref in _references(node)
        )
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Any] = {}

    def result(self) -> dict[str, Any]:
        root = self._rewrite(self._root)
        if "$ref" in root:  # providers want the root itself to be the object
            root = dict(self._definitions[root["$ref"].removeprefix(PREFIX)])
        if self._definitions:
            root["$defs"] = self._definitions
        return root

    def _target(self, ref: str) -> str:
        """The definition behind a reference, past those that only refer to another (named aliases)."""
        key = ref.removeprefix(PREFIX)
        while self._given[key].keys() == {"$ref"}:
            key = self._given[key]["$ref"].removeprefix(PREFIX)
        return key

    def _rewrite(self, node: Any) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise EncodingError(f"in its JSON schema a value of type `{type(node).__name__}` stands for a schema")
        if "$ref" not in node:
            return self._keywords(node)
        key = self._target(node["$ref"])
        beside = self._keywords({name: value for name, value in node.items() if name != "$ref"})
        if self._uses[key] == 1 or _is_scalar(self._given[key]):  # used once: it cannot contain itself
            return _ordered({**self._rewrite(self._given[key]), **beside})
        reference = {"$ref": PREFIX + self._name(key)}
        # Providers refuse what stands beside a reference.
        return _ordered({"anyOf": [reference], **beside}) if beside else reference

    def _keywords(self, node: dict[str, Any]) -> dict[str, Any]:
        written: dict[str, Any] = {}
        words: list[str] = []
        node = _with_sorted_examples(_with_open_keys(self._with_named_keys(node), words))
        for name, value in node.items():
            check_keyword(name, value)
            if name in _WORDS or (name == "deprecated" and value):
                words += _said(name, value)
            if name in _DROPPED or name not in _KNOWN:
                continue
            if name in MAPS and isinstance(value, dict):
                value = {key: self._rewrite(part) for key, part in value.items()}
            elif name in SINGLE:
                value = self._rewrite(value)
            elif name in LISTS and isinstance(value, list):
                value = [self._rewrite(part) for part in value]
            # Exactly one of several is not known to OpenAI, and says the same where the alternatives are tagged.
            written["anyOf" if name == "oneOf" else name] = value
        if "properties" in written:
            written.setdefault("additionalProperties", False)
        if written.get("required") == []:
            del written["required"]
        if written.get("type") == "array" and not written.keys() & {"items", "prefixItems"}:
            written["items"] = {}
        if words:
            said = written.get("description", "").rstrip(".")
            written["description"] = f"{said} ({'; '.join(words)})" if said else "; ".join(words)
        return _ordered(written)

    def _with_named_keys(self, node: dict[str, Any]) -> dict[str, Any]:
        """The schema of a mapping whose keys are known, as that of an object that may lack some."""
        keys = self._enumerated(node.get("propertyNames"))
        if not keys or "properties" in node:
            return node
        values = node.get("additionalProperties", True)
        named = {"properties": dict.fromkeys(keys, {} if values is True else values), "additionalProperties": False}
        return {name: value for name, value in node.items() if name != "propertyNames"} | named

    def _enumerated(self, node: Any) -> list[str]:
        if not isinstance(node, dict):
            return []
        if "$ref" in node:
            return self._enumerated(self._given[self._target(node["$ref"])])
        keys = [node["const"]] if "const" in node else node.get("enum", [])
        # Providers refuse other names of properties; such keys are told in the description.
        return keys if all(isinstance(key, str) and _NAME.fullmatch(key) for key in keys) else []

    def _name(self, key: str) -> str:
        name = self._names.get(key)
        if name is None:
            wanted = re.sub(r"[^a-zA-Z0-9_]+", "_", self._given[key].get("title") or key).strip("_") or "Type"
            taken, number = set(self._names.values()), 1
            name = wanted
            while name in taken:
                number += 1
                name = f"{wanted}_{number}"
            self._names[key] = name
            self._definitions[name] = None  # its place; the definition itself may refer to it
            self._definitions[name] = self._rewrite(self._given[key])
        return name


def _said(name: str, value: Any) -> list[str]:
    """What a keyword says, in words."""
    if name == "deprecated":
        return ["deprecated"]
    if any(True for _ in _references(value)):  # its definitions are not where a model could look them up
        return []
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return [_WORDS[name].format(text)]


def _with_open_keys(node: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The node with the schema of its values by itself, and what their keys match in words."""
    patterns = node.get("patternProperties")
    if not patterns:
        return node
    words += [f"the keys match the regular expression {' or '.join(patterns)}"]
    schemas = list(patterns.values())
    values = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {**node, "additionalProperties": node.get("additionalProperties") or values}


_SCALARS = ("string", "integer", "number", "boolean", "null")


def _with_sorted_examples(node: dict[str, Any]) -> dict[str, Any]:
    """The node with examples in an order that does not depend on the process, and without those of another kind."""
    examples = node.get("examples")
    if not isinstance(examples, list):
        return node
    if node.get("type") in _SCALARS:
        examples = [one for one in examples if not isinstance(one, list | dict)]
    examples = [_sorted_as(node, one) for one in examples]
    rest = {name: value for name, value in node.items() if name != "examples"}
    return {**rest, "examples": examples} if examples else rest


def _sorted_as(node: Any, value: Any) -> Any:
    """A JSON value of a schema, its sets sorted."""
    if not isinstance(node, dict):
        return value
    if isinstance(value, list):
        parts = [_sorted_as(node.get("items"), part) for part in value]
        return sort(parts) if node.get("uniqueItems") else parts
    if isinstance(value, dict):
        properties, further = node.get("properties", {}), node.get("additionalProperties")
        return {key: _sorted_as(properties.get(key, further), part) for key, part in value.items()}
    return value


def _is_scalar(node: dict[str, Any]) -> bool:
    return node.get("type") in ("string", "integer", "number", "boolean", "null") and "enum" not in node


def _parts(node: dict[str, Any]) -> Iterator[Any]:
    """The schemas directly inside a schema."""
    for name, value in node.items():
        if name in MAPS and isinstance(value, dict):
            yield from value.values()
        elif name in SINGLE:
            yield value
        elif name in LISTS and isinstance(value, list):
            yield from value


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for part in _parts(node):
            yield from _references(part)


def _ordered(node: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(node.items(), key=lambda item: _PLACE.get(item[0], len(_FIRST))))
