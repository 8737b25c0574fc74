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
    """A copy of a tree, several times as fast as `copy.deepcopy`; nodes without parts, such as `Load()`, are shared.

    Not by recursion: a tree may be as deep as the stack is, and what the collector calls there needs room too.
    """
    left: list[tuple[Any, Any]] = []
    made = _begun(node, left)
    while left:
        original, copy = left.pop()
        if isinstance(original, list):
            copy.extend(_begun(part, left) for part in original)
            continue
        kind = type(original)
        for name in kind._fields:
            if hasattr(original, name):
                setattr(copy, name, _begun(getattr(original, name), left))
        for name in kind._attributes:
            if hasattr(original, name):
                setattr(copy, name, getattr(original, name))
    return made


def _begun(node: Any, left: list[tuple[Any, Any]]) -> Any:
    """A copy without parts, which are left to be copied; anything but a tree itself."""
    if isinstance(node, list):
        copy: Any = []
    elif isinstance(node, ast.AST) and (node._fields or node._attributes):
        kind = type(node)
        copy = kind.__new__(kind)  # not by a call: that warns where a part is missing
    else:
        return node
    left.append((node, copy))
    return copy
