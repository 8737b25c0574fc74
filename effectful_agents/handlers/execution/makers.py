"""What functions of the library that make classes and namespaces are given: names, types, and bases."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from enum import EnumType
from typing import Any

from effectful_agents.handlers.execution.bases import base_of
from effectful_agents.handlers.execution.callables import stored
from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.hints import check_hint, check_making, is_form
from effectful_agents.handlers.execution.kinds import PLAIN, RESTRICTED, SANDBOX, is_own
from effectful_agents.handlers.execution.names import is_attribute
from effectful_agents.handlers.execution.streams import mapped, stream

__all__ = ["check_new_attribute", "checked_arguments"]

_OTHERS = frozenset({types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType})

type _Arguments = tuple[tuple[Any, ...], dict[str, Any]]


_REMEMBERING = frozenset({"ipaddress", "re", "zoneinfo", "zoneinfo._common"})
"""Where the library keeps what it made of its arguments, for the whole program, and trusts their methods."""

_TOGETHER = frozenset({"__or__", "__ror__", "copy_with"})
"""Methods of types that put them together with others."""


def checked_arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
    """The arguments for a function, read once, if it makes something of names or of types, or remembers them."""
    for name in kwargs:
        if name.startswith("__") and name.endswith("__"):  # as an attribute the library would find it
            raise TypeError(f"`{name}` is no name for an argument here.")
    if getattr(function, "__module__", None) in _REMEMBERING:
        for value in (*args, *kwargs.values()):
            for part in value if type(value) in (tuple, list) else (value,):
                if is_own(type(exact(part))) and not callable(part):
                    raise TypeError(f"`{function.__name__}` takes plain values here, not those of a class of your own.")
    if getattr(function, "__module__", None) == "hmac":
        _check_digests(args, kwargs)
    if "name_from" in kwargs:
        _check_told_from(function, args)
    _check_types_made(function, args)
    _check_made_again(function, args)
    if type(function) in _OTHERS:
        return args, kwargs
    if isinstance(function, EnumType):
        return _enum(args, kwargs) if len(args) + len(kwargs) > 1 else (args, kwargs)
    if function is typing.NamedTuple or function is typing.TypedDict:
        return _typed_fields(function, args, kwargs)
    return _namespace(args, kwargs) if _makes_namespace(function) else (args, kwargs)


def _check_digests(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise if an object of the code is to compute: keys are filled up to what it says is the size of a block."""
    for value in (*args, *kwargs.values()):
        made = isinstance(value, str | bytes | bytearray | memoryview) or not (callable(value) or is_own(type(value)))
        if not made and getattr(value, "__module__", None) not in _HASHING:
            raise TypeError("`digestmod` is a name or a function of `hashlib` here.")


_HASHING = frozenset({"_blake2", "_hashlib", "_md5", "_sha1", "_sha2", "_sha3", "hashlib"})


def _check_types_made(function: Any, args: tuple[Any, ...]) -> None:
    """Look at what a type is to be made of where a method does that, or goes by it."""
    name = getattr(function, "__name__", None)
    if name not in _TOGETHER and name != "__getitem__" and name != "dispatch":
        return
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        owner, args = (args[0], args[1:]) if args else (None, ())
    if name == "dispatch" and getattr(function, "__module__", None) == "functools":
        if not isinstance(owner, type):  # its cache is the program's
            raise TypeError("`dispatch` takes a class.")
    elif name == "__getitem__":
        for key in args:
            check_making(owner, key)
    elif is_form(owner) or isinstance(owner, type):
        check_hint(args, kept=True)


def _check_told_from(function: Any, args: tuple[Any, ...]) -> None:
    """Raise if an `ImportError` would say what could not be imported from where: who shows it imports that to look."""
    owner = getattr(function, "__self__", None)
    called = args[0] if args else None
    if function is dict or (owner is not None and type(owner) in PLAIN):
        return
    if type(called) is types.FunctionType and called.__builtins__ is RESTRICTED:
        return
    raise TypeError("`name_from` cannot be given here: what shows such an error would import a module.")


_FILLED_AGAIN = (BaseException, types.SimpleNamespace)


def _check_made_again(function: Any, args: tuple[Any, ...]) -> None:
    """Raise if the `__init__` of the library would give another content to what is finished: a property, a type.

    The program's own objects have its own `__init__`. What one may write items to, one may fill again.
    """
    if getattr(function, "__name__", None) != "__init__":
        return
    target = getattr(function, "__self__", None)
    if target is None:
        target = args[0] if args else None
    kind = type(target)
    if not (is_own(kind) or hasattr(kind, "__setitem__") or issubclass(kind, _FILLED_AGAIN)):
        raise TypeError(f"`__init__` of a finished `{kind.__name__}` is not available here; make another one.")


def _makes_namespace(function: Any) -> bool:
    if isinstance(function, type):
        return issubclass(function, types.SimpleNamespace)
    if isinstance(function, types.MethodWrapperType | types.WrapperDescriptorType):
        owner = getattr(function, "__objclass__", None) or type(function.__self__)
        return function.__name__ == "__init__" and issubclass(owner, types.SimpleNamespace)
    return False


def _namespace(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
    """The arguments of a `SimpleNamespace`, whose names become attributes; a mapping comes as names, too."""
    owner, given = args[:-1], dict(mapped(args[-1])) if args and isinstance(args[-1], Mapping) else {}
    for name, value in given.items():
        check_new_attribute(name)
        stored(value)
    for name in kwargs:
        check_new_attribute(name)
    return owner if given else args, {**given, **kwargs}


def _enum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
    """The arguments of the functional form of an enumeration, whose names become attributes of the class.

    They are read once: another time something else could be there.
    """
    if {"module", "qualname"} & kwargs.keys():
        raise TypeError("`module` and `qualname` of an enumeration cannot be set here.")
    kwargs = {**kwargs, "module": SANDBOX}
    if kwargs.get("type") is not None:
        kwargs["type"] = base_of(kwargs["type"])
    if len(args) > 1:
        args = (args[0], _enum_names(args[1]), *args[2:])
    elif "names" in kwargs:
        kwargs["names"] = _enum_names(kwargs["names"])
    return args, kwargs


def _typed_fields(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of the functional form of a named tuple or a typed dictionary; they are read once, too."""
    name, *rest = args
    fields = rest[0] if rest else kwargs.pop("fields", ())
    made = [(key, hint) for key, hint in stream(fields.items() if isinstance(fields, dict) else fields)]
    for key, hint in made:
        check_new_attribute(key) if function is typing.NamedTuple else None
        check_hint(hint)
    return (name, dict(made) if function is typing.TypedDict else made), kwargs


def _enum_names(names: Any) -> list[Any]:
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    pairs = names.items() if isinstance(names, dict) else names
    made: list[Any] = []
    for each in stream(pairs):
        name, *value = (each,) if isinstance(each, str) else each
        check_new_attribute(name)
        made.append((name, *map(stored, value)) if value else name)
    return made


_LONGEST = 1_000


def check_new_attribute(name: Any) -> None:
    """Raise if a class that is made of a text cannot have an attribute of this name."""
    is_name = type(name) is str and len(name) <= _LONGEST and is_attribute(name)
    if not is_name or (name.startswith("__") and name.endswith("__")):
        raise ValueError(f"a class made here cannot have an attribute `{name}`.")
