"""The part of the policy about `finally`: what is no `Exception`, and what stops the code, goes on after it."""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from effectful_agents.handlers.execution.displays import DisplayPolicy
from effectful_agents.handlers.execution.nodes import as_statements, at, call

__all__ = ["FUNCTION", "LOOP", "FinallyPolicy"]

FUNCTION, LOOP = "a function", "a loop"


class FinallyPolicy(DisplayPolicy):
    """Writes guards into each `finally`, and before what leaves one.

    An error that comes up in it, a `return` and a `break` take the place of an error that was on its way. So that one
    is remembered at its beginning, and a guard raises it again if nothing may take its place:

        finally:
            error = _flying_()
            try: …
            except _kept_(error): pass
    """

    def __init__(self, errors: Any = None, warnings: Any = None, used_names: Any = None) -> None:
        super().__init__(errors, warnings, used_names)
        self._around: list[str] = []
        """The variables of what was on its way where each `finally` around a statement begins; functions; loops."""

    @contextmanager
    def within(self, what: str) -> Generator[None]:
        """What is visited in the block stands in this."""
        self._around.append(what)
        yield
        self._around.pop()

    def visit_Try(self, node: ast.Try) -> ast.AST:
        final, node.finalbody = node.finalbody, []
        node = self.node_contents_visit(node)
        if final:
            name = self.gen_tmp_name()
            with self.within(name):
                body = [one for statement in final for one in as_statements(self.visit(statement))]
            first = ast.Assign([ast.Name(name, ast.Store())], call(final[0], "_flying_"))
            guarded = ast.Try(body, [ast.ExceptHandler(_kept(final[0], name), None, [ast.Pass()])], [], [])
            last = ast.Delete([ast.Name(name, ast.Del())])
            node.finalbody = [at(final[0], one) for one in (first, guarded, last)]
        return node

    def leaving(self, node: ast.stmt, *up_to: str) -> Any:
        """A statement that leaves each `finally` around it, up to a function or a loop."""
        names: list[str] = []
        for name in reversed(self._around):
            if name in up_to:
                break
            if name != LOOP:
                names.append(name)
        kept = [at(node, ast.Expr(_kept(node, name))) for name in names]
        return [*kept, node] if kept else node

    def visit_Break(self, node: ast.Break) -> Any:
        return self.leaving(node, FUNCTION, LOOP)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return self.leaving(node, FUNCTION, LOOP)


def _kept(where: ast.AST, name: str) -> ast.expr:
    return call(where, "_kept_", ast.Name(name, ast.Load()))
