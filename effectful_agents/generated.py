"""Code that a model wrote: it is in no file, and its lines can be shown and read all the same."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import linecache
import threading
from collections.abc import Generator, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = [
    "awaits_at_top",
    "generated_name",
    "is_generated",
    "is_generated_name",
    "parsed",
    "remember_source",
    "source_of",
    "telling_what_is_too_long",
]

_PREFIX = "<generated "
_MOST = 4096
"""Sources that are kept: a process that lives long must not keep all of them."""

_kept: dict[str, str] = {}
_keeping = threading.Lock()


def generated_name(source: str, label: str) -> str:
    """A name of a file for a source: the same for the same source, so that two of them never share one.

    Args:
        source: The text.
        label: What a person and a model see of it, `snippet_1`; the rest of the name is left out where it is shown.

    >>> import pathlib
    >>> pathlib.PurePath(generated_name("x = 1", "snippet_1")).name
    'snippet_1.py'
    """
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_PREFIX}{digest}>/{label}.py"


def remember_source(source: str, filename: str) -> None:
    """Let tracebacks and `inspect.getsource` show the lines of a source that is in no file.

    Beyond some thousands of them the oldest is forgotten.
    """
    lines = source.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    with _keeping:
        _kept.pop(filename, None)
        _kept[filename] = source
        # Without a time of change, so that `linecache` does not look for the file.
        linecache.cache[filename] = (len(source), None, lines, filename)
        while len(_kept) > _MOST:
            oldest = next(iter(_kept))
            del _kept[oldest]
            linecache.cache.pop(oldest, None)


def parsed(source: str, filename: str) -> ast.Module:
    """The tree of a source that is in no file, whose lines can be shown from now on.

    Raises:
        SyntaxError: The source is none, or is too deep in itself.
    """
    remember_source(source, filename)
    with telling_what_is_too_long():
        return ast.parse(source, filename)


@contextlib.contextmanager
def telling_what_is_too_long() -> Generator[None]:
    """Say of a source that is parsed or compiled in the block that it is too deep in itself, and how to mend it.

    Which of the two finds it first is different from one version of Python to the next.
    """
    try:
        yield
    except (RecursionError, MemoryError):  # the parser calls it a lack of memory where its own stack ends
        raise SyntaxError(
            "an expression or a chain of `elif` is too long here: the parts lie in each other. "
            "Write several statements, a loop, or `sum` or `join` of a list."
        ) from None


def awaits_at_top(tree: ast.AST) -> Iterator[ast.AST]:
    r"""What awaits in a source outside of its functions: it makes the whole of it a coroutine.

    >>> [type(node).__name__ for node in awaits_at_top(ast.parse("await x\nasync def f(): await y"))]
    ['Await']
    """
    for node in ast.iter_child_nodes(tree):
        waits = isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)
        if waits or (isinstance(node, ast.comprehension) and node.is_async):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from awaits_at_top(node)


def source_of(code: CodeType) -> str | None:
    """The whole source that a code object was made of, if it was remembered."""
    return _kept.get(code.co_filename)


def is_generated_name(filename: str) -> bool:
    """Whether a name of a file is one that `generated_name` made."""
    return filename.startswith(_PREFIX)


def is_generated(function: Any) -> bool:
    """Whether a value is a function that a model wrote, bound or not."""
    if type(function) is MethodType:
        function = function.__func__
    return type(function) is FunctionType and is_generated_name(function.__code__.co_filename)
