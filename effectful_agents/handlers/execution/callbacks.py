"""Functions that the library is given, and calls: which of them may be called as they are.

`map(f, values)` calls `f` from C, where no guard looks at the values. With a function that only works on them that does
no harm. One that calls what it gets (`map` itself, `property`, `SequenceMatcher`), or keeps it to have it called, is to
be called by a guard there too.
"""

from __future__ import annotations

import contextlib
import functools
import types
import typing
from decimal import Decimal
from enum import Enum, EnumType
from typing import Any

from effectful_agents.handlers.execution.kinds import (
    HOME,
    PLAIN,
    RESTRICTED,
    is_of_library,
    is_own,
    is_stand_in,
    library_base,
)
from effectful_agents.handlers.execution.names import is_standard

__all__ = [
    "CACHED",
    "DIRECT",
    "DIRECT_METHODS",
    "PASSING",
    "believes",
    "builds_nothing",
    "calls_nothing",
    "is_alias",
    "is_called_inside",
    "is_enumeration",
    "is_form",
    "is_init",
    "is_made_inside",
    "is_outside",
    "meant",
    "remember_init",
]

DIRECT: set[int] = set()
"""Functions and classes that may be called as they are: they call nothing back, and build nothing large."""

DIRECT_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        [
            *("split", "splitlines", "strip", "lstrip", "rstrip"),
            *("startswith", "endswith", "find", "index", "count", "isdigit", "isalpha", "isalnum"),
            *("isspace", "isupper", "islower", "isidentifier", "isnumeric", "isdecimal", "istitle", "isascii"),
            *("isprintable", "partition", "removeprefix", "removesuffix"),
        ]
    ),
    list: frozenset(["append", "pop", "insert", "index", "count", "remove", "reverse", "clear", "copy"]),
    dict: frozenset(["get", "keys", "values", "items", "pop", "popitem", "copy", "clear"]),
    set: frozenset(["add", "discard", "remove", "pop", "clear", "copy"]),
    int: frozenset(["bit_length", "bit_count", "is_integer", "as_integer_ratio", "conjugate"]),
    float: frozenset(["is_integer", "as_integer_ratio", "hex", "conjugate"]),
    tuple: frozenset(["index", "count"]),
    bytes: frozenset(["startswith", "endswith", "find", "split", "strip"]),
}
"""Methods of the built-in classes of which the same is true."""

CACHED = type(functools.cache(len))
"""The class of functions that keep what they have given."""

_ALIASES = (types.GenericAlias, typing._BaseGenericAlias)  # ty: ignore[missing-attribute]
_FORMS = frozenset({"typing", "typing_extensions"})


def is_alias(kind: type) -> bool:
    """Whether values of a class stand for another one, as `list[int]` and `Annotated[int, 1]` do.

    Who calls one calls what it stands for, past all guards, and writes to what comes out.
    """
    return issubclass(kind, _ALIASES)


def is_form(origin: Any) -> bool:
    """Whether what an alias stands for is a class or a type, and nothing else that could be called."""
    return isinstance(origin, type) or type(origin).__module__ in _FORMS or is_alias(type(origin))


def meant(function: Any) -> Any:
    """What is called where this is: `f.__call__` is `f`, and looked at as that.

    >>> meant(dict.__call__.__call__)
    <class 'dict'>
    """
    while type(function) in (types.MethodWrapperType, types.MethodType) and function.__name__ == "__call__":
        target, found = function.__self__, None
        for cls in type(target).__mro__:
            if "__call__" in vars(cls):
                found = vars(cls)["__call__"]
                break
        if type(function) is types.MethodWrapperType:
            is_its_own = type(found) is types.WrapperDescriptorType
        else:  # what `super()` has found is another one
            is_its_own = function.__func__ is found and not is_own(cls) and is_outside(found)
        if not is_its_own:
            break
        function = target
    return function


_inits: set[types.CodeType] = set()


def remember_init(init: Any) -> Any:
    """Take an `__init__` for one that looks at what it is given."""
    _inits.add(init.__code__)
    return init


def is_made_inside(cls: type) -> bool:
    """Whether objects of a class are made by functions of the code, which pass nothing on past a guard.

    One that derives from `defaultdict`, say, keeps what it is given.
    """
    init, new = cls.__init__, cls.__new__
    return (init is object.__init__ or _is_compiled(init)) and (new is object.__new__ or _is_compiled(new))


def _is_compiled(function: Any) -> bool:
    """Whether the policy has compiled a function; not `dataclass`, which does so among the names of `SANDBOX`."""
    if type(function) is not types.FunctionType:
        return False
    if function.__builtins__ is not RESTRICTED:
        return function.__code__ in _inits
    return function.__globals__ is not HOME.__dict__


def is_called_inside(kind: type) -> bool:
    """Whether objects of a class of the code are called by a function that passes nothing on past a guard."""
    return not is_outside(getattr(kind, "__call__", None))  # noqa: B004 - it is what stands there that matters


def is_outside(function: Any) -> bool:
    """Whether a function belongs to the language or its library; a program's own gets what it is given as it is."""
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__")
        return is_standard(module) or module in PASSING or (is_stand_in(module) and _is_method(function))
    if isinstance(function, types.MethodType):
        return is_outside(function.__func__)
    if isinstance(function, type):
        if is_own(function):
            return isinstance(function, EnumType) or not is_made_inside(function)
        return is_of_library(function.__module__) or isinstance(function, EnumType)
    return is_standard(type(function).__module__)


