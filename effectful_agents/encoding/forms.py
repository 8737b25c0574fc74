"""The form of a type on the wire: pydantic's core schema, rewritten.

Pydantic reads the annotation: fields, generics, references forward, constraints. What it makes of it is a tree of plain
dictionaries, the core schema; from that come validation and the JSON schema. Between the two, `describe` goes over the
tree and puts the forms of this package in the place of pydantic's where those lose or guess something, everywhere at
once: in containers, dataclasses, typed dictionaries and models.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import functools
import typing
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import pydantic
from pydantic_core import CoreSchema, core_schema

from effectful_agents.encoding import objects
from effectful_agents.encoding.annotations import (
    QUALIFIERS,
    NoTypeError,
    own_fields,
    refuse_no_type,
    substituted,
)
from effectful_agents.encoding.fields import SUBSTITUTE, Copies, with_substituted
from effectful_agents.encoding.functions import ANY_FUNCTION
from effectful_agents.encoding.mappings import made_of_mapping, mapping
from effectful_agents.encoding.marks import ARGUMENTS, CODEC, MARK, Writer
from effectful_agents.encoding.moments import told_apart
from effectful_agents.encoding.names import full_name
from effectful_agents.encoding.once import run_once
from effectful_agents.encoding.recognized import VALIDATORS
from effectful_agents.encoding.registry import Codec, find
from effectful_agents.encoding.scalars import REWRITTEN
from effectful_agents.encoding.serializers import with_serializer
from effectful_agents.encoding.shapes import read_as
from effectful_agents.encoding.trees import NO_SCHEMAS
from effectful_agents.errors import EncodingError
from effectful_agents.types.local_types import names_beside, write_types

__all__ = ["Builder", "Form", "Refused", "describe"]


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
        code: The paths of parts that a model writes as code, and what they are.
    """

    schema: CoreSchema
    refusals: list[tuple[str, str]]
    code: list[tuple[str, str]]


def describe(tp: Any) -> Form:
    """Describe a type.

    Raises:
        Exception: Pydantic cannot; the type's own code may raise anything.
    """
    builder = Builder()
    schema = builder.annotation(tp, "")
    definitions = [*builder.definitions.values()]
    whole = core_schema.definitions_schema(schema, definitions) if definitions else schema
    return Form(whole, builder.refusals, builder.code)


# Of unknown classes pydantic makes a test for instances, which is found here and refused with its path.
_CONFIG = pydantic.ConfigDict(arbitrary_types_allowed=True)

_ITEMS = {"items_schema": "[]", "values_schema": "{}", "keys_schema": "{key}", "extras_schema": "{}"}


def _core_schema(tp: Any) -> Any:
    write_types(tp)
    adapter = pydantic.TypeAdapter(tp, config=_CONFIG)
    if not adapter.pydantic_complete:
        adapter.rebuild(raise_errors=True, _types_namespace=names_beside(tp) or None)
    return adapter.core_schema


