"""Code in a restricted language, under guards and limits."""

from __future__ import annotations
import __future__

import ast
import builtins
import dataclasses
import inspect
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal

from RestrictedPython.transformer import RestrictingNodeTransformer

from effectful_agents.errors import OptionError
from effectful_agents.generated import parsed, telling_what_is_too_long
from effectful_agents.handlers.execution import decimals
from effectful_agents.handlers.execution.alarms import quiet, uninterrupted
from effectful_agents.handlers.execution.callables import guarded
from effectful_agents.handlers.execution.environment import BUILTINS
from effectful_agents.handlers.execution.handing import handed_over
from effectful_agents.handlers.execution.imports import authorized
from effectful_agents.handlers.execution.isolation import IsolatedRun, require
from effectful_agents.handlers.execution.kinds import ALLOWED_MODULES, SANDBOX, is_closed
from effectful_agents.handlers.execution.limits import Limits, running
from effectful_agents.handlers.execution.names import is_identifier
from effectful_agents.handlers.execution.nodes import copied
from effectful_agents.handlers.execution.policy import RestrictedPythonPolicy
from effectful_agents.handlers.execution.printing import not_redirected
from effectful_agents.handlers.execution.standard import EVALUATE
from effectful_agents.messages import SystemMessage
from effectful_agents.operations import code
from effectful_agents.operations.legibility import PromptInjectingInterpretation, with_section
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.policy import is_decided
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import SignalScope, implements
from effectful_agents.types import Risk, Tool
from effectful_agents.types.walk import implicit_target, is_tool, tool_standing_for

__all__ = ["RestrictedPythonExecutor"]

_MISSING: Any = object()


