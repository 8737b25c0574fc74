"""Attributes and items, as restricted code reads and writes them."""

from __future__ import annotations

import types
import weakref
from enum import Enum, EnumType
from typing import Any

from effectful_agents.handlers.execution.callables import CALLEE, is_register, stored
from effectful_agents.handlers.execution.callbacks import is_alias
from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.hints import subscribed
from effectful_agents.handlers.execution.kept_back import instead
from effectful_agents.handlers.execution.kinds import (
    PLAIN,
    RESTRICTED,
    SANDBOX,
    SafeModule,
    check_private,
    check_value,
    is_closed,
    is_of_library,
    is_own,
    safe_module,
)
from effectful_agents.handlers.execution.metaclasses import OfMetaclasses
from effectful_agents.handlers.execution.methods import check_precision
from effectful_agents.handlers.execution.models import check_model_name
from effectful_agents.handlers.execution.names import is_attribute, is_private, is_standard
from effectful_agents.handlers.execution.sizes import FORMATS, MAX_EXPONENT
from effectful_agents.handlers.execution.specials import LISTED, check_parts, kept, listed
from effectful_agents.handlers.execution.spreading import MET, meet, slices
from effectful_agents.runtime import Operation

__all__ = [
    "CALLABLES",
    "SHARED",
    "check_name",
    "delete_attribute",
    "get_attribute",
    "get_item",
    "has_attribute",
    "set_attribute",
    "stored_as",
    "writable",
]

_MISSING: Any = object()
_ordinary: set[str] = set()
_private: set[str] = set()

WHOLLY_OWN: weakref.WeakSet[type] = weakref.WeakSet()
"""Classes of restricted code that inherit from nothing else: what is private in them is theirs."""

CALLABLES = (
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType),
    *(types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType),
)
_CLASS_NAMES = frozenset(["__name__", "__qualname__", "__doc__"])
_FUNCTION_NAMES = frozenset(["__name__", "__qualname__", "__doc__", "__call__"])
_GENERATOR_NAMES = frozenset(["send", "throw", "close", "__next__", "__iter__", "__name__", "__qualname__", "__doc__"])


def get_attribute(obj: Any, name: str, default: Any = _MISSING) -> Any:
    """`obj.name`, and `getattr`.

    Raises:
        AttributeError: There is none, or it is not available to restricted code; a default does not count for that.
    """
    # The names that were read before, and that need no second look: this is written for the many.
    if type(name) is not str or name not in _ordinary:
        return _get_unusual(obj, name, default)
    kind = type(obj)
    if kind not in PLAIN and kind.__module__ != SANDBOX:
        obj = _checked_object(obj, kind, name)
    value = getattr(obj, name) if default is _MISSING else getattr(obj, name, default)
    return value if type(value) in PLAIN else check_value(value)


SPECIAL: dict[str, Any] = {}
"""Special attributes that are given in versions of their own; filled by a module that this one cannot import."""


def _get_unusual(obj: Any, name: str, default: Any) -> Any:
    if type(name) is str and name in SPECIAL:
        try:
            return SPECIAL[name](obj)
        except AttributeError:
            if default is _MISSING:
                raise
            return default
    if type(name) is str and name in _private and type(obj) in WHOLLY_OWN:
        return check_value(_read(obj, name, default))
    check_name(obj, name)
    if is_private(name) and len(_private) < 10_000:
        _private.add(name)
    if name in FORMATS or name[0] == "_" or name in SHARED:
        return _get_special(obj, name, default)
    if len(_ordinary) < 10_000:
        _ordinary.add(name)
    return get_attribute(obj, name, default) if name in _ordinary else _get_special(obj, name, default)


def _read(obj: Any, name: str, default: Any) -> Any:
    return getattr(obj, name) if default is _MISSING else getattr(obj, name, default)


def _get_special(obj: Any, name: str, default: Any) -> Any:
    kind = type(obj)
    if kind.__module__ != SANDBOX and kind not in PLAIN:
        obj = _checked_object(obj, kind, name)
    if name in ("__setattr__", "__delattr__"):
        return _attribute_writer(obj, name)
    if name == "__members__" and isinstance(obj, EnumType):
        return dict(obj.__members__)
    if name == "__init__" and _is_with_members(obj):
        raise AttributeError("`__init__` of members of an enumeration is not available here: they are what they are.")
    value = _read(obj, name, default)
    if type(value) in _MUTABLE and _is_shared(obj, name, value):
        return value.copy()
    return _guarded_format(value, name) if name in FORMATS else check_value(value)


def _is_with_members(obj: Any) -> bool:
    """Whether something is a member of an enumeration of the program, or such an enumeration."""
    cls = obj if type(obj) is not super and isinstance(obj, type) else type(obj)
    return isinstance(cls, EnumType) and not is_own(cls) and len(cls) > 0


