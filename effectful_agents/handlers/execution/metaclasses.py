"""What restricted code has in the place of `type` and of the metaclasses that it may name."""

from __future__ import annotations

import types
import typing
from abc import ABCMeta
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution.hints import check_hint
from effectful_agents.handlers.execution.kinds import REPLACED, VETTED

__all__ = ["ABCMeta_", "EnumType_", "OfMetaclasses", "type_"]


class OfMetaclasses(type):
    """The kind of what stands for a metaclass.

    A real one makes classes past the policy, and whoever holds it needs no call that a guard could see: as the
    `__call__` of a class it is called by the interpreter. So the code gets a class that only looks like it.
    """

    _real: type

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if cls is not type_ or len(args) != 1 or keywords:
            raise TypeError(f"`{cls.__name__}` makes no classes here; write a `class` statement.")
        kind = type(args[0])
        return type_ if issubclass(kind, type) else kind

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._real)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, cls._real)

    def __getitem__(cls, key: Any) -> Any:
        check_hint(key)
        return types.GenericAlias(cls, key)

    def __or__(cls, other: Any) -> Any:
        check_hint(other, kept=True)
        return typing.Union[cls, other]  # noqa: UP007 - they are values here

    def __repr__(cls) -> str:
        return repr(cls._real)


class type_(metaclass=OfMetaclasses):
    """`type`, of one argument."""

    _real = type


class ABCMeta_(metaclass=OfMetaclasses):
    """`abc.ABCMeta`."""

    _real = ABCMeta


class EnumType_(metaclass=OfMetaclasses):
    """`enum.EnumType`."""

    _real = EnumType


for _stand_in in (type_, ABCMeta_, EnumType_):
    _stand_in.__name__ = _stand_in.__qualname__ = _stand_in._real.__name__
    _stand_in.__module__ = _stand_in._real.__module__
    REPLACED[id(_stand_in._real)] = (_stand_in._real, _stand_in)
    VETTED.add(id(_stand_in))
