"""The walk through a lexical scope: which tools there are in it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, override

from effectful_agents.errors import DefinitionError
from effectful_agents.generated import is_generated
from effectful_agents.types.kinds import attributes_of, bases_of, is_a, names_in
from effectful_agents.types.tool import Tool

__all__ = [
    "ToolSet",
    "implicit_target",
    "in_order",
    "is_agent",
    "is_tool",
    "standing_for",
    "tool_standing_for",
    "tools_in_scope",
    "tools_of",
]

type Wrap = Callable[[types.FunctionType], Tool | None]
"""Makes a tool of a function, or None of one that is not to be offered; of the same function the same tool."""

_MISSING = object()


class ToolSet(frozenset[Tool]):
    """A set of tools that knows their order, and keeps what was made of it.

    It is iterated over in that order, and so are sets that are made of it with `|`, `&` and `-`: that of a plain set
    is another in each process.

    Attributes:
        order: The tools, as they stand in their scope.
        memo: Where handlers keep what they made of the set, by keys of their own; it goes when the set goes.
    """

    order: tuple[Tool, ...]
    memo: dict[Any, Any]

    def __new__(cls, tools: Iterable[Tool] = ()) -> ToolSet:
        order = tuple(dict.fromkeys(tools))
        self = super().__new__(cls, order)
        self.order = order
        self.memo = {}
        return self

    @override
    def __iter__(self) -> Iterator[Tool]:
        return iter(self.order)

    @override
    def __or__(self, other: Any) -> Any:
        return ToolSet((*self.order, *in_order(other))) if isinstance(other, Set) else NotImplemented

    @override
    def __ror__(self, other: Any) -> Any:
        return ToolSet((*in_order(other), *self.order)) if isinstance(other, Set) else NotImplemented

    @override
    def __and__(self, other: Any) -> Any:
        return ToolSet(tool for tool in self.order if tool in other) if isinstance(other, Set) else NotImplemented

    @override
    def __sub__(self, other: Any) -> Any:
        return ToolSet(tool for tool in self.order if tool not in other) if isinstance(other, Set) else NotImplemented

    def after(self, tools: Set[Tool]) -> ToolSet:
        """This set behind other tools; the same set for the same tools."""
        if not tools:
            return self
        key = ToolSet, tools if isinstance(tools, ToolSet) else frozenset(tools)
        made = self.memo.get(key)
        if made is None:
            order = tools.order if isinstance(tools, ToolSet) else in_order(tools)
            made = self.memo[key] = ToolSet((*order, *self.order))
        return made


def in_order(tools: Iterable[Tool]) -> list[Tool]:
    """Tools in an order that is the same in every process: by name, and of those alike the one made first comes first.

    Args:
        tools: They may come from a plain set, whose order is another in each process.
    """
    return sorted(tools, key=_order)


def _order(tool: Tool) -> tuple[str, str, str, str, int]:
    return tool.__name__, str(tool.__module__ or ""), tool.__qualname__, tool.description, tool.function.serial


def tools_in_scope(scope: Mapping[str, Any], receiver: Any = None, wrap: Wrap | None = None) -> list[Tool]:
    """The tools and skills that a scope holds, in its order.

    Names that begin with an underscore are kept back. A tool that stands under several names is taken once.

    Args:
        scope: The names of the scope.
        receiver: The agent or class whose method is called, if it is one. Its tools go by their own names; those of
            another agent in the scope by the agent's name and theirs: `agent__tool`.
        wrap: What makes a tool of a function that is none; None takes those that are declared, and no others.
    """
    found: dict[Tool, None] = {}
    if receiver is not None:
        found.update(dict.fromkeys(tools_of(receiver, wrap)))
    for name, value in scope.items():
        if type(name) is not str or name.startswith("_") or value is receiver:
            continue
        if is_agent(value):
            for tool in tools_of(value, wrap):
                found.setdefault(tool.named(f"{name}__{tool.__name__}"))
        elif (tool := _as_tool(value, wrap)) is not None:
            found.setdefault(tool)
    return list(found)


def tools_of(holder: Any, wrap: Wrap | None = None) -> Iterator[Tool]:
    """The public tools and skills that an object, or a class, offers: its methods, and what was set on it later.

    A function that a model wrote and left on the object is a tool as well, if it says the types of its parameters.

    Only what is a tool, or a function for `wrap`, is looked at: no property of the object is run.
    """
    on_class = is_a(holder, type)
    seen: set[str] = set()
    if not on_class:
        for name, attribute in list(attributes_of(holder).items()):
            seen.add(name)
            if name.startswith("_"):
                continue
            tool = _as_tool(attribute, wrap)
            if tool is None and is_generated(attribute):
                tool = _left_behind(attribute, name)
            if tool is not None:
                yield tool
    for cls in bases_of(holder if on_class else type(holder)):
        for name, attribute in names_in(cls).items():
            if name in seen:
                continue
            seen.add(name)
            if not name.startswith("_"):
                yield from _of_class(attribute, name, holder, wrap, on_class=on_class)


def _of_class(attribute: Any, name: str, holder: Any, wrap: Wrap | None, *, on_class: bool) -> Iterator[Tool]:
    """What an attribute of a class offers to the class, or to an instance."""
    bare = attribute.__func__ if is_a(attribute, classmethod, staticmethod) else attribute
    if on_class and bare is attribute:
        return  # a method needs an instance
    owner = holder if on_class else type(holder)
    if is_tool(bare):
        yield _bound(attribute, getattr(holder, name), owner)
    elif (tool := _as_tool(bare, wrap)) is not None:
        if is_a(attribute, classmethod):
            yield tool.__get__(owner, type(owner))
        else:
            yield tool if is_a(attribute, staticmethod) else tool.__get__(holder, owner)


def _as_tool(value: Any, wrap: Wrap | None) -> Tool | None:
    if is_tool(value):
        return value
    if wrap is None:
        return None
    if is_a(value, types.FunctionType):
        return wrap(value)
    if is_a(value, types.MethodType) and is_a(value.__func__, types.FunctionType):
        tool = wrap(value.__func__)
        return None if tool is None else tool.__get__(value.__self__, type(value.__self__))
    return None


def standing_for(function: types.FunctionType, description: str | None = None) -> Tool:
    """The tool that stands for a function which was not declared as one; for one function always the same.

    Raises:
        DefinitionError: The function cannot be a tool.
    """
    # Kept on the function, so that both go at the same time. What wraps it may have got a copy of its attributes.
    tool = tool_standing_for(function)
    if tool is None:
        tool = Tool.define(function, description=description)
        tool.__dict__[_TARGET] = function
        function.__dict__[_KEPT] = tool
    return tool


def tool_standing_for(function: types.FunctionType) -> Tool | None:
    """The tool that was made of a function which was not declared as one, if there is one."""
    tool = function.__dict__.get(_KEPT)
    return None if tool is None or implicit_target(tool) is not function else tool


def implicit_target(tool: Tool) -> types.FunctionType | None:
    """The function that a tool stands for, where that was not declared as one; else None."""
    return getattr(tool, _TARGET, None)


_KEPT, _TARGET = "__implicit_tool__", "__implicit_target__"


def _left_behind(function: Any, name: str) -> Tool | None:
    """The tool that stands for a function which a model wrote and left on an agent, for later turns and calls."""
    bare = function.__func__ if isinstance(function, types.MethodType) else function
    if bare is not function:  # the receiver needs no type
        bare.__annotations__.setdefault(next(iter(inspect.signature(bare).parameters)), Any)
    try:
        tool = standing_for(bare, inspect.getdoc(bare) or f"Left by an earlier turn:\n\n{inspect.getsource(bare)}")
    except (DefinitionError, OSError):  # without types, or its source is forgotten
        return None
    if bare is not function:
        tool = tool.__get__(function.__self__, type(function.__self__))
    return tool if tool.__name__ == name else tool.named(name)


def _bound(attribute: Any, value: Any, owner: type) -> Tool:
    # `@classmethod` outside `@Tool.define`: Python hands out a plain method, and the operation is inside.
    return value if is_tool(value) else attribute.__func__.__get__(owner, type(owner))


def is_tool(value: Any) -> bool:
    """Whether a value is a tool or a skill; a proxy of one, whose `__class__` may run code, is not."""
    return is_a(value, Tool)


def is_agent(value: Any) -> bool:
    """Whether a value is an agent."""
    # What `isinstance(value, Agent)` says, in a tenth of the time: scopes hold hundreds of other values.
    kind = type(value)
    try:
        if issubclass(kind, type) or getattr(kind, "__agent_id__", _MISSING) is _MISSING:
            return False
    except RecursionError:
        raise
    except Exception:  # a metaclass may answer in any way, or not at all
        return False
    return any("__agent_id__" in names_in(cls) for cls in bases_of(kind))
