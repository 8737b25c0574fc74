"""Special methods in classes of the code, where what goes in or comes out is not the code's to have.

A read-only view of a mapping (`MappingProxyType`) gives the mapping itself to the other side of `|` and of a
comparison, also where two lists are compared that hold it. So these methods get a copy. And the library calls what it
finds as an attribute (`file.write`): what `__getattr__` and `__get__` answer is looked at.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Mapping
from typing import Any

from effectful_agents.handlers.execution.callables import returned, stored
from effectful_agents.handlers.execution.callbacks import calls_nothing
from effectful_agents.handlers.execution.calls import callee
from effectful_agents.handlers.execution.kinds import PLAIN, RESTRICTED, SANDBOX

__all__ = ["TAKE_OPERANDS", "inherited", "kept", "operand"]

TAKE_OPERANDS = frozenset({"__ror__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
"""Special methods that may get what stands behind a read-only view."""

_ANSWER = frozenset({"__getattr__", "__get__"})
_COPIED = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_MADE_OF_OPERANDS = (collections.OrderedDict, collections.defaultdict)
"""Classes whose `__ror__` gives the other side to the class of this one."""


def operand(value: Any) -> Any:
    """What such a method gets in the place of this."""
    kind = type(value)
    if kind in _COPIED:
        return value.copy()
    if kind in PLAIN or kind.__module__ == SANDBOX or not isinstance(value, Mapping):
        return value
    return types.MappingProxyType(value)


def kept(name: str, value: Any) -> Any:
    """What may be kept in a class of the code under a name, in the place of this value.

    Raises:
        TypeError: It is something that the code cannot call.
    """
    value = stored(value)
    if name.startswith("__") and callable(value) and not calls_nothing(value):
        value = _with_guard(name, value)
    if name in TAKE_OPERANDS and value is not None and not _is_compiled(value, "_operand_"):
        return _with_operand(value)
    if name in _ANSWER and value is not None and not _is_compiled(value, None):
        return _with_answer(value)
    return value


def _is_compiled(value: Any, guard: str | None) -> bool:
    """Whether a value is a function of the code that calls a guard itself; the code cannot name one."""
    if type(value) is not types.FunctionType or value.__builtins__ is not RESTRICTED:
        return False
    return guard is None or guard in value.__code__.co_names


def _bound(function: Any, obj: Any) -> Any:
    get = getattr(type(function), "__get__", None)
    return function if get is None else get(function, obj, type(obj))


def _with_guard(name: str, function: Any) -> Any:
    """For a function of the library that calls what it gets: operators would give it that past the guards."""
    if name == "__new__":
        return lambda cls, /, *args, **kwargs: callee(function)(cls, *args, **kwargs)
    return lambda self, /, *args, **kwargs: callee(_bound(function, self))(*args, **kwargs)


def _with_operand(function: Any) -> Any:
    def method(self: Any, other: Any, /) -> Any:
        return _bound(function, self)(operand(other))

    return method


def _with_answer(function: Any) -> Any:
    def method(self: Any, /, *args: Any) -> Any:
        return returned(_bound(function, self)(*args))

    return method


def inherited(bases: tuple[Any, ...]) -> dict[str, Any]:
    """The special methods that a class with these bases has of the library, and is to have in another version."""
    for base in bases:
        if isinstance(base, type) and issubclass(base, _MADE_OF_OPERANDS):
            return {"__ror__": _with_operand(base.__ror__)}
    return {}
