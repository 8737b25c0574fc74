"""Types that are defined in a function, and name each other in text.

Under `from __future__ import annotations` a class keeps the text of its annotations, and not the names that they were
written among. Those of a module are found by its name; those of a function are gone once it has returned. A tool that
is defined beside the class still sees them, and leaves them with it.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from effectful_agents.types.kinds import is_a, names_in, qualified_name

__all__ = ["TYPES", "TYPE_HINTS", "hints_of", "keep_names", "leave_names", "names_beside"]

_NAMES = "__names_beside__"

TYPES = (type, typing.TypeAliasType, typing.TypeVar, types.GenericAlias, types.UnionType, typing.NewType)
"""What an annotation may name."""

TYPE_HINTS = "__type_hints__"
"""Under this name code that was compiled by a policy has, among its builtins, what reads its annotations."""


def hints_of(obj: Any, names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The annotations of a function or a class, as types, with what is said around them.

    `typing.get_type_hints` evaluates texts with all powers, and what a name in one stands for may be a text again.
    Those of code under a policy are evaluated by that.

    Args:
        obj: The function or the class.
        names: What can be named beside those of its module.
    """
    inner = obj if isinstance(obj, type) else inspect.unwrap(obj)
    read = _reader(inner)
    if read is not None:
        return read(inner, names)
    return typing.get_type_hints(obj, localns=None if names is None else dict(names), include_extras=True)


def _reader(obj: Any) -> Any:
    if isinstance(obj, type):
        namespace = getattr(sys.modules.get(obj.__module__), "__dict__", {})
    else:
        namespace = getattr(getattr(obj, "__func__", obj), "__globals__", {})
    builtins = namespace.get("__builtins__")
    return builtins.get(TYPE_HINTS) if type(builtins) is dict else None


def keep_names(names: Mapping[str, Any], module: Mapping[str, Any]) -> None:
    """Leave names with the classes among them that were defined in a function.

    Args:
        names: What can be named where a tool is defined.
        module: The names of its module, which are found without.
    """
    # By `type`: a lazy object in the scope would be made by a question for its class.
    beside = {name: value for name, value in names.items() if is_a(value, *TYPES) and module.get(name) is not value}
    for value in beside.values():
        if is_a(value, type) and "__annotations__" in names_in(value) and "<locals>" in qualified_name(value):
            leave_names(value, beside)


def leave_names(cls: type, names: Mapping[str, Any]) -> None:
    """Leave names with a class."""
    if names and _reader(cls) is None:
        setattr(cls, _NAMES, names)
    elif names:
        _finish(cls, names)


def _finish(cls: Any, names: Mapping[str, Any]) -> None:
    """Put types in the place of the texts in a class of code under a policy: pydantic would evaluate them otherwise."""
    try:
        hints = hints_of(cls, names)
    except (NameError, TypeError, AttributeError):  # it is told when the class is described
        return
    cls.__annotations__ = {name: hints.get(name, hint) for name, hint in inspect.get_annotations(cls).items()}
    for field in getattr(cls, "__dataclass_fields__", {}).values():
        field.type = hints.get(field.name, field.type)


def names_beside(tp: Any) -> dict[str, Any]:
    """The names that were left with the classes in an annotation."""
    cls = typing.get_origin(tp) or tp
    found: dict[str, Any] = dict(names_in(cls).get(_NAMES, {})) if is_a(cls, type) else {}
    for part in typing.get_args(tp):
        found |= names_beside(part)
    return found
