"""How classes of restricted code are made: from what they may derive, and what may stand in them."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import types
import weakref
from typing import Any

from effectful_agents.handlers.execution.attributes import WHOLLY_OWN
from effectful_agents.handlers.execution.callables import guarded
from effectful_agents.handlers.execution.kinds import REPLACED, is_own
from effectful_agents.handlers.execution.metaclasses import OfMetaclasses
from effectful_agents.handlers.execution.names import is_attribute, is_standard
from effectful_agents.handlers.execution.specials import inherited, kept

__all__ = ["NAMES_OF", "base_of", "build_class"]

NAMES_OF: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()
"""The names among which a class of the code was made."""


def build_class(body: types.FunctionType, name: str, /, *bases: Any, metaclass: Any = type, **keywords: Any) -> Any:
    """Make a class of the code: `__build_class__`."""
    if type(metaclass) is OfMetaclasses:
        metaclass = metaclass._real
    elif metaclass is not type:  # which RestrictedPython's own policy writes there
        raise TypeError("a class here cannot have a metaclass of its own; `ABCMeta` and `EnumMeta` are possible.")
    bases = tuple([base_of(base) for base in bases])
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
            other = _slots(value) if key == "__slots__" else kept(key, value)
            if other is not value:
                dict.__setitem__(names, key, other)  # that of an enumeration takes no name twice
        for key, value in inherited(bases).items():
            names.setdefault(key, value)
        return self._metaclass(name, bases, names, **keywords)


def _slots(slots: Any) -> Any:
    names = (slots,) if type(slots) is str else tuple(slots)
    for name in names:
        if type(name) is not str or (name not in ("__dict__", "__weakref__") and not is_attribute(name)):
            raise TypeError(f"`__slots__` cannot have `{name}` here.")
    return slots if type(slots) is dict else names


_UNFIT = (functools.partial, functools.partialmethod, map, filter, super, types.GenericAlias)
"""Classes that call what they are given: what derives from them would be called as if it were the code's own."""

_WRITERS = (dataclasses.Field,)
"""Classes whose attributes the library writes into source code, in the belief that they are its own."""


def base_of(base: Any) -> Any:
    """What a class derives from where the code says that it derives from this.

    Raises:
        TypeError: From this nothing can be derived here.
    """
    if isinstance(base, type):
        if type(base) is OfMetaclasses or type.__subclasscheck__(type, base):
            raise TypeError("a metaclass cannot be made here.")
        if issubclass(base, _UNFIT + _WRITERS):
            raise TypeError(f"a class here cannot derive from `{base.__name__}`.")
        guarded(base)
    else:
        # A generic class with its arguments, or an alias: what stands for it among the bases is its class.
        if is_own(type(base)) or isinstance(base, types.SimpleNamespace):
            raise TypeError("a class here can only derive from classes.")  # `__mro_entries__` could name any
        origin = getattr(base, "__origin__", None) if is_standard(type(base).__module__) else None
        if origin is not None:
            base_of(origin)
    return REPLACED[id(base)][1] if id(base) in REPLACED else base
