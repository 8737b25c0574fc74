"""Parts of trees, as the policy writes them."""

from __future__ import annotations

import ast
from typing import Any

from RestrictedPython.transformer import copy_locations

__all__ = ["as_statements", "at", "call"]


def at[N: ast.AST](where: ast.AST, node: N) -> N:
    """The node, at the place in the source where another is."""
    copy_locations(node, where)  # ty: ignore[invalid-argument-type]
    return node


def call(where: ast.AST, guard: str, *args: ast.expr) -> ast.Call:
    """A call of a guard."""
    return at(where, ast.Call(ast.Name(guard, ast.Load()), list(args), []))


def as_statements(visited: Any) -> list[Any]:
    """What a visit of a statement gave: one, or several."""
    return visited if isinstance(visited, list) else [visited]
