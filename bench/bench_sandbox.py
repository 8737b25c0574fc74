"""Code under the restricted executor, beside the same code without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.operations import code

PROGRAM = """
from collections import Counter
from dataclasses import dataclass

@dataclass
class Line:
    level: str
    message: str

def read(text: str) -> list[Line]:
    found = []
    for line in text.splitlines():
        level, _, message = line.partition(" ")
        if message:
            found.append(Line(level, message.strip()))
    return found

lines = read("INFO start\\nERROR disk full\\nERROR net down\\nINFO stop")
counts = Counter(line.level for line in lines)
report = "\\n".join(f"{level:<8}{n:>3}" for level, n in counts.most_common())
"""

LOOPS = {
    "arithmetic": "total = 0\nfor i in range(20_000):\n    total += i * i % 7\n",
    "items": "xs = list(range(1_000))\nfor i in range(20_000):\n    xs[i % 1_000] = xs[(i + 1) % 1_000] + 1\n",
    "calls": "def f(x):\n    return x + 1\nn = 0\nwhile n < 20_000:\n    n = f(n)\n",
    "methods": "found = []\nfor i in range(20_000):\n    found.append(i)\n",
    "attributes": "class P:\n    x = 1\np = P()\nfor i in range(20_000):\n    p.x; p.x\n",
    "texts": "parts = [f'{i:>5}' for i in range(20_000)]\n",
    "a comprehension": "squares = [i * i for i in range(20_000) if i % 3]\n",
    "recursion": "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(18)\n",
}

EXECUTORS: dict[str, Callable[[], Any]] = {"plain": BuiltinExecutor, "restricted": RestrictedPythonExecutor}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_compiling(benchmark: Any, executor: str) -> None:
    with handler(EXECUTORS[executor]()):
        benchmark(lambda: code.compile(code.parse(PROGRAM, "<bench>"), "<bench>"))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_small_program(benchmark: Any, executor: str) -> None:
    with handler(EXECUTORS[executor]()):
        made = code.compile(code.parse(PROGRAM, "<bench>"), "<bench>")
        benchmark(lambda: code.exec(made, {}))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_loop(benchmark: Any, executor: str, loop: str) -> None:
    with handler(EXECUTORS[executor]()):
        made = code.compile(code.parse(LOOPS[loop], "<bench>"), "<bench>")
        benchmark(lambda: code.exec(made, {}))
