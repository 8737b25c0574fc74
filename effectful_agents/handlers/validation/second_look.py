"""A module in which what a checker has only supposed is left open, for a second look at what it found.

`ROWS = [{"name": "tea", "price": 2.5}]` says nothing of types. A checker supposes one for all the values of such a row,
`str | float`, and then refuses `sum(row["price"] for row in ROWS)`, which is right. So code in which something was
found is looked at once more in a module where such values may be anything. In a session even less is taken for certain:
there `re.search(…).group()` may fail, and usually does not, which the run shows. What is still found on a line is told.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from effectful_agents.encoding.source_text import Edit, edited, parameters_of, plain_lines
from effectful_agents.encoding.splicing import ModuleSource
from effectful_agents.handlers.validation.report import Finding, path_of

__all__ = ["certain", "loosened"]

_ANYTHING, _THERE = "__anything__", "__there__"
_MEANINGS = f"""
import typing as __typing__
def {_ANYTHING}(*_: object) -> __typing__.Any: ...
def {_THERE}[T](value: T | None) -> T: ...
"""

_MIXED, _EMPTY = "mixed", "empty"
_PASSING = (ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Starred, ast.IfExp, ast.BoolOp, ast.NamedExpr)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def certain(
    found: Sequence[Finding], source: str, lo: int, hi: int, lenient: bool, look: Callable[[str], Iterable[Finding]]
) -> list[Finding]:
    """What of the findings remains where what was only supposed is left open.

    Args:
        found: The findings.
        source: The module that they were found in.
        lo: The first line of the code in it.
        hi: Its last line.
        lenient: Whether the code is a piece of a session.
        look: What the checker finds in a module, between the same lines.
    """
    if found and lenient:
        expected = _expected_errors(source, lo, hi)
        found = [one for one in found if _error_of(one.rule) not in expected.get(one.line, ())]
    again = loosened(source, lo, hi, lenient=lenient) if found else None
    if again is None:
        return list(found)
    lines = {one.line for one in look(again)}
    return [one for one in found if one.line in lines]


_EXPECTED = frozenset({"TypeError", "NameError", "AttributeError"})


def _expected_errors(source: str, lo: int, hi: int) -> dict[int, set[str]]:
    """The lines of code in a `try` that catches one of these errors, with those: it is there to see that they come."""
    try:
        tree = ast.parse("\n".join(plain_lines(source)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and lo <= node.lineno <= hi:
            kinds = [one.type for one in node.handlers if one.type is not None]
            names = {one.id for kind in kinds for one in ast.walk(kind) if isinstance(one, ast.Name)} & _EXPECTED
            for statement in node.body if names else ():
                for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                    found.setdefault(line, set()).update(names)
    return found


def _error_of(rule: str) -> str:
    """The error that a run would raise where a checker finds this."""
    if "reference" in rule or rule == "name-defined":
        return "NameError"
    return "AttributeError" if "attr" in rule else "TypeError"


def loosened(source: str, lo: int, hi: int, *, lenient: bool) -> str | None:
    r"""The module, line by line, with what is only supposed left open; None where that is nothing.

    Outside of the code the values in displays of several kinds may be anything, unless an annotation says what they
    are. With `lenient` this holds for the code as well, and in it what may be None is not.

    >>> print(loosened("ROWS = [{'n': 'x', 'p': 1}]\nprint(ROWS[0].y)\n", 2, 2, lenient=True).splitlines()[0])
    ROWS = [{'n': __anything__('x'), 'p': __anything__(1)}]
    """
    text = "\n".join(plain_lines(source))
    try:
        tree = ast.parse(text)
        edits = _Edits(lo, hi, lenient, frozenset(_defined(tree)), frozenset(_added_to(tree)))
        edits.take(tree)
        if not edits:
            return None
        made = edited(text, edits.all()).rstrip() + _MEANINGS
        ast.parse(made)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return ModuleSource(made, path_of(source))


class _Edits:
    """The places where something is put around an expression, and those where something takes its place."""

    def __init__(self, lo: int, hi: int, lenient: bool, defined: frozenset[str], added_to: frozenset[str]) -> None:
        self._region = range(lo, hi + 1)
        self._added_to = added_to
        self._defined = defined
        self._lenient = lenient
        self._opened: dict[tuple[int, int], list[tuple[tuple[int, int], str]]] = {}
        self._replaced: list[Edit] = []

    def __bool__(self) -> bool:
        return bool(self._opened or self._replaced)

    def all(self) -> Iterator[Edit]:
        yield from self._replaced
        for start, opened in self._opened.items():
            # What reaches further stands outside.
            yield Edit(start, start, "".join(f"{name}(" for _, name in sorted(opened, reverse=True)))
        for end in [end for opened in self._opened.values() for end, _ in opened]:
            yield Edit(end, end, ")")

    def take(self, node: Any, expected: bool = False) -> None:
        """Look at a node and all in it.

        Args:
            node: The node.
            expected: Whether something else says what is expected of it: an annotation, a parameter.
        """
        inside = getattr(node, "lineno", 0) in self._region
        if not expected and (self._lenient or not inside):
            for values in _groups(node):
                if _kind_of_all(values) == _MIXED:
                    self._wrap(_ANYTHING, values)
        if self._lenient and inside:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                self._wrap(_ANYTHING, node.left.elts)  # `[0] * n`: they are there to be replaced
            self._wrap(_ANYTHING, filter(_is_look_up, _arguments(node)))
            self._wrap(_THERE, filter(self._may_be_none, self._there(node)))
            self._replaced += [Edit.of(one, f"{_ANYTHING}()") for one in _defaults(node) if _is_none(one)]
        if isinstance(node, (*_PASSING, *_COMPREHENSIONS)):
            below = expected
        else:
            below = isinstance(node, ast.Call | ast.keyword | ast.AnnAssign | ast.Return)
        for child in ast.iter_child_nodes(node):
            self.take(child, below)

    def _there(self, node: ast.AST) -> Iterator[Any]:
        """The expressions in a node that are taken for something that is there."""
        for one in _operands(node):
            if not _is_look_up(one):
                yield one
        if isinstance(node, ast.Assign) and any(
            isinstance(x, ast.Name) and x.id in self._added_to for x in node.targets
        ):
            yield node.value  # what stands before `+=` has no room for anything around it

    def _may_be_none(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id not in self._defined
        return isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.IfExp | ast.BoolOp | ast.Await)

    def _wrap(self, name: str, values: Iterable[Any]) -> None:
        for one in values:
            start, end = (one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)
            self._opened.setdefault(start, []).append((end, name))


def _defined(tree: ast.AST) -> Iterator[str]:
    """Names of modules, classes and functions, which are there in any case."""
    for node in ast.walk(tree):
        match node:
            case ast.alias(name, other):
                yield other or name.partition(".")[0]
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name


def _added_to(tree: ast.AST) -> Iterator[str]:
    """Names that stand before a `+=` or its like."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _arguments(node: ast.AST) -> Iterator[Any]:
    if isinstance(node, ast.Call):
        yield from (*node.args, *(one.value for one in node.keywords))


