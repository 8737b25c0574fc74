"""The operations of code that a model wrote: reading it, checking it, running it.

    parse          source text becomes a tree
    type_check     the source is checked, where a checker is installed
    risk_of_code   what can come of it
    arguments_from_code
                   what it hands to a tool
    compile        a tree or text becomes a code object
    exec, eval     a code object is run
    run_doctests   the examples in a docstring are run

An executor of `effectful_agents.handlers.execution` handles `parse`, `compile`, `exec` and `eval`, and decides what
code may do. The names are those of the builtins that they stand for: import the module, and write `code.exec`.
"""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any, Literal

from effectful_agents.errors import MissingHandlerError
from effectful_agents.operations.doctests import Executor, run_examples
from effectful_agents.runtime import Operation
from effectful_agents.types import Risk, Tool

__all__ = ["arguments_from_code", "compile", "eval", "exec", "parse", "risk_of_code", "run_doctests", "type_check"]

_EXECUTOR = (
    "Install an executor of `effectful_agents.handlers.execution`: `RestrictedPythonExecutor()`, or "
    "`BuiltinExecutor()` for code that may do anything; `harness(eval_provider=…)` has them."
)


@Operation.define
def parse(source: str, filename: str) -> ast.Module:
    """The tree of a source text.

    Args:
        source: The text.
        filename: The name that tracebacks and `inspect.getsource` know it by; there need be no such file.

    Raises:
        SyntaxError: It is no Python.
    """
    raise MissingHandlerError("parse", _EXECUTOR)


@Operation.define
def compile(
    source: str | ast.AST,
    filename: str,
    mode: Literal["exec", "eval", "single"] = "exec",
    flags: int = 0,
    dont_inherit: bool = False,
    optimize: int = -1,
) -> CodeType:
    """The code object of a tree or a text; the parameters are those of the builtin of this name.

    Raises:
        SyntaxError: It is no Python, or holds what the executor does not allow.
    """
    raise MissingHandlerError("compile", _EXECUTOR)


@Operation.define
def exec(bytecode: CodeType, env: dict[str, Any]) -> None:
    """Run a code object that was compiled in the mode `exec` or `single`.

    Args:
        bytecode: The code object.
        env: The names that it sees. What it binds at its top level is bound there afterwards, also where it raises.

    Raises:
        Exception: Whatever the code raises.
    """
    raise MissingHandlerError("exec", _EXECUTOR)


@Operation.define
def eval(bytecode: CodeType, env: dict[str, Any]) -> Any:
    """The value of a code object that was compiled in the mode `eval`.

    Args:
        bytecode: The code object.
        env: The names that it sees; it stays as it is.

    Raises:
        Exception: Whatever the code raises.
    """
    raise MissingHandlerError("eval", _EXECUTOR)


@Operation.define
def type_check(source: str, lo: int | None = None, hi: int | None = None, *, lenient: bool = False) -> None:
    """Check the types in a source text; by default, where no checker is installed, everything passes.

    Args:
        source: The text of a whole module.
        lo: The first line that is looked at, from 1. Faults elsewhere are of no matter.
        hi: The last line that is looked at.
        lenient: For code that grows by pieces: names may be bound anew, and nothing need be returned.

    Raises:
        TypeError: There is a fault; the message is the checker's.
    """


@Operation.define
def risk_of_code() -> Risk:
    """What code of a model can do to the world where it is run here; by default the worst.

    What it does by calling tools is none of it: each of these calls is decided about itself.
    """
    return Risk.DESTRUCTIVE


@Operation.define
def arguments_from_code(tool: Tool[..., Any], bound: inspect.BoundArguments) -> inspect.BoundArguments:
    """What code hands to a tool, as it is decided about and as the tool gets it; performed where somebody decides.

    By default containers are copied, so that what was decided about does not change afterwards.

    Raises:
        TypeError: It does not fit the parameters.
    """
    arguments = {name: copied(value) for name, value in bound.arguments.items()}
    return inspect.BoundArguments(bound.signature, arguments)


def copied(value: Any) -> Any:
    """A value with copies of the plain containers in it, and plain texts and numbers for those of subclasses.

    >>> class Text(str):
    ...     def startswith(self, *_):
    ...         return True
    >>> type(copied([Text("x")])[0])
    <class 'str'>
    """
    kind = type(value)
    if kind in _CONTAINERS:
        return kind(copied(one) for one in value)
    if kind is dict:
        return {copied(key): copied(one) for key, one in value.items()}
    if kind in _PLAIN or isinstance(value, bool | enum.Enum):
        return value
    # What is in a container of another class, whatever that says is in it. A named tuple stays one.
    for container in (list, set, frozenset):
        if isinstance(value, container):
            return container(copied(one) for one in container.__iter__(value))
    if isinstance(value, dict):
        return {copied(key): copied(one) for key, one in dict.items(value)}
    for plain in _PLAIN:
        if isinstance(value, plain):
            # What it is made of, which no method of its class can change.
            function: Any = plain.__getnewargs__
            return function(value)[0]
    return value


_CONTAINERS = frozenset({list, tuple, set, frozenset})
_PLAIN = (str, int, float, bytes)


@Operation.define
def run_doctests(obj: Callable[..., Any] | type | ModuleType, globs: Mapping[str, Any]) -> None:
    r"""Run the examples in the docstring of something that a model wrote; one without examples passes.

    Unlike the others this operation has its meaning here: to find examples and to compare what comes out is the same
    work whatever is installed. They are read, compiled and run by `parse`, `compile` and `exec`, and so may do what the
    code may do that they are about.

    Args:
        obj: A function; or a class or module, and then the docstrings of what is in it count as well.
        globs: The names that the examples see. They stay as they are.

    Raises:
        TypeError: An example fails; the message shows the first few that do.
        MissingHandlerError: There are examples, and no executor.

    >>> from effectful_agents import handler
    >>> from effectful_agents.handlers.execution import BuiltinExecutor
    >>> def double(n: int) -> int:
    ...     return n + 2
    >>> double.__doc__ = ">>> double(3)\n6"
    >>> with handler(BuiltinExecutor()):
    ...     run_doctests(double, {"double": double})
    Traceback (most recent call last):
    TypeError: 1 of 1 example in the docstring of `double` failed.
    In `double`:
        double(3)
    Expected:
        6
    Got:
        5
    """
    run_examples(obj, globs, Executor(parse, compile, exec))
