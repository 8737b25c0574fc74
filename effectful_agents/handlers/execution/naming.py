"""The part of the policy about names that Python has and restricted code has not, or has in another version.

They are found by how they are written, so that code which looks for them in another way, as text, finds nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, override

from effectful_agents.generated import awaits_at_top
from effectful_agents.handlers.execution.displays import DisplayPolicy
from effectful_agents.handlers.execution.kept_back import KEPT_BACK, instead
from effectful_agents.handlers.execution.names import is_identifier
from effectful_agents.handlers.execution.nodes import at, call

__all__ = ["INHERITED", "READ", "NamingPolicy"]

READ = frozenset({"__annotations__", "__cause__", "__context__", "__notes__", "__class__", "__dict__"})
"""Special attributes that may be read with a dot, in versions of their own (`reading`)."""

INHERITED = frozenset({"__copy__", "__deepcopy__", "__delete__", "__get__", "__getattr__", "__set__", "__set_name__"})
"""Special methods that may be read of `super()` alone, where a class of the code defines them."""

_ASYNC = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
_CONSTANTS = {"__name__": "__main__", "__debug__": True}
_LOOKS = frozenset({"isinstance", "issubclass"})


class NamingPolicy(DisplayPolicy):
    """Says what to write in the place of names that are kept back, and writes guards for those that are given.

    `x.__class__` is `type(x)`, and `x.__dict__` is `vars(x)`, where they are read.
    `BaseException` means `Exception` in annotations and in `isinstance`: the code sees no others.
    """

    def __init__(self, errors: Any = None, warnings: Any = None, used_names: Any = None) -> None:
        super().__init__(errors, warnings, used_names)
        self._bound: frozenset[str] = frozenset()
        self._exceptions_named: set[ast.AST] = set()
        self._patterns: set[ast.AST] = set()
        self._awaits: set[ast.AST] = set()

    def look_over(self, node: ast.AST) -> None:
        """Find what is bound, and what is written where, in a whole source, before anything of it is visited."""
        nodes = list(ast.walk(node))
        self._awaits = set(awaits_at_top(node))
        self._bound = frozenset(name for one in nodes for name in _bound_by(one))
        self._patterns = {name for one in nodes for name in _named_by(one)}
        for one in nodes:
            self._exceptions_named.update(filter(_is_base_exception, _where_exceptions_are_named(one)))

    def _whole(self, node: Any) -> ast.AST:
        self.look_over(node)
        return self.node_contents_visit(node)

    visit_Module = visit_Expression = visit_Interactive = _whole

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self.check_name(node, node.id)
            return node
        self.used_names[node.id] = True
        if node.id in _CONSTANTS:
            return at(node, ast.Constant(_CONSTANTS[node.id]))
        if node in self._exceptions_named and node.id not in self._bound:
            return call(node, "_catchable_")
        if not is_identifier(node.id):
            self.error(node, f"the name `{node.id}` is not available here{instead('name', node.id)}.")
        if node.id in KEPT_BACK and node.id not in self._bound:
            # An earlier piece, or the program, may have bound it.
            return self._looked_up(node)
        return node

    def _looked_up(self, node: ast.Name, *, called: bool = False) -> ast.expr:
        nothing = ast.arguments([], [], None, [], [], None, [])
        thunk = at(node, ast.Lambda(nothing, ast.Name(node.id, ast.Load())))
        return call(node, "_named_", thunk, ast.Constant(node.id), ast.Constant(called))

    def visit_Await(self, node: ast.Await) -> ast.AST:
        if node not in self._awaits:
            self.not_allowed(node)
        return call(node, "_awaited_", self.visit(node.value))

    @override
    def visit_comprehension(self, node: ast.comprehension) -> Any:
        if node.is_async:
            self.error(node.target, "`async for` is not allowed: write ordinary loops.")
        return super().visit_comprehension(node)

    def special_guard(self, node: ast.Attribute) -> ast.AST | None:
        """What reads a special attribute, if it may be read here."""
        if not isinstance(node.ctx, ast.Load):
            return None
        if (node.attr in READ or (node.attr in INHERITED and _is_super(node.value))) and node not in self._patterns:
            return call(node, "_special_", self.visit(node.value), ast.Constant(node.attr))
        return None

    def called_name(self, node: ast.Call) -> ast.expr | None:
        """What is called in the place of a name that is kept back otherwise: `vars(x)`."""
        function = node.func
        if not isinstance(function, ast.Name) or function.id in self._bound:
            return None
        if function.id in ("exec", "eval"):
            self.error(node, f"{function.id.capitalize()} calls are not allowed{instead('name', function.id)}.")
        plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred) and not node.keywords
        return self._looked_up(function, called=True) if function.id in ("vars", "dir") and plain else None

    @override
    def not_allowed(self, node: ast.AST) -> None:
        kind = type(node).__name__
        if isinstance(node, _ASYNC):
            self.error(
                node, f"{kind} statements are not allowed: write ordinary functions, and `await` tools outside of them."
            )
        elif isinstance(node, ast.TryStar):
            self.error(
                node, f"{kind} statements are not allowed: catch `ExceptionGroup`, and look at its `exceptions`."
            )
        else:
            super().not_allowed(node)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name, ast.Store() | ast.Del()):
            yield name
        case ast.arg(name) | ast.FunctionDef(name) | ast.ClassDef(name) | ast.ExceptHandler(_, str(name)):
            yield name
        case ast.alias(name, other):
            yield other or name.partition(".")[0]
        case ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)) | ast.MatchMapping(_, _, str(name)):
            yield name


def _named_by(pattern: ast.AST) -> Iterator[ast.AST]:
    """The name in a pattern, which may have a dot, and others that are not to be read by a guard."""
    match pattern:
        case ast.MatchValue(name) | ast.MatchClass(name):
            yield name
        case ast.Subscript(ast.Attribute(_, "__annotations__") as name, _, ast.Store() | ast.Del()):
            yield name  # what is read is a copy


def _is_base_exception(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "BaseException"


def _where_exceptions_are_named(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.arg(annotation=ast.expr() as hint) | ast.AnnAssign(annotation=hint):
            yield from ast.walk(hint)
        case ast.FunctionDef(returns=ast.expr() as hint):
            yield from ast.walk(hint)
        case ast.Call(ast.Name(name), [_, kinds]) if name in _LOOKS:
            yield from ast.walk(kinds)
