"""Parts of trees, as the policy writes them."""

from __future__ import annotations

import ast
from typing import Any

from RestrictedPython.transformer import copy_locations

__all__ = ["as_statements", "at", "call", "copied"]


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


def copied(node: Any) -> Any:
    """A copy of a tree, several times as fast as `copy.deepcopy`; nodes without parts, such as `Load()`, are shared."""
    if isinstance(node, list):
        return [copied(part) for part in node]
    if not isinstance(node, ast.AST) or not (node._fields or node._attributes):
        return node
    kind = type(node)
    made = kind.__new__(kind)  # not by a call: that warns where a part is missing
    for name in kind._fields:
        if hasattr(node, name):
            setattr(made, name, copied(getattr(node, name)))
    for name in kind._attributes:
        if hasattr(node, name):
            setattr(made, name, getattr(node, name))
    return made
