"""Several processes share the tests: all collect the same ones, and those that are named need no second process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def pytest_in_a_process(*words: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONHASH"))}
    return subprocess.Popen(
        command, cwd=ROOT, env={**environment, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_every_process_collects_the_same():
    processes = [pytest_in_a_process("--collect-only", "-q", "-m", "", PYTHONHASHSEED=seed) for seed in ("1", "2")]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    one, other = ([line for line in output.splitlines() if "::" in line] for output in outputs)
    assert len(one) > 1000
    assert one == other


def test_tests_that_are_named_run_in_one_process():
    process = pytest_in_a_process("-v", "tests/messages/test_tool_choice.py")
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "[gw" not in output
