"""The examples in a docstring, run by means that are given: what `run_doctests` of `operations.code` does."""

from __future__ import annotations
import __future__

import ast
import doctest
import io
import textwrap
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from effectful_agents.errors import (
    Denied,
    MissingHandlerError,
    ReplayDivergence,
    TypeCheckerError,
    UncertainEffect,
    describe_exception,
)
from effectful_agents.runtime.capturing import captured

__all__ = ["ENDS_CALL", "Executor", "run_examples"]

ENDS_CALL = (MissingHandlerError, TypeCheckerError, Denied, UncertainEffect, ReplayDivergence)
"""What checking and running code may raise, and the model could do nothing about."""

_SHOWN = 3
"""Failures that a report shows."""
_MOST_LINES = 15
_MOST_CHARACTERS = 800
_VALUE = "_"


class Executor(NamedTuple):
    """How code is run: the operations of these names."""

    parse: Callable[[str, str], ast.Module]
    compile: Callable[..., types.CodeType]
    exec: Callable[[types.CodeType, dict[str, Any]], None]


def run_examples(obj: Any, globs: Mapping[str, Any], executor: Executor) -> None:
    """Run the examples of an object, each docstring in a namespace of its own.

    The runner of `doctest` compiles and executes by itself, and replaces `sys.stdout` for all threads, so that this is
    one of our own; reading the examples and comparing what comes out is left to the library.

    Raises:
        TypeError: An example fails, or cannot be read.
    """
    name = getattr(obj, "__name__", None) or type(obj).__name__
    try:
        tests = doctest.DocTestFinder().find(obj, name, _module(obj), dict(globs))
    except ValueError as error:
        raise TypeError(f"the examples of `{name}` cannot be read: {error}") from error
    failures = [failure for test in tests for failure in _failures(test, executor)]
    if failures:
        total = sum(len(test.examples) for test in tests)
        more = [f"… and {len(failures) - _SHOWN} more."] if len(failures) > _SHOWN else []
        told = f"{len(failures)} of {total} example{'s' if total > 1 else ''} in the docstring of `{name}` failed."
        raise TypeError("\n".join([told, *failures[:_SHOWN], *more]))


def _module(obj: Any) -> Any:
    # With False it looks for no module; the functions that a module imports are then taken for its own.
    return obj if isinstance(obj, types.ModuleType) else False


def _failures(test: doctest.DocTest, executor: Executor) -> Iterator[str]:
    env = {"__name__": "__main__", **test.globs}
    for number, example in enumerate(test.examples):
        options = sum(flag for flag, is_on in example.options.items() if is_on)
        if options & doctest.SKIP:
            continue
        problem = _problem(example, options, f"<doctest {test.name}[{number}]>", env, executor)
        if problem is not None:
            yield f"In `{test.name}`:\n{_short(textwrap.indent(example.source.rstrip(), '    '))}\n{problem}"


def _problem(
    example: doctest.Example, options: int, filename: str, env: dict[str, Any], executor: Executor
) -> str | None:
    """What is wrong with an example; None where nothing is."""
    checker = doctest.OutputChecker()
    output = io.StringIO()
    try:
        with captured(output):
            _run(example.source, filename, env, executor)
    except ENDS_CALL:
        raise
    except (Exception, SystemExit) as error:
        raised = traceback.format_exception_only(error)[-1]
        if example.exc_msg is None:
            return f"Raised:\n{_short(textwrap.indent(describe_exception(error), '    '))}"
        if options & doctest.IGNORE_EXCEPTION_DETAIL:
            expected, raised = _kind(example.exc_msg), _kind(raised)
        else:
            expected = example.exc_msg
        if checker.check_output(expected, raised, options):
            return None
        return _difference(expected, raised)
    got = output.getvalue()
    if example.exc_msg is not None:
        return _difference(example.exc_msg, got)
    return None if checker.check_output(example.want, got, options) else _difference(example.want, got)


def _run(source: str, filename: str, env: dict[str, Any], executor: Executor) -> None:
    """Run an example; the values of expressions are printed, as a REPL does."""
    flags = 0
    for name in __future__.all_feature_names:
        feature = getattr(__future__, name)
        flags |= feature.compiler_flag if env.get(name) is feature else 0
    for statement in executor.parse(source, filename).body:
        is_value = isinstance(statement, ast.Expr)
        if is_value:
            # Not in the mode `single`, whose values go to a hook that belongs to all threads.
            target = ast.copy_location(ast.Name(_VALUE, ast.Store()), statement)
            statement = ast.copy_location(ast.Assign([target], statement.value), statement)
        tree = ast.Module([statement], [])
        executor.exec(executor.compile(tree, filename, "exec", flags), env)
        if is_value and env[_VALUE] is not None:
            print(repr(env[_VALUE]))


def _kind(message: str) -> str:
    """The name of an exception, without its module and its text."""
    return message.partition("\n")[0].partition(":")[0].rpartition(".")[2].strip() + "\n"


def _difference(expected: str, got: str) -> str:
    def part(title: str, text: str) -> str:
        return f"{title}:\n{_short(textwrap.indent(text.rstrip(), '    '))}" if text.strip() else f"{title} nothing"

    return f"{part('Expected', expected)}\n{part('Got', got)}"


def _short(text: str) -> str:
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        text = "\n".join([*lines[: _MOST_LINES - 1], "    …"])
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
