"""What kind of value something is, asked without running code of the value's.

A scope holds whatever a program has: proxies whose `__class__` raises, classes whose metaclasses answer in any way or
not at all. What walks through scopes asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["attributes_of", "bases_of", "is_a", "name_of_type", "names_in", "qualified_name"]


def is_a(value: Any, *kinds: type) -> bool:
    """Whether the type of a value is one of these, or derives from one; nothing of the value's can make it raise.

    Unlike `isinstance`, it does not ask the value for its `__class__`: a proxy is what it is, not what it stands for.

    >>> is_a(True, int), is_a("1", int, float)
    (True, False)
    """
    try:
        return issubclass(type(value), kinds)
    except RecursionError:  # that of the program
        raise
    except Exception:  # an abstract class asks the type for its hash
        return False


bases_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
"""A class and its bases, whatever its metaclass says."""

names_in: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__
"""What is written in a class, whatever its metaclass says."""

name_of_type: Callable[[type], str] = vars(type)["__name__"].__get__
"""The name of a class, whatever its metaclass says."""

qualified_name: Callable[[type], str] = vars(type)["__qualname__"].__get__
"""Its name with those of the classes and functions around it."""


def attributes_of(value: Any) -> Mapping[str, Any]:
    """What was set on an object; nothing where it has no room for it, or does not say."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except RecursionError:
        raise
    except Exception:
        return {}
    return found if is_a(found, dict) else {}
