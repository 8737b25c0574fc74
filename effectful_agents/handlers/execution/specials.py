"""Special methods in classes of the code, where what goes in or comes out is not the code's to have.

A read-only view of a mapping (`MappingProxyType`) gives the mapping itself to the other side of `|` and of a
comparison, also where two lists are compared that hold it. So these methods get a copy. And the library calls what it
finds as an attribute (`file.write`): what `__getattr__` and `__get__` answer is looked at.
"""

from __future__ import annotations

import collections
import functools
import inspect
import io
import types
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution.callables import allowed, returned, stored
from effectful_agents.handlers.execution.callbacks import calls_nothing, is_enumeration
from effectful_agents.handlers.execution.calls import callee
from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.kinds import PLAIN, RESTRICTED, SANDBOX, is_own
from effectful_agents.handlers.execution.limits import kept_flying, may_disappear, tick
from effectful_agents.handlers.execution.names import READABLE
from effectful_agents.handlers.execution.streams import LONG, len_of, stream

__all__ = ["LISTED", "TAKE_OPERANDS", "check_inherited_parts", "check_parts", "inherited", "kept", "listed", "operand"]

TAKE_OPERANDS = frozenset({"__ror__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
"""Special methods that may get what stands behind a read-only view."""

_REFLECTED = frozenset({"__ror__", "__rand__", "__rxor__"})
_GONE_THROUGH = frozenset({"__iter__", "__next__", "__getitem__", "__reversed__"})
"""What a loop in C calls again and again: a function in C there could keep it from ever coming back."""

_ANSWER = frozenset({"__get__"})
_COPIED = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


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
    value = allowed(value) if name.startswith("__") else stored(value)
    if name.startswith("__") and callable(value) and (not calls_nothing(value) or is_enumeration(value)):
        value = _with_guard(name, value)
    if name in LISTED:
        return listing(value)
    if name in _GONE_THROUGH and value is not None and not _is_compiled(value, None):
        return _with_step(value)
    if name in _REFLECTED and value is not None:
        value = _with_number(value)
    if name in TAKE_OPERANDS and value is not None and not _is_with_operand(value):
        return _with_operand(value)
    if name == "__getattr__" and value is not None and getattr(value, "__code__", None) is not _MISSING_CODE:
        return _with_missing(value)
    if name in _ANSWER and value is not None and not _is_compiled(value, None):
        return _with_answer(value)
    if name == "__exit__" and value is not None:
        return _with_exit(value)
    return value


def _is_with_operand(value: Any) -> bool:
    """Whether a method looks at its operand itself."""
    return _is_compiled(value, "_operand_") or getattr(value, "__code__", None) in _OPERANDS


def _is_compiled(value: Any, guard: str | None) -> bool:
    """Whether a value is a function of the code that calls a guard itself; the code cannot name one."""
    if type(value) is not types.FunctionType or value.__builtins__ is not RESTRICTED:
        return False
    return guard is None or guard in value.__code__.co_names


def _bound(function: Any, obj: Any) -> Any:
    # A partial function: also one that stands for a function in C, which is not bound either.
    get = None if type(function) is functools.partial else getattr(type(function), "__get__", None)
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


def _with_number(function: Any) -> Any:
    """A flag makes one of itself of what comes out, and keeps that for the whole program."""

    def method(self: Any, other: Any, /) -> Any:
        made = _bound(function, self)(operand(other))
        return exact(made) if isinstance(self, int) else made

    return method


_OPERANDS = (_with_operand(None).__code__, _with_number(None).__code__)


def _with_step(function: Any) -> Any:
    def method(self: Any, /, *args: Any) -> Any:
        tick()
        return returned(callee(_bound(function, self))(*args))

    return method


LISTED = frozenset({"keys", "values", "items"})
"""Methods of a mapping: C makes a list of what they give, before it looks at any of it."""


def listed(value: Any) -> Any:
    """What such a method returns."""
    value = returned(value)
    return stream(value) if type(value) is range and len_of(value) > LONG else value


def listing(function: Any) -> Any:
    """What is kept in the place of such a method."""
    if isinstance(function, staticmethod | classmethod):
        inner = listing(function.__func__)
        inner = inner.__func__ if isinstance(inner, staticmethod) else inner
        return function if inner is function.__func__ else type(function)(inner)
    if not callable(function) or isinstance(function, type) or _is_compiled(function, "_listed_"):
        return function
    is_function = type(function) is types.FunctionType
    if is_function and function.__code__.co_flags & inspect.CO_GENERATOR:
        return function

    def method(*args: Any, **options: Any) -> Any:
        return listed(callee(function)(*args, **options))

    is_bound_later = is_function or isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType)
    return method if is_bound_later else staticmethod(method)


_PARTS = frozenset({"numerator", "denominator", "_numerator", "_denominator"})


def check_parts(name: str, bases: tuple[Any, ...]) -> None:
    """Raise if numbers would say themselves what a fraction is made of: the library remembers the hashes of these.

    Raises:
        TypeError: They would.
    """
    if name in _PARTS and any(isinstance(base, type) and _is_number(base) for base in bases):
        raise TypeError(f"`{name}` of a class of numbers cannot be defined here.")


def check_inherited_parts(bases: tuple[Any, ...]) -> None:
    """The same of what a class inherits."""
    for base in bases:
        for cls in base.__mro__ if isinstance(base, type) else ():
            if is_own(cls):
                for name in _PARTS & vars(cls).keys():
                    check_parts(name, bases)


def _is_number(cls: type) -> bool:
    """Whether a class, or one that derives from it, is one of whole numbers or of fractions."""
    return issubclass(cls, int | Fraction) or (is_own(cls) and any(map(_is_number, type.__subclasses__(cls))))


def _with_answer(function: Any) -> Any:
    def method(self: Any, /, *args: Any) -> Any:
        return returned(_bound(function, self)(*args))

    return method


def _with_missing(function: Any) -> Any:
    """Libraries ask an object for special attributes, and believe them: schemas, annotations, ways to copy it."""

    def __getattr__(self: Any, name: str, /) -> Any:
        if type(name) is not str or (name.startswith("__") and name.endswith("__") and name not in READABLE):
            raise AttributeError(f"`{name}` is not asked for here.")
        return returned(_bound(function, self)(name))

    return __getattr__


_MISSING_CODE = _with_missing(None).__code__


def left(leave: Any, *args: Any) -> bool:
    """Leave a context manager, as `__exit__` does: whether the error, the last of the arguments but one, disappears."""
    error = args[-2] if len(args) > 1 else None
    try:
        return bool(leave(*args)) and may_disappear(error)
    except BaseException:
        kept_flying(error)
        raise


def _with_exit(function: Any) -> Any:
    """The library enters what it is given (`ContextDecorator`), and has it make anything disappear."""
    is_function = type(function) is types.FunctionType

    def __exit__(self: Any, /, *args: Any) -> Any:
        if is_function and args and args[0] is None:
            return function(self, *args)
        return left(_bound(function, self), *args)

    return __exit__


_STREAMS = (io.StringIO, io.BytesIO)


def _next_line(self: Any, /) -> Any:
    """The next line of a stream: in C this calls `readline` again and again, whatever that is."""
    tick()
    line = callee(self.readline)()
    if not line:
        raise StopIteration
    return line


def inherited(bases: tuple[Any, ...]) -> dict[str, Any]:
    """The special methods that a class with these bases has of the library, and is to have in another version."""
    if any(isinstance(base, type) and issubclass(base, _STREAMS) for base in bases):
        return {"__next__": _next_line}
    for base in bases:
        ancestors = base.__mro__ if isinstance(base, type) else ()
        found = next((vars(one)["__ror__"] for one in ancestors if "__ror__" in vars(one)), None)
        if found is None or getattr(found, "__objclass__", None) in PLAIN:
            continue
        if not _is_with_operand(found):
            found = _with_operand(found)
        return {"__ror__": found}  # also what is looked at already: `Flag` would put its own method there
    return {}
