"""Functions of the standard library that read attributes, or evaluate texts, in versions that the guards can see.

They are replaced by what they do, wherever they are met: `attrgetter` walks attributes by their names, `get_type_hints`
evaluates texts, `update_wrapper` copies attributes that a text names, `namedtuple` and `make_dataclass` write the names
that they get into source code.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import decimal
import functools
import inspect
import operator
import queue
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from effectful_agents.handlers.execution.attributes import get_attribute, get_item, set_attribute
from effectful_agents.handlers.execution.bases import bases_of
from effectful_agents.handlers.execution.callables import OwnDispatch, answering, guarded, stored
from effectful_agents.handlers.execution.callbacks import remember_init
from effectful_agents.handlers.execution.calls import callee
from effectful_agents.handlers.execution.classes import NAMES_OF
from effectful_agents.handlers.execution.hints import check_hint
from effectful_agents.handlers.execution.keys import is_fixed
from effectful_agents.handlers.execution.kinds import HOME, RESTRICTED, SANDBOX, is_own, replace
from effectful_agents.handlers.execution.locks import NoLock
from effectful_agents.handlers.execution.makers import check_new_attribute
from effectful_agents.handlers.execution.names import is_attribute, is_safe_type_text
from effectful_agents.handlers.execution.streams import stream

__all__ = ["EVALUATE", "hints_of"]

EVALUATE: list[Callable[[str, dict[str, Any]], Any]] = []
"""Evaluates the text of a type under the policy; set by the executor's module, which this one cannot import."""


@replace(operator.attrgetter)
def attrgetter(*names: str) -> Callable[[Any], Any]:
    """`operator.attrgetter`."""
    if not names:
        raise TypeError("attrgetter expected at least 1 argument, got 0")

    def walk(obj: Any, name: str) -> Any:
        if type(name) is not str:
            raise TypeError("attribute name must be a string")
        for part in name.split("."):
            obj = get_attribute(obj, part)
        return obj

    def get(obj: Any) -> Any:
        found = tuple(walk(obj, name) for name in names)
        return found[0] if len(names) == 1 else found

    return get


@replace(operator.getitem)
def getitem(a: Any, b: Any, /) -> Any:
    """`operator.getitem`."""
    return get_item(a, b)


@replace(operator.itemgetter)
def itemgetter(*items: Any) -> Callable[[Any], Any]:
    """`operator.itemgetter`."""
    if not items or is_fixed(items):
        return operator.itemgetter(*items)

    def get(obj: Any) -> Any:
        found = tuple([get_item(obj, item) for item in items])
        return found[0] if len(items) == 1 else found

    return get


@replace(operator.methodcaller)
def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """`operator.methodcaller`."""

    def call(obj: Any) -> Any:
        return callee(get_attribute(obj, name))(*args, **kwargs)

    return call


