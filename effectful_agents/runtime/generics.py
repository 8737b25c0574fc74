"""Solving the type variables of an operation's return type by the arguments of a call."""

from __future__ import annotations

from typing import Any

from effectful.internals.unification import freetypevars
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

    A variable that the arguments leave open stays what it is.
    """
    try:
        return operation.__type_rule__(*args, **kwargs)
    except TypeError:  # the arguments do not fit the annotations; that is for others to say
        return operation.__signature__.return_annotation
