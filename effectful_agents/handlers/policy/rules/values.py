"""Looking into arguments: what is in a value, without running code of the value's."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import pydantic
import pydantic_core

from effectful_agents.runtime import ObjectInterpretation
from effectful_agents.types import Agent, Tool
from effectful_agents.types.kinds import attributes_of, bases_of, is_a, name_of_type, names_in

__all__ = ["CONTAINERS", "NotUnderstood", "exact", "parts", "spread", "text_of"]

CONTAINERS = (list, tuple, set, frozenset)
"""What is looked into and made again, besides `dict`: only these classes, and none derived from them."""

_URLS = (pydantic.AnyUrl, pydantic.AnyHttpUrl, pydantic.HttpUrl, pydantic_core.Url)


class NotUnderstood(Exception):
    """A value holds something that cannot be looked into."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"a value of the class `{name_of_type(type(value))}` cannot be looked into")


def text_of(value: Any) -> str | None:
    """The text that a value is, whatever a class derived from `str` says it is; None: it is none."""
    if is_a(value, str):
        return str.__str__(value)
    return str(value) if type(value) in _URLS else None


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value holds, each part with its name, or an empty one; nothing, if it holds nothing.

    Raises:
        NotUnderstood: It is read once only, or by functions of its own: a generator, a mapping of another class.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Mail:
    ...     to: str
    >>> list(parts(Mail("ann"))), list(parts({"a": 1})), list(parts(3))
    ([('to', 'ann')], [('', 'a'), ('a', 1)], [])
    """
    kind = type(value)
    if kind in CONTAINERS:
        yield from (("", one) for one in value)
    elif kind is dict:
        for key, one in value.items():
            yield "", key
            yield key if type(key) is str else "", one
    elif is_a(value, enum.Enum):
        yield "", object.__getattribute__(value, "_value_")
    elif is_a(value, tuple) and is_a(names_in(kind).get("_fields"), tuple):
        yield from zip(names_in(kind)["_fields"], tuple.__iter__(value), strict=False)
    elif not is_a(value, *_WITHOUT_PARTS):
        if is_a(value, Iterator, Mapping, Sequence, Set, Iterable) and (
            is_a(value, Iterator, Mapping) or not is_a(value, pydantic.BaseModel)
        ):
            raise NotUnderstood(value)
        yield from _attributes(value)


_WITHOUT_PARTS = (
    *(str, bytes, bytearray, memoryview, range, type, Tool, Agent, ObjectInterpretation),
    *(types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType),
)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from attributes_of(value).items()
    for base in bases_of(type(value)):
        for name, slot in names_in(base).items():
            if is_a(slot, types.MemberDescriptorType):
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # it was not set
                    continue


def exact(value: Any) -> Any:
    """A value in whose plain parts no class derived from `str`, `int` or a container answers for itself."""
    if is_a(value, enum.Enum, bool):
        return value
    for kind, plain in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if is_a(value, kind):
            return plain(value)
    if is_a(value, dict):
        return {exact(key): exact(one) for key, one in dict.items(value)}
    if is_a(value, list):
        return [exact(one) for one in list.__iter__(value)]
    return tuple(exact(one) for one in value) if type(value) is tuple else value


def spread(tool: Tool[..., Any] | None, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments by the names that the model knows: those that a tool takes with `**` are among the others."""
    parameters = {} if tool is None else tool.__signature__.parameters
    rest = [name for name, parameter in parameters.items() if parameter.kind is parameter.VAR_KEYWORD]
    if not rest or type(arguments.get(rest[0])) is not dict:
        return arguments
    return {**{name: value for name, value in arguments.items() if name != rest[0]}, **arguments[rest[0]]}
