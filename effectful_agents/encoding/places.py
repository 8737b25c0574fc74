"""Where a skill is written: the source around its definition, as far as it can be had."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import linecache
import os
import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from effectful_agents.encoding.source_text import Edit, edited, parameters_of, plain_lines
from effectful_agents.types import Skill

__all__ = ["Place", "place_of", "raw_function"]

type _Def = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_KINDS = ("staticmethod", "classmethod")
_KEPT = "splicing"
_SETTINGS = re.compile(r"\s*#\s*(?:mypy:|ty:|pyright:|type:\s*ignore)")
"""A comment of its own that speaks to a checker about the whole file, and so about the code that is put in as well."""


class Place(NamedTuple):
    """The definition of a skill in the source of its module.

    Attributes:
        lines: The source, without the ends of its lines.
        path: The file that it is in; None for a cell of a notebook, say.
        module: The name of the module.
        node: The definition.
        indent: The white space that its lines begin with.
        kind: `staticmethod` or `classmethod`; empty for any other function.
        receiver: The class that it is a method of, as it is written there; empty outside of classes.
        of_class: The names that this class binds in its body.
        names: The names that are bound around it: in the enclosing functions and at the top of the module.
        top: How many lines have to stay first: those of the docstring and of the imports from the future.
        missing: The names that the source uses and does not bind; those of other cells of a notebook, say.
    """

    lines: list[str]
    path: str | None
    module: str
    node: _Def
    indent: str
    kind: str
    receiver: str
    of_class: frozenset[str]
    names: frozenset[str]
    top: int
    missing: tuple[str, ...]


def raw_function(skill: Skill) -> types.FunctionType | None:
    """The function that a skill was made of."""
    function: Any = skill.function
    inner = inspect.unwrap(function.__wrapped__)
    return inner if isinstance(inner, types.FunctionType) else None


def place_of(skill: Skill) -> Place | None:
    """Where a skill is written; None where its source is not to be had, or is no longer what was run."""
    function = raw_function(skill)
    if function is None:
        return None
    # What `linecache` holds is what was read first; a file that has been edited since is another matter.
    read = linecache.getlines(function.__code__.co_filename, function.__globals__)
    kept = skill.__context__.memo.get(_KEPT)
    if kept is not None and kept[0] is read:
        return kept[1]
    found = _find(function, read) if read else None
    skill.__context__.memo[_KEPT] = (read, found)
    return found


def _find(function: types.FunctionType, read: list[str]) -> Place | None:
    text = "\n".join(plain_lines("".join(read)))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    package = function.__globals__.get("__package__")
    if package:
        text = _with_absolute_imports(text, tree, package)
    found = next((one for one in _definitions(tree, ()) if _is(one[0], function)), None)
    if found is None:
        return None
    node, outside = found
    lines = ["#" if _SETTINGS.match(line) else line for line in text.split("\n")]
    first = lines[node.lineno - 1]
    indent = first[: len(first) - len(first.lstrip())]
    names: set[str] = set()
    for scope in outside:
        if not isinstance(scope, ast.ClassDef):
            names |= _bound(scope)
    classes = []
    for scope in reversed(outside):
        if not isinstance(scope, ast.ClassDef):
            break
        classes.insert(0, scope.name)
    decorators = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
    path = function.__code__.co_filename
    return Place(
        lines,
        os.path.abspath(path) if os.path.isfile(path) else None,
        function.__globals__.get("__name__", "__main__"),
        node,
        indent,
        next((name for name in _KINDS if name in decorators), ""),
        ".".join(classes),
        frozenset(_bound(outside[-1])) if classes else frozenset(),
        frozenset(names),
        _top(tree),
        tuple(sorted({one.id for one in ast.walk(tree) if isinstance(one, ast.Name)} - _bound(tree))),
    )


def _top(tree: ast.Module) -> int:
    last = 0
    for node in tree.body:
        is_docstring = not last and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        last = node.end_lineno or 0
    return last


def _with_absolute_imports(text: str, tree: ast.Module, package: str) -> str:
    """A source that means the same wherever it lies."""
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            with contextlib.suppress(ImportError):  # above the top: then it was not run either
                name = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                edits.append(Edit.of(node, ast.unparse(ast.ImportFrom(name, node.names, 0))))
    return edited(text, edits)


def _definitions(scope: ast.AST, outside: tuple[Any, ...]) -> Iterator[tuple[_Def, tuple[Any, ...]]]:
    """The functions in a tree, each with the scopes around it, outermost first."""
    inside = (*outside, scope) if isinstance(scope, ast.Module | ast.ClassDef | _Def.__value__) else outside
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, inside
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(node, inside)


def _is(node: _Def, function: types.FunctionType) -> bool:
    code = function.__code__
    arguments = node.args
    count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    return (
        node.name == code.co_name
        and min([node.lineno, *(one.lineno for one in node.decorator_list)]) == code.co_firstlineno
        and count == code.co_argcount + code.co_kwonlyargcount
        and inspect.cleandoc(ast.get_docstring(node) or "") == inspect.cleandoc(function.__doc__ or "")
    )


def _bound(scope: Any) -> set[str]:
    """The names that a module, class or function binds itself, not in the scopes inside it."""
    names: set[str] = {one.name for one in getattr(scope, "type_params", ())}
    if not isinstance(scope, ast.Module | ast.ClassDef):
        names.update(one.arg for one in parameters_of(scope))
    todo: list[ast.AST] = list(scope.body)
    while todo:
        node = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.alias() if node.name != "*":
                names.add(node.asname or node.name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
        if not isinstance(node, _SCOPES + _COMPREHENSIONS):
            todo += ast.iter_child_nodes(node)
    return names
