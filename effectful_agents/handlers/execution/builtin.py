"""Code that may do anything."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, Literal

from effectful_agents.generated import parsed, telling_what_is_too_long
from effectful_agents.handlers.execution.imports import authorized
from effectful_agents.operations import code
from effectful_agents.operations.legibility import PromptInjectingInterpretation
from effectful_agents.runtime import SignalScope, implements
from effectful_agents.runtime.bridge import bridged, can_wait, wait

__all__ = ["BuiltinExecutor"]


class BuiltinExecutor(PromptInjectingInterpretation):
    """Code that you write is run as plain Python, in the process of the program, and nothing restricts it.

    Import what you need: the whole standard library and every installed package are there. So are the files, the
    network and the machine, and what you do to them is done. Do what the request asks for, and leave everything else
    as it was. What threads and processes that you start print is not returned to you: have them give it back, and print
    it.
    """

    # For tests, and for code that is trusted for another reason; anything else is for `RestrictedPythonExecutor`.

    def manifest(self) -> Mapping[str, object]:
        # What the manifest of a stack says of it.
        return {"code": "builtin"}

    @implements(code.parse)
    def parse(self, source: str, filename: str) -> ast.Module:
        return parsed(source, filename)

    @implements(code.compile)
    def compile(
        self,
        source: str | ast.AST,
        filename: str,
        mode: Literal["exec", "eval", "single"] = "exec",
        flags: int = 0,
        dont_inherit: bool = False,
        optimize: int = -1,
    ) -> CodeType:
        # Without `dont_inherit` the future imports of this module would hold for the code as well.
        made: Any = source
        with telling_what_is_too_long():
            return builtins.compile(made, filename, mode, flags, True, optimize)

    @implements(code.exec)
    def exec(self, bytecode: CodeType, env: dict[str, Any]) -> None:
        # As both globals and locals, so that what one piece binds the next one sees. A signal that a bare `except` in
        # the code has eaten comes out at the next operation, or here.
        with authorized(bytecode), SignalScope():
            if bytecode.co_flags & inspect.CO_COROUTINE:
                env.setdefault("__builtins__", builtins)  # as `exec` does
                _waited_for(FunctionType(bytecode, env))
            else:
                builtins.exec(bytecode, env)

    @implements(code.eval)
    def eval(self, bytecode: CodeType, env: dict[str, Any]) -> Any:
        # A copy: a `:=` in the expression, or the `__builtins__` that the interpreter puts in, changes nothing outside.
        with authorized(bytecode), SignalScope():
            return builtins.eval(bytecode, dict(env))


def _waited_for(function: Callable[[], Any]) -> None:
    """Run code that awaits at its top level, and wait for its end."""
    if can_wait():
        wait(function())
        return

    async def elsewhere() -> None:
        # Plain calls in the code may have to wait as well, and are now in an event loop.
        await bridged(lambda: wait(function()))

    wait(elsewhere())
