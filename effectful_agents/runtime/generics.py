"""Solving the type variables of an operation's return type by the arguments of a call."""

from __future__ import annotations

import typing
from typing import Any

from effectful.internals.unification import freetypevars, substitute
from effectful.ops.types import Operation

__all__ = ["has_type_variables", "result_type"]


def has_type_variables(annotation: Any) -> bool:
    """Whether a type has variables in it.

    >>> has_type_variables(list[int])
    False
    """
    return bool(freetypevars(annotation))


def result_type(operation: Operation[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The return type of an operation for these arguments.

    A variable that the arguments leave open stays what it is. A parameter `type[T]` is given the type itself.

    >>> from effectful_agents.runtime import Operation
    >>> T = typing.TypeVar("T")
    >>> @Operation.define
    ... def read(text: str, kind: type[T]) -> list[T]: ...
    >>> result_type(read, "1", int)
    list[int]
    """
    try:
        result = operation.__type_rule__(*args, **kwargs)
    except TypeError:  # the arguments do not fit the annotations; that is for others to say
        result = operation.__signature__.return_annotation
    if not has_type_variables(result):
        return result
    given = _given_types(operation, args, kwargs)
    return substitute(result, given) if given else result


def _given_types(operation: Operation[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Any]:
    """What arguments say of type variables by being types: `int` for `type[T]`."""
    signature = operation.__signature__
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return {}
    given = {}
    for name, value in bound.items():
        annotation = signature.parameters[name].annotation
        if typing.get_origin(annotation) is type and value is not None:
            [variable] = typing.get_args(annotation)
            if isinstance(variable, typing.TypeVar):
                given[variable] = value
    return given
