"""Everything that follows from a type annotation, made once: the core schema, its validator, its writer.

There is one `Adapter` for a type, and from it follow schema, decoding and encoding.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import io
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Annotated, Any

import pydantic
import typing_extensions
from pydantic_core import CoreSchema, SchemaValidator

from effectful_agents.encoding import builtin as _builtin  # noqa: F401 - what it registers is there before all else
from effectful_agents.encoding.annotations import substituted
from effectful_agents.encoding.computed import ignoring_computed
from effectful_agents.encoding.forms import Refused, describe
from effectful_agents.encoding.functions import runs_code
from effectful_agents.encoding.names import TypeCache, type_name, without_addresses
from effectful_agents.encoding.registry import find
from effectful_agents.encoding.validation import for_validation
from effectful_agents.encoding.writers import Write, as_key, number, pairs_of, sort, unwritable
from effectful_agents.encoding.writing import compiled
from effectful_agents.errors import EncodingError
from effectful_agents.messages.text import safe_text
from effectful_agents.types.local_types import leave_names, names_beside

__all__ = ["Adapter", "Encodable", "new_adapter", "no_form", "object_adapter", "type_adapter", "write_anything"]

type Encodable[T] = Annotated[T, "encoded"]
"""A value of T that crosses the wire. `Encodable[int]` is an `int` to Python and to a type checker."""


class Adapter:
    """A type on the wire.

    Values can be written of more types than a model can be asked for: a part without a decoder is refused when the
    validator is first needed.

    Attributes:
        type: The annotation.
        core_schema: What pydantic is given.
        code: The paths of parts that a model writes as code, and what they are.
    """

    __slots__ = ("_refusals", "_validator", "_write", "code", "core_schema", "type")

    def __init__(self, tp: Any) -> None:
        form = describe(tp)
        _refuse_endless(tp, form.schema)
        self.type = tp
        self.core_schema: CoreSchema = form.schema
        self._refusals = form.refusals
        self.code = form.code
        self._validator: SchemaValidator | None = None
        self._write: Write | None = None

    def check(self) -> None:
        """Refuse a type of which a part cannot be asked for.

        Raises:
            EncodingError: The message has the path of the part.
        """
        if self._refusals:
            path, reason = self._refusals[0]
            raise Refused(type_name(self.type), path, reason)
        self.check_executor()

    def check_executor(self) -> None:
        """Refuse a type of which a part is code, where nothing runs it. That may change; anything else does not.

        Raises:
            EncodingError: The message has the path of the part.
        """
        if self.code and not runs_code():
            path, what = self.code[0]
            raise Refused(type_name(self.type), path, f"{what} {_NOTHING_RUNS}")

    @property
    def validator(self) -> SchemaValidator:
        """The validator of JSON.

        Raises:
            EncodingError: As `check`.
        """
        if self._validator is None:
            self.check()
            # Not the validators that classes keep of themselves: those know nothing of what was rewritten.
            self._validator = SchemaValidator(for_validation(ignoring_computed(self.core_schema)), _use_prebuilt=False)
        return self._validator

    @property
    def validate_json(self) -> Callable[..., Any]:
        """The validator's function for JSON text; it takes the text and `context`."""
        return self.validator.validate_json

    def validate_python(self, value: Any, *, context: Any = None) -> Any:
        """Validate a Python value, converting as pydantic does.

        Raises:
            pydantic.ValidationError: It does not fit.
        """
        return self.validator.validate_python(value, strict=False, context=context)

    @property
    def write(self) -> Write:
        """The function that writes values of the type."""
        if self._write is None:
            self._write = compiled(self.core_schema, write_anything)
        return self._write


_NOTHING_RUNS = (
    "is not written as JSON but as Python, and nothing here runs code that a model wrote; install an executor of "
    "`effectful_agents.handlers.execution`, or take a stack with one: `harness(eval_provider=…)`"
)


def type_adapter(tp: Any) -> Adapter:
    """The adapter of a type, made at its first use.

    Raises:
        EncodingError: Pydantic cannot read the annotation, or it never ends; the message names it and says why.

    >>> type_adapter(list[int]).validate_json("[1, 2]")
    [1, 2]
    """
    return _adapters(tp)


def new_adapter(tp: Any) -> Adapter:
    """An adapter that is not kept, for a type that its caller has just made; otherwise as `type_adapter`."""
    try:
        return Adapter(tp)
    except EncodingError:
        raise
    except Exception as error:  # a type may bring its own schema, whose code can raise anything
        raise no_form(tp, error) from error


_adapters = TypeCache(new_adapter)


def object_adapter(name: str, fields: dict[str, Any], *, optional: Collection[str] = (), **further: Any) -> Adapter:
    """The adapter of a JSON object with these properties: closed, unless `extra_items` types further ones.

    Args:
        name: Its name.
        fields: The types of the properties.
        optional: The names of those that may be left out.
        further: Options of the TypedDict.
    """
    # Keys of a TypedDict may have any name; fields of a model may not.
    make: Any = typing_extensions.TypedDict
    replaced = {key: substituted(tp) for key, tp in fields.items()}
    if "extra_items" in further:
        further["extra_items"] = substituted(further["extra_items"])
    made = make(name, replaced, **(further or {"closed": True}))
    # Not by `NotRequired[…]`, which gives `NotRequired[int | str]` for `str | int` where it has made that before.
    made.__optional_keys__ = made.__optional_keys__ | frozenset(optional)
    made.__required_keys__ = made.__required_keys__ - frozenset(optional)
    leave_names(made, names_beside(tuple.__class_getitem__((*fields.values(), *further.values()))))
    return new_adapter(made)


