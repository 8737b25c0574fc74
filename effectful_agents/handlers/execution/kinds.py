"""What a value is, as far as restricted code may have to do with it: decided by its kind, not by a list of names.

Whatever way a value was reached (an attribute, an item, the result of a call, a pattern, a name that the program gave),
it is looked at when it is used: when an attribute of it is read, when it is called, and when it is given to a function
that is not the code's own, which could call it.
"""

from __future__ import annotations

import io
import sys
import tomllib
import types
from collections.abc import Callable
from typing import Any, override

from effectful_agents.handlers.execution.keepers import is_keeper
from effectful_agents.handlers.execution.kept_back import instead
from effectful_agents.handlers.execution.names import READABLE, is_private, is_standard
from effectful_agents.runtime import Operation

__all__ = [
    "ALLOWED_MODULES",
    "DOCUMENTED",
    "HOME",
    "MODULES",
    "PLAIN",
    "REPLACED",
    "RESTRICTED",
    "SANDBOX",
    "VETTED",
    "SafeModule",
    "check_value",
    "is_closed",
    "is_of_library",
    "is_own",
    "is_stand_in",
    "library_base",
    "opened",
    "owner_of",
    "replace",
]

ALLOWED_MODULES = frozenset(
    [
        "__future__",
        "abc",
        "array",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "calendar",
        "cmath",
        "collections",
        "collections.abc",
        "colorsys",
        "contextlib",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fnmatch",
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "html.parser",
        "io",
        "ipaddress",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "operator",
        "pprint",
        "queue",
        "random",
        "re",
        "secrets",
        "shlex",
        "statistics",
        "string",
        "struct",
        "textwrap",
        "time",
        "tomllib",
        "types",
        "typing",
        "unicodedata",
        "urllib.parse",
        "uuid",
        "zoneinfo",
    ]
)
"""The modules that code may import. Each is given as a `SafeModule`, which has the names that were looked at."""

_INSIDE = frozenset(
    [
        "_abc",
        "_blake2",
        "_bisect",
        "_collections",
        "_collections_abc",
        "_contextvars",
        "_csv",
        "_datetime",
        "_decimal",
        "_functools",
        "_hashlib",
        "_heapq",
        "_hmac",
        "_json",
        "_markupbase",
        "_md5",
        "_operator",
        "_py_abc",
        "_pydatetime",
        "_pydecimal",
        "_queue",
        "_random",
        "_sha1",
        "_sha2",
        "_sha3",
        "_sre",
        "_statistics",
        "_struct",
        "_typing",
        "urllib.parse",
    ]
) | {
    name.partition(".")[0]
    for name in ALLOWED_MODULES
    - {"ast", "fnmatch", "io", "keyword", "pprint", "secrets", "shlex", "tomllib", "types", "urllib.parse"}
}
"""Where the classes and functions of the allowed modules are defined. Of those that are taken out here only single
functions and classes are of use: others in there open files, or make functions of code."""

SANDBOX = "effectful_agents_sandbox"
"""The module that classes of restricted code are in. It is in `sys.modules`, where `dataclasses` looks."""

HOME = sys.modules.setdefault(SANDBOX, types.ModuleType(SANDBOX, "The module of classes that restricted code makes."))

VETTED: set[int] = set()
"""Functions and classes that the safe modules and the safe builtins have, by their ids; they live for ever."""

REPLACED: dict[int, tuple[Any, Any]] = {}
"""Functions in whose place another is given, wherever they are met: the id, the function, and the other."""

RESTRICTED: dict[str, Any] = {}
"""The builtins of restricted code. A function that has them is one of its own."""

_closed: dict[type, bool] = {}

PLAIN = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None), range, slice}
)
"""Classes whose instances hold nothing back, and have only public attributes."""

DOCUMENTED = frozenset(
    ["_asdict", "_replace", "_fields", "_make", "_field_defaults", "_value_", "_name_", "_missing_", "_ignore_"]
)
"""Names of the standard library that begin with an underscore, and are for everybody."""

_CLOSED_TYPES = frozenset(
    {
        *(types.FrameType, types.TracebackType, types.CodeType, types.CellType, types.FunctionType, types.MethodType),
        *(types.CoroutineType, types.AsyncGeneratorType, types.ModuleType),
        *([types.CapsuleType] if hasattr(types, "CapsuleType") else []),
    }
)
_OPEN_TYPES = frozenset(
    {
        *(types.GenericAlias, types.UnionType, types.MappingProxyType, types.SimpleNamespace),
        *(io.StringIO, io.BytesIO, tomllib.TOMLDecodeError),
    }
)


class SafeModule(types.ModuleType):
    """A module as restricted code sees it: the names of it that were looked at, and no way to write there."""

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(sorted(one for one in vars(self) if not one.startswith("_")))
        path = f"{self.__name__}.{name}"
        advice = instead("in a module", path)
        raise AttributeError(f"`{path}` is not available here{advice}. `{self.__name__}` has: {known}.")

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"the module `{self.__name__}` cannot be changed.")

    @override
    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"the module `{self.__name__}` cannot be changed.")

    @override
    def __dir__(self) -> list[str]:
        return sorted(name for name in vars(self) if not name.startswith("_"))

    @override
    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, restricted>"


MODULES: dict[str, SafeModule] = {}
"""The safe modules that have been made, by name."""


def is_own(cls: type) -> bool:
    """Whether a class was made by restricted code."""
    return cls.__module__ == SANDBOX


def library_base(cls: type) -> type:
    """The first class among the ancestors of one of the code that it did not make itself.

    >>> library_base(dict)
    <class 'dict'>
    """
    return next(base for base in cls.__mro__ if not is_own(base))


