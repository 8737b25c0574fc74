"""Calls, as restricted code makes them.

Every call `f(x)` is written as `_callee_(f)(x)`, so that a function of the code's own is called directly, and no frame
comes in between: a recursion goes as deep as elsewhere. What is not its own is called by `_outside`, which looks at the
arguments too, as they may be called, and at the result.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import itertools
import operator
import types
import typing
from collections.abc import Iterable, Iterator
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution import limits, methods, showing, sizes, spreading
from effectful_agents.handlers.execution.callables import CALLEE, check_fields, guarded
from effectful_agents.handlers.execution.callbacks import (
    CACHED,
    DIRECT,
    DIRECT_METHODS,
    PASSING,
    believes,
    builds_nothing,
    calls_nothing,
    is_alias,
    is_called_inside,
    is_init,
    is_made_inside,
    is_outside,
    meant,
)
from effectful_agents.handlers.execution.decimals import check_fraction, check_made_number
from effectful_agents.handlers.execution.exact import exact_count
from effectful_agents.handlers.execution.growing import CASES
from effectful_agents.handlers.execution.hints import check_made_type
from effectful_agents.handlers.execution.keys import is_fixed
from effectful_agents.handlers.execution.kinds import (
    PLAIN,
    RESTRICTED,
    SANDBOX,
    VETTED,
    SafeModule,
    check_value,
    is_closed,
    is_own,
    library_base,
)
from effectful_agents.handlers.execution.makers import checked_arguments
from effectful_agents.handlers.execution.sizes import check_bits
from effectful_agents.handlers.execution.streams import in_pieces, mapped, stream, taken

__all__ = ["apply", "callee", "check_members"]


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
        if id(function) in DIRECT or (function.__module__ == SANDBOX and is_made_inside(function)):
            return function
    elif kind is types.BuiltinFunctionType:
        if id(function) in DIRECT:
            return function
        names = DIRECT_METHODS.get(type(function.__self__))
        if names is not None:
            name = function.__name__
            if name in names or (name in CASES and len(function.__self__) <= _SHORT):
                return function
            if name in methods.CHECKS:
                return functools.partial(methods.checked_call, function)
    elif kind is types.MethodType and getattr(function.__func__, "__builtins__", None) is RESTRICTED:
        return function
    return _slow_callee(function, kind)


_SHORT = sizes.WORTH_COUNTING // 3


def _slow_callee(function: Any, kind: type) -> Any:
    if kind in _BOUND and (real := meant(function)) is not function:
        return callee(real)
    if is_alias(kind):
        guarded(function)
        return callee(function.__origin__)  # itself it would write to what comes out
    checked = guarded(function)
    if checked is not function and id(checked) in VETTED and not is_outside(checked):
        return checked
    if is_called_inside(kind) if kind.__module__ == SANDBOX else not is_outside(checked):
        return checked
    if checked is function and kind is functools.partial:
        return functools.partial(callee(checked.func), *checked.args, **checked.keywords)
    return functools.partial(_outside, checked)


_BOUND = frozenset({types.MethodType, types.MethodWrapperType})

CALLEE.append(callee)


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
    args, kwargs = checked_arguments(function, args, kwargs)
    inner = taking = _within(function)
    target: tuple[Any, ...] = ()
    if is_init(inner):
        if type(inner) is types.WrapperDescriptorType:
            target, args = tuple(map(check_value, args[:1])), args[1:]
        inner = taking = inner.__objclass__
    elif inner is not function:
        taking = function
    keeps = _keeps(inner)
    args = tuple([_argument(value, keeps, taking) for value in args])
    if kwargs:
        kwargs = {name: _argument(value, keeps, taking) for name, value in kwargs.items()}
    if keeps and _is_keyed(inner):
        args = tuple([in_pieces(mapped(one) if _fills_mapping(inner) else one) for one in args])
    if isinstance(function, EnumType) and len(args) + len(kwargs) > 1:
        given = args[1] if len(args) > 1 else kwargs.get("names", ())
        pairs = [one[1] for one in given if isinstance(one, tuple)] if isinstance(given, list) else [args[1:]]
        check_members(kwargs.get("type") or function, pairs)
    if isinstance(function, types.MethodType | types.BuiltinFunctionType | types.MethodWrapperType):
        check_fields(function.__self__)
    _check_amounts(inner, args, kwargs)
    if CACHED in (type(function), type(getattr(function, "__func__", None))):
        function = _unkept(function, args, kwargs)
    made = function(*target, *args, **kwargs)
    # What came about in it, without a step that counts, is noticed before anything is done with it.
    limits.tick()
    if type(made) in PLAIN:
        if type(made) is int and not -_WORD < made < _WORD:
            check_bits(made.bit_length())
        return made
    if function is typing.NamedTuple or function is typing.TypedDict:
        made.__module__ = SANDBOX  # it took this module for the one that it is made in
    if type(made) in _LAZY:
        made = stream(made)
    check_made_number(made)
    check_made_type(made)
    return check_value(made)


_WORD = 1 << 64


def _unkept(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is called in the place of a function of the program that keeps what it gave, if it is not to keep this."""
    cached = function if type(function) is CACHED else function.__func__
    wrapped = cached.__wrapped__
    if getattr(wrapped, "__builtins__", None) is RESTRICTED or is_fixed((args, kwargs)):
        return function
    return wrapped if cached is function else types.MethodType(wrapped, function.__self__)


