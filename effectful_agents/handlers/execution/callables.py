"""What restricted code may call, and what may stand where the interpreter calls: decided by the kind of the value."""

from __future__ import annotations

import array
import collections
import enum
import functools
import re
import types
from abc import ABC, ABCMeta
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution import methods, sizes
from effectful_agents.handlers.execution.callbacks import (
    CACHED,
    calls_nothing,
    is_alias,
    is_enumeration,
    is_form,
    meant,
)
from effectful_agents.handlers.execution.descriptors import STREAMS, checked_descriptor, checked_unbound, refuse
from effectful_agents.handlers.execution.kinds import (
    DOCUMENTED,
    PLAIN,
    REPLACED,
    RESTRICTED,
    SANDBOX,
    VETTED,
    is_closed,
    is_foreign,
    is_inside,
    is_own,
    is_readable_special,
    is_stand_in,
    owner_of,
)
from effectful_agents.handlers.execution.models import is_model, validated
from effectful_agents.handlers.execution.names import is_private, is_standard
from effectful_agents.handlers.execution.streams import UNCOUNTED, stream
from effectful_agents.runtime import Operation
from effectful_agents.types import Skill

__all__ = ["CALLEE", "Guarded", "OwnDispatch", "allowed", "answering", "check_fields", "guarded", "returned", "stored"]

CALLEE: list[Callable[[Any], Any]] = []
"""`calls.callee`, set by that module, which this one cannot import."""

# The last is the kind of methods that are told which class they are of.
_METHODS = (types.BuiltinFunctionType, types.MethodWrapperType, type(re.compile("").sub))
_DESCRIPTORS = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)


def stored(value: Any) -> Any:
    """What may be kept in a class or an object in the place of this value: from there the library calls it.

    Raises:
        TypeError: It is something that the code cannot call.
    """
    return value if type(value) in PLAIN else _looked_at(allowed(value))


def allowed(value: Any) -> Any:
    """A value that may be kept, as it is, where what it is called with is looked at in another way.

    Raises:
        TypeError: It is something that the code cannot call.
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, _WRAPPERS):
        return _checked_wrapper(value)
    if isinstance(value, tuple):
        check_fields(value)
    if kind.__module__ == SANDBOX or not callable(value):
        return value
    return guarded(value)


def check_fields(value: Any) -> None:
    """Raise if a named tuple has a field that the code cannot call: as an attribute, somebody else may call it."""
    if isinstance(value, tuple) and type(value) is not tuple:
        for field in tuple.__iter__(value):
            if stored(field) is not field and type(field) is functools.partial:
                raise TypeError("a partial function that calls what it gets cannot be a field here; write a function.")


def returned(value: Any) -> Any:
    """What a function of the code returns: who has called it may go on and call that, as for a property.

    Raises:
        TypeError: It is something that the code cannot call.
    """
    kind = type(value)
    if kind in PLAIN or kind.__module__ == SANDBOX:
        return value
    if kind in UNCOUNTED:
        return stream(value)
    if not callable(value):
        return value
    return value if kind is type and value in _KINDS else _looked_at(guarded(value))


def _looked_at(value: Any) -> Any:
    """What is called in the place of a function that calls or keeps what it gets: a guard then sees what that is."""
    kind = type(value)
    if kind.__module__ == SANDBOX or (kind not in _PASSED_ON and not _makes_classes(value)) or calls_nothing(value):
        return value
    return Guarded(value)


def _makes_classes(value: Any) -> bool:
    """Whether it is `Enum`, or another enumeration without members: of more arguments it makes a class."""
    while is_alias(type(value)):
        value = value.__origin__
    return isinstance(value, enum.EnumType) and not is_own(value) and not len(value)


class Guarded:
    """A function of the library that is an attribute: whoever calls it does so by the guard of calls."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return CALLEE[0](self._function)(*args, **kwargs)

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        kind = type(self._function)
        get = None if kind is functools.partial else getattr(kind, "__get__", None)
        bound = self._function if get is None or obj is None else get(self._function, obj, owner)
        return self if bound is self._function else Guarded(bound)

    def __getattr__(self, name: str) -> Any:
        if name not in _TOLD:
            raise AttributeError(f"`{name}` of a function is not available here.")
        return getattr(self._function, name)

    def __eq__(self, other: object) -> bool:
        return self._function == (other._function if isinstance(other, Guarded) else other)

    def __hash__(self) -> int:
        return hash(self._function)

    def __repr__(self) -> str:
        return repr(self._function)


_TOLD = frozenset({"__name__", "__qualname__", "__doc__", "func", "args", "keywords"})
_PASSED_ON = frozenset({types.FunctionType, types.MethodType, *_METHODS, *_DESCRIPTORS, functools.partial, CACHED})


