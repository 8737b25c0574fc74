"""How classes of restricted code are made: from what they may derive, and what may stand in them."""

from __future__ import annotations

import builtins
import types
import weakref
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution.attributes import WHOLLY_OWN
from effectful_agents.handlers.execution.bases import bases_of
from effectful_agents.handlers.execution.calls import check_members
from effectful_agents.handlers.execution.kinds import is_own
from effectful_agents.handlers.execution.metaclasses import OfMetaclasses
from effectful_agents.handlers.execution.names import is_attribute
from effectful_agents.handlers.execution.specials import check_inherited_parts, check_parts, inherited, kept

__all__ = ["NAMES_OF", "build_class"]

NAMES_OF: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()
"""The names among which a class of the code was made."""


def build_class(body: types.FunctionType, name: str, /, *bases: Any, metaclass: Any = type, **keywords: Any) -> Any:
    """Make a class of the code: `__build_class__`."""
    if type(metaclass) is OfMetaclasses:
        metaclass = metaclass._real
    elif metaclass is not type:  # which RestrictedPython's own policy writes there
        raise TypeError("a class here cannot have a metaclass of its own; `ABCMeta` and `EnumMeta` are possible.")
    bases = bases_of(bases)
    cls = builtins.__build_class__(body, name, *bases, metaclass=_Maker(metaclass), **keywords)
    if isinstance(cls, type):
        NAMES_OF[cls] = body.__globals__
        if type(cls) is type and all(base is object or is_own(base) for base in cls.__mro__):
            WHOLLY_OWN.add(cls)
    return cls


class _Maker:
    """Stands where a metaclass does, and looks at what is in a class before there is one.

    Afterwards is too late: by `__set_name__` and `__init_subclass__` the code has the class before its maker has it.
    """

    def __init__(self, metaclass: type) -> None:
        self._metaclass = metaclass

    def __prepare__(self, name: str, bases: tuple[type, ...], /, **keywords: Any) -> Any:
        made = types.prepare_class(name, bases, {**keywords, "metaclass": self._metaclass})
        self._metaclass, names, _ = made
        self._prepared = dict(names)  # of an enumeration: a function of the library
        return names

    def __call__(self, name: str, bases: tuple[type, ...], names: dict[str, Any], /, **keywords: Any) -> Any:
        for key, value in list(names.items()):
            if self._prepared.get(key) is value:
                continue
            check_parts(key, bases)
            other = _slots(value) if key == "__slots__" else kept(key, value)
            if other is not value:
                dict.__setitem__(names, key, other)  # that of an enumeration takes no name twice
        if issubclass(self._metaclass, EnumType):
            values = [names[key] for key in getattr(names, "_member_names", ())]
            for base in bases:
                check_members(base, values)
        check_inherited_parts(bases)
        for key, value in inherited(bases).items():
            names.setdefault(key, value)
        return self._metaclass(name, bases, names, **keywords)


def _slots(slots: Any) -> Any:
    names = (slots,) if type(slots) is str else tuple(slots)
    for name in names:
        if type(name) is not str or (name not in ("__dict__", "__weakref__") and not is_attribute(name)):
            raise TypeError(f"`__slots__` cannot have `{name}` here.")
    return slots if type(slots) is dict else names
