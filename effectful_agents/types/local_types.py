"""Types that are defined in a function, and name each other in text.

Under `from __future__ import annotations` a class keeps the text of its annotations, and not the names that they were
written among. Those of a module are found by its name; those of a function are gone once it has returned. A tool that
is defined beside the class still sees them, and leaves them with it.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from effectful_agents.types.kinds import is_a, names_in, qualified_name

__all__ = ["TYPES", "TYPE_HINTS", "hints_of", "keep_names", "leave_names", "names_beside", "write_types"]

_NAMES = "__names_beside__"

TYPES = (type, typing.TypeAliasType, typing.TypeVar, types.GenericAlias, types.UnionType, typing.NewType)
"""What an annotation may name."""

TYPE_HINTS = "__type_hints__"
"""Under this name code that was compiled by a policy has, among its builtins, what reads its annotations."""


def hints_of(obj: Any, names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The annotations of a function or a class, as types, with what is said around them.

    `typing.get_type_hints` evaluates texts with all powers, and what a name in one stands for may be a text again.
    Those of code under a policy are evaluated by that.

    Args:
        obj: The function or the class.
        names: What can be named beside those of its module.
    """
    inner = obj if isinstance(obj, type) else inspect.unwrap(obj)
    read = _reader(inner)
    if read is not None:
        return read(inner, names)
    return typing.get_type_hints(obj, localns=None if names is None else dict(names), include_extras=True)


def _reader(obj: Any) -> Any:
    if is_a(obj, *TYPES[:3], typing.NewType):
        namespace = getattr(sys.modules.get(obj.__module__), "__dict__", {})
    else:  # an object that can be called has no globals; what its class is told of it is not asked
        namespace = getattr(getattr(obj, "__func__", obj), "__globals__", None)
        if not is_a(namespace, dict):
            namespace = getattr(sys.modules.get(type(obj).__module__), "__dict__", {})
    builtins = namespace.get("__builtins__") if isinstance(namespace, dict) else None
    return builtins.get(TYPE_HINTS) if type(builtins) is dict else None


def keep_names(names: Mapping[str, Any], module: Mapping[str, Any]) -> None:
    """Leave names with the classes among them that were defined in a function.

    Args:
        names: What can be named where a tool is defined.
        module: The names of its module, which are found without.
    """
    # By `type`: a lazy object in the scope would be made by a question for its class.
    beside = {name: value for name, value in names.items() if is_a(value, *TYPES) and module.get(name) is not value}
    for value in beside.values():
        if is_a(value, type) and "__annotations__" in names_in(value) and "<locals>" in qualified_name(value):
            leave_names(value, beside)


def leave_names(cls: type, names: Mapping[str, Any]) -> None:
    """Leave names with a class."""
    if names and _reader(cls) is None:
        setattr(cls, _NAMES, names)
    elif names:
        _finish(cls, names)


def _finish(cls: Any, names: Mapping[str, Any]) -> None:
    """Put types in the place of the texts in a class of code under a policy: pydantic would evaluate them otherwise."""
    try:
        _write_types(cls, names)
    except (NameError, TypeError, AttributeError):  # it is told when the class is described
        return


def _write_types(cls: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the texts in a class of code under a policy by what they name, and say what each annotation is now."""
    parameters = {one.__name__: one for one in cls.__type_params__}
    hints = hints_of(cls, {cls.__name__: cls, **parameters, **names})
    cls.__annotations__ = {name: hints.get(name, hint) for name, hint in inspect.get_annotations(cls).items()}
    fields = getattr(cls, "__dataclass_fields__", {})
    others = [id(one) for base in cls.__mro__ if _reader(base) is None for one in _fields_of(base)]
    for field in fields.values():
        if id(field) not in others:  # of a class of the program, which is not changed
            field.type = hints.get(field.name, field.type)
            hints[field.name] = field.type
    return hints


def _fields_of(cls: type) -> Iterable[Any]:
    return names_in(cls).get("__dataclass_fields__", {}).values()


def write_types(tp: Any) -> None:
    """Put types in the place of the texts in all classes of code under a policy that are parts of a type.

    Whoever reads annotations, pydantic for one, evaluates texts with all powers, and finds the attributes of the class
    among their names, where the text may name another one.

    Raises:
        NameError, TypeError: A text there names something that is not there, or no type.
    """
    seen: dict[int, Any] = {}
    waiting: list[tuple[Any, bool]] = [(tp, False)]
    while waiting:
        one, is_own = waiting.pop()
        if id(one) in seen:
            continue
        if is_own and is_a(one, str, typing.ForwardRef):
            raise TypeError(f"the text {one!r} does not only name types; it is not evaluated here.")
        if not is_a(one, str):
            seen[id(one)] = one
        is_own = is_own or (is_a(one, *TYPES[:3], typing.NewType) and _reader(one) is not None)
        waiting.extend((part, is_own) for part in _parts(one, is_own, names_beside(tp) if is_own else {}))


def _parts(tp: Any, is_own: bool, names: Mapping[str, Any]) -> Iterable[Any]:
    if is_a(tp, list, tuple):
        return tp
    if is_a(tp, typing.TypeVar):
        return [one for one in (tp.__bound__, *tp.__constraints__) if one is not None]
    if is_a(tp, typing.NewType):
        return [tp.__supertype__]
    if is_a(tp, typing.TypeAliasType):
        return [tp.__value__] if is_own else []
    if is_a(tp, dataclasses.InitVar):
        return [tp.type]
    origin = typing.get_origin(tp)
    if origin is typing.Literal:
        return []
    if origin is typing.Annotated:
        return [tp.__origin__]
    if origin is not None:
        return [origin, *typing.get_args(tp)]
    if not is_a(tp, type):
        return []
    if _reader(tp) is not None:
        return [*_write_types(tp, names).values(), *tp.__mro__[1:]]
    of_bases = [names_in(base).get("__annotations__") for base in tp.__mro__]  # of `function` it is a descriptor
    return [hint for one in of_bases if type(one) is dict for hint in one.values()]


def names_beside(tp: Any) -> dict[str, Any]:
    """The names that were left with the classes in an annotation."""
    cls = typing.get_origin(tp) or tp
    found: dict[str, Any] = dict(names_in(cls).get(_NAMES, {})) if is_a(cls, type) else {}
    for part in typing.get_args(tp):
        found |= names_beside(part)
    return found
