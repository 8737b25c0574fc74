"""Restricted code in a process of its own."""

from __future__ import annotations

import pickle

import pytest

from effectful_agents.errors import CodeStopped
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from effectful_agents.handlers.execution.crossing import NotData, dump, load
from tests.sandbox.running import run, value_of

APART = RestrictedPythonExecutor(isolation="process", seconds=2, memory=200_000_000)


def test_data_goes_in_and_comes_back(capsys):
    env = {"x": [1], "unused": print}
    run(
        "from decimal import Decimal\nx.append(2)\ny = {'a': (Decimal('1.5'), {3})}\nprint('in there', len(x))",
        env,
        APART,
    )
    assert capsys.readouterr().out == "in there 2\n"
    assert env["x"] == [1, 2]
    assert str(env["y"]) == "{'a': (Decimal('1.5'), {3})}"


def test_what_is_defined_there_can_be_called_and_used_by_later_pieces(capsys):
    env = run("class C:\n  n = 1\ndef f(a, b=1): return a + b + C.n\nprint('once')", executor=APART)
    assert env["f"](1, b=2) == 4
    assert run("y = f(C.n)", env, APART)["y"] == 3
    assert value_of("f(2)", env, APART) == 4
    assert capsys.readouterr().out == "once\n"
    assert "in a process of its own" in repr(env["f"])


def test_an_error_there_that_cannot_say_what_it_is_is_one_here():
    with pytest.raises(RuntimeError, match="Odd: <exception str"):
        run("class Odd(Exception):\n  def __str__(self): return self.nothing\nraise Odd()", executor=APART)


def test_an_error_there_is_an_error_here():
    env: dict = {}
    with pytest.raises(ZeroDivisionError, match="division by zero") as raised:
        run("x = 1\ny = 1 / 0", env, APART)
    assert env == {"x": 1}
    assert "line 2, in <module>\n    y = 1 / 0" in raised.value.__notes__[0]


def test_what_is_no_data_is_not_there_and_it_says_so():
    with pytest.raises(NameError, match="`tool` is no plain data"):
        run("tool()", {"tool": print}, APART)
    with pytest.raises(NotData):
        value_of("lambda: 1", executor=APART)


def test_work_that_nothing_in_a_process_can_stop_is_stopped():
    quick = RestrictedPythonExecutor(isolation="process", seconds=0.5, memory=200_000_000)
    with pytest.raises(CodeStopped, match="seconds"):
        run("h = ()\nfor i in range(60): h = (h, h)\nhash(h)", executor=quick)


def test_memory_is_limited():
    with pytest.raises(MemoryError):
        run("xs = []\nwhile True: xs.append([0] * 1_000_000)", executor=APART)


def test_the_policy_holds_there_too():
    with pytest.raises(ImportError, match="os"):
        run("import os", executor=APART)
    with pytest.raises(NameError):
        run("open('/etc/passwd')", executor=APART)


def test_what_comes_back_is_read_as_data_and_nothing_else():
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    assert load(dump([1, {"a": (2.5, b"x")}])) == [1, {"a": (2.5, b"x")}]
    with pytest.raises(NotData):
        load(pickle.dumps(Evil()))
