"""Types as restricted code writes them: whatever else evaluates the texts in them does so with all powers.

Texts come into types from everywhere: as annotations, between brackets, as the bound of a parameter, and by way of a
name. So it is the finished type that is looked at, before anybody can ask a function or a class for it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from effectful_agents.handlers.execution.kinds import SANDBOX
from effectful_agents.handlers.execution.names import is_safe_type_text

__all__ = ["annotated", "check_hint", "check_made_type", "is_hint"]

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


def check_hint(hint: Any) -> None:
    """Raise if one of the texts in a type does more than name types.

    Raises:
        TypeError: One does.
    """
    kind = type(hint)
    if isinstance(hint, str):
        if kind is not str or not is_safe_type_text(hint):
            raise TypeError("a text that stands for a type can only name types here.")
    elif kind is list or kind is tuple:
        for part in hint:
            check_hint(part)
    elif kind is typing.ForwardRef:
        check_hint(hint.__forward_arg__)
    elif kind is dataclasses.InitVar:
        check_hint(hint.type)
    elif isinstance(hint, _ALIASES):
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:  # what follows the type is no type
            check_hint(hint.__origin__)
        elif origin is not typing.Literal:
            for part in hint.__args__:
                check_hint(part)


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
