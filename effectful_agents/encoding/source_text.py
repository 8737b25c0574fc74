"""Source as text: parts of it are replaced, and whole pieces moved further in, so that every line stays a line."""

from __future__ import annotations

import ast
import io
import symtable
import tokenize
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "Edit",
    "at_top_level",
    "edited",
    "end_of_parameters",
    "indented",
    "last_function",
    "names_in",
    "parameters_of",
    "plain_lines",
]


class Edit(NamedTuple):
    """A part of a source and what takes its place; columns in bytes, as the tree has them."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @classmethod
    def of(cls, node: Any, text: str) -> Edit:
        # The number of lines stays as it is.
        more = "\n" * (node.end_lineno - node.lineno)
        return cls((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text + more)


def edited(source: str, edits: Iterable[Edit]) -> str:
    """A source with parts of it replaced."""
    lines = [line.encode("utf-8", "surrogatepass") for line in source.split("\n")]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = b"\n".join(lines)
    for edit in sorted(edits, reverse=True):
        start = starts[edit.start[0] - 1] + edit.start[1]
        end = starts[edit.end[0] - 1] + edit.end[1]
        text = text[:start] + edit.text.encode() + text[end:]
    return text.decode("utf-8", "surrogatepass")


def plain_lines(text: str) -> list[str]:
    """The lines of a source as Python counts them; a form feed ends none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def at_top_level(code: str) -> tuple[str, list[str]]:
    """Code without what may stand at the top of a module only, and that.

    Raises:
        SyntaxError: It is no Python.
    """
    text = "\n".join(plain_lines(code))
    tree = ast.parse(text)
    edits = []
    stars = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            star = any(one.name == "*" for one in node.names)
            if star or node.module == "__future__":
                edits.append(Edit.of(node, "pass"))
                stars += [ast.unparse(node)] if star else []
    return edited(text, edits), stars


def names_in(text: str) -> tuple[list[str], list[str]]:
    """The names that code in a function takes from outside, and those that it binds and reads itself; sorted."""
    body = indented(text, "    ")
    table = symtable.symtable("\n".join(["def _():", *body, "    pass", ""]), "<code>", "exec")
    wrapper = table.get_children()[0]
    assigned = [one.get_name() for one in wrapper.get_symbols() if one.is_local() and one.is_referenced()]
    free: set[str] = set()
    todo = [wrapper]
    while todo:
        scope = todo.pop()
        # What an inner function reads of the outer one is read of the wrapper as well.
        assigned += [one.get_name() for one in scope.get_symbols() if one.is_free()]
        free |= {one.get_name() for one in scope.get_symbols() if one.is_global() and one.is_referenced()}
        todo += scope.get_children()
    own = {one.get_name() for one in wrapper.get_symbols() if one.is_local()}
    return sorted(free), sorted(set(assigned) & own)


def end_of_parameters(code: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    """The place behind the parentheses of a definition, where its result is declared."""
    lines = code.split("\n")
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.start < (function.lineno, 0) or token.type != tokenize.OP:
            continue
        depth += (token.string in ("(", "[")) - (token.string in (")", "]"))
        if token.string == ")" and depth == 0:
            line, column = token.end
            return line, len(lines[line - 1][:column].encode())
    raise AssertionError("a definition has parentheses")


def indented(code: str, indent: str) -> list[str]:
    """The lines of code further in; those inside of a text stay as they are."""
    if not code.strip():
        return code.split("\n") if code else []
    lines = code.split("\n")
    inside: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == tokenize.FSTRING_START:
            starts.append(token.start[0])
        elif token.type == tokenize.FSTRING_END:
            inside.update(range(starts.pop() + 1, token.end[0] + 1))
    return [line if number in inside or not line.strip() else indent + line for number, line in enumerate(lines, 1)]


def last_function(tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The definition that a source ends with.

    Raises:
        ValueError: It ends with something else.
    """
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef):
        raise ValueError(
            "the source does not end with a function. Write imports and helpers first, and last its `def`."
        )
    return last


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """The parameters of a function, those that take the rest included, in the order in which they are written."""
    given = function.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [one for one in every if one is not None]