_KINDS = frozenset({types.FunctionType, types.MethodType, types.GeneratorType})
"""Classes that `type` gives for values of the code. They make nothing of what the code has."""


# --- what calls a function that it was given ----------------------------------------------------------------------

_GETTERS = (property, types.DynamicClassAttribute, enum.property)
_WRAPPERS = (
    *(*_GETTERS, staticmethod, classmethod, functools.cached_property, functools.partialmethod),
    *(functools.singledispatchmethod, enum.member, enum.nonmember),
)


def answering(function: Any) -> Any:
    """A function in whose answers the library finds what it calls: they are looked at.

    A function that the policy has compiled looks at them itself.
    """
    if type(function) is types.FunctionType and function.__builtins__ is RESTRICTED:
        return function
    while is_alias(type(function)):
        function = guarded(function.__origin__)

    def answer(*args: Any) -> Any:
        return returned(function(*args))

    answer.__doc__ = getattr(function, "__doc__", None)
    return answer


def _checked_wrapper(wrapper: Any) -> Any:
    """A property, or another object that calls a function where it stands in a class."""
    if isinstance(wrapper, enum.member | enum.nonmember):
        stored(wrapper.value)
        return wrapper
    kind = type(wrapper)
    if isinstance(wrapper, _GETTERS):
        parts = (wrapper.fget, wrapper.fset, wrapper.fdel)
        checked = tuple([part and stored(part) for part in parts])
        checked = (checked[0] and answering(checked[0]), *checked[1:])
        again: tuple[Any, ...] = (wrapper.__doc__,)
    else:
        parts = (wrapper.__func__ if isinstance(wrapper, staticmethod | classmethod) else wrapper.func,)
        checked = (stored(parts[0]),)
        if isinstance(wrapper, functools.cached_property):
            checked = (answering(checked[0]),)
        again = wrapper.args if kind is functools.partialmethod else ()
    if any(map(is_enumeration, parts)):
        raise TypeError("an enumeration cannot be called by a property or another wrapper here; write a function.")
    if all(part is other for part, other in zip(parts, checked, strict=True)):
        return wrapper
    if kind not in _WRAPPERS:
        refuse(wrapper)
    return kind(*checked, *again, **(wrapper.keywords if kind is functools.partialmethod else {}))


def guarded(function: Any) -> Any:
    """What restricted code may call in the place of this: itself, another function, or nothing.

    Raises:
        TypeError: Nothing.
    """
    if id(function) in REPLACED:
        return REPLACED[id(function)][1]
    if id(function) in VETTED:
        return function
    kind = type(function)
    if kind.__module__ == SANDBOX:
        return function
    if kind in _BOUND and (real := meant(function)) is not function:
        return guarded(real)
    if kind is types.FunctionType:
        return _checked_function(function)
    if kind is types.MethodType:
        _checked_bound(function)
        return _measured(function)
    if kind in _METHODS:
        return _checked_method(function)
    if kind in _DESCRIPTORS:
        return checked_descriptor(function)
    if issubclass(kind, type):
        return _checked_class(function)
    if isinstance(function, functools.partial):
        guarded(function.func)
        return function
    if is_alias(kind):
        inner = guarded(function.__origin__)
        return function if is_form(function.__origin__) else inner
    if kind is CACHED:
        guarded(function.__wrapped__)
        return function
    if is_closed(kind) or (isinstance(function, Operation) and is_foreign(getattr(function, "__module__", None))):
        refuse(function)
    return function


def _checked_function(function: types.FunctionType) -> Any:
    if function.__builtins__ is RESTRICTED:
        return function
    module = function.__globals__.get("__name__")
    if is_stand_in(module) and _makes_a_stand_in(function.__code__.co_qualname):
        refuse(function)
    if not is_standard(module) or module == SANDBOX:
        # The program's own, unless it has imported it: what a module holds is as far away as the module.
        return refuse(function) if is_foreign(module) and "." not in function.__code__.co_qualname else function
    name = function.__code__.co_name  # `wraps` has perhaps given it another name
    if name == "register" and module == "functools":  # of a dispatcher of the program; the code's own have another
        refuse(function)
    is_method = "." in function.__code__.co_qualname
    if name == "__format__" and is_inside(module):
        return checked_unbound(function)
    if not is_inside(module) or not is_method or not ("<locals>" in function.__code__.co_qualname or _is_public(name)):
        refuse(function)
    return function


def _makes_a_stand_in(qualname: str) -> bool:
    """Whether it is the `__init__` of a class that only the guards make objects of: it keeps what nobody looks at."""
    owner, _, name = qualname.rpartition(".")
    return name in ("__init__", "__new__") and is_private(owner)


class OwnDispatch:
    """A dispatcher that restricted code has made, and may add to."""


