"""Special attributes and builtins that code may use where it writes them out, in versions that lead nowhere.

`x.__class__` is what `type(x)` gives. `vars(x)` is a dictionary of the attributes that may be read; what is
written into it is written to the object as if by an assignment. That of a class cannot be written to, and
`x.__annotations__` is a copy. `error.__cause__` gives errors that the code has met or made.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Mapping
from typing import Any, override

from effectful_agents.handlers.execution.attributes import (
    CALLABLES,
    SPECIAL,
    check_name,
    delete_attribute,
    get_attribute,
    set_attribute,
    stored_as,
    writable,
)
from effectful_agents.handlers.execution.kept_back import not_available
from effectful_agents.handlers.execution.kinds import (
    RESTRICTED,
    check_value,
    is_closed,
    is_inside,
    is_of_library,
    is_own,
    opened,
)
from effectful_agents.handlers.execution.limits import is_stopped
from effectful_agents.handlers.execution.metaclasses import type_
from effectful_agents.handlers.execution.names import is_attribute
from effectful_agents.handlers.execution.naming import INHERITED, READ
from effectful_agents.handlers.execution.streams import mapped
from effectful_agents.runtime import Operation

__all__ = ["named", "special"]


def _class_of(obj: Any) -> Any:
    """`obj.__class__`, as `type(obj)` gives it."""
    return type_(obj)


# --- the attributes of an object ----------------------------------------------------------------------------------


class Attributes(dict[str, Any]):
    """The attributes of an object; what is written here is written to the object as well.

    Code has this class, by `type`, and may call these methods with whatever it likes: so each begins with what only
    such a dictionary has.
    """

    __slots__ = ("_of",)

    def __init__(self) -> None:
        super().__init__()

    @override
    def __setitem__(self, name: str, value: Any) -> None:
        _put(_object_of(self), name, value)
        dict.__setitem__(self, name, value)

    @override
    def __delitem__(self, name: str) -> None:
        obj = _object_of(self)
        dict.__delitem__(self, name)
        _drop(obj, name)

    @override
    def update(self, *args: Any, **kwargs: Any) -> None:
        _object_of(self)
        for name, value in dict(*[opened(mapped(check_value(one))) for one in args], **kwargs).items():
            Attributes.__setitem__(self, name, value)

    @override
    def __ior__(self, other: Any) -> Any:
        Attributes.update(self, other)
        return self

    @override
    def setdefault(self, name: str, default: Any = None, /) -> Any:
        _object_of(self)
        if not dict.__contains__(self, name):
            Attributes.__setitem__(self, name, default)
        return dict.__getitem__(self, name)

    @override
    def pop(self, key: Any, *default: Any) -> Any:
        _object_of(self)
        if not dict.__contains__(self, key):
            return dict.pop(self, key, *default)
        value = dict.__getitem__(self, key)
        Attributes.__delitem__(self, key)
        return value

    @override
    def popitem(self) -> Any:
        _object_of(self)
        for name in dict.__reversed__(self):
            return name, Attributes.pop(self, name)
        return dict.popitem(self)

    @override
    def clear(self) -> None:
        _object_of(self)
        for name in list(dict.__iter__(self)):
            Attributes.__delitem__(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(dict.items(self)),)  # a copy is nobody's


_keep_object, _object_of = Attributes._of.__set__, Attributes._of.__get__


def _put(obj: Any, name: Any, value: Any) -> None:
    if not is_own(type(obj)):
        set_attribute(obj, name, value)
        return
    check_name(obj, name)
    # Not by the `__setattr__` of the class: it may be what writes here.
    writable(obj, name)
    value = stored_as(name, value)
    if _is_described(obj, name):
        object.__getattribute__(obj, "__dict__")[name] = value
    else:
        object.__setattr__(obj, name, value)


def _drop(obj: Any, name: Any) -> None:
    if not _is_described(obj, name):
        delete_attribute(obj, name)
        return
    check_name(obj, name)
    writable(obj, name)
    del object.__getattribute__(obj, "__dict__")[name]


def _is_described(obj: Any, name: str) -> bool:
    """Whether a descriptor of the code stands for an attribute: it may be what reads and writes here."""
    for cls in type(obj).__mro__ if is_own(type(obj)) else ():
        if name in vars(cls):
            return is_own(cls) and is_own(type(vars(cls)[name]))
    return False


def _attributes_of(obj: Any) -> Any:
    kind = type(obj)
    if isinstance(obj, type) and is_own(obj):
        return types.MappingProxyType(_in_class(obj))
    if not hasattr(obj, "__dict__"):
        raise AttributeError(f"a `{kind.__name__}` has no attributes of its own.")
    if is_closed(kind) or kind in CALLABLES or issubclass(kind, type | types.ModuleType | Operation):
        raise TypeError(f"`vars` of a `{kind.__name__}` is not available here; `dir` names what it has.")
    if is_of_library(kind.__module__) and kind is not types.SimpleNamespace:
        raise TypeError(f"`vars` of a `{kind.__name__}` is not available here; `dir` names what it has.")
    # Past a `__getattr__` of the code, which could answer anything.
    found = object.__getattribute__(obj, "__dict__")
    if type(found) is not dict:
        raise TypeError(f"a `{kind.__name__}` has no attributes of its own.")
    made = Attributes()
    dict.update(made, _readable(obj, found))
    _keep_object(made, obj)
    return made


def _readable(obj: Any, values: dict[Any, Any]) -> dict[str, Any]:
    found = {}
    for name, value in list(values.items()):
        if type(name) is str and is_attribute(name):
            try:
                if _is_described(obj, name):
                    check_name(obj, name)
                    found[name] = check_value(value)
                else:
                    found[name] = get_attribute(obj, name)
            except (AttributeError, ImportError, TypeError):
                continue  # what is not available is not there
    return found


def _in_class(cls: type) -> dict[str, Any]:
    """What stands in a class of the code, as far as it may be read; what makes an attribute of it is there itself."""
    found: dict[str, Any] = {}
    for name, value in list(vars(cls).items()):
        if type(name) is str and is_attribute(name):
            try:
                check_name(cls, name)
                as_it_is = type(value) in _MAKES_ATTRIBUTES or is_own(type(value))
                found[name] = check_value(value) if as_it_is else get_attribute(cls, name)
            except (AttributeError, ImportError, TypeError):
                continue  # what is not available is not there
    return found


_MAKES_ATTRIBUTES = frozenset({property, classmethod, staticmethod})


def vars_(obj: Any) -> Any:
    """`vars`, of an object or a class."""
    try:
        return _attributes_of(obj)
    except AttributeError:
        raise TypeError("vars() argument must have __dict__ attribute") from None


def dir_(value: Any) -> list[str]:
    """`dir`, of a value: the names that may be read."""
    value = check_value(value)
    return sorted(name for name in builtins.dir(value) if type(name) is str and is_attribute(name))


# --- functions and classes ----------------------------------------------------------------------------------------


def _annotations_of(obj: Any) -> dict[str, Any]:
    """`obj.__annotations__`: a copy, as others evaluate the texts in the real one."""
    owner: Any = getattr(obj, "__func__", obj) if type(obj) is types.MethodType else obj
    if type(owner) is types.FunctionType:
        if owner.__builtins__ is RESTRICTED:
            return dict(owner.__annotations__)
        raise TypeError(f"the annotations of `{owner.__name__}` are not available here.")
    classes = (owner,) if isinstance(owner, type) else type(owner).__mro__
    for cls in classes:
        if is_own(cls) and (found := vars(cls).get("__annotations__")) is not None:
            return dict(found)
    if isinstance(owner, type) and is_own(owner):
        return {}
    name = getattr(owner, "__name__", type(owner).__name__)
    raise AttributeError(f"`__annotations__` of `{name}` is not available here.")


def _inherited(name: str) -> Callable[[Any], Any]:
    """A special method that `super()` finds in a class of the code."""

    def read(obj: Any) -> Any:
        if type(obj) is not super or not is_own(obj.__thisclass__):
            raise AttributeError(f"`{name}` is only available of `super()` here.")
        ancestors = obj.__self_class__.__mro__
        for cls in ancestors[ancestors.index(obj.__thisclass__) + 1 :]:
            if name in vars(cls):
                if is_own(cls):
                    return check_value(getattr(obj, name))
                break
        raise AttributeError(f"'super' object has no attribute '{name}' that a class of yours defines.")

    return read


# --- errors -------------------------------------------------------------------------------------------------------


def _chained(name: str) -> Callable[[Any], Any]:
    def read(obj: Any) -> Any:
        _check_error(obj, name)
        error = getattr(obj, name)
        return error if error is not None and _is_given(error) else None

    return read


def _check_error(obj: Any, name: str) -> None:
    if not issubclass(type(obj), BaseException):
        raise AttributeError(f"`{type(obj).__name__}` object has no attribute `{name}`.")


def _is_given(error: BaseException) -> bool:
    """Whether the code has met an error, or made it; those of the program may hold what its tools keep back."""
    kind = type(error)
    if not issubclass(kind, Exception) or is_stopped(error):
        return False
    place = error.__traceback__
    if is_own(kind) or place is None:
        return is_own(kind) or kind.__module__ == "builtins" or is_inside(kind.__module__)
    while place is not None:
        if place.tb_frame.f_builtins is RESTRICTED:
            return True
        place = place.tb_next
    return False


def _notes(obj: Any) -> list[str]:
    _check_error(obj, "__notes__")
    return [note for note in obj.__notes__ if type(note) is str]


_READ: Mapping[str, Callable[[Any], Any]] = {
    "__class__": _class_of,
    "__dict__": _attributes_of,
    "__cause__": _chained("__cause__"),
    "__context__": _chained("__context__"),
    "__notes__": _notes,
    "__annotations__": _annotations_of,
}
assert _READ.keys() == READ
SPECIAL.update(_READ)
# By a name that is a value it is only to be looked at: what was written there would be lost.
SPECIAL["__annotations__"] = lambda obj: types.MappingProxyType(_annotations_of(obj))
_INHERITED = {name: _inherited(name) for name in INHERITED}


def special(obj: Any, name: str) -> Any:
    """A special attribute, where it is read with a dot."""
    return (_READ.get(name) or _INHERITED[name])(obj)


# --- names --------------------------------------------------------------------------------------------------------

_CALLED: Mapping[str, Callable[..., Any]] = {"vars": vars_, "dir": dir_}


def named(read: Callable[[], Any], name: str, called: bool) -> Any:
    """A name that is kept back, unless the program or an earlier piece has bound it."""
    try:
        return read()
    except NameError:
        if called:
            return _CALLED[name]
    raise NameError(not_available(name), name=name)
