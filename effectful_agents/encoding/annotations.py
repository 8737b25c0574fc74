"""What pydantic makes too little of is written otherwise before it sees it."""

from __future__ import annotations

import collections
import collections.abc
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import pydantic
import typing_extensions
from pydantic_core import core_schema
from typing_extensions import Doc

from effectful_agents.encoding.functions import FunctionOf
from effectful_agents.encoding.marks import ARGUMENTS
from effectful_agents.errors import EncodingError

__all__ = ["QUALIFIERS", "NoTypeError", "OfAttrs", "OwnField", "own_fields", "refuse_no_type", "substituted"]

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


class _Variadic:
    """A tuple, of whose parts one stands for any number of its kind."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "variadic_item_index": self.place}


class NoTypeError(EncodingError):
    """An annotation is, or contains, something that is no type."""


_WORDS: dict[Any, str] = {
    any: "`any` is a function, and no type; the type is `typing.Any`",
    callable: "`callable` is a function, and no type; the type is `collections.abc.Callable`",
    typing.Never: "no value has the type `Never`, so that a model could write none",
    typing.NoReturn: "no value has the type `NoReturn`, so that a model could write none",
    ...: "`...` is no type; it stands in `tuple[int, ...]`",
    typing.Union: "`Union` alone says nothing; write its alternatives: `int | str`",
    typing.Optional: "`Optional` alone says nothing; write `int | None`",
    typing.Literal: "`Literal` alone says nothing; write its values: `Literal[1, 2]`",
    typing.Generic: "`Generic` is no type of values; name a class that is one",
    typing.Protocol: "`Protocol` is no type of values; name a class that is one",
}
QUALIFIERS = (typing.Required, typing.NotRequired, typing_extensions.ReadOnly)
"""What is said of a field of a TypedDict around its type."""
_VALUES = (list, tuple, dict, set, int, float, complex, bytes, types.FunctionType, types.BuiltinFunctionType,
           types.MethodType, types.ModuleType)  # fmt: skip


def refuse_no_type(tp: Any) -> None:
    """Refuse what stands in the place of a type, and what pydantic would take for "anything".

    Raises:
        NoTypeError: The message says what to write.
    """
    words = _WORDS.get(tp) if isinstance(tp, collections.abc.Hashable) else None
    if words is not None:
        raise NoTypeError(words)
    qualifier = typing.get_origin(tp) or tp
    if isinstance(qualifier, collections.abc.Hashable) and qualifier in QUALIFIERS:
        raise NoTypeError(f"`{qualifier.__name__}` is for the fields of a `TypedDict`")
    if isinstance(tp, list | tuple):
        kind = type(tp).__name__
        raise NoTypeError(f"a {kind} is no type; write `{kind}[int]` for a {kind} of numbers")
    if isinstance(tp, _VALUES) or tp is NotImplemented or isinstance(tp, typing.ParamSpec):
        name = getattr(tp, "__name__", repr(tp))
        raise NoTypeError(f"`{name[:60]}` is a value of type `{type(tp).__name__}`, and no type")


class _Apart:
    """Tells an annotation from others, which `typing` may call equal and would give in its place: `str | int`."""


def _annotated(tp: Any, *metadata: Any) -> Any:
    return Annotated[tp, *metadata, _Apart()]


def _union(arms: tuple[Any, ...]) -> Any:
    try:
        return functools.reduce(operator.or_, arms)  # which remembers nothing
    except TypeError:  # a text, or an older kind of type
        return typing.Union[arms]  # noqa: UP007


def substituted(tp: Any, of_class: Callable[[Any], Any] = lambda kind: kind) -> Any:
    """The annotation with those parts replaced of which pydantic knows the class only, or the wrong thing.

    An annotation without such parts is returned as it is, the very same object.

    Args:
        tp: The annotation.
        of_class: What is put in the place of classes.

    Raises:
        NoTypeError: A part of it is no type.

    >>> substituted(dict[str, collections.abc.Collection[int]])
    dict[str, list[int]]
    """
    origin = typing.get_origin(tp)
    if origin in (typing.TypeGuard, typing_extensions.TypeIs, typing.Concatenate):
        raise NoTypeError(f"`{origin.__name__}` is no type of values")
    if origin is None or origin is tp:
        refuse_no_type(tp)
        if tp is typing.LiteralString:
            return str
        return list[Any] if tp in _LISTS else Annotated[list[Any], _ReadOnce()] if tp in _ONCE else of_class(tp)
    if origin in (typing.Final, typing.ClassVar):
        return substituted(typing.get_args(tp)[0], of_class)
    if origin is Annotated:
        inner = substituted(tp.__origin__, of_class)
        docs = [pydantic.Field(description=one.documentation) for one in tp.__metadata__ if isinstance(one, Doc)]
        if inner is tp.__origin__ and not docs:
            return tp
        own = inner.__metadata__ if typing.get_origin(inner) is Annotated else ()
        # What says which type it is comes in front; what makes something else of a list behind the limits of the list.
        first = [one for one in own if isinstance(one, FunctionOf | OfAttrs)]
        last = [one for one in own if one not in first]
        return _annotated(inner.__origin__ if own else inner, *first, *docs, *tp.__metadata__, *last)
    if origin is typing.Literal:
        return tp
    if origin is collections.abc.Callable:
        return _annotated(tp, FunctionOf(tp))
    if isinstance(origin, typing.TypeAliasType):
        return of_class(tp)
    if hasattr(origin, "__attrs_attrs__"):
        return _annotated(origin, OfAttrs(tp))
    if origin is tuple and any(_unpacked_tuple(one) is not None for one in typing.get_args(tp)):
        parts, repeated = _flat(tp)
        flat = substituted(tuple.__class_getitem__(tuple(parts)), of_class)
        return flat if repeated is None else _annotated(flat, _Variadic(repeated))
    given = typing.get_args(tp)
    if not given and origin is not tuple:  # `typing.Iterator` and the like
        return substituted(origin, of_class)
    # What is no type of its own: the dots of a tuple, the parameters that a generic class takes for a function's.
    of_function = any(isinstance(one, typing.ParamSpec) for one in _parameters(origin))

    def is_bare(one: Any) -> bool:
        return (isinstance(one, list | tuple) or one is ...) if of_function else one is ... and origin is tuple

    arguments = tuple(one if is_bare(one) else substituted(one, of_class) for one in given)
    if origin in _LISTS:
        return list.__class_getitem__(arguments[0])
    if origin is collections.defaultdict:
        return _annotated(dict.__class_getitem__(arguments), _DefaultDict(given[1]))
    if origin in _ONCE:
        return _annotated(list.__class_getitem__(arguments[0]), _ReadOnce())
    if all(new is old for new, old in zip(arguments, given, strict=True)):
        return tp
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    return origin[arguments[0] if len(arguments) == 1 else arguments]


def _parameters(origin: Any) -> tuple[Any, ...]:
    variables = getattr(origin, "__parameters__", ())
    return variables if isinstance(variables, tuple) else ()


def _flat(tp: Any) -> tuple[list[Any], int | None]:
    """The parts of a tuple with those of the tuples that are unpacked in it, and which of them stands for many."""
    parts: list[Any] = []
    repeated = None
    for one in typing.get_args(tp):
        inner = _unpacked_tuple(one)
        if inner is None:
            parts.append(one)
            continue
        found, place = _flat(inner)
        if found[1:] == [...]:
            found, place = found[:1], 0
        if place is not None:
            repeated = len(parts) + place
        parts += found
    return parts, repeated


def _unpacked_tuple(tp: Any) -> Any:
    """The tuple in `*tuple[int, str]` and `Unpack[tuple[int, str]]`; None for what is neither."""
    if typing.get_origin(tp) is typing.Unpack:
        [tp] = typing.get_args(tp)
    elif not getattr(tp, "__unpacked__", False):
        return None
    return tuple.__class_getitem__(typing.get_args(tp)) if typing.get_origin(tp) is tuple else None


class OfAttrs:
    """A generic class of the attrs library with its arguments, of which pydantic would keep the class alone."""

    def __init__(self, tp: Any) -> None:
        self.type = tp

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        return {**schema, "metadata": {**schema.get("metadata", {}), ARGUMENTS: self.type}}


class OwnField(NamedTuple):
    """A field of a class of the attrs library.

    Attributes:
        alias: Its name in the constructor.
        type: Its annotation.
        optional: Whether the constructor does without it.
        default: Its default, as options of pydantic's schema of one; empty where only the constructor knows it.
        init: Whether the constructor takes it; else it makes it.
    """

    alias: str
    type: Any
    optional: bool
    default: dict[str, Any]
    init: bool


def own_fields(tp: Any) -> dict[str, OwnField] | None:
    """The fields of a class of the attrs library, by name; None for any other class.

    Args:
        tp: The class, or a generic one with its arguments.
    """
    known: Any = typing.get_origin(tp) or tp
    if not hasattr(known, "__attrs_attrs__"):
        return None
    import attrs  # noqa: PLC0415 - optional, and loaded already where there is such a class

    attrs.resolve_types(known)
    variables = _variables(tp)
    result = {}
    for field in attrs.fields(known):
        default: Any = field.default
        shown = {} if default is attrs.NOTHING else {"default": default}
        if type(default).__name__ == "Factory":
            shown = {} if default.takes_self else {"default_factory": default.factory}
        owner = next((base for base in known.__mro__ if field.name in inspect.get_annotations(base)), known)
        annotation = Any if field.type is None else _filled(field.type, variables.get(owner, {}))
        result[field.name] = OwnField(
            field.alias or field.name, annotation, default is not attrs.NOTHING, shown, field.init
        )
    return result


def _variables(tp: Any) -> dict[Any, dict[Any, Any]]:
    """What stands for the type variables of a class, and for those of its bases, by class."""
    cls = typing.get_origin(tp) or tp
    given = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(tp), strict=False))
    found = {cls: given}
    for base in types.get_original_bases(cls) if isinstance(cls, type) else ():
        if typing.get_origin(base) not in (typing.Generic, typing.Protocol):
            found = {**_variables(_filled(base, given)), **found}
    return found


def _filled(tp: Any, given: dict[Any, Any]) -> Any:
    """An annotation with what stands for its type variables in their place."""
    if isinstance(tp, typing.TypeVar):
        return given.get(tp, tp)
    variables = () if isinstance(tp, type) else getattr(tp, "__parameters__", ())
    return tp[tuple(given.get(one, one) for one in variables)] if variables and given else tp
