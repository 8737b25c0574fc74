"""One pydantic adapter for each type, and the cache that holds what is derived from a type.

The adapter is the definition of a type's form on the wire: schema, decoding and encoding are all read from it.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAliasType

import pydantic
import typing_extensions

from effectful_agents.errors import EncodingError

__all__ = [
    "Encodable",
    "TypeCache",
    "new_adapter",
    "no_form",
    "object_adapter",
    "plain_type",
    "type_adapter",
    "type_name",
    "without_addresses",
]

type Encodable[T] = Annotated[T, "encoded"]
"""A value of T that crosses the wire. `Encodable[int]` is an `int` to Python and to a type checker."""


class TypeCache[V]:
    """What `build` makes of a type, made once.

    Python's own equality of types is too coarse for a key: `int | str == str | int`, though their schemas differ. So
    a type is looked up by its identity, then by its structure in the order in which it is written. Both tables are
    bounded: what is derived from a class holds the class, so a weak table would never let go of a class made in a
    function.

    Args:
        build: Makes the value; an exception is not remembered.
        size: How many types are kept; beyond it the oldest is forgotten, and made again when it is needed.
    """

    __slots__ = ("_build", "_by_identity", "_by_structure", "_size")

    def __init__(self, build: Callable[[Any], V], size: int = 1024) -> None:
        self._build = build
        self._size = size
        # The entries hold the type itself: while one is there, no other object can have the identities in its key.
        self._by_identity: dict[int, tuple[Any, V]] = {}
        self._by_structure: dict[Any, tuple[Any, V]] = {}

    def __call__(self, tp: Any) -> V:
        entry = self._by_identity.get(id(tp))
        if entry is not None and entry[0] is tp:
            return entry[1]
        key = _structure(tp)
        found = self._by_structure.get(key)
        if found is None:
            found = self._keep(self._by_structure, key, (tp, self._build(tp)))
        return self._keep(self._by_identity, id(tp), (tp, found[1]))[1]

    def _keep(self, table: dict[Any, tuple[Any, V]], key: Any, entry: tuple[Any, V]) -> tuple[Any, V]:
        while len(table) >= self._size:
            table.pop(next(iter(table), None), None)
        table[key] = entry
        return entry


def _structure(tp: Any) -> Any:
    """A key for a type: equal for two types only if they are written alike, the order of alternatives included."""
    if isinstance(tp, list):  # the parameters of a Callable
        return tuple(map(_structure, tp))
    origin = typing.get_origin(tp)
    if origin is None:
        return id(tp)
    if origin is Literal:
        return (Literal, *((type(value), value) for value in typing.get_args(tp)))
    if origin is Annotated:
        # Metadata need not be hashable, and 1 equals True.
        return (Annotated, _structure(tp.__origin__), *map(id, tp.__metadata__))
    return (id(origin), *map(_structure, typing.get_args(tp)))


def plain_type(tp: Any) -> Any:
    """A type without the names and metadata around it: `str` for `Encodable[Annotated[str, MaxLen(3)]]`."""
    while True:
        origin = typing.get_origin(tp)
        if isinstance(tp, TypeAliasType):
            tp = tp.__value__
        elif isinstance(origin, TypeAliasType):
            tp = origin.__value__[typing.get_args(tp)]
        elif origin is Annotated:
            tp = tp.__origin__
        elif isinstance(tp, typing.NewType):
            tp = tp.__supertype__
        else:
            return tp


def type_name(tp: Any) -> str:
    """A type as a person writes it, the same in every process.

    >>> type_name(dict[str, int | None])
    'dict[str, int | None]'
    """
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if tp is None or tp is type(None):
        return "None"
    if origin is Annotated:
        return type_name(tp.__origin__)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_name, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal_name, arguments))}]"
    if origin is not None:
        return f"{type_name(origin)}[{', '.join(map(type_name, arguments))}]" if arguments else type_name(origin)
    if isinstance(tp, list):
        return f"[{', '.join(map(type_name, tp))}]"
    if isinstance(tp, str):
        return tp
    name = getattr(tp, "__qualname__", None) or getattr(tp, "__name__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else without_addresses(str(tp))


def _literal_name(value: Any) -> str:
    # An enum member's own repr may hold anything.
    return repr(value) if type(value) in (str, int, bool, bytes, type(None)) else str(value)


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")


def without_addresses(text: str) -> str:
    """A text without the addresses that Python's default `repr` puts in."""
    return _ADDRESS.sub("", text)


def type_adapter(tp: Any) -> pydantic.TypeAdapter[Any]:
    """The adapter of a type, made at its first use.

    Raises:
        EncodingError: Pydantic cannot describe the type; the message names it and says why.

    >>> type_adapter(list[int]).validate_json('[1, "2"]')
    [1, 2]
    """
    return _adapters(tp)


def new_adapter(tp: Any) -> pydantic.TypeAdapter[Any]:
    """An adapter that is not kept, for a type that its caller has just made; otherwise as `type_adapter`."""
    try:
        adapter = pydantic.TypeAdapter(tp)
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True)
    except Exception as error:  # a type may bring its own schema, whose code can raise anything
        raise no_form(tp, error) from error
    return adapter


_adapters = TypeCache(new_adapter)


def object_adapter(name: str, fields: dict[str, Any], **further: Any) -> pydantic.TypeAdapter[Any]:
    """The adapter of a JSON object with these properties: closed, unless `extra_items` types further ones."""
    # Keys of a TypedDict may have any name; fields of a model may not.
    make: Any = typing_extensions.TypedDict
    return new_adapter(make(name, fields, **(further or {"closed": True})))


def no_form(tp: Any, error: Exception) -> EncodingError:
    """The error for a type that cannot be described."""
    reason = error.message if isinstance(error, pydantic.errors.PydanticErrorMixin) else str(error)
    unknown = re.match(r"Unable to generate pydantic-core schema for (.*?)\. Set `arbitrary", reason, re.DOTALL)
    if unknown:
        reason = f"nothing says how a value of {_bare(unknown[1])} is written"
    return EncodingError(f"`{type_name(tp)}` has no form on the wire: {without_addresses(reason.splitlines()[0])}")


def _bare(class_repr: str) -> str:
    match = re.fullmatch(r"<class '(.*)'>", class_repr)
    return f"`{(match[1] if match else class_repr).rpartition('<locals>.')[2]}`"
