"""What pydantic makes too little of is written otherwise before it sees it."""

from __future__ import annotations

import collections
import collections.abc
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import pydantic
from pydantic_core import core_schema
from typing_extensions import Doc

__all__ = ["OwnField", "own_fields", "substituted"]

_LISTS = (collections.abc.Collection, collections.abc.Reversible, collections.abc.Container)
_ONCE = (collections.abc.Iterator, collections.abc.Generator)


class _ReadOnce:
    """An iterator: it is read as a list, whose parts are checked at once."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(iter, handler(source))


class _DefaultDict:
    """A dictionary with a factory: the class of its values, where it can make one of nothing."""

    def __init__(self, value: Any) -> None:
        kind = typing.get_origin(value) or value
        self.factory = kind if isinstance(kind, type) and _makes_one(kind) else None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(
            lambda items: collections.defaultdict(self.factory, items), handler(source)
        )


def _makes_one(kind: type) -> bool:
    try:
        kind()
    except Exception:
        return False
    return True


def _annotated(tp: Any, *metadata: Any) -> Any:
    return Annotated[tp, *metadata]


def substituted(tp: Any, of_class: Callable[[Any], Any] = lambda kind: kind) -> Any:
    """The annotation with those parts replaced of which pydantic knows the class only, or the wrong thing.

    An annotation without such parts is returned as it is, the very same object.

    Args:
        tp: The annotation.
        of_class: What is put in the place of classes.

    >>> substituted(dict[str, collections.abc.Collection[int]])
    dict[str, list[int]]
    """
    origin = typing.get_origin(tp)
    if origin is None:
        return list[Any] if tp in _LISTS else Annotated[list[Any], _ReadOnce()] if tp in _ONCE else of_class(tp)
    if origin in (typing.Final, typing.ClassVar):
        return substituted(typing.get_args(tp)[0], of_class)
    if origin is Annotated:
        inner = substituted(tp.__origin__, of_class)
        docs = [pydantic.Field(description=one.documentation) for one in tp.__metadata__ if isinstance(one, Doc)]
        return tp if inner is tp.__origin__ and not docs else _annotated(inner, *docs, *tp.__metadata__)
    if origin in (typing.Literal, collections.abc.Callable):
        return tp
    if isinstance(origin, typing.TypeAliasType):
        return of_class(tp)
    given = typing.get_args(tp)
    arguments = tuple(substituted(one, of_class) for one in given)
    if origin in _LISTS:
        return list.__class_getitem__(arguments[0])
    if origin is collections.defaultdict:
        return _annotated(dict.__class_getitem__(arguments), _DefaultDict(given[1]))
    if origin in _ONCE:
        return _annotated(list.__class_getitem__(arguments[0]), _ReadOnce())
    if all(new is old for new, old in zip(arguments, given, strict=True)):
        return tp
    if origin in (typing.Union, types.UnionType):
        return typing.Union[arguments]  # noqa: UP007
    return origin[arguments[0] if len(arguments) == 1 else arguments]


class OwnField(NamedTuple):
    """A field of a class of the attrs library.

    Attributes:
        alias: Its name in the constructor.
        type: Its annotation.
        optional: Whether the constructor does without it.
        default: Its default, as options of pydantic's schema of one; empty where only the constructor knows it.
    """

    alias: str
    type: Any
    optional: bool
    default: dict[str, Any]


def own_fields(cls: type) -> dict[str, OwnField] | None:
    """The fields of a class of the attrs library, by name; None for any other class."""
    if not hasattr(cls, "__attrs_attrs__"):
        return None
    import attrs  # noqa: PLC0415 - optional, and loaded already where there is such a class

    known: Any = cls
    attrs.resolve_types(known)
    result = {}
    for field in attrs.fields(known):
        default: Any = field.default
        shown = {} if default is attrs.NOTHING else {"default": default}
        if type(default).__name__ == "Factory":
            shown = {} if default.takes_self else {"default_factory": default.factory}
        if field.init:
            tp = Any if field.type is None else field.type
            result[field.name] = OwnField(field.alias or field.name, tp, default is not attrs.NOTHING, shown)
    return result
