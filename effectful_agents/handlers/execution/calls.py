"""Calls, as restricted code makes them.

Every call `f(x)` is written as `_callee_(f)(x)`, so that a function of the code's own is called directly, and no frame
comes in between: a recursion goes as deep as elsewhere. What is not its own is called by `_outside`, which looks at the
arguments too, as they may be called, and at the result.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
from decimal import Decimal
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution import limits, methods, showing, sizes, spreading
from effectful_agents.handlers.execution.attributes import check_precision, check_type_texts
from effectful_agents.handlers.execution.callables import guarded, stored
from effectful_agents.handlers.execution.decimals import check_fraction, check_made
from effectful_agents.handlers.execution.kinds import (
    HOME,
    PLAIN,
    RESTRICTED,
    SANDBOX,
    VETTED,
    SafeModule,
    check_value,
    is_closed,
    is_own,
)
from effectful_agents.handlers.execution.names import is_attribute, is_standard
from effectful_agents.handlers.execution.streams import stream, taken

__all__ = ["apply", "callee"]

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


def callee(function: Any) -> Any:
    """What is called where the code calls this."""
    limits._clock.left -= 1  # `tick`, without a call: this is the most frequent of the guards
    if limits._clock.left < 0:
        run = limits._run.get()
        run.check() if run is not None else limits.check()
    kind = type(function)
    if kind is types.FunctionType:
        if function.__builtins__ is RESTRICTED:
            return function
    elif kind is type:
        if function is str:
            return showing.text
        if function is slice:
            return spreading.slice_
        if id(function) in DIRECT or (function.__module__ == SANDBOX and _is_made_inside(function)):
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
    if checked is not function and id(checked) in VETTED and not _is_outside(checked):
        return checked
    if kind.__module__ == SANDBOX or not _is_outside(checked):
        return checked
    if checked is function and kind is functools.partial:
        return functools.partial(callee(checked.func), *checked.args, **checked.keywords)
    return functools.partial(_outside, checked)


def _is_outside(function: Any) -> bool:
    """Whether a function belongs to the language or its library; a program's own gets what it is given as it is."""
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__")
        return is_standard(module) or module in _PASSING
    if isinstance(function, types.MethodType):
        return _is_outside(function.__func__)
    if isinstance(function, type):
        if is_own(function):
            return isinstance(function, EnumType) or not _is_made_inside(function)
        return is_standard(function.__module__)
    return is_standard(type(function).__module__)


_PASSING = frozenset(f"{__name__.rpartition('.')[0]}.{name}" for name in ("decimals", "texts"))
"""Where functions pass on to the library what they are given."""


def _is_made_inside(cls: type) -> bool:
    """Whether objects of a class are made by functions of the code, which pass nothing on past a guard.

    One that derives from `defaultdict`, or that `dataclass` has written an `__init__` for, keeps what it is given.
    """
    init, new = cls.__init__, cls.__new__
    return (init is object.__init__ or _is_compiled(init)) and (new is object.__new__ or _is_compiled(new))


def _is_compiled(function: Any) -> bool:
    """Whether the policy has compiled a function; not `dataclass`, which does so among the names of `SANDBOX`."""
    if type(function) is not types.FunctionType or function.__builtins__ is not RESTRICTED:
        return False
    return function.__globals__ is not HOME.__dict__


