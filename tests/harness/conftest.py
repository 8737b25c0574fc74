"""Running the launcher in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

type Done = subprocess.CompletedProcess[str]

WITH_MODEL = """
from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.testing import ScriptedModel, calls
"""
"""The first lines of a script that brings its own model."""


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., Done]:
    """A function that runs the launcher in `tmp_path`, with Python's and our own warnings as errors."""

    def run(*words: str, program: list[str] | None = None, cwd: Path = tmp_path, stdin: str = "", **env: str) -> Done:
        program = program or [sys.executable, "-m", "effectful_agents.harness"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("EFFECTFUL_AGENTS_")}
        return subprocess.run(
            [*program, *words],
            cwd=cwd,
            input=stdin,
            env={**environment, "PYTHONWARNINGS": "error", **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """A function that writes a script into `tmp_path` and gives its name."""

    def write(source: str, name: str = "script.py", *, model: bool = False) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((WITH_MODEL if model else "") + textwrap.dedent(source), encoding="utf-8")
        return name

    return write


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test run the launcher in its own process, and have that back afterwards."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])
