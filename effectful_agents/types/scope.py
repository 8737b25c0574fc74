"""What a skill sees: the names of the code around its definition, read at the time of a call."""

from __future__ import annotations

import dis
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, override

if TYPE_CHECKING:
    from effectful_agents.types.skill import Skill

__all__ = ["LexicalContext", "Scope"]

_MISSING = object()


class LexicalContext(Mapping[str, Any]):
    """The names that a function sees where it is defined, as they are at the moment of looking.

    Locals of enclosing functions come before the globals of the module, as in Python; names that are bound after the
    definition are there as soon as they are bound. Names of an enclosing class are not seen, as in Python.

    Args:
        function: The function.
        frames: Frames of the enclosing functions, innermost first. They are kept because the locals of a function that
            still runs, or has returned, are found nowhere else: a body that is `raise NotHandled` closes over nothing.

    Attributes:
        memo: Where handlers keep what they found out about this context, by keys of their own.
    """

    __slots__ = ("_frames", "_function", "memo")

    def __init__(self, function: types.FunctionType, frames: tuple[types.FrameType, ...]) -> None:
        self._function = function
        self._frames = frames
        self.memo: dict[Any, Any] = {}

    @classmethod
    def of(cls, function: Callable[..., Any]) -> LexicalContext:
        """The context of a function that is being decorated: its enclosing functions are on the stack."""
        inner = inspect.unwrap(function)
        if not isinstance(inner, types.FunctionType):
            inner = _NO_FUNCTION
        return cls(inner, tuple(_enclosing_frames(inner.__code__)))

    def namespaces(self) -> Iterator[Mapping[str, Any]]:
        """The namespaces that names are looked up in, innermost first."""
        if self._function.__closure__:
            yield _filled_cells(self._function)
        for frame in self._frames:
            yield frame.f_locals
        yield self._function.__globals__

    @override
    def __getitem__(self, name: str) -> Any:
        for namespace in self.namespaces():
            value = namespace.get(name, _MISSING)  # in one step: another thread may take the name away
            if value is not _MISSING:
                return value
        raise KeyError(name)

    @override
    def __contains__(self, name: object) -> bool:
        return any(name in namespace for namespace in self.namespaces())

    @override
    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        for namespace in self.namespaces():
            for name in list(namespace):
                if name not in seen:
                    seen.add(name)
                    yield name

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)

    @override
    def items(self) -> Any:
        # The default would look every name up in every namespace again, and not find one that is gone meanwhile.
        return self.snapshot().items()

    @override
    def values(self) -> Any:
        return self.snapshot().values()

    def snapshot(self) -> dict[str, Any]:
        """All names with their values, as they are at this moment."""
        merged: dict[str, Any] = {}
        for namespace in self.namespaces():
            merged = {**namespace, **merged}
        return merged

    def will_bind(self, name: str) -> bool:
        """Whether the name is bound now, or is bound somewhere further down in the enclosing code."""
        if name in self:
            return True
        if any(name in frame.f_code.co_varnames + frame.f_code.co_cellvars for frame in self._frames):
            return True
        return name in _bound_by_module(self._function)

    @property
    def globals(self) -> dict[str, Any]:
        """The globals of the module."""
        return self._function.__globals__


class Scope(Mapping[str, Any]):
    """The names of one call: those of a session, then its arguments, then the lexical context of the skill.

    Attributes:
        skill: The skill that is called.
        arguments: Its arguments by name.
        context: What the skill sees besides.
        bindings: What code that runs in the call has bound, where it has a session.
        memo: Where handlers keep what they found out for this call, by keys of their own.
    """

    __slots__ = ("arguments", "bindings", "context", "memo", "skill")

    def __init__(self, skill: Skill, arguments: Mapping[str, Any], context: LexicalContext) -> None:
        self.skill = skill
        self.arguments = arguments
        self.context = context
        self.bindings: Mapping[str, Any] = {}
        self.memo: dict[Any, Any] = {}

    @classmethod
    def of_call(cls, skill: Skill, bound: inspect.BoundArguments) -> Scope:
        """The scope of a call with these arguments; the receiver of a method is among them."""
        arguments: Mapping[str, Any] = bound.arguments
        if skill.receiver is not None:
            first = next(iter(skill.function.__signature__.parameters))
            arguments = {first: skill.receiver, **arguments}
        return cls(skill, arguments, skill.__context__)

    def with_bindings(self, bindings: Mapping[str, Any]) -> Scope:
        """The scope of the same call with other names of a session; what handlers found out is shared."""
        other = Scope(self.skill, self.arguments, self.context)
        other.bindings = bindings
        other.memo = self.memo
        return other

    @override
    def __getitem__(self, name: str) -> Any:
        if name in self.bindings:
            return self.bindings[name]
        return self.arguments[name] if name in self.arguments else self.context[name]

    @override
    def __contains__(self, name: object) -> bool:
        return name in self.bindings or name in self.arguments or name in self.context

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshot())

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)

    @override
    def items(self) -> Any:
        return self._snapshot().items()

    @override
    def values(self) -> Any:
        return self._snapshot().values()

    def _snapshot(self) -> dict[str, Any]:
        # In the order in which they are looked up, as iteration has it.
        merged = {**self.bindings, **self.arguments, **self.bindings}
        return {**merged, **{n: v for n, v in self.context.items() if n not in merged}}


def _no_function() -> None: ...


# Stands in for a callable that is no Python function: it has no names around it.
_NO_FUNCTION = types.FunctionType(_no_function.__code__, {})


def _filled_cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return found


def _enclosing_frames(code: types.CodeType) -> Iterator[types.FrameType]:
    """The frames on the stack that run the code in which `code` is written, innermost first.

    A code object lies among the constants of the one it is written in; that is a surer sign than names or depth, since
    a decorator of the user's may stand between.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if _holds(frame.f_code, code):
            code = frame.f_code
            is_class_body = "__qualname__" in frame.f_locals and not code.co_flags & inspect.CO_OPTIMIZED
            if frame.f_locals is not frame.f_globals and not is_class_body:
                yield frame
        frame = frame.f_back


def _holds(outer: types.CodeType, inner: types.CodeType) -> bool:
    for constant in outer.co_consts:
        if constant is inner:
            return True
        # Type parameters (`def f[T]`) put a scope of their own in between.
        between = isinstance(constant, types.CodeType) and constant.co_name.startswith("<generic parameters")
        if between and inner in constant.co_consts:
            return True
    return False


def _bound_by_module(function: types.FunctionType) -> set[str]:
    """Names that the module of the function binds at its top level, as far as its source tells."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is function.__globals__ and frame.f_code.co_name == "<module>":
            return {
                instruction.argval
                for instruction in dis.get_instructions(frame.f_code)
                if instruction.opname in {"STORE_NAME", "STORE_GLOBAL"}
            }
        frame = frame.f_back
    return set()