def is_closed(cls: type) -> bool:
    """Whether instances of a class, and the class itself, are of no use to restricted code.

    Those are frames, code and what else the interpreter runs on, and everything of the standard library that lives
    outside of the allowed modules: a file, a lock, a path, a subprocess.
    """
    known = _closed.get(cls)
    if known is None:
        known = _is_closed(cls)
        if not is_own(cls):
            _closed[cls] = known
    return known


def _is_closed(cls: type) -> bool:
    if cls in _OPEN_TYPES or is_own(cls):
        return False
    if cls in _CLOSED_TYPES or issubclass(cls, types.ModuleType):
        return True
    # A handler, a policy, a rule: those of the program derive from the package's. A store has its methods.
    if not issubclass(cls, Operation) and (any(map(_is_machinery, cls.__mro__)) or is_keeper(cls)):
        return True
    module = cls.__module__
    if module in _GUARDS:
        return False
    return is_standard(module) and module != "builtins" and not is_inside(module)


def _is_machinery(cls: type) -> bool:
    module = cls.__module__
    return type(module) is str and module.startswith(_MACHINERY) and module not in _GUARDS


_PACKAGES = ("effectful_agents", "effectful")
_MACHINERY = ("effectful_agents.handlers", "effectful_agents.harness", "effectful_agents.runtime", "effectful.")
_GUARDS = frozenset(
    f"{__name__.rpartition('.')[0]}.{name}"
    for name in [
        "attributes",
        "bases",
        "callables",
        "callbacks",
        "calls",
        "classes",
        "contexts",
        "decimals",
        "descriptors",
        "environment",
        "hints",
        "kept_back",
        "makers",
        "matching",
        "metaclasses",
        "methods",
        "numeric",
        "printing",
        "quoting",
        "reading",
        "showing",
        "sizes",
        "specials",
        "spreading",
        "standard",
        "streams",
        "texts",
    ]
)
"""Where what restricted code is given in the place of other things is defined."""


def is_stand_in(module: object) -> bool:
    """Whether a module defines what restricted code is given in the place of other things."""
    return type(module) is str and module in _GUARDS


def is_of_library(module: object) -> bool:
    """The same of the standard library and of what stands for something in it."""
    return is_standard(module) or is_stand_in(module)


_foreign: dict[str, bool] = {}


def is_foreign(module: object) -> bool:
    """Whether a module belongs to an installed package, this one among them, and not to the program itself.

    What a program has imported lies about in its modules, and so among the names that code sees, without having been
    given to it: a function that fetches a page, or that installs another executor.
    """
    if type(module) is not str or module in _GUARDS:
        return False
    top = module.partition(".")[0]
    known = _foreign.get(top)
    if known is None:
        origin = getattr(sys.modules.get(top), "__file__", None) or ""
        known = top in _PACKAGES or "site-packages" in origin or "dist-packages" in origin
        _foreign[top] = known
    return known


def is_inside(module: object) -> bool:
    """Whether a module is of the standard library, and its classes and public methods are the code's to use."""
    return type(module) is str and (module in _INSIDE or module.partition(".")[0] in _INSIDE)


_HARMLESS_KINDS = frozenset({types.FunctionType, types.MethodType, types.GeneratorType})


def check_value(value: Any) -> Any:
    """Pass a value on to restricted code: a safe module for a module, another function for one that is replaced.

    Raises:
        ImportError: It is a module that is not allowed.
        TypeError: It is of a kind that restricted code cannot have.
    """
    kind = type(value)
    if kind in PLAIN or kind in _HARMLESS_KINDS or kind is SafeModule:
        return value
    if isinstance(value, types.ModuleType):
        return safe_module(value.__name__)
    if id(value) in REPLACED:
        return REPLACED[id(value)][1]
    if is_closed(kind):
        raise TypeError(f"a value of the kind `{kind.__name__}` is not available here.")
    return value


def opened(values: Any) -> Any:
    """What is taken apart, if the code may look into it: a file gives its lines to whoever goes through it."""
    kind = type(values)
    if kind not in PLAIN and is_closed(kind) and hasattr(kind, "__next__"):
        raise TypeError(f"a value of the kind `{kind.__name__}` is not available here.")
    return values


def safe_module(name: str) -> SafeModule:
    """The safe module of this name."""
    made = MODULES.get(name)
    if made is None:
        raise ImportError(
            f"the module `{name}` is not available here{instead('module', name)}. "
            f"Allowed are {', '.join(sorted(ALLOWED_MODULES))}."
        )
    return made


def replace(function: Any) -> Callable[[Any], Any]:
    """Give another function in the place of this one, wherever restricted code meets it."""

    def register(other: Any) -> Any:
        REPLACED[id(function)] = (function, other)
        VETTED.add(id(other))
        return other

    return register


def owner_of(obj: Any, name: str) -> type:
    """The class that an attribute comes from: where it is defined, or the object's own."""
    start = obj if isinstance(obj, type) else type(obj)
    if start is super:
        start = super.__self_class__.__get__(obj)  # ty: ignore[missing-attribute]
    for cls in _ancestors(start) + (_ancestors(type(start)) if start is obj else ()):
        if name in type.__dict__["__dict__"].__get__(cls):
            return cls
    return start


def _ancestors(cls: type) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(cls)


def check_private(obj: Any, name: str) -> None:
    """Raise if a name with an underscore belongs to the library: what is there is not for everybody."""
    if is_private(name) and name not in DOCUMENTED and is_of_library(owner_of(obj, name).__module__):
        raise AttributeError(f"`{name}` is private to `{owner_of(obj, name).__name__}`, and not available here.")


def is_readable_special(name: str) -> bool:
    """Whether a function of this name may be called, as far as its name says."""
    return not (name.startswith("__") and name.endswith("__")) or name in READABLE