def no_form(tp: Any, error: Exception) -> EncodingError:
    """The error for a type that cannot be described."""
    reason = error.message if isinstance(error, pydantic.errors.PydanticErrorMixin) else str(error)
    unknown = re.match(r"Unable to generate pydantic-core schema for (.*?)\. Set `arbitrary", reason, re.DOTALL)
    if unknown:
        reason = f"nothing says how a value of {_bare(unknown[1])} is written"
    pattern = re.search(r"regex parse error:\n +(.+)\n(?:.*\n)*error: (.+)", reason)
    if pattern:
        reason = f"the pattern `{pattern[1]}` cannot be used: {pattern[2]}"
    first = next(iter(reason.splitlines()), "") or type(error).__name__
    return EncodingError(f"`{type_name(tp)}` has no form on the wire: {without_addresses(first)}")


def _bare(class_repr: str) -> str:
    match = re.fullmatch(r"<class '(.*)'>", class_repr)
    return f"`{(match[1] if match else class_repr).rpartition('<locals>.')[2]}`"


def _refuse_endless(tp: Any, schema: Any) -> None:
    """Refuse a name that leads back to itself before any JSON is read: `type Number = int | Number`."""
    leads = {one["ref"]: set(_next_names(one)) for one in schema.get("definitions", ())}
    while ended := [ref for ref, names in leads.items() if not names & leads.keys()]:
        for ref in ended:
            del leads[ref]
    if leads:
        raise EncodingError(
            f"`{type_name(tp)}` has no form on the wire: a type in it is an alternative of itself, which never ends; "
            "let it contain itself in a list or an object, or leave it out"
        )


def _next_names(node: Any) -> Iterator[str]:
    """The references that are followed for the very JSON that the node reads, and not for a part of it."""
    if isinstance(node, dict) and isinstance(node.get("type"), str):
        if node["type"] == "definition-ref":
            yield node["schema_ref"]
        elif node["type"] in _SAME_JSON or node.get("root_model"):
            for key in ("schema", "choices", "steps", "json_schema", "python_schema", "lax_schema", "strict_schema"):
                yield from _next_names(node.get(key))
    elif isinstance(node, dict | list | tuple):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _next_names(part)


_SAME_JSON = frozenset({"union", "tagged-union", "nullable", "default", "chain", "json-or-python", "lax-or-strict",
                        "function-after", "function-before", "function-wrap", "custom-error"})  # fmt: skip

# --- values of which no annotation says how they are written ----------------------------------------------------------


def write_anything(value: Any) -> Any:
    """JSON of a value, by the type that it has.

    Raises:
        EncodingError: There is none.
    """
    kind = type(value)
    if kind is str:
        return safe_text(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return number(value)
    if kind is list or kind is tuple:
        return [write_anything(part) for part in value]
    if kind is dict:
        return _write_dict(value)
    return _writers(kind)(value)


def _write_dict(value: Mapping[Any, Any]) -> Any:
    written = {}
    for key, part in value.items():
        if type(key) is str:
            written[safe_text(key)] = write_anything(part)
            continue
        form = write_anything(key)
        if isinstance(form, list | dict):
            return pairs_of(
                [{"key": write_anything(key), "value": write_anything(part)} for key, part in value.items()]
            )
        written["None" if form is None else as_key(form, key)] = write_anything(part)
    if len(written) < len(value):
        raise unwritable(value, "several of its keys are the same text in JSON")
    return written


def _writer_of(kind: type) -> Write:
    """The function that writes instances of a class."""
    if issubclass(kind, type) or kind in (object, types.EllipsisType):
        return _refuse
    if find(kind) is None and not issubclass(kind, enum.Enum) and not hasattr(kind, "__get_pydantic_core_schema__"):
        for base, make in _PLAIN.items():
            if issubclass(kind, base) and not hasattr(kind, "_fields") and not dataclasses.is_dataclass(kind):
                return make
    try:
        adapter = type_adapter(kind)
    except EncodingError:
        return _refuse
    schema = adapter.core_schema
    writes_nothing = (
        schema["type"] in ("is-instance", "callable", "any", "function-plain") and "serialization" not in schema
    )
    return _refuse if writes_nothing else adapter.write


_PLAIN: dict[type, Write] = {
    str: lambda value: safe_text(str.__str__(value)),
    int: int,
    float: number,
    Mapping: _write_dict,
    Set: lambda value: sort([write_anything(part) for part in value]),
    list: lambda value: [write_anything(part) for part in value],
    tuple: lambda value: [write_anything(part) for part in value],
    collections.deque: lambda value: [write_anything(part) for part in value],
}


def _refuse(value: Any) -> Any:
    if isinstance(value, Iterator | io.IOBase):
        raise unwritable(value, "it can be read only once. Pass a list")
    raise unwritable(value)


_writers = TypeCache(_writer_of)