def apply(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, as the policy of RestrictedPython itself writes it."""
    return callee(function)(*args, **kwargs)


# --- calls of what is not the code's own --------------------------------------------------------------------------

_KEEPING = frozenset({list, tuple, set, frozenset, dict, sorted, bytes, bytearray})
_KEEPING_METHODS = frozenset(
    [
        "extend",
        "extendleft",
        "fromlist",
        "subtract",
        "update",
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
        "fromkeys",
        "join",
    ]
)


def _outside(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call something that is not the code's own."""
    limits.tick()
    if isinstance(function, EnumType) and len(args) + len(kwargs) > 1:
        args, kwargs = _checked_enum(args, kwargs)
    keeps = _keeps(function)
    calls = keeps is not None and getattr(function, "__module__", None) in _CALLING
    args = tuple([_argument(value, keeps, calls) for value in args])
    if kwargs:
        kwargs = {name: _argument(value, keeps, calls) for name, value in kwargs.items()}
    _check_amounts(function, args, kwargs)
    made = function(*args, **kwargs)
    if type(made).__module__ == "decimal":
        check_made(made)
    elif type(made) in _LAZY:
        made = stream(made)
    # What came about in it, without a step that counts, is noticed before anything is done with it.
    limits.tick()
    return check_value(made)


_CALLING = frozenset({"builtins", "itertools", "heapq", "_heapq", "_bisect", "bisect", "json", "re", "csv"})
"""Where the functions are that call what they are given with values that nobody has looked at."""
_LAZY = (itertools.chain, itertools.starmap, itertools.repeat)


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
    elif module == "calendar":
        for value in args:
            sizes.check_size(1000 * value) if type(value) is int and value > 10_000 else None
    elif function is operator.setitem and len(args) == 3 and isinstance(args[1], slice):
        sizes.check_sum(args[0], args[2])
    elif module == "itertools" and len(args) > 1 and getattr(function, "__name__", "") == "tee":
        sizes.check_count(args[1])
    elif getattr(function, "__name__", "") in _MEASURED:
        _check_measured(function.__name__, args, kwargs)
    elif module == "fractions" and args:
        check_fraction(args[0])
    elif module == "decimal":
        check_precision(kwargs.get("prec", args[0] if args and function.__name__ == "Context" else None))
    for name in ("indent", "width"):
        sizes.check_count(kwargs.get(name))


_MEASURED = frozenset({"digest", "hexdigest", "writerow", "strftime"})


def _check_measured(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if name == "writerow":
            showing.check_shown(value)
        elif name == "strftime":
            sizes.check_size(256 * sizes.length(value))
        else:
            sizes.check_count(value)


def _keeps(function: Any) -> bool | None:
    """Whether a function keeps all that an iterator has, just looks through it, or leaves it alone (None)."""
    if isinstance(function, type):
        if is_own(function):
            return None
        if function in _KEEPING or function.__module__ in ("collections", "array"):
            return True
        return None if function.__module__ == "builtins" and function not in (map, filter, zip, enumerate) else False
    if isinstance(function, types.BuiltinFunctionType):
        if function.__name__ in _KEEPING_METHODS or function in _KEEPING:
            return True
        return False if isinstance(function.__self__, types.ModuleType) and id(function) not in DIRECT else None
    if isinstance(function, types.MethodType):
        return True if function.__func__.__module__ == "collections" and function.__name__ in _KEEPING_METHODS else None
    return True if getattr(function, "__module__", None) in ("statistics", "heapq") else None


def _argument(value: Any, keeps: bool | None, calls: bool = False) -> Any:
    kind = type(value)
    if kind is range and keeps is not None:
        return taken(value, kept=keeps)
    if kind in PLAIN:
        return value
    if keeps and kind is types.GeneratorType:
        return taken(value, kept=True)
    if kind.__module__ == SANDBOX:
        sizes.check_number(value)
        return taken(value, kept=True) if keeps and hasattr(kind, "__next__") else value
    if keeps is not None and hasattr(kind, "__next__"):
        return taken(value, kept=keeps)
    if isinstance(value, types.ModuleType) and kind is not SafeModule:
        return check_value(value)
    if callable(value):
        return _called(value) if calls else guarded(value)
    if is_closed(kind):
        raise TypeError(f"a value of the kind `{kind.__name__}` is not available here.")
    sizes.check_number(value)
    return value


_UNCHECKED = (int, float, bool, enumerate, EnumType)


def _called(function: Any) -> Any:
    """What a function of the library calls in the place of this: guarded as if the code itself called it."""
    checked = guarded(function)
    kind = type(checked)
    if checked is str:
        return showing.text
    if id(checked) in DIRECT or (kind is type and checked in _UNCHECKED):
        return checked
    if kind is functools.partial:
        return functools.partial(apply, checked)
    is_function = kind is types.BuiltinFunctionType and isinstance(checked.__self__, types.ModuleType)
    if is_function or (kind is type and (is_standard(checked.__module__) or issubclass(checked, Decimal))):
        return functools.partial(_outside, checked)
    return checked


def _checked_enum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the functional form of an enumeration, whose names become attributes of the class.

    They are read once: another time something else could be there.
    """
    if {"module", "qualname"} & kwargs.keys():
        raise TypeError("`module` and `qualname` of an enumeration cannot be set here.")
    kwargs = {**kwargs, "module": SANDBOX}
    if len(args) > 1:
        args = (args[0], _enum_names(args[1]), *args[2:])
    elif "names" in kwargs:
        kwargs["names"] = _enum_names(kwargs["names"])
    return args, kwargs


def _enum_names(names: Any) -> list[Any]:
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    pairs = names.items() if isinstance(names, dict) else names
    made: list[Any] = []
    for each in pairs:
        name, *value = (each,) if isinstance(each, str) else each
        check_new_attribute(name)
        made.append((name, *map(stored, value)) if value else name)
    return made


def check_new_attribute(name: Any) -> None:
    """Raise if a class that is made of a text cannot have an attribute of this name."""
    if type(name) is not str or not is_attribute(name) or (name.startswith("__") and name.endswith("__")):
        raise ValueError(f"a class made here cannot have an attribute `{name}`.")