_MUTABLE = (dict, list, set)
SHARED: set[str] = set()
"""Names under which classes of the library have something that can be changed."""


def _is_shared(obj: Any, name: str, value: Any) -> bool:
    """Whether an attribute is that of a class of the library, or one by which the library finds its way in a class."""
    for cls in (obj if isinstance(obj, type) else type(obj)).__mro__:
        if vars(cls).get(name, _MISSING) is value:
            return is_standard(cls.__module__) or isinstance(cls, EnumType) or issubclass(cls, tuple)
    return False


def _guarded_format(value: Any, name: str) -> Any:
    """`str.format` in a version that looks at the template, if it is that; a class may have a `format` of its own."""
    if isinstance(value, types.MethodDescriptorType) and value.__objclass__ is str:
        return FORMATS[name]
    if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, str):
        return _BoundFormat(FORMATS[name], value.__self__)
    return check_value(value)


class _BoundFormat:
    """The method `format` of a text. Like a method in C, and unlike a function, it takes no `self` in a class."""

    __slots__ = ("_function", "_template")

    def __init__(self, function: Any, template: str) -> None:
        self._function = function
        self._template = template

    def __repr__(self) -> str:
        return repr(getattr(self._template, self._function.__name__.strip("_")))

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return self._function(self._template, *args, **kwargs)


def check_name(obj: Any, name: Any) -> None:
    """Raise if restricted code cannot read or write an attribute of this name of this object."""
    if type(name) is not str:  # a class of one's own could be equal to anything
        raise TypeError(f"the name of an attribute is a `str`, not `{type(name).__name__}`.")
    if not is_attribute(name):
        raise AttributeError(f"`{name}` is not available here{instead('attribute', name)}.")
    if name[0] == "_":
        check_private(obj, name)


def _checked_object(obj: Any, kind: type, name: str) -> Any:
    if kind is SafeModule:
        return obj
    check_model_name(obj, name)
    if issubclass(kind, types.ModuleType):
        return safe_module(obj.__name__)
    if issubclass(kind, type):
        _check_class(obj, name)
    elif is_alias(kind):
        _checked_object(obj.__origin__, type(obj.__origin__), name)  # it has what that has
    elif kind in CALLABLES:
        if name not in _FUNCTION_NAMES and name not in getattr(obj, "__dict__", ()) and not _is_absent(obj, kind, name):
            raise AttributeError(f"`{name}` of a function is not available here.")
    elif kind is types.GeneratorType:
        if name not in _GENERATOR_NAMES:
            raise AttributeError(f"`{name}` of a generator is not available here.")
    elif is_closed(kind):
        raise AttributeError(f"`{name}` of a `{kind.__name__}` is not available here.")
    elif kind is super and is_of_library(obj.__thisclass__.__module__):
        raise AttributeError("`super` names a class of your own here.")  # what it skips is there for a reason
    elif issubclass(kind, Operation) and name not in _FUNCTION_NAMES:
        _check_operation(obj, name)
    return obj


def _is_absent(function: Any, kind: type, name: str) -> bool:
    """Whether a function has no such attribute, and none that is kept back either: a default counts then."""
    if kind is types.FunctionType and function.__builtins__ is RESTRICTED:
        return not hasattr(kind, name)
    return not hasattr(kind, name) and not hasattr(function, name)


def _check_operation(operation: Any, name: str) -> None:
    """Raise unless it is a text or a number: the rest of an operation leads past the handlers that stand before it."""
    kind = type(getattr(operation, name, None))
    if name[0] == "_" or (name != "define" and (kind not in PLAIN or kind in _MUTABLE)):
        raise AttributeError(f"`{name}` of an operation is not available here; call it.")


def _check_class(cls: type, name: str) -> None:
    if name in _CLASS_NAMES:
        return
    if issubclass(cls, Operation):
        _check_operation(cls, name)
    if is_closed(cls):
        raise AttributeError(f"the class `{cls.__name__}` is not available here.")
    if type(cls) is OfMetaclasses or type.__subclasscheck__(type, cls):
        raise AttributeError(f"`{name}` of a metaclass is not available here.")
    if name == "mro" or (name == "register" and is_register(cls)):
        raise AttributeError(f"`{cls.__name__}.{name}` is not available here{instead('attribute', name)}.")


def _attribute_writer(obj: Any, name: str) -> Any:
    # `object.__setattr__(self, "x", 1)`, `super().__setattr__("x", 1)`, or `self.__setattr__("x", 1)`.
    write = getattr(obj, name)
    bound = type(write) in _BOUND

    def writer(*args: Any) -> None:
        if len(args) < (1 if bound else 2):
            raise TypeError(f"`{name}` takes an object, the name of an attribute, and its value.")
        # Who is written to is what the interpreter goes by, and not what stands first.
        target, attribute, *value = (write.__self__, *args) if bound else args
        check_name(target, attribute)
        writable(target, attribute)
        value = [stored_as(attribute, one) for one in value]
        write(attribute, *value) if bound else write(target, attribute, *value)

    return writer