class RestrictedPythonExecutor(PromptInjectingInterpretation):
    """Code that you write runs in a part of Python that cannot reach the machine.

    Write within it: what is not there cannot be reached in another way either, and each attempt costs a turn.

    You have classes, closures, comprehensions, generators, decorators, dataclasses, enums, `try`, `with`, `match`,
    f-strings, type annotations and `print`, and the modules in the section Modules you may import.

    There are no files, no network and no processes, and no `open`, `input`, `eval`, `exec`, `compile`, `globals` or
    `locals`. You may define the methods of operators and protocols in your classes. Of other special attributes there
    are `type(x).__name__`, `vars(x)`, `x.__annotations__`, and `error.__cause__` and `error.__context__`; the rest,
    such as `__mro__` or `__traceback__`, cannot be read. Names with one leading underscore are like any others. Outside
    of functions you may `await` an asynchronous tool; there is no `async`, no `except*` and no `import *`. A field of
    `str.format` names its argument and goes no further; an f-string may. Raise an `Exception` to say that something
    failed: `SystemExit` and its like are not there.

    Time, memory, output and the size of a single value are limited. What is refused or stopped is told to you as an
    error that names it. Doctests run under the same rules.
    """

    # Args (notes for programmers: the docstring above goes to the model):
    #   policy: the class that code is compiled by, in the place of `RestrictedPythonPolicy`. It has to write the same
    #     guards. RestrictedPython's own `RestrictingNodeTransformer` writes fewer: it counts no steps, so that a loop
    #     without calls has no end in time, and looks at nothing that a function returns.
    #   seconds: time on the clock for one `exec` or `eval`, and for one call of a function that it has left behind;
    #     None is for ever.
    #   size: characters, bytes or items of one value, and binary digits of one integer.
    #   output: characters that are printed.
    #   memory: bytes by which the process may grow meanwhile (Linux); with a process of its own, what that may take.
    #   isolation: "process" runs each piece in a process of its own (see `isolation`).

    def __init__(
        self,
        policy: type[RestrictingNodeTransformer] | None = None,
        *,
        seconds: float | None = 10.0,
        size: int = 10_000_000,
        output: int = 1_000_000,
        memory: int | None = 1 << 30,
        isolation: Literal["thread", "process"] = "thread",
    ) -> None:
        self.policy = RestrictedPythonPolicy if policy is None else policy
        if not (isinstance(self.policy, type) and issubclass(self.policy, RestrictingNodeTransformer)):
            raise OptionError(f"`policy` is {policy!r}; it is a subclass of `RestrictingNodeTransformer`.")
        for name, value in (("seconds", seconds), ("size", size), ("output", output), ("memory", memory)):
            if value is None and name in ("seconds", "memory"):
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise OptionError(f"`{name}` is {value!r}; it is a number, more than 0.")
        if isolation not in ("thread", "process"):
            raise OptionError(f"`isolation` is {isolation!r}; it is 'thread' or 'process'.")
        if isolation == "process":
            require()
        self.limits = Limits(seconds, size, output, memory)
        self.isolation = isolation

    def manifest(self) -> Mapping[str, object]:
        # What the manifest of a stack says of it.
        return {"code": "restricted", "limits": dataclasses.asdict(self.limits), "isolation": self.isolation}

    @implements(call_system)
    def call_system(self, harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
        return super().call_system(with_section(harness_prompt, self._modules_section()), agent_prompt)

    def _modules_section(self) -> PromptSection:
        names = ", ".join(f"`{name}`" for name in sorted(ALLOWED_MODULES - {"__future__"}))
        return section("Modules you may import", f"{names}. Of each there is what computes, and nothing that waits.")

    @implements(code.parse)
    def parse(self, source: str, filename: str) -> ast.Module:
        # What is allowed is decided when the tree is compiled.
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
        with telling_what_is_too_long(), quiet():
            return self._compiled(source, filename, mode, flags, optimize)

    def _compiled(
        self, source: str | ast.AST, filename: str, mode: Literal["exec", "eval", "single"], flags: int, optimize: int
    ) -> CodeType:
        # Not by `compile_restricted`: it drops the flags, and has the code inherit the future imports of its own
        # module, so that every annotation would silently become a text.
        tree = ast.parse(source, filename, mode) if isinstance(source, str) else copied(source)
        policy = self.policy()
        if isinstance(policy, RestrictedPythonPolicy):
            policy.annotations_are_text = bool(flags & __future__.annotations.compiler_flag)
        policy.visit(tree)
        if policy.errors:
            raise SyntaxError("\n".join(policy.errors))
        made: Any = ast.fix_missing_locations(tree)
        # What awaits has been rewritten: the code is not a coroutine.
        flags &= ~(ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return builtins.compile(made, filename, mode, flags, True, optimize)

    @implements(code.risk_of_code)
    def risk_of_code(self) -> Risk:
        return Risk.READ

    @implements(code.arguments_from_code)
    def arguments_from_code(self, tool: Tool[..., Any], bound: inspect.BoundArguments) -> inspect.BoundArguments:
        return handed_over(tool, bound)

    @implements(code.exec)
    def exec(self, bytecode: CodeType, env: dict[str, Any]) -> None:
        with authorized(bytecode, ALLOWED_MODULES):
            if self.isolation == "process":
                IsolatedRun(self.limits).exec(bytecode, env)
                return
            names = _Namespace.of(env, self.limits)
            names.fill()
            try:
                with self._run():
                    uninterrupted(builtins.exec, bytecode, names.names)
            finally:
                names.bring_back()

    @implements(code.eval)
    def eval(self, bytecode: CodeType, env: dict[str, Any]) -> Any:
        with authorized(bytecode, ALLOWED_MODULES):
            if self.isolation == "process":
                return IsolatedRun(self.limits).eval(bytecode, env)
            names = _Namespace({}, self.limits, _Namespace.of(env, self.limits).filled())
            with self._run():
                return uninterrupted(builtins.eval, bytecode, names.names)

    @contextmanager
    def _run(self) -> Generator[None]:
        # A signal that the code has eaten, by a `return` in a `finally`, comes out at the end. The precision of decimal
        # arithmetic belongs to the program.
        with SignalScope(), decimals.context(), not_redirected(), running(self.limits, _is_code_of_ours):
            yield


def _is_code_of_ours(frame: FrameType) -> bool:
    return frame.f_builtins is BUILTINS


_FURNITURE = frozenset({"__builtins__", "__name__", "__sandbox__", "_print", "__annotations__", "__doc__"})
"""Names in a namespace of restricted code that are not the code's."""


class _Namespace:
    """The names that restricted code sees as its globals, beside those that the caller sees.

    They are two dictionaries, so that the caller's stays free of what the guards need, and a function that is called
    long afterwards still has it. As long as such a function lives, a later piece with the same environment goes on in
    the same namespace: `global` in it means the same variable.
    """

    def __init__(self, env: dict[str, Any], limits: Limits, names: dict[str, Any] | None = None) -> None:
        self.env = env  # kept, so that nobody else gets its id
        self.limits = limits
        self.names: dict[str, Any] = {
            **(names or {}),
            "__builtins__": BUILTINS,
            "__name__": SANDBOX,
            "__sandbox__": self,
        }
        self._seen: dict[str, Any] = {}

    @classmethod
    def of(cls, env: dict[str, Any], limits: Limits) -> _Namespace:
        found = _namespaces.get(id(env))
        if found is None:
            found = _namespaces[id(env)] = cls(env, limits)
        found.limits = limits
        return found

    def fill(self) -> None:
        """Take over what the caller has changed since the last time."""
        for name in list(self._seen.keys() - self.env.keys()):
            self.names.pop(name, None)
            del self._seen[name]
        for name, value in self.env.items():
            if name not in _FURNITURE and self._seen.get(name, _MISSING) is not value and is_identifier(name):
                self._seen[name] = value
                self.names[name] = _entered(value)

    def filled(self) -> dict[str, Any]:
        """A copy of the names, as they are now."""
        self.fill()
        return dict(self.names)

    def bring_back(self) -> None:
        """Give the caller what the code has bound, and take away what it has deleted."""
        for name in list(self._seen):
            if name not in self.names:
                self.env.pop(name, None)
                del self._seen[name]
        for name, value in self.names.items():
            value = _left(value)
            if name not in _FURNITURE and is_identifier(name) and self.env.get(name, _MISSING) is not value:
                self.env[name] = value
            if name in self.env:
                self._seen[name] = self.env[name]


class _Closed:
    """Stands among the names of the code for a value of the program's that it can do nothing with.

    A function could be handed to somebody who calls it past the guards: as the value of a property, for one. A mapping
    such as `os.environ` shows all that is in it as a text, and gives it to `|` and to `**`.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self.__qualname__ = getattr(value, "__qualname__", type(value).__name__)


def _entered(value: Any) -> Any:
    kind = type(value)
    if is_closed(kind) and issubclass(kind, Mapping):
        return _Closed(value)
    if not callable(value) or isinstance(value, type):
        return value
    try:
        guarded(value)
    except TypeError:
        return _Closed(value)
    # What the model is offered as a tool is one for its code as well, where somebody decides about calls of tools.
    tool = tool_standing_for(value) if kind is FunctionType and is_decided() else None
    return value if tool is None else tool


def _left(value: Any) -> Any:
    """What the caller knows a value as that was entered."""
    if type(value) is _Closed:
        return value.value
    target = implicit_target(value) if is_tool(value) else None
    return value if target is None else target


_namespaces: weakref.WeakValueDictionary[int, _Namespace] = weakref.WeakValueDictionary()


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    made = RestrictedPythonExecutor().compile(text, "<annotation>", "eval")
    return builtins.eval(made, {**names, "__builtins__": BUILTINS, "__name__": SANDBOX})


EVALUATE.append(_evaluate)
