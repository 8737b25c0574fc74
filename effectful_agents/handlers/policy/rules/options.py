"""Options of rules: what would guard nothing is told when the rule is made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import Any

from effectful_agents.errors import OptionError

__all__ = ["forget_coroutine", "is_async", "names_given", "plain_function"]


def names_given(names: Any, option: str, are: str) -> tuple[str, ...]:
    """Names that were given in a list.

    Args:
        names: What was given.
        option: What the option is called.
        are: What the names are, in the error.

    Raises:
        OptionError: It is no list of texts. A text alone would be taken for its letters.

    >>> names_given(["url", "link"], "arguments", "of arguments")
    ('url', 'link')
    >>> names_given("url", "arguments", "of arguments")
    Traceback (most recent call last):
    effectful_agents.errors.OptionError: `arguments` is 'url'; it is a list of names, of arguments: `['url']`.
    """
    if isinstance(names, str):
        raise OptionError(f"`{option}` is {names!r}; it is a list of names, {are}: `[{names!r}]`.")
    if not isinstance(names, Iterable):
        raise OptionError(f"`{option}` is {names!r}; it is a list of names, {are}.")
    given = tuple(names)
    for name in given:
        if not isinstance(name, str) or not name:
            raise OptionError(f"`{option}` has {name!r} in it; it is a list of names, {are}.")
    return given


def plain_function(function: Any, what: str) -> None:
    """Refuse what is no function, and an `async def`, which would not be awaited.

    Raises:
        OptionError: It is one of these.

    >>> async def later(text):
    ...     return text
    >>> plain_function(later, "`egress` of a rule")
    Traceback (most recent call last):
    effectful_agents.errors.OptionError: `egress` of a rule is an `async def`, which nobody awaits; use `def`.
    """
    if not callable(function):
        raise OptionError(f"{what} is {function!r}; it is a function.")
    if is_async(function):
        raise OptionError(f"{what} is an `async def`, which nobody awaits; use `def`.")


def is_async(function: Any) -> bool:
    """Whether a call of it is to be awaited: of a function, an object with a method `__call__`, a tool or skill."""
    while isinstance(function, functools.partial):
        function = function.func
    if getattr(function, "is_async", False) is True:
        return True
    calling = inspect.getattr_static(type(function), "__call__", None)
    return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in (function, calling))


def forget_coroutine(said: Any) -> None:
    """Close a coroutine that came where none is awaited, so that Python does not warn of it as well."""
    if inspect.iscoroutine(said):
        said.close()
