"""Loading a script to look at what it defines: it is not to begin its work."""

from __future__ import annotations

import ast
import contextlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import ConfigurationError, MissingHandlerError, StorageError
from effectful_agents.harness.launcher import become_main, fail, one_line, read_script, show_traceback, stack_of
from effectful_agents.harness.stack import Harness

__all__ = ["NotLoaded", "load", "looked_at", "opened"]


class NotLoaded(Exception):
    """The script failed while it was loaded, which has been told.

    Attributes:
        code: The exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def looked_at[T](look: Callable[[], T], *, as_json: bool) -> T:
    """What somebody sees who looks at a script; what it prints meanwhile is no part of the JSON that is asked for.

    Raises:
        NotLoaded: It failed, or something has to be written otherwise (exit code 2).
    """
    try:
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            return look()
    except (ConfigurationError, StorageError) as error:
        raise NotLoaded(fail(one_line(error), code=2)) from error


def opened(script: str, options: Mapping[str, Any]) -> tuple[Harness, types.ModuleType]:
    """The standard stack that options ask for, and the script, loaded.

    Raises:
        NotLoaded: The script failed.
        ConfigurationError: There is no script, or the options make no stack.
    """
    source = read_script(script)  # before a model is looked for
    return stack_of(options), load(script, source)


def load(script: str, source: bytes) -> types.ModuleType:
    """Execute a script but for what it does as the program; the process is the script's afterwards.

    Raises:
        NotLoaded: It raised, or ended the process.
    """
    module = become_main(script, [])
    try:
        exec(_without_main(source, str(module.__file__)), module.__dict__)
    except BaseException as error:
        raise NotLoaded(_not_loaded(error, module)) from error
    return module


def _not_loaded(error: BaseException, module: types.ModuleType) -> int:
    """Say what a script raised while it was loaded."""
    mend = 'put what it does under `if __name__ == "__main__":`.'
    if isinstance(error, MissingHandlerError):
        return fail(f"the script asks a model while it is loaded: {mend}", code=2)
    if isinstance(error, SystemExit):
        return fail(f"the script ends while it is loaded: {mend}", code=2)
    if isinstance(error, KeyboardInterrupt):
        return fail("interrupted.", code=130)
    return show_traceback(error, str(module.__file__))


def _without_main(source: bytes, path: str) -> types.CodeType:
    """The code of a script that takes itself for another module than `__main__` wherever it asks.

    Its `__name__` stays, since the model is shown it.

    Raises:
        SyntaxError: It is no Python.
    """
    tree = ast.fix_missing_locations(_NotMain().visit(ast.parse(source, path)))
    return compile(tree, path, "exec", dont_inherit=True)


class _NotMain(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        name, main = ast.Name("__name__", ast.Load()), ast.Constant("__main__")
        asks = [ast.dump(ast.Compare(one, [ast.Eq()], [other])) for one, other in ((name, main), (main, name))]
        if ast.dump(node) not in asks:
            return node
        # False, but not for the compiler: the names that are bound under it stay names of the module.
        return ast.copy_location(ast.UnaryOp(ast.Not(), name), node)