def _is_method(function: types.FunctionType) -> bool:
    """Whether a function stands in a class: one of the guards that does not looks at what it is given itself."""
    name = function.__code__.co_qualname
    return "." in name and "<locals>" not in name


_BELIEVING = frozenset(
    [
        *("_datetime", "_decimal", "_hashlib", "_pydatetime", "_pydecimal", "_random", "_strptime", "_struct"),
        *("base64", "binascii", "calendar", "colorsys", "datetime", "decimal", "fnmatch", "fractions", "hashlib"),
        *("hmac", "html", "ipaddress", "random", "shlex", "string", "struct", "textwrap", "time", "tomllib"),
        *("unicodedata", "urllib", "uuid", "zoneinfo", "ast", "re"),
    ]
)
"""Modules of the library that compute with numbers and texts, and neither keep them nor call their methods for them."""


def believes(function: Any) -> bool:
    """Whether a function of the library takes a number or a text for what it says about itself."""
    if isinstance(function, types.MethodType) and isinstance(function.__self__, EnumType):
        return not is_own(function.__self__)
    if isinstance(function, EnumType):
        return not is_own(function)  # it may keep the value for the whole program
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.MethodType):
        if isinstance(owner, Enum) and not is_own(type(owner)):
            return True
        function = function.__func__
    module = getattr(function, "__module__", None)
    if isinstance(function, types.FunctionType) and module == "enum":
        return True
    if module is None and owner is not None:
        module = library_base(owner if isinstance(owner, type) else type(owner)).__module__
    return type(module) is str and module.partition(".")[0] in _BELIEVING


def is_enumeration(function: Any) -> bool:
    """Whether what is called in the end is an enumeration of the program."""
    kind = type(function)
    if isinstance(function, functools.partial):
        return is_enumeration(function.func)
    if kind is CACHED:
        return is_enumeration(function.__wrapped__)
    if kind is types.MethodType:
        return is_enumeration(function.__self__)
    return isinstance(function, EnumType) and not is_own(function)


PASSING = frozenset(f"{__name__.rpartition('.')[0]}.{name}" for name in ("decimals", "quoting", "texts"))
"""Where functions pass on to the library what they are given."""

_ARITHMETIC = frozenset({"math", "cmath", "binascii", "unicodedata", "_struct", "_operator"})
_DATA_MODULES = frozenset({"array", "datetime", "decimal", "fractions", "uuid", "numbers", "abc", "collections.abc"})
_DATA_CLASSES = frozenset({"Counter", "OrderedDict", "ChainMap", "UserDict", "UserList", "deque"})


def _is_data(cls: type) -> bool:
    """Whether a class of the library is one of values, which call nothing."""
    module = cls.__module__
    return (
        cls in PLAIN
        or cls in (object, memoryview, typing.Generic, typing.Protocol)
        or module in _DATA_MODULES
        or (module == "collections" and cls.__name__ in _DATA_CLASSES)
        or issubclass(cls, BaseException)
    )


def calls_nothing(function: Any) -> bool:
    """Whether something that can be called does not call what it is given, nor keeps it for others that do."""
    kind = type(function)
    if id(function) in DIRECT:
        return True
    if isinstance(function, type):
        if isinstance(function, EnumType):
            return len(function) > 0
        if is_own(function):
            return is_made_inside(function) or all(is_own(cls) or _is_data(cls) for cls in function.__mro__)
        return _is_data(function) or not is_of_library(function.__module__)
    if kind is functools.partial:
        return calls_nothing(function.func)
    if is_alias(kind):
        return False
    if kind is CACHED:
        return calls_nothing(function.__wrapped__)
    if is_called_inside(kind) if is_own(kind) else not is_outside(function):
        return True
    if isinstance(function, types.BuiltinFunctionType):
        owner = function.__self__
        if isinstance(owner, types.ModuleType):
            return owner.__name__ in _ARITHMETIC
        return _is_data(owner if isinstance(owner, type) else type(owner))
    if is_init(function):
        return False
    if kind in (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType):
        return _is_data(function.__objclass__)
    if kind is types.MethodWrapperType:
        return _is_data(type(function.__self__))
    if is_own(kind) or isinstance(function, contextlib.ContextDecorator):
        return False  # it is called by a function of the library that calls what it decorates
    return kind not in (types.FunctionType, types.MethodType)


def is_init(function: Any) -> bool:
    """Whether it is the `__init__` of a class in C: it keeps and builds what a call of the class does."""
    kind = type(function)
    return (kind is types.MethodWrapperType or kind is types.WrapperDescriptorType) and function.__name__ == "__init__"


_SMALL = frozenset({int, float, bool, enumerate})


def builds_nothing(function: Any) -> bool:
    """Whether something that calls nothing can be called with anything: it builds nothing large of it."""
    kind = type(function)
    if kind is functools.partial:
        return function.func is not int and builds_nothing(function.func)
    if is_alias(kind):
        return builds_nothing(function.__origin__)
    if kind is CACHED:
        return builds_nothing(function.__wrapped__)
    if isinstance(function, type):
        if isinstance(function, EnumType):
            return is_own(function)  # a flag keeps what it makes
        if is_own(function) and not is_made_inside(function):
            function = library_base(function)
        if function is str:  # of a structure that contains itself many times
            return False
        is_library = is_of_library(function.__module__) or issubclass(function, Decimal)
        return id(function) in DIRECT or function in _SMALL or not is_library
    owner = function.__self__ if isinstance(function, types.BuiltinFunctionType) else None
    return id(function) in DIRECT or not isinstance(owner, types.ModuleType | type)