_BOUND = (types.MethodWrapperType, types.MethodType)


def has_attribute(obj: Any, name: str) -> bool:
    """`hasattr`: what is not available is not there."""
    try:
        get_attribute(obj, name)
    except (AttributeError, ImportError, TypeError):
        return False
    return True


def set_attribute(obj: Any, name: str, value: Any) -> None:
    """`setattr`."""
    check_name(obj, name)
    setattr(writable(obj, name), name, value)


def delete_attribute(obj: Any, name: str) -> None:
    """`delattr`."""
    check_name(obj, name)
    delattr(writable(obj, name), name)


def writable(obj: Any, name: str | None = None) -> Any:
    """An object whose attributes and items are about to be written, if they may be.

    What the code and the program share is not the code's to change: modules, and classes and functions of others.
    """
    kind = type(obj)
    if kind in PLAIN:
        return obj if name is not None else _with_slices(obj)
    if (
        kind.__module__ == SANDBOX
        or (kind is types.FunctionType and obj.__builtins__ is RESTRICTED)
        or (isinstance(obj, type) and is_own(obj))
    ):
        return _with_slices(obj) if name is None else _Written(obj)
    if (
        isinstance(obj, types.ModuleType | Enum)  # what is the code's own has been let through
        or (isinstance(obj, type) and not is_own(obj))
        or kind in CALLABLES
        or isinstance(obj, Operation)  # a tool: what it is declared to be is what policies go by
        or is_closed(kind)
        or (isinstance(obj, ImportError) and name not in _TOLD)
        or (is_of_library(kind.__module__) and not _is_writable_kind(kind, name))
    ):
        raise TypeError(f"`{getattr(obj, '__name__', kind.__name__)}` cannot be changed here.")
    if name is not None and name[0] == "_":
        check_private(obj, name)
    if kind.__name__ == "Context" and name in ("prec", "Emax", "Emin"):
        return _DecimalContext(obj)
    return _with_slices(obj) if name is None else _Written(obj)


_TOLD = frozenset({"args", "msg"})
"""What may be written to an `ImportError`. Who shows one imports the module that it names, to look for like names."""


def _with_slices(obj: Any) -> Any:
    return slices(obj) if MET else obj


_WRITABLE_KINDS = frozenset({"Context", "DictReader", "DictWriter", "SimpleNamespace", "TextWrapper"})


def _is_writable_kind(kind: type, name: str | None) -> bool:
    """Whether objects of a class of the library may be written to.

    Few have attributes that are meant to be. Of the others the library itself believes what it finds: the name of a
    `dataclasses.Field` goes into source code.
    """
    if issubclass(kind, BaseException):
        return True
    if name is None:  # an item
        return hasattr(kind, "__setitem__") or hasattr(kind, "__delitem__")
    return kind.__name__ in _WRITABLE_KINDS


class _Written:
    """What is written to in the place of an object: it keeps there what the code may keep, and nothing else."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        _keep_target(self, target)

    def __setattr__(self, name: str, value: Any) -> None:
        target = _target_of(self)
        if isinstance(target, type):
            check_parts(name, (target,))
        if type(value) not in PLAIN:
            value = kept(name, value) if isinstance(target, type) else stored_as(name, value)
        setattr(target, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_target_of(self), name)


_keep_target, _target_of = _Written._target.__set__, _Written._target.__get__


def stored_as(name: str, value: Any) -> Any:
    """What may be kept in an object under a name in the place of this value."""
    value = stored(value)
    if name not in LISTED or not callable(value) or isinstance(value, type):
        return value
    return lambda *args, **options: listed(CALLEE[0](value)(*args, **options))


class _DecimalContext(_Written):
    """Takes a new precision of the arithmetic of `decimal`, unless it would let single operations run for ever."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        value = exact(value)
        if name == "prec":
            check_precision(value)
        if name in ("Emax", "Emin") and isinstance(value, int) and abs(value) > MAX_EXPONENT:
            raise ValueError(f"an exponent of {value} is too large here; {MAX_EXPONENT:,} is allowed.")
        super().__setattr__(name, value)


_HOLDING = frozenset({list, tuple, dict})


def get_item(obj: Any, key: Any) -> Any:
    """`obj[key]`."""
    kind = type(obj)
    if kind in _HOLDING:
        return check_value(obj[key])
    if kind is str or kind is bytes:
        return obj[key]
    if kind.__module__ == SANDBOX and (type(key) is slice or type(key) is tuple):
        meet()  # the code gets the slice as a value
    return check_value(subscribed(obj, key))