@replace(operator.call)
def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`operator.call`."""
    return callee(function)(*args, **kwargs)


@replace(functools.reduce)
def reduce(function: Any, values: Any, /, *initial: Any) -> Any:
    """`functools.reduce`: in C it counts nothing, and what a step gives goes into the next one."""
    if len(initial) > 1:
        raise TypeError(f"reduce expected at most 3 arguments, got {len(initial) + 2}")
    return functools.reduce(callee(function), stream(values), *initial)


_UPDATED = ("__name__", "__qualname__", "__doc__")


@replace(functools.update_wrapper)
def update_wrapper(wrapper: Any, wrapped: Any, assigned: Iterable[str] = _UPDATED, updated: Any = ()) -> Any:
    """`functools.update_wrapper`; the wrapped function itself is not kept on the wrapper."""
    for name in tuple(assigned):
        if name in ("__module__", "__annotations__", "__type_params__"):
            continue  # they stand in `WRAPPER_ASSIGNMENTS`
        try:
            value = get_attribute(wrapped, name)
        except AttributeError:
            if not is_attribute(name):
                raise
            continue
        set_attribute(wrapper, name, value)
    if all(isinstance(one, FunctionType) and _is_ours(one) for one in (wrapper, wrapped)):
        wrapper.__annotations__ = dict(wrapped.__annotations__)
        wrapper.__dict__.update({k: v for k, v in wrapped.__dict__.items() if not k.startswith("__")})
    return wrapper


def _is_ours(function: FunctionType) -> bool:
    return function.__builtins__ is RESTRICTED


@replace(functools.wraps)
def wraps(wrapped: Any, assigned: Iterable[str] = _UPDATED, updated: Any = ()) -> Callable[[Any], Any]:
    """`functools.wraps`."""
    return functools.partial(update_wrapper, wrapped=wrapped, assigned=assigned, updated=updated)


# --- types that are written as text -------------------------------------------------------------------------------


def _evaluated(hint: Any, names: dict[str, Any]) -> Any:
    """A type with what is written as text in it evaluated under the policy."""
    if isinstance(hint, typing.ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        if not is_safe_type_text(hint):
            raise TypeError(f"the text {hint!r} does not only name types; it is not evaluated here.")
        made = EVALUATE[0](hint, names)
        check_hint(made)
        return _evaluated(made, names)
    if hint is None:
        return type(None)
    if typing.get_origin(hint) is typing.Annotated:  # what follows the type is no type
        return typing.Annotated[(_evaluated(hint.__origin__, names), *hint.__metadata__)]
    args = typing.get_args(hint)
    if args and typing.get_origin(hint) is not typing.Literal:
        new = tuple(
            [_evaluated(list(one) if isinstance(one, list) else one, names) if _is_text(one) else one for one in args]
        )
        if any(one is not other for one, other in zip(new, args, strict=True)):
            origin = typing.get_origin(hint)
            if hasattr(hint, "copy_with"):
                return hint.copy_with(new)
            return functools.reduce(operator.or_, new) if not isinstance(origin, type) else origin[new]
    return hint


def _is_text(hint: Any) -> bool:
    return isinstance(hint, str | typing.ForwardRef) or bool(typing.get_args(hint))


@replace(typing.get_type_hints)
def get_type_hints(obj: Any, globalns: Any = None, localns: Any = None, include_extras: bool = False) -> dict[str, Any]:
    """`typing.get_type_hints`, for functions and classes of the code itself."""
    if not (is_own(obj) if isinstance(obj, type) else isinstance(obj, FunctionType) and _is_ours(obj)):
        raise TypeError("only the types of functions and classes that are defined here can be read.")
    found = hints_of(obj, {**(globalns or {}), **(localns or {})}, by_code=True)
    return found if include_extras else {name: _without_extras(hint) for name, hint in found.items()}


def hints_of(obj: Any, names: Mapping[str, Any] | None = None, *, by_code: bool = False) -> dict[str, Any]:
    """The annotations of a function or class of the code as types, for the code and for the program.

    Where the code asks, names of its own do not count in classes of the program: a text in a type keeps what it means.
    """
    names = names or {}
    if not isinstance(obj, type):
        inner = getattr(obj, "__func__", obj)
        if is_own(type(inner)):
            inner = type(inner).__call__
        if type(inner) is not FunctionType:
            raise TypeError("only the types of functions that are defined here can be read.")
        here = {**inner.__globals__, **names}
        return {name: _evaluated(hint, here) for name, hint in inner.__annotations__.items()}
    found: dict[str, Any] = {}
    for base in reversed(obj.__mro__):
        if is_own(base):
            here = {**HOME.__dict__, **NAMES_OF.get(base, {}), **names}
            found |= {name: _evaluated(hint, here) for name, hint in inspect.get_annotations(base).items()}
        else:
            _check_texts(base)
            found |= typing.get_type_hints(base, localns=None if by_code else dict(names), include_extras=True)
    return found


def _check_texts(cls: type) -> None:
    """Raise if a text in a class that is not of the code, and in no module either, does more than name types."""
    for base in cls.__mro__:
        there: Any = sys.modules.get(base.__module__)
        for part in base.__qualname__.split("."):
            there = getattr(there, "__dict__", {}).get(part)
        if there is not base:
            for hint in inspect.get_annotations(base).values():
                check_hint(hint)


def _without_extras(hint: Any) -> Any:
    while typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired):
        hint = hint.__origin__ if typing.get_origin(hint) is typing.Annotated else typing.get_args(hint)[0]
    return hint


@replace(functools.singledispatch)
def singledispatch(function: Any) -> Any:
    """`functools.singledispatch`; a type that is written as text is evaluated under the policy."""
    dispatcher = functools.singledispatch(callee(function))
    register = dispatcher.register

    def registered(cls: Any, func: Any = None) -> Any:
        if func is None and isinstance(cls, FunctionType) and not isinstance(cls, type):
            hints = [hint for name, hint in get_type_hints(cls).items() if name != "return"]
            if not hints:
                raise TypeError("a function that is registered without a class needs an annotation.")
            return register(hints[0], callee(cls))
        if func is None:
            return lambda other: register(cls, callee(other))
        return register(cls, callee(func))

    dispatcher.register = registered
    return dispatcher


@replace(functools.singledispatchmethod)
class singledispatchmethod(OwnDispatch, functools.singledispatchmethod):
    """`functools.singledispatchmethod`."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.dispatcher = singledispatch(func)


# --- decorators that change what they get -------------------------------------------------------------------------


def _only_own(function: Callable[..., Any]) -> None:
    """Have a decorator take nothing but what the code has defined itself: it writes to it."""

    def decorate(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if isinstance(value, type) and not is_own(value):
                raise TypeError(f"`{value.__name__}` cannot be changed here.")
            if callable(value) and not isinstance(value, type):
                _check_changeable(value)
        return function(*args, **kwargs)

    decorate.__name__ = decorate.__qualname__ = getattr(function, "__name__", "")
    decorate.__doc__ = function.__doc__
    replace(function)(decorate)


def _check_changeable(value: Any) -> None:
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType) and not (
        isinstance(value, FunctionType) and _is_ours(value)
    ):
        raise TypeError(f"`{value.__name__}` cannot be changed here.")