def _is_look_up(node: Any) -> bool:
    """Whether it is the `d.get` of `max(d, key=d.get)`: all that it is asked for is there."""
    return isinstance(node, ast.Attribute) and node.attr == "get"


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _groups(node: ast.AST) -> Iterator[list[ast.expr]]:
    """The values that a display, or a call of `dict`, puts into one place, as far as types go."""
    match node:
        case ast.Dict(keys, values):
            yield [key for key in keys if key is not None]
            yield [value for key, value in zip(keys, values, strict=True) if key is not None]
        case ast.List(elements, ast.Load()) | ast.Set(elements):
            yield [one for one in elements if not isinstance(one, ast.Starred)]
        case ast.Call(ast.Name("dict"), _, keywords):
            yield [one.value for one in keywords if one.arg is not None]


def _kind_of_all(nodes: Sequence[ast.expr]) -> Any:
    kinds = {_kind(one) for one in nodes}
    return _EMPTY if not kinds else kinds.pop() if len(kinds) == 1 else _MIXED


def _kind(node: ast.expr) -> Any:
    """What is known of the type of an expression, so that equal kinds mean equal types."""
    match node:
        case ast.Constant(value) | ast.UnaryOp(_, ast.Constant(value)):
            return type(value)
        case ast.JoinedStr():
            return str
        case ast.Dict() | ast.List() | ast.Set():
            return type(node), *map(_kind_of_all, _groups(node))
        case ast.Tuple(elements):
            return ast.Tuple, *map(_kind, elements)
        case ast.Call(function):
            return ast.Call, ast.dump(function)
    return ast.dump(node)


def _operands(node: ast.AST) -> Iterator[Any]:
    """The expressions in a node that have to be there for it to make sense."""
    match node:
        case ast.Attribute(value, _, ast.Load()) | ast.Subscript(value) | ast.Starred(value) | ast.YieldFrom(value):
            yield value
        case ast.BinOp(left, _, right):
            yield from (left, right)
        case ast.UnaryOp(ast.USub() | ast.UAdd() | ast.Invert(), operand):
            yield operand
        case ast.Compare(left, _, others):
            yield from (left, *others)
        case ast.Call(_, arguments, keywords):
            yield from (*arguments, *(one.value for one in keywords))
        case ast.AugAssign(_, _, value) | ast.Assign([ast.Tuple() | ast.List()], value):
            yield value
        case ast.For(_, values) | ast.comprehension(_, values):
            yield values
        case ast.withitem(value) | ast.DictComp(_, value):
            yield value
        case ast.ListComp(value) | ast.SetComp(value) | ast.GeneratorExp(value):
            yield value


def _defaults(node: ast.AST) -> Iterator[ast.expr | None]:
    """The values that annotated names begin with."""
    match node:
        case ast.AnnAssign(_, _, value):
            yield value
        case ast.FunctionDef(args=given) | ast.AsyncFunctionDef(args=given) if any(
            one.annotation for one in parameters_of(node)
        ):
            yield from (*given.defaults, *given.kw_defaults)