def _within(function: Any) -> Any:
    """What gets the arguments in the end, where a function only passes them on."""
    while True:
        kind = type(function)
        if is_alias(kind):
            function = function.__origin__
        elif kind is CACHED:
            function = function.__wrapped__
        else:
            return function


def _built(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The class of the library that a call makes something of, if it does, and what it is made of."""
    if isinstance(function, types.BuiltinFunctionType):
        if function.__name__ != "__new__":
            return function, args
        function, args = args[0] if args else function.__self__, args[1:]
    if isinstance(function, type) and is_own(function) and not isinstance(function, EnumType):
        function = library_base(function)
    return function, args


def check_members(enumeration: Any, values: Iterable[Any]) -> None:
    """Raise if a member of an enumeration would be too large: the library makes it of what the member has as value.

    Args:
        enumeration: A class that they derive from.
        values: The values of the members.
    """
    ancestors = enumeration.__mro__ if isinstance(enumeration, type) else ()
    data = [cls for cls in ancestors if not is_own(cls) and not isinstance(cls, EnumType) and cls is not object]
    for value in values:
        value = value.value if isinstance(value, enum.member) else value
        args = value if isinstance(value, tuple) else (value,)
        for cls in data:
            for one in args:
                if _argument(one, _keeps(cls), cls) is not one and not callable(one) and not is_own(type(one)):
                    raise TypeError("a member of an enumeration is not made of an iterator here; make a list of it.")
            _check_amounts(cls, args, {})


_LAZY = (itertools.chain, itertools.starmap, itertools.repeat)


def _check_amounts(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What says how much a function of the library builds, where it is no argument of its own kind."""
    if type(function) is types.BuiltinFunctionType:
        if function.__name__ == "__new__":
            function, args = _built(function, args)
    elif isinstance(function, type) and is_own(function):
        function, args = _built(function, args)
    module = getattr(function, "__module__", None)
    if args and (function is bytes or function is bytearray):
        sizes.check_count(args[0])
        if not isinstance(args[0], int) and hasattr(type(args[0]), "__index__"):
            raise TypeError(f"`{function.__name__}` takes an `int` here, not what has an `__index__`.")
        if isinstance(args[0], str):
            methods.CHECKS["encode"](*args, **kwargs)
    elif args and function is str:
        showing.check_shown(args[0])
    elif module == "_struct":
        for value in args:
            sizes.check_spec(None, value) if isinstance(value, str) else None
    elif module == "calendar":
        for value in (*args, *kwargs.values()):
            sizes.check_size(1000 * value) if type(value) is int and value > 10_000 else None
    elif function is operator.setitem and len(args) == 3 and isinstance(args[1], slice):
        sizes.check_sum(args[0], args[2])
    elif getattr(function, "__name__", "") in _MEASURED:
        _check_measured(function.__name__, args, kwargs)
    elif module == "fractions" and args:
        check_fraction(args[0])
    elif module == "decimal":
        methods.check_precision(kwargs.get("prec", args[0] if args and function.__name__ == "Context" else None))
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
            function = library_base(function)
        if function in _KEEPING or function.__module__ in ("collections", "array"):
            return True
        return None if function.__module__ == "builtins" and function not in (map, filter, zip, enumerate) else False
    if isinstance(function, types.BuiltinFunctionType):
        if function.__name__ in _KEEPING_METHODS:
            return True
        if function.__name__ == "__new__" and isinstance(function.__self__, type):
            return _keeps(function.__self__)
        if function in _KEEPING:
            return True
        return False if isinstance(function.__self__, types.ModuleType) and id(function) not in DIRECT else None
    if isinstance(function, types.MethodType):
        return True if function.__func__.__module__ == "collections" and function.__name__ in _KEEPING_METHODS else None
    return True if getattr(function, "__module__", None) in ("statistics", "heapq") else None


_KEYED = frozenset({set, frozenset, dict, collections.Counter, collections.OrderedDict, collections.defaultdict})


def _is_keyed(function: Any) -> bool:
    """Whether a function puts all that it gets into a set or a dictionary."""
    function, _ = _built(function, ())
    name = getattr(function, "__name__", None)
    return function in _KEYED if isinstance(function, type) else name in methods.KEYED_METHODS or name in _COUNTING


def _fills_mapping(function: Any) -> bool:
    """Whether a function puts pairs into a dictionary, and not values into a set."""
    function, _ = _built(function, ())
    owner = getattr(function, "__objclass__", None) or type(getattr(function, "__self__", None))
    return issubclass(function if isinstance(function, type) else owner, dict)


_COUNTING = frozenset({"mode", "multimode"})

_CALLING = frozenset({"builtins", "itertools", "heapq", "_heapq", "_bisect", "bisect", "json"})
"""Where the functions are that call what they are given with values that nobody has looked at."""


_CALLING_TYPES = frozenset({"collections", "re", "_sre", "functools", "_functools", "statistics", "contextlib"})
"""More of them, where what may be called is a type with something in brackets."""


def _is_called(function: Any, value: Any) -> bool:
    """Whether a function may call what it is given past a guard; where that is only kept, it stays what it is."""
    name = getattr(function, "__name__", None)
    module = getattr(getattr(function, "__func__", function), "__module__", None)
    if is_alias(type(value)) and function is not functools.partial:
        top = module.partition(".")[0] if isinstance(module, str) else None
        return id(function) not in DIRECT and (top in _CALLING or top in _CALLING_TYPES)
    if module == "typing" or (calls_nothing(function) and name != "sort"):
        return False
    if (name == "__new__" and isinstance(value, type)) or function is functools.partial:
        return False  # a partial function is taken apart where it is called
    if module == "contextlib" and isinstance(value, contextlib.AbstractContextManager):
        return False  # it is entered
    if calls_nothing(value):
        top = module.partition(".")[0] if isinstance(module, str) else None
        return (name == "sort" or top in _CALLING or module in PASSING) and not builds_nothing(value)
    return True


def _called(function: Any) -> Any:
    """What the library calls in the place of this: it is guarded as if the code itself called it."""
    if function is str:
        return showing.text
    if isinstance(function, EnumType):
        return _Enumeration(function)
    passed_on = type(function) is functools.partial or is_alias(type(function))
    return functools.partial(apply if passed_on else _outside, function)


class _Enumeration:
    """An enumeration of the program that is called, or gone through, by the library."""

    def __init__(self, enumeration: Any) -> None:
        self._enumeration = enumeration

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _outside(self._enumeration, *args, **kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._enumeration)

    def __len__(self) -> int:
        return len(self._enumeration)


def _argument(value: Any, keeps: bool | None, function: Any) -> Any:
    kind = type(value)
    if kind is range and keeps is not None:
        return taken(value, kept=keeps)
    if kind in PLAIN:
        return value
    if isinstance(value, BaseException) and not isinstance(value, Exception):
        raise TypeError("only an `Exception` can be raised here.")  # a generator that is closed shows one to `with`
    check_fields(value)
    if kind.__module__ == SANDBOX:
        if believes(_within(function)):
            value = exact_count(value)
            kind = type(value)
            if kind in PLAIN:
                return value
        if keeps and hasattr(kind, "__next__"):
            return taken(value, kept=True)
        if not callable(value) or is_called_inside(kind):
            sizes.check_number(value)
            return value
    elif keeps is not None and hasattr(kind, "__next__") and not hasattr(kind, "write"):
        return taken(value, kept=keeps)
    if isinstance(value, types.ModuleType) and kind is not SafeModule:
        return check_value(value)
    if callable(value):
        checked = guarded(value)
        return _called(checked) if _is_called(function, checked) else checked
    if is_closed(kind):
        raise TypeError(f"a value of the kind `{kind.__name__}` is not available here.")
    sizes.check_number(value)
    return value
