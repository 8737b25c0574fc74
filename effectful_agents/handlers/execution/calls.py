"""Calls, as restricted code makes them.

Every call `f(x)` is written as `_callee_(f)(x)`, so that a function of the code's own is called directly, and no frame
comes in between: a recursion goes as deep as elsewhere. What is not its own is called by `_outside`, which looks at the
arguments too, as they may be called, and at the result.
"""

from __future__ import annotations

import functools
import types
from abc import ABCMeta
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution import limits, methods, sizes
from effectful_agents.handlers.execution.attributes import RESTRICTED, check_precision, check_type_texts
from effectful_agents.handlers.execution.kinds import (
    DOCUMENTED,
    PLAIN,
    REPLACED,
    SANDBOX,
    VETTED,
    SafeModule,
    check_value,
    is_closed,
    is_foreign,
    is_inside,
    is_own,
    is_readable_special,
)
from effectful_agents.handlers.execution.names import is_attribute, is_private, is_standard
from effectful_agents.handlers.execution.streams import taken
from effectful_agents.runtime import Operation

__all__ = ["apply", "callee", "guarded"]

DIRECT: set[int] = set()
"""Functions and classes that may be called as they are: they call nothing back, and build nothing large."""

_DIRECT_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        [
            "split",
            "rsplit",
            "splitlines",
            "strip",
            "lstrip",
            "rstrip",
            "lower",
            "upper",
            "title",
            "capitalize",
            "casefold",
            "swapcase",
            "startswith",
            "endswith",
            "find",
            "rfind",
            "index",
            "rindex",
            "count",
            "isdigit",
            "isalpha",
            "isalnum",
            "isspace",
            "isupper",
            "islower",
            "isidentifier",
            "isnumeric",
            "isdecimal",
            "istitle",
            "isascii",
            "isprintable",
            "partition",
            "rpartition",
            "removeprefix",
            "removesuffix",
            "encode",
        ]
    ),
    list: frozenset(["append", "pop", "insert", "index", "count", "remove", "reverse", "clear", "copy"]),
    dict: frozenset(["get", "keys", "values", "items", "pop", "popitem", "copy", "clear"]),
    set: frozenset(["add", "discard", "remove", "pop", "clear", "copy", "isdisjoint"]),
    int: frozenset(["bit_length", "bit_count", "is_integer", "as_integer_ratio", "conjugate"]),
    float: frozenset(["is_integer", "as_integer_ratio", "hex", "conjugate"]),
    tuple: frozenset(["index", "count"]),
    bytes: frozenset(["decode", "hex", "startswith", "endswith", "find", "split", "strip"]),
}

_METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)


def callee(function: Any) -> Any:
    """What is called where the code calls this."""
    limits._clock.left -= 1  # `tick`, without a call: this is the most frequent of the guards
    if limits._clock.left < 0:
        limits.check()
    kind = type(function)
    if kind is types.FunctionType:
        if function.__builtins__ is RESTRICTED:
            return function
    elif kind is type:
        if id(function) in DIRECT or function.__module__ == SANDBOX:
            return function
    elif kind is types.BuiltinFunctionType:
        if id(function) in DIRECT:
            return function
        names = _DIRECT_METHODS.get(type(function.__self__))
        if names is not None:
            name = function.__name__
            if name in names:
                return function
            if name in methods.CHECKS:
                return functools.partial(methods.checked_call, function)
    elif kind is types.MethodType and getattr(function.__func__, "__builtins__", None) is RESTRICTED:
        return function
    return _slow_callee(function, kind)


def _slow_callee(function: Any, kind: type) -> Any:
    checked = guarded(function)
    if checked is not function and id(checked) in VETTED:
        return checked
    if kind.__module__ == SANDBOX or not _is_outside(checked):
        return checked
    return functools.partial(_outside, checked)


