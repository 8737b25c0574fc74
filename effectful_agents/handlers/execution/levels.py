"""How many tuples code can put into each other from one tick to the next: bounded by further ticks.

A tuple is hashed in C, and what lies in it, and so on, without a look at any limit. So the collector is called now and
then, to see how deep values lie in each other (`nesting`), and how often is counted in ticks. Whatever else makes a
value that holds another one is a call, and counts; a tuple is written without one.
"""

from __future__ import annotations

import ast
from typing import Any

from effectful_agents.handlers.execution.nodes import at, call

__all__ = ["with_ticks"]

_MOST = 500
"""Tuples that a list of statements makes without a tick in between."""

_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.boolop, ast.unaryop)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def with_ticks(tree: ast.AST) -> None:
    """Write ticks into code that the policy has written already, by the tuples that it makes.

    What a comprehension makes of tuples is its own until it ends, but for what `:=` binds in it, and for a generator.
    """
    _levels(tree)


def _levels(node: ast.AST) -> int:
    """How many tuples a node makes until the next tick, at most; ticks are written into it."""
    if isinstance(node, ast.For | ast.While):
        made = _of_statements(node.body) + (_levels(node.test) if isinstance(node, ast.While) else 0)
        _tick_of(node, made)
        return _of_statements(node.orelse) + (_levels(node.iter) if isinstance(node, ast.For) else 0)
    if isinstance(node, ast.FunctionDef):
        body, node.body = node.body, []
        around = _of_parts(node)
        node.body = body
        made = _of_statements(body)
        if made or node.args.vararg is not None:
            _tick_of(node, made)
        return around
    if isinstance(node, ast.Lambda):
        made = _levels(node.body)
        if made or node.args.vararg is not None:
            node.body = call(node, "_told_", node.body, ast.Constant(max(made, 1)))
        return _of_parts(node.args)
    if isinstance(node, _COMPREHENSIONS):
        made = _of_parts(node)
        if made and isinstance(node, ast.GeneratorExp):
            node.elt = call(node, "_told_", node.elt, ast.Constant(made))
        return 0
    made = _of_parts(node)
    if isinstance(node, ast.NamedExpr) and made:
        node.value = call(node, "_told_", node.value, ast.Constant(made))
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        made += not all(isinstance(one, ast.Constant) for one in node.elts)
    return made


def _of_parts(node: ast.AST) -> int:
    made = 0
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            made += 0 if isinstance(value, _LEAVES) else _levels(value)
        elif isinstance(value, list) and value:
            is_block = isinstance(value[0], ast.stmt)
            made += _of_statements(value) if is_block else sum([_levels(x) for x in value if isinstance(x, ast.AST)])
    return made


def _of_statements(statements: list[Any]) -> int:
    made, written = 0, []
    for statement in statements:
        more = _levels(statement)
        if made and made + more > _MOST:
            written.append(_tick(statement, made))
            made = 0
        written.append(statement)
        made += more
    statements[:] = written
    return made


def _tick(where: ast.AST, levels: int) -> ast.stmt:
    return at(where, ast.Expr(call(where, "_tick_", *([ast.Constant(levels)] if levels > 1 else []))))


def _tick_of(node: Any, levels: int) -> None:
    """Have the tick at the beginning of a body count so many, and write one if there is none."""
    first = int(isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None)
    if len(node.body) > first and _is_tick(node.body[first]):
        del node.body[first]
    node.body.insert(first, _tick(node, levels))


def _is_tick(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "_tick_"