class Builder:
    """Rewrites the core schema of one type.

    Attributes:
        definitions: The rewritten schemas that are referred to, by reference.
        refusals: The paths of parts without a form, and the reasons.
        code: The paths of parts that are written as code, and what they are.
        given: The definitions as pydantic gave them.
        kept: Types whose identities stand in references: as long as they are here, no other object can have them.
    """

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.refusals: list[tuple[str, str]] = []
        self.code: list[tuple[str, str]] = []
        self.given: dict[str, Any] = {}
        self._copies = Copies()
        self.kept: list[Any] = []
        self._quiet = 0  # above 0 in a branch that is only for Python values

    def annotation(self, tp: Any, path: str) -> Any:
        """The core schema of an annotation, which stands at a path."""
        try:
            if typing.get_origin(tp) in QUALIFIERS:
                refuse_no_type(tp)
            return self._annotation(tp, path)
        except NoTypeError as error:
            self._refuse(path, str(error))
            return core_schema.any_schema()

    def _annotation(self, tp: Any, path: str) -> Any:
        # Inside a list: a configuration beside a class that may have its own is refused.
        try:
            given = _core_schema(list.__class_getitem__(substituted(tp)))
        except pydantic.errors.PydanticSchemaGenerationError:
            copied = substituted(tp, self._copies.of)
            if not self._copies.changed:
                raise
            given = _core_schema(list.__class_getitem__(copied))
        if given["type"] == "definitions":
            self.given.update((one["ref"], one) for one in given["definitions"])
            given = given["schema"]
        return self.rewrite(given["items_schema"], path)

    def rewrite(self, node: Any, path: str) -> Any:
        """A core schema of pydantic's, rewritten."""
        if node["type"] == "definition-ref":
            return self._reference(node, path)
        if node["type"] == SUBSTITUTE:
            return self.annotation(node["annotation"], path)
        ref = node.get("ref")
        if ref is None:
            return self._kept_of(node, path)
        if ref not in self.definitions:
            self.definitions[ref] = None  # its place: it may contain itself
            quiet, self._quiet = self._quiet, 0  # it may be referred to from elsewhere as well
            self.definitions[ref] = {**self._kept_of(node, path), "ref": ref}
            self._quiet = quiet
        return core_schema.definition_reference_schema(ref)

    def _reference(self, node: Any, path: str) -> Any:
        ref, passed = node["schema_ref"], set()
        # A named alias of something that is referred to itself has no schema of its own.
        while ref not in passed and self.given[ref]["type"] == "definition-ref":
            passed.add(ref)
            ref = self.given[ref]["schema_ref"]
        if ref not in self.definitions:
            self.rewrite(self.given[ref], path)
        return {**node, "schema_ref": ref}

    def _kept_of(self, node: Any, path: str) -> Any:
        """The form of a node, with what `Annotated` and methods of classes say about it."""
        return with_serializer(node, _with_words(node, self._form(node, path)))

    def _form(self, node: Any, path: str) -> Any:
        if MARK in node.get("metadata", {}):
            return self.parts(node, path)
        if node.get("cls") in self._copies.originals:
            node = self._original(node)
        cls = node.get("cls")
        found = node.get("metadata", {}).get(CODEC) or (find(cls) if isinstance(cls, type) else None)
        if found is not None:
            return self._codec(found, cls, node, path)
        rewritten = REWRITTEN.get(node["type"])
        if rewritten is not None:
            return rewritten(node)
        special = getattr(self, "_of_" + node["type"].replace("-", "_"), None)
        return self.parts(node, path) if special is None else special(node, path)

    def _original(self, node: Any) -> Any:
        """The core schema of a class that pydantic was given a copy of."""
        cls = self._copies.originals[node["cls"]]
        if node["type"] != "dataclass":
            return {**node, "cls": cls}
        return {**node, "cls": cls, "slots": "__slots__" in vars(cls), "post_init": hasattr(cls, "__post_init__")}

    def parts(self, node: Any, path: str) -> Any:
        """The node with its parts rewritten."""
        return {key: value if key in NO_SCHEMAS else self._part(key, value, path) for key, value in node.items()}

    def _part(self, key: str, value: Any, path: str) -> Any:
        if key == "computed_fields":
            with self.quietly():  # they are shown, and never asked for
                return [{**one, "return_schema": self.rewrite(one["return_schema"], path)} for one in value]
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                name = value.get("name") if value["type"].endswith("-field") else None
                return self.rewrite(value, path + (f".{name}" if name else _ITEMS.get(key, "")))
            named = key == "fields"
            return {
                name: self.rewrite(part, f"{path}.{name}" if named else path) if isinstance(part, dict) else part
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [self._one(key, number, part, path, len(value)) for number, part in enumerate(value)]
        return value

    def _one(self, key: str, number: int, part: Any, path: str, count: int) -> Any:
        if isinstance(part, tuple):  # an alternative with a label
            return (self.rewrite(part[0], path), part[1])
        if not isinstance(part, dict):
            return part
        if key == "items_schema":
            path += f"[{number}]" if count > 1 else "[]"
        elif part["type"].endswith("-field"):
            path += f".{part['name']}"
        return self.rewrite(part, path)

    @contextlib.contextmanager
    def quietly(self) -> Generator[None]:
        """Rewrite a branch that is only for Python values: nothing in it is refused."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def _refuse(self, path: str, reason: str) -> None:
        if not self._quiet:
            self.refusals.append((path, reason))

    # --- codecs ---

    def _codec(self, codec: Codec, cls: Any, node: Any, path: str) -> Any:
        form = self.annotation(codec.form, path)
        decode = codec.decoder()
        if decode is None:
            self._refuse(path, f"{full_name(cls)} can be shown to a model, but not written by one")
            decode = _unreadable
        if codec.runs_code:
            decode = run_once(decode)
            if not self._quiet:
                self.code.append((path, "a function" if node["type"] == "callable" else full_name(cls)))
        if node["type"] == "callable":
            return self.written(Callable, form, decode, codec.encode, otherwise=core_schema.callable_schema())
        return self.written(cls, form, decode, codec.encode, otherwise=core_schema.is_instance_schema(cls))

    def written(
        self,
        cls: Any,
        form: Any,
        decode: Callable[[Any, Any], Any],
        encode: Callable[[Any], Any],
        otherwise: Any,
        *,
        exact: bool = False,
    ) -> Any:
        """A core schema of values that are read from, and written to, another form."""

        def read(value: Any, info: core_schema.ValidationInfo) -> Any:
            return decode(value, info.context)

        json_schema = core_schema.with_info_after_validator_function(
            read,
            form,
            metadata={MARK: Writer(cls, encode, inner=True, exact=exact)},
            serialization=core_schema.plain_serializer_function_ser_schema(encode, return_schema=form),
        )
        python_schema = core_schema.union_schema([otherwise, json_schema], mode="left_to_right")
        return core_schema.json_or_python_schema(json_schema, python_schema)

    def _of_is_instance(self, node: Any, path: str) -> Any:
        cls = node["cls"]
        if self._quiet or cls is collections.abc.Hashable:
            return node
        tp = node.get("metadata", {}).get(ARGUMENTS, cls)
        if (fields := own_fields(tp)) is not None:
            return objects.attrs_class(self, tp, fields, path)
        if cls is type:
            self._refuse(path, _NO_CLASSES)
        else:
            self._refuse(
                path, f"{full_name(cls)} has no encoding; register one with `effectful_agents.encoding.register`"
            )
        return node

    def _of_callable(self, node: Any, path: str) -> Any:
        return self._codec(ANY_FUNCTION, Callable, node, path)

    def _of_is_subclass(self, node: Any, path: str) -> Any:
        self._refuse(path, _NO_CLASSES)
        return node

    # --- containers and branches ---

    def _of_generator(self, node: Any, path: str) -> Any:
        # Pydantic's generator would check the parts when they are asked for, too late to tell the model.
        return {**self.parts(node, path), "type": "list"}

    def _of_dict(self, node: Any, path: str) -> Any:
        return mapping(self, node, path)

    def _of_counter(self, node: Any, path: str) -> Any:
        return made_of_mapping(self, {**node, "values_schema": {"type": "int"}}, path, collections.Counter)

    def _of_ordered_dict(self, node: Any, path: str) -> Any:
        return made_of_mapping(self, node, path, collections.OrderedDict)

    def _of_function_plain(self, node: Any, path: str) -> Any:
        function = node["function"]["function"]
        ours = getattr(function, "__module__", "").startswith("pydantic.")
        cls, codec = VALIDATORS.get(function.__name__ if ours else "", (None, None))
        return self.parts(node, path) if codec is None else self._codec(codec, cls, node, path)

    def _of_json_or_python(self, node: Any, path: str) -> Any:
        written = self.rewrite(node["json_schema"], path)
        with self.quietly():
            otherwise = self.rewrite(node["python_schema"], path)
        return {**node, "json_schema": written, "python_schema": otherwise}

    def _of_lax_or_strict(self, node: Any, path: str) -> Any:
        made = getattr(node["lax_schema"].get("function", {}).get("function"), "keywords", {})
        if "default_default_factory" in made:
            kind = functools.partial(collections.defaultdict, made["default_default_factory"])
            return made_of_mapping(self, node["lax_schema"]["schema"], path, kind)
        # Both branches read the same JSON; one is enough to find what is to be refused.
        with self.quietly():
            lax = self.rewrite(node["lax_schema"], path)
        return {**node, "strict_schema": self.rewrite(node["strict_schema"], path), "lax_schema": lax}

    def _of_function_before(self, node: Any, path: str) -> Any:
        inner = node["schema"]
        if inner["type"] in ("int", "float", "bool", "str"):  # what the user's function makes of the JSON may be lax
            node = {**node, "schema": {"strict": False, **inner}}
        return self.parts(node, path)

    _of_function_wrap = _of_function_before

    def _of_union(self, node: Any, path: str) -> Any:
        return self.parts(told_apart(node, self.given), path)

    # --- objects ---

    def _of_model_field(self, node: Any, path: str) -> Any:
        if read_as("", node) is None:
            self._refuse(path, "an `AliasPath` alone is no key that a model could write; add one with `AliasChoices`")
        return self.parts(node, path)

    _of_dataclass_field = _of_typed_dict_field = _of_model_field

    def _of_typed_dict(self, node: Any, path: str) -> Any:
        return objects.typed_dict(self, node, path)

    def _of_dataclass(self, node: Any, path: str) -> Any:
        return objects.dataclass(self, node, path)

    def _of_model(self, node: Any, path: str) -> Any:
        return objects.model(self, node, path)

    def _of_named_tuple(self, node: Any, path: str) -> Any:
        return self.parts(with_substituted(node, node["cls"]), path)


_NO_CLASSES = "`type` has no encoding: a class is no value that a model could write"


def _with_words(node: Any, form: Any) -> Any:
    """A form with what `Annotated` says about the JSON schema of the node that it replaces: a description, mostly."""
    metadata, own = node.get("metadata", {}), form.get("metadata", {})
    words, functions = metadata.get("pydantic_js_updates"), metadata.get("pydantic_js_annotation_functions", ())
    if own is metadata or not (words or functions):
        return form
    said = [*own.get("pydantic_js_functions", ()), *functions]
    if words:
        said.append(lambda core, handler: {**handler(core), **words})
    return {**form, "metadata": {**own, "pydantic_js_functions": said}}


def _unreadable(value: Any, _: Any) -> Any:
    raise ValueError("it cannot be written by a model")
