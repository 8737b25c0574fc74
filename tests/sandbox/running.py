"""Running a source under an executor, and under none."""

from __future__ import annotations

import contextlib
import io
import sys
from types import ModuleType
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from effectful_agents.operations import code

RESTRICTED = RestrictedPythonExecutor()


def run(source: str, env: dict[str, Any] | None = None, executor: Any = RESTRICTED) -> dict[str, Any]:
    """The names after a source has run."""
    env = {} if env is None else env
    with handler(executor):
        code.exec(code.compile(code.parse(source, "<test>"), "<test>"), env)
    return env


def value_of(expression: str, env: dict[str, Any] | None = None, executor: Any = RESTRICTED) -> Any:
    """The value of an expression."""
    with handler(executor):
        return code.eval(code.compile(expression, "<test>", "eval"), {} if env is None else env)


def printed(source: str, executor: Any = RESTRICTED) -> str:
    """What a source prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(source, executor=executor)
    return out.getvalue()


def run_plainly(source: str, monkeypatch: pytest.MonkeyPatch, env: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names after a source has run as the program itself would, with every power."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    module.__dict__.update(env or {})
    exec(compile(source, "<test>", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__
