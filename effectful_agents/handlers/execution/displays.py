"""The part of the policy about what is built or gone through without a call: displays, f-strings, unpacking, `in`.

The interpreter does these in one step each, which nothing could stop in between. So what goes into them is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from effectful_agents.handlers.execution.nodes import at, call
from effectful_agents.handlers.execution.patterns import PatternPolicy

__all__ = ["DisplayPolicy"]

_LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict)
_UNPACKING = (ast.Tuple, ast.List)
_WRITTEN = (ast.Tuple, ast.List, ast.Constant, ast.JoinedStr, ast.BinOp, ast.ListComp)
"""What is no file that is taken apart, as far as one can see."""


class DisplayPolicy(PatternPolicy):
    """Writes guards into displays, f-strings, unpacking assignments, slices that are written to, and `in`."""

    # --- stars ----------------------------------------------------------------------------------------------------

    def _display(self, node: Any) -> ast.AST:
        node = self.node_contents_visit(node)
        spread(node.elts)
        return node

    visit_List = visit_Tuple = visit_Set = _display

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node = self.node_contents_visit(node)
        count = ast.Constant(node.keys.count(None))
        node.values = [
            call(value, "_pairs_", value, count) if key is None else value
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node = self.node_contents_visit(node)
        levels = max(map(_levels_of_stars, node.targets))
        if levels:
            node.value = call(node.value, "_unpacked_", node.value, ast.Constant(levels))
        elif any(isinstance(one, ast.Tuple | ast.List) for one in node.targets) and not isinstance(
            node.value, _WRITTEN
        ):
            node.value = call(node.value, "_opened_", node.value)
        return node

    def guarded_target(self, node: Any) -> Any:
        """The same for what a loop unpacks each value into."""
        levels = _levels_of_stars(node.target)
        if levels:
            node.iter = call(node.iter, "_each_", node.iter, ast.Constant(levels))
        return node

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        if node.optional_vars is not None and _levels_of_stars(node.optional_vars):
            self.error(node.optional_vars, "a `with` statement cannot unpack into a starred name here.")
        return self.node_contents_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        node = self.node_contents_visit(node)
        node.value = call(node.value, "_delegated_", node.value)
        return node

    # --- slices and `in` ------------------------------------------------------------------------------------------

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_slice = any(isinstance(one, ast.Slice) for one in (node.slice, *getattr(node.slice, "elts", ())))
        made: Any = super().visit_Subscript(node)
        if is_slice and not isinstance(node.ctx, ast.Load):
            made.value = call(made.value, "_slices_", made.value)
        return made

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node = self.node_contents_visit(node)
        node.comparators = [
            call(one, "_contained_", one)
            if isinstance(op, ast.In | ast.NotIn) and not isinstance(one, _LITERALS)
            else one
            for op, one in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Whoever hears of the error makes a text of it, outside of all limits."""
        node = self.node_contents_visit(node)
        node.msg = node.msg and call(node.msg, "_shown_", node.msg)
        return node

    # --- f-strings ------------------------------------------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """With several values in it, each is made into text where it stands, and all are joined by a guard."""
        values = [self.visit(value) for value in node.values]
        if sum(isinstance(value, ast.FormattedValue) for value in values) < 2:
            node.values = values
            return node
        parts = [at(one, ast.JoinedStr([one])) if isinstance(one, ast.FormattedValue) else one for one in values]
        return call(node, "_joined_", *parts)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node = self.node_contents_visit(node)
        if node.conversion != -1 or node.format_spec is None:
            guard = {ord("r"): "_shown_repr_", ord("a"): "_shown_ascii_"}.get(node.conversion, "_shown_")
            node.value = call(node.value, guard, node.value)
        if node.format_spec is None:
            return node
        value = node.value
        if node.conversion != -1:
            value = at(node, ast.JoinedStr([at(node, ast.FormattedValue(value, node.conversion, None))]))
        return at(node, ast.FormattedValue(call(node, "_format_", value, node.format_spec), -1, None))


def spread(elements: Iterable[ast.expr]) -> None:
    """Have a guard look at what stands behind each star."""
    stars = [one for one in elements if isinstance(one, ast.Starred) and isinstance(one.ctx, ast.Load)]
    for star in stars:
        star.value = call(star.value, "_spread_", star.value, ast.Constant(len(stars)))


def _levels_of_stars(target: ast.expr) -> int:
    """How deep in a target the deepest starred name stands; 0 if there is none."""
    if not isinstance(target, ast.Tuple | ast.List):
        return 0
    within = max(map(_levels_of_stars, target.elts), default=0)
    return within + 1 if within else int(any(isinstance(one, ast.Starred) for one in target.elts))
