"""Holding the code of a model to the palette: it calls tools that are offered, and no others."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Generator
from types import FrameType, ModuleType
from typing import Any

from effectful_agents.generated import is_generated_name
from effectful_agents.operations import code
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.steps import current_ids
from effectful_agents.runtime import fwd, handler, interpretation
from effectful_agents.types import Tool

__all__ = ["HeldCall"]

_call: contextvars.ContextVar[HeldCall | None] = contextvars.ContextVar("effectful_agents_held_call", default=None)
_in_code: contextvars.ContextVar[bool] = contextvars.ContextVar("effectful_agents_in_code", default=False)
"""Whether code of a model runs, and no tool that it called: for where its frames cannot be seen, as in a thread."""


class HeldCall:
    """A call of a skill in which code of a model may call the tools of a palette only.

    What counts is who calls, and not how they have come by the tool: out of a name, an attribute, a container, an
    instance that was made for it, or what a function of the program has returned. What a tool or a skill calls in its
    own body is the program's, and so is what a function calls that names the tool itself. One that was only handed a
    tool calls it for whoever did that.

    Args:
        depth: How many calls it is nested in.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._offered: dict[int, Collection[Tool]] = {}

    @classmethod
    def around[T](cls, make: Callable[[], T]) -> T:
        """Make the call that begins next; one for all routers of the stack."""
        ids, outer = current_ids(), _call.get()
        depth = 0 if ids is None else ids.depth_inside
        if outer is not None and outer._depth == depth:
            return make()
        call = cls(depth)
        # Not a token's `reset`, here and below: it raises where a greenlet was given another context meanwhile.
        _call.set(call)
        try:
            with handler(call._guards()):
                return make()
        finally:
            _call.set(outer)

    @classmethod
    def hold(cls, router: object, offered: Collection[Tool]) -> None:
        """Have the code of the running call be held to what a router offers, from now on."""
        call = _call.get()
        if call is not None and call._is_here():
            call._offered[id(router)] = offered

    def _is_here(self) -> bool:
        """Whether the code is in the call itself; one inside has a palette of its own."""
        ids = current_ids()
        return self._depth == (0 if ids is None else ids.depth)

    def _guards(self) -> dict[Any, Callable[..., Any]]:
        known = interpretation()
        # Tools that the program handles one by one are not performed by the `__apply__` of all.
        guards: dict[Any, Callable[..., Any]] = {tool: self._guard(tool) for tool in known if isinstance(tool, Tool)}
        guards |= {operation: _run for operation in (code.exec, code.eval) if operation in known}
        return {**guards, Tool.__apply__: self._called, call_agent: self._called}

    def _guard(self, tool: Tool) -> Callable[..., Any]:
        def guard(*args: Any, **kwargs: Any) -> Any:
            is_method = tool.owner is not None and tool.receiver is None
            return self._called(tool.__get__(args[0]) if is_method and args else tool)

        return guard

    def _called(self, tool: Tool, /, *args: Any, **kwargs: Any) -> Any:
        if not self._is_here():
            return fwd()
        if _is_by_code(tool, sys._getframe(1)):
            for offered in self._offered.values():
                if tool not in offered:
                    raise ValueError(f"there is no tool `{tool.__name__}`. The tools are: {self._listed()}.")
        with _running(is_code=False):
            value = fwd()
        return _awaited(value) if inspect.isawaitable(value) else value

    def _listed(self) -> str:
        first, *others = self._offered.values()
        both = {tool.__name__ for tool in first if all(tool in other for other in others)}
        return ", ".join(f"`{name}`" for name in sorted(both)) or "none"


def _run(*args: Any, **kwargs: Any) -> Any:
    """A rule of `code.exec` and `code.eval`."""
    with _running(is_code=True):
        return fwd()


async def _awaited[T](value: Awaitable[T]) -> T:
    """Have the body of an asynchronous tool be the program's, whoever waits for it."""
    with _running(is_code=False):
        return await value


@contextlib.contextmanager
def _running(*, is_code: bool) -> Generator[None]:
    before = _in_code.get()
    _in_code.set(is_code)
    try:
        yield
    finally:
        _in_code.set(before)


# The frames between code of a model and what a tool or a skill does by itself.
_INSIDE = frozenset(function.__code__ for function in (HeldCall.around.__func__, HeldCall._called, _awaited))


def _is_by_code(tool: Tool, frame: FrameType | None) -> bool:
    """Whether code of a model calls a tool, and none of the program's between that and the call does."""
    while frame is not None:
        if frame.f_code in _INSIDE or _calls_by_name(frame, tool):
            return False
        if is_generated_name(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return _in_code.get()


def _calls_by_name(frame: FrameType, tool: Tool) -> bool:
    """Whether it is a function of the program that names a tool itself, and was not only handed it."""
    written, names = frame.f_code, frame.f_globals
    module = names.get("__name__")
    # In no module is what was evaluated of a text, by code of a model too.
    if vars(sys.modules.get(str(module), _nowhere)) is not names or str(module).partition(".")[0] in _MACHINERY:
        return False
    if tool.own_name in (*written.co_names, *written.co_freevars):
        return True
    return any(isinstance(value := names.get(name), Tool) and value == tool for name in written.co_names)


_nowhere = ModuleType("nowhere")
_MACHINERY = frozenset({"effectful", "effectful_agents"})
