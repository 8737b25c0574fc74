"""Methods in C that are bound to nothing, as `str.upper`: what restricted code may call in their place."""

from __future__ import annotations

import io
from typing import Any

from effectful_agents.handlers.execution import methods, sizes
from effectful_agents.handlers.execution.growing import CASES, check_cased
from effectful_agents.handlers.execution.kinds import is_closed, is_readable_special
from effectful_agents.handlers.execution.sizes import WORTH_COUNTING

__all__ = ["STREAMS", "checked_descriptor", "checked_unbound", "refuse"]

STREAMS = (io.StringIO, io.BytesIO)


def refuse(function: Any) -> Any:
    """Raise, as the code cannot call this.

    Raises:
        TypeError: Always.
    """
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    raise TypeError(f"`{name}` is not available here.")


def checked_descriptor(descriptor: Any) -> Any:
    """A method that is bound to nothing: `str.upper`."""
    owner, name = descriptor.__objclass__, descriptor.__name__
    if (
        is_closed(owner)
        or issubclass(owner, type)
        or not is_readable_special(name)
        or name in ("__setattr__", "__delattr__")
    ):
        refuse(descriptor)
    other = methods.instead_of(owner, name)
    if other is not None:
        return other
    if name == "__format__":
        return checked_unbound(descriptor)
    if owner.__module__ in ("builtins", "array", "collections") or owner in STREAMS:
        if name in sizes.FORMATS:
            return sizes.FORMATS[name]
        if name in CASES and owner is str:
            return _checked_case(descriptor)
        if name in methods.CHECKS and name != "__init__":  # who calls that one looks at what it keeps, too
            return checked_unbound(descriptor)
    return descriptor


def _checked_case(descriptor: Any) -> Any:
    """`str.lower` and its like, which are called for each of many short texts."""

    def checked(text: Any, /) -> Any:
        if type(text) is not str or len(text) > WORTH_COUNTING // 3:
            check_cased(descriptor.__name__, text)
        return descriptor(text)

    return checked


def checked_unbound(descriptor: Any) -> Any:
    """A method of a built-in class that is looked at before it is called."""

    # A function, as it has to take a `self` where it stands in a class.
    def checked(target: Any, /, *args: Any, **kwargs: Any) -> Any:
        return methods.checked_descriptor(descriptor, target, *args, **kwargs)

    return checked