@replace(dataclasses.dataclass)
def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`."""
    if cls is None:
        return functools.partial(dataclass, **options)
    if not isinstance(cls, type) or not is_own(cls):
        raise TypeError(f"`{getattr(cls, '__name__', cls)}` cannot be changed here.")
    return _with_guarded_init(dataclasses.dataclass(**options)(cls))


def _with_guarded_init(cls: Any) -> Any:
    """Have the `__init__` that `dataclass` has written look at what it keeps: the class may be called from C."""
    written = vars(cls).get("__init__")
    if type(written) is FunctionType and written.__globals__ is HOME.__dict__:

        @functools.wraps(written)
        def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
            written(self, *map(stored, args), **{name: stored(value) for name, value in kwargs.items()})

        cls.__init__ = remember_init(__init__)
    return cls


@replace(dataclasses.field)
def field(**options: Any) -> Any:
    """`dataclasses.field`."""
    factory = options.get("default_factory", dataclasses.MISSING)
    if factory is not dataclasses.MISSING:
        factory = guarded(factory)
        options["default_factory"] = factory if isinstance(factory, type) else answering(factory)
    if "default" in options:
        options["default"] = stored(options["default"])
    return dataclasses.field(**options)


for _decorator in (
    *(functools.total_ordering, abc.abstractmethod),
    *(typing.final, typing.runtime_checkable, typing.no_type_check, typing.override),
):
    _only_own(_decorator)


@replace(typing.overload)
def overload(func: Any) -> Any:
    """`typing.overload`, which would keep each of them for the whole program."""
    if not (isinstance(func, FunctionType) and _is_ours(func)) and not isinstance(func, staticmethod | classmethod):
        raise TypeError("only functions that are defined here can be overloaded here.")
    return typing._overload_dummy  # ty: ignore[missing-attribute]


# --- classes that are made of texts -------------------------------------------------------------------------------


@replace(collections.namedtuple)
def namedtuple(
    typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None, module: Any = None
) -> Any:
    """`collections.namedtuple`."""
    if isinstance(field_names, str):
        field_names = field_names.replace(",", " ").split()
    names = [str.__str__(name) if isinstance(name, str) else name for name in stream(field_names)]
    for name in () if rename else names:
        check_new_attribute(name)
    check_new_attribute(typename)
    return collections.namedtuple(typename, names, rename=rename, defaults=defaults, module=SANDBOX)


def _checked_fields(fields: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The fields, read once: another time something else could be there."""
    made: list[tuple[Any, ...]] = []
    for field in stream(fields):
        name, *rest = (field,) if isinstance(field, str) else field
        kind, *default = rest or ["typing.Any"]
        check_new_attribute(name)
        check_hint(kind)
        made.append((name, kind, *map(stored, default)))
    return made


@replace(dataclasses.make_dataclass)
def make_dataclass(
    cls_name: str, fields: Any, *, bases: tuple[Any, ...] = (), namespace: Any = None, **options: Any
) -> Any:
    """`dataclasses.make_dataclass`."""
    check_new_attribute(cls_name)
    fields = _checked_fields(fields)
    namespace = dict(namespace or {})
    for name in namespace:
        if type(name) is not str or name.startswith("__"):
            raise ValueError(f"`namespace` cannot have `{name}` here.")
    if options.keys() & {"module", "decorator"}:
        raise TypeError("`module` and `decorator` cannot be set here.")
    bases = bases_of(bases)
    if not all(base is object or is_own(base) for base in bases):
        raise TypeError("`bases` are classes of your own here: write a class that derives from the other one.")
    names = {name: stored(value) for name, value in namespace.items()}
    made = dataclasses.make_dataclass(cls_name, fields, bases=bases, namespace=names, module=SANDBOX, **options)
    return _with_guarded_init(made)


@replace(decimal.localcontext)
def localcontext(ctx: decimal.Context | None = None, **options: Any) -> Any:
    """`decimal.localcontext`."""
    own = decimal.getcontext().copy() if ctx is None else ctx.copy()
    for name, value in options.items():
        set_attribute(own, name, value)
    return decimal.localcontext(own)


class Unwaiting:
    """A queue that nobody else fills or empties: where it would wait for ever, it says at once that it cannot."""

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(maxsize)  # ty: ignore[too-many-positional-arguments]
        self.mutex = self.not_empty = self.not_full = self.all_tasks_done = NoLock()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return super().get(False)  # ty: ignore[missing-attribute]

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        super().put(item, False)  # ty: ignore[missing-attribute]

    def join(self) -> None:
        if self.unfinished_tasks:  # ty: ignore[missing-attribute]
            raise RuntimeError("the queue has unfinished tasks, and nobody else is there to do them.")


@replace(queue.Queue)
class Queue(Unwaiting, queue.Queue):
    """`queue.Queue`."""


@replace(queue.LifoQueue)
class LifoQueue(Unwaiting, queue.LifoQueue):
    """`queue.LifoQueue`."""


@replace(queue.PriorityQueue)
class PriorityQueue(Unwaiting, queue.PriorityQueue):
    """`queue.PriorityQueue`."""


@replace(queue.SimpleQueue)
class SimpleQueue(Unwaiting, queue.Queue):
    """`queue.SimpleQueue`."""
