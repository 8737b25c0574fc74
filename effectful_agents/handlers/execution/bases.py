"""From what classes of restricted code may derive."""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from typing import Any

from effectful_agents.handlers.execution.callables import guarded
from effectful_agents.handlers.execution.kinds import REPLACED, is_own
from effectful_agents.handlers.execution.metaclasses import OfMetaclasses
from effectful_agents.handlers.execution.names import is_standard

__all__ = ["base_of", "bases_of"]

_UNFIT = (functools.partial, functools.partialmethod, map, filter, super, types.GenericAlias)
"""Classes that call what they are given: what derives from them would be called as if it were the code's own."""

_WRITERS = (dataclasses.Field,)
"""Classes whose attributes the library writes into source code, in the belief that they are its own."""


_NAMED = (enum.property, types.DynamicClassAttribute, functools.cached_property)
"""Descriptors that read or write an attribute whose name a class of the code could choose."""


def bases_of(bases: Any) -> tuple[Any, ...]:
    """What a class derives from where the code says that it derives from these.

    Raises:
        TypeError: From one of these nothing can be derived here, or not together with the others.
    """
    found = tuple([base_of(base) for base in bases])
    kinds = [base for base in found if isinstance(base, type)]
    if any(isinstance(base, enum.EnumType) for base in kinds) and any(
        issubclass(base, types.SimpleNamespace) for base in kinds
    ):
        raise TypeError("the members of an enumeration cannot be namespaces here: their values would be attributes.")
    return found


def base_of(base: Any) -> Any:
    """What a class derives from where the code says that it derives from this.

    Raises:
        TypeError: From this nothing can be derived here.
    """
    if isinstance(base, type):
        if type(base) is OfMetaclasses or type.__subclasscheck__(type, base):
            raise TypeError("a metaclass cannot be made here.")
        if issubclass(base, _UNFIT + _WRITERS + _NAMED):
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