def _checked_bound(method: types.MethodType) -> None:
    target = method.__func__
    if method.__name__ in _CLEARING and isinstance(method.__self__, type) and not is_own(method.__self__):
        refuse(method)  # where that class is written in Python
    if method.__name__ == "register" and target is ABCMeta.register and is_register(method.__self__):
        refuse(method)
    if isinstance(method.__self__, OwnDispatch):
        return
    if isinstance(target, types.FunctionType):
        _checked_function(target)
    else:
        guarded(target)


def is_register(cls: Any) -> bool:
    """Whether `cls.register` would tell an abstract class of the program or the library who counts as one of it."""
    if not isinstance(cls, ABCMeta) or owner_of(cls, "register") is not ABCMeta:
        return False
    return not all(base in (object, ABC) or is_own(base) for base in cls.__mro__)


def _measured(method: types.MethodType) -> Any:
    """A method of the library that is written in Python, and passes what it gets to one that builds something large."""
    target, name = method.__self__, method.__name__
    if name == "define" and (
        isinstance(target, Operation) or (isinstance(target, type) and issubclass(target, Operation))
    ):
        return functools.partial(_defined, method)
    if name == "model_validate" and isinstance(target, type) and is_model(target):
        return functools.partial(validated, method)
    if isinstance(target, _WRAPPING) and name in methods.CHECKS and is_standard(method.__func__.__module__):
        return functools.partial(methods.checked_wrapped, method)
    if name == "__format__" and is_inside(method.__func__.__module__):
        return functools.partial(methods.checked_call, method)
    other = methods.instead_of(type(target), name) if isinstance(target, Fraction) else None
    return method if other is None else functools.partial(other, target)


def _defined(define: types.MethodType, /, *args: Any, **options: Any) -> Any:
    """Make an operation of functions of the code only: whoever performs it calls them past the guards."""
    if issubclass(define.__self__ if isinstance(define.__self__, type) else type(define.__self__), Skill):
        refuse(define)  # its prompt is a template, which reaches into what it is filled with
    for value in (*args, *options.values()):
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if callable(function) and not (
            isinstance(function, types.FunctionType) and function.__builtins__ is RESTRICTED
        ):
            refuse(function)
    return define(*args, **options)


_WRAPPING = (collections.UserList,)


def _is_public(name: str) -> bool:
    return is_readable_special(name) and (not is_private(name) or name in DOCUMENTED or name == "_")


def _checked_method(method: Any) -> Any:
    """A function in C, or one that is bound to a value."""
    target, name = method.__self__, method.__name__
    if target is None or isinstance(target, types.ModuleType):
        module = getattr(method, "__module__", None) if target is None else target.__name__
        if is_standard(module):
            refuse(method)  # the vetted ones have been let through
        return method
    if not is_readable_special(name):
        refuse(method)
    if name in _CLEARING and _is_remembering(target):
        refuse(method)
    elif isinstance(target, type):
        if is_closed(target) or issubclass(target, type):
            refuse(method)
    elif is_closed(type(target)):
        refuse(method)
    if name in ("__setattr__", "__delattr__"):
        refuse(method)
    other = methods.instead_of(type(target), name)
    if other is not None:
        return functools.partial(other, target)
    if name == "__format__" and not isinstance(target, type):
        return functools.partial(methods.checked_call, method)
    if isinstance(target, _SIZED):
        if name in sizes.FORMATS:
            return functools.partial(sizes.FORMATS[name], target)
        if name in methods.CHECKS and name != "__init__":  # who calls that one looks at what it keeps, too
            return functools.partial(methods.checked_call, method)
    return method


_BOUND = frozenset({types.MethodType, types.MethodWrapperType})
_CLEARING = frozenset({"cache_clear", "clear_cache"})


def _is_remembering(target: Any) -> bool:
    """Whether a function, or a class, remembers something that the code did not put there alone."""
    if isinstance(target, type):
        return not is_own(target)
    return getattr(getattr(target, "__wrapped__", None), "__builtins__", None) is not RESTRICTED


_SIZED = (
    *(str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, range),
    *(array.array, collections.deque, *STREAMS),
    *(type({}.keys()), type({}.items()), memoryview),
)


def _checked_class(cls: type) -> Any:
    if is_closed(cls) or issubclass(cls, type):
        refuse(cls)
    if issubclass(cls, BaseException):
        if not issubclass(cls, Exception):
            refuse(cls)
        return cls
    if cls.__module__ == SANDBOX:
        return cls
    if is_stand_in(cls.__module__):
        refuse(cls)  # the guards make objects of it; those that the code makes have been let through
    if not is_standard(cls.__module__):
        return refuse(cls) if is_foreign(cls.__module__) else cls
    if cls.__module__ == "builtins" or is_private(cls.__name__):
        refuse(cls)  # the vetted ones have been let through
    return cls