def _is_outside(function: Any) -> bool:
    """Whether a function belongs to the language or its library; a program's own gets what it is given as it is."""
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__")
        return is_standard(module)
    if isinstance(function, types.MethodType):
        return _is_outside(function.__func__)
    if isinstance(function, type):
        return is_standard(function.__module__) or isinstance(function, EnumType)
    return is_standard(type(function).__module__)


def apply(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, as the policy of RestrictedPython itself writes it."""
    return callee(function)(*args, **kwargs)


# --- calls of what is not the code's own --------------------------------------------------------------------------

_KEEPING = frozenset({list, tuple, set, frozenset, dict, sorted, bytes, bytearray})
_KEEPING_METHODS = frozenset(
    ["extend", "update", "union", "intersection", "difference", "symmetric_difference", "fromkeys", "join"]
)


def _outside(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call something that is not the code's own."""
    limits.tick()
    if isinstance(function, EnumType) and len(args) + len(kwargs) > 1:
        _check_enum(args, kwargs)
        kwargs["module"] = SANDBOX
    keeps = _keeps(function)
    args = tuple([_argument(value, keeps) for value in args])
    if kwargs:
        kwargs = {name: _argument(value, keeps) for name, value in kwargs.items()}
    _check_amounts(function, args, kwargs)
    return check_value(function(*args, **kwargs))


def _check_amounts(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What says how much a function of the library builds, where it is no argument of its own kind."""
    module = getattr(function, "__module__", None)
    if args and (function is bytes or function is bytearray):
        sizes.check_count(args[0])
    elif module == "_struct":
        for value in args:
            sizes.check_spec(None, value) if isinstance(value, str) else None
    elif module == "typing":
        check_type_texts([*[value for value in args if not isinstance(value, str)], *kwargs.values()])
    elif module == "decimal":
        check_precision(kwargs.get("prec", args[0] if args and function.__name__ == "Context" else None))
    for name in ("indent", "width"):
        sizes.check_count(kwargs.get(name))


def _keeps(function: Any) -> bool | None:
    """Whether a function keeps all that an iterator has, just looks through it, or leaves it alone (None)."""
    if isinstance(function, type):
        if function in _KEEPING or function.__module__ in ("collections", "array"):
            return True
        return None if function.__module__ == "builtins" and function not in (map, filter, zip, enumerate) else False
    if isinstance(function, types.BuiltinFunctionType):
        if function.__name__ in _KEEPING_METHODS or function in _KEEPING:
            return True
        return False if isinstance(function.__self__, types.ModuleType) and id(function) not in DIRECT else None
    return None


def _argument(value: Any, keeps: bool | None) -> Any:
    kind = type(value)
    if kind is range and keeps is not None:
        return taken(value, kept=keeps)
    if kind in PLAIN:
        return value
    if kind.__module__ == SANDBOX:
        return value
    if keeps is not None and hasattr(kind, "__next__"):
        return taken(value, kept=keeps)
    if isinstance(value, types.ModuleType) and kind is not SafeModule:
        return check_value(value)
    if callable(value):
        return guarded(value)
    if is_closed(kind):
        raise TypeError(f"a value of the kind `{kind.__name__}` is not available here.")
    sizes.check_number(value)
    return value


def _check_enum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The functional form of an enumeration: its names become attributes of the class."""
    names = args[1] if len(args) > 1 else kwargs.get("names")
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    for name in list(names) if names is not None and not isinstance(names, int) else ():
        check_new_attribute(name if isinstance(name, str) else name[0])
    if {"module", "qualname"} & kwargs.keys():
        raise TypeError("`module` and `qualname` of an enumeration cannot be set here.")


def check_new_attribute(name: Any) -> None:
    """Raise if a class that is made of a text cannot have an attribute of this name."""
    if type(name) is not str or not is_attribute(name) or (name.startswith("__") and name.endswith("__")):
        raise ValueError(f"a class made here cannot have an attribute `{name}`.")


# --- what may be called -------------------------------------------------------------------------------------------


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
    if kind is types.FunctionType:
        return _checked_function(function)
    if kind is types.MethodType:
        _checked_bound(function)
        return function
    if kind in _METHODS:
        return _checked_method(function)
    if kind in _DESCRIPTORS:
        return _checked_descriptor(function)
    if issubclass(kind, type):
        return _checked_class(function)
    if isinstance(function, functools.partial):
        guarded(function.func)
        return function
    if is_closed(kind) or (isinstance(function, Operation) and is_foreign(getattr(function, "__module__", None))):
        _refuse(function)
    return function


def _refuse(function: Any) -> Any:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    raise TypeError(f"`{name}` is not available here.")


def _checked_function(function: types.FunctionType) -> Any:
    if function.__builtins__ is RESTRICTED:
        return function
    module = function.__globals__.get("__name__")
    if not is_standard(module) or module == SANDBOX:
        # The program's own, unless it has imported it: what a module holds is as far away as the module.
        return _refuse(function) if is_foreign(module) and "." not in function.__code__.co_qualname else function
    name = function.__code__.co_name  # `wraps` has perhaps given it another name
    is_method = "." in function.__code__.co_qualname
    if not is_inside(module) or not is_method or not ("<locals>" in function.__code__.co_qualname or _is_public(name)):
        _refuse(function)
    return function


def _checked_bound(method: types.MethodType) -> None:
    target = method.__func__
    if isinstance(method.__self__, ABCMeta) and not is_own(method.__self__) and method.__name__ == "register":
        _refuse(method)
    if isinstance(target, types.FunctionType):
        _checked_function(target)
    else:
        guarded(target)


def _is_public(name: str) -> bool:
    return is_readable_special(name) and (not is_private(name) or name in DOCUMENTED or name == "_")


def _checked_method(method: Any) -> Any:
    """A function in C, or one that is bound to a value."""
    target, name = method.__self__, method.__name__
    if target is None or isinstance(target, types.ModuleType):
        module = getattr(method, "__module__", None) if target is None else target.__name__
        if is_standard(module):
            _refuse(method)  # the vetted ones have been let through
        return method
    if not is_readable_special(name):
        _refuse(method)
    if isinstance(target, type):
        if is_closed(target) or issubclass(target, type):
            _refuse(method)
    elif is_closed(type(target)):
        if callable(target) and name == "__call__":
            guarded(target)
        else:
            _refuse(method)
    if name in ("__setattr__", "__delattr__"):
        _refuse(method)
    if isinstance(target, _SIZED):
        if name in sizes.FORMATS:
            return functools.partial(sizes.FORMATS[name], target)
        if name in methods.CHECKS:
            return functools.partial(methods.checked_call, method)
    return method


_SIZED = (str, bytes, bytearray, list, tuple, int, float)


def _checked_descriptor(descriptor: Any) -> Any:
    """A method that is bound to nothing: `str.upper`."""
    owner, name = descriptor.__objclass__, descriptor.__name__
    if (
        is_closed(owner)
        or issubclass(owner, type)
        or not is_readable_special(name)
        or name in ("__setattr__", "__delattr__")
    ):
        _refuse(descriptor)
    if owner.__module__ == "builtins":
        if name in sizes.FORMATS:
            return sizes.FORMATS[name]
        if name in methods.CHECKS:
            return functools.partial(methods.checked_descriptor, descriptor)
    return descriptor


def _checked_class(cls: type) -> Any:
    if is_closed(cls) or issubclass(cls, type):
        _refuse(cls)
    if issubclass(cls, BaseException):
        if not issubclass(cls, Exception):
            _refuse(cls)
        return cls
    if cls.__module__ == SANDBOX:
        return cls
    if not is_standard(cls.__module__):
        return _refuse(cls) if is_foreign(cls.__module__) else cls
    if cls.__module__ == "builtins" or is_private(cls.__name__):
        _refuse(cls)  # the vetted ones have been let through
    return cls
