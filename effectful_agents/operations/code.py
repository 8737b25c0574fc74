"""The operations of code that a model wrote: reading it, checking it, running it.

    parse          source text becomes a tree
    type_check     the source is checked, where a checker is installed
    compile        a tree or text becomes a code object
    exec, eval     a code object is run
    run_doctests   the examples in a docstring are run

An executor of `effectful_agents.handlers.execution` handles `parse`, `compile`, `exec` and `eval`, and decides what
code may do. The names are those of the builtins that they stand for: import the module, and write `code.exec`.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any, Literal

from effectful_agents.errors import MissingHandlerError
from effectful_agents.runtime import Operation

__all__ = ["compile", "eval", "exec", "parse", "run_doctests", "type_check"]

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
def run_doctests(obj: Any, globs: Any) -> None:
    """STAND-IN."""
    import doctest, contextlib, io
    from unittest import mock

    parser = doctest.DocTestParser()
    test = parser.get_doctest(obj.__doc__ or "", dict(globs), getattr(obj, "__name__", "x"), "<doctest>", 0)
    out = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=out.write)
    if runner.failures:
        raise TypeError(out.getvalue())
