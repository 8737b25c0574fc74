"""Types as restricted code writes them: whatever else evaluates the texts in them does so with all powers.

Texts come into types from everywhere: as annotations, between brackets, as the bound of a parameter, and by way of a
name. So it is the finished type that is looked at, before anybody can ask a function or a class for it. The library
keeps the types that it makes (`typing` does), so what they are to be made of is looked at even before.
"""

from __future__ import annotations

import dataclasses
import gc
import types
import typing
from collections import ChainMap, UserDict, UserList
from enum import Enum, EnumType
from typing import Any

from effectful_agents.handlers.execution.keys import check_key, is_fixed
from effectful_agents.handlers.execution.kinds import RESTRICTED, SANDBOX, is_foreign
from effectful_agents.handlers.execution.names import is_safe_type_text, is_standard

__all__ = [
    "annotated",
    "check_either",
    "check_hint",
    "check_made_type",
    "check_making",
    "either",
    "is_form",
    "is_hint",
    "subscribed",
]

_ALIASES = (
    *(types.GenericAlias, types.UnionType, type(typing.List[int]), type(typing.Union[int, str])),  # noqa: UP006, UP007
    *(type(typing.Callable[[], int]), type(typing.Literal[1]), type(typing.Annotated[int, 1]), typing.ForwardRef),
    *(type(typing.Unpack[tuple[int]]), type(typing.Concatenate[int, ...]), dataclasses.InitVar),
)
_PARAMETERS = (typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple)
_KINDS = frozenset({*_ALIASES, *_PARAMETERS, typing.NewType, typing.TypeAliasType})


def is_hint(value: Any) -> bool:
    """Whether a value is a type that was put together of others."""
    return isinstance(value, _ALIASES)


def check_hint(hint: Any, *, kept: bool = False) -> None:
    """Raise if one of the texts in a type does more than name types, or if a part says itself what it is equal to.

    Args:
        hint: The type.
        kept: Whether the library keeps what it makes of it for the whole program, so that this holds for what is
            said of a type with `Annotated`, too.

    Raises:
        TypeError: One does.
    """
    kind = type(hint)
    if isinstance(hint, str):
        if kind is not str or not is_safe_type_text(hint):
            raise TypeError("a text that stands for a type can only name types here.")
    elif kind is list or kind is tuple:
        for part in hint:
            check_hint(part, kept=kept)
    elif kind is typing.ForwardRef:
        check_hint(hint.__forward_arg__)
    elif kind is dataclasses.InitVar:
        check_hint(hint.type, kept=kept)
    elif isinstance(hint, _ALIASES):
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:  # what follows the type is no type
            check_hint(hint.__origin__, kept=kept)
            if kept:
                check_key(hint.__metadata__, "`Annotated` within another type")
        elif origin is not typing.Literal:
            for part in hint.__args__:
                check_hint(part, kept=kept)
    elif not isinstance(hint, type):
        check_key(hint, "a type")


# --- types that are put together ----------------------------------------------------------------------------------

_MAPPINGS = (ChainMap, UserDict, UserList, types.MappingProxyType)
"""What passes the key on that it gets, to whatever is in it."""


def subscribed(obj: Any, key: Any) -> Any:
    """`obj[key]`, where the first may be a type, or pass the key on to one.

    Raises:
        TypeError: The key is nothing that a type is made of.
    """
    special = _as_annotated(obj, key)
    if special is not None:
        return special
    check_making(obj, key)
    value = obj[key]
    if is_hint(value):
        check_hint(value)
    return value


def check_making(obj: Any, key: Any, depth: int = 0) -> None:
    """Raise if a type cannot be made of this by `obj[key]`.

    Raises:
        TypeError: It cannot.
    """
    if isinstance(obj, _MAPPINGS):
        if not is_fixed(key):
            for inner in _within(obj) if depth < _DEEPEST else (typing.Any,):
                check_making(inner, key, depth + 1)
    elif obj is typing.Literal:
        # It tells members of enumerations from the texts and numbers that they may be, by their classes.
        parts = key if type(key) is tuple else (key,)
        check_key(tuple([part for part in parts if not isinstance(part, Enum)]), "`Literal`")
    elif obj is typing.Annotated and type(key) is tuple and key:
        check_hint(key[0], kept=True)  # what follows the type is no type
        check_key(key, "`Annotated`")
    elif isinstance(obj, type):
        making = None if isinstance(obj, EnumType) else getattr(obj, "__class_getitem__", None)
        function = getattr(making, "__func__", making)
        module = getattr(function, "__module__", None)
        if function is None or getattr(function, "__builtins__", None) is RESTRICTED:
            return
        if isinstance(making, types.BuiltinFunctionType):
            check_hint(key)  # `list[int]` is kept by nobody
        elif is_standard(module) or is_foreign(module):
            check_hint(key, kept=True)
        else:
            check_key(key, f"`{obj.__name__}[…]`")
    elif is_form(obj):
        check_hint(key, kept=True)


_DEEPEST = 20


def is_form(obj: Any) -> bool:
    """Whether an object is one of those that types are put together with, and no class."""
    return type(obj).__module__ in _FORMS or type(obj) is types.GenericAlias


_FORMS = frozenset({"typing", "typing_extensions"})


def _within(obj: Any) -> tuple[Any, ...]:
    if isinstance(obj, types.MappingProxyType):
        return tuple(gc.get_referents(obj))
    return tuple(obj.maps) if isinstance(obj, ChainMap) else (obj.data,)


def _as_annotated(obj: Any, key: Any) -> Any:
    """`Annotated[…]` with objects that say themselves what they are equal to: a new one, which nobody keeps."""
    if obj is not typing.Annotated or type(key) is not tuple or len(key) < 2 or is_fixed(key):
        return None
    hint, *more = key
    check_hint(hint)
    unkept: Any = []  # it has no hash
    made: Any = typing.Annotated[hint, unkept]
    made.__metadata__ = (*made.__metadata__[:-1], *more)
    return made


def either(a: Any, b: Any) -> Any:
    """`a | b`."""
    if type(a) is not int:
        check_either(a, b)
    return a | b


def check_either(a: Any, b: Any) -> None:
    """Raise if `a | b` would be a type that says itself what it is equal to.

    Raises:
        TypeError: It would.
    """
    if type(a).__module__ in _FORMS or type(b).__module__ in _FORMS:
        check_hint((a, b), kept=True)


def annotated(hint: Any) -> Any:
    """What stands as an annotation, as the bound of a parameter, or as the value of a type alias."""
    if not isinstance(hint, type) or type(hint) is types.GenericAlias:
        check_hint(hint)
    return hint


def check_made_type(made: Any) -> None:
    """Raise if a type that a function of the library has made holds a text that does more than name types."""
    kind = type(made)
    if kind not in _KINDS and kind.__module__ != SANDBOX:
        return
    if isinstance(made, _ALIASES):
        check_hint(made)
    elif isinstance(made, typing.NewType):
        check_hint(made.__supertype__)
    elif isinstance(made, _PARAMETERS):
        for name in ("__bound__", "__constraints__", "__default__"):
            check_hint(getattr(made, name, None))
    elif isinstance(made, typing.TypeAliasType):
        check_hint(made.__value__)
