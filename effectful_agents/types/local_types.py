"""Types that are defined in a function, and name each other in text.

Under `from __future__ import annotations` a class keeps the text of its annotations, and not the names that they were
written among. Those of a module are found by its name; those of a function are gone once it has returned. A tool that
is defined beside the class still sees them, and leaves them with it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from effectful_agents.types.kinds import is_a, names_in, qualified_name

__all__ = ["TYPES", "keep_names", "leave_names", "names_beside"]

_NAMES = "__names_beside__"

TYPES = (type, typing.TypeAliasType, typing.TypeVar, types.GenericAlias, types.UnionType, typing.NewType)
"""What an annotation may name."""


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
    if names:
        setattr(cls, _NAMES, names)


def names_beside(tp: Any) -> dict[str, Any]:
    """The names that were left with the classes in an annotation."""
    cls = typing.get_origin(tp) or tp
    found: dict[str, Any] = dict(names_in(cls).get(_NAMES, {})) if is_a(cls, type) else {}
    for part in typing.get_args(tp):
        found |= names_beside(part)
    return found
