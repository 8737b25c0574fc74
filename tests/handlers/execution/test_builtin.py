"""`BuiltinExecutor`: code as the program itself would run it."""

from __future__ import annotations

import inspect
import os
import traceback
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.errors import MissingHandlerError, Suspended
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.operations import code
from effectful_agents.runtime import Operation, SignalScope
from effectful_agents.testing import ScriptedModel
from tests.sandbox.running import run, value_of

PLAIN = BuiltinExecutor()


def test_code_may_do_anything():
    env = run("import os\nhere = os.getcwd()\nkind = ().__class__", executor=PLAIN)
    assert env["here"] == os.getcwd()
    assert env["kind"] is tuple


def test_pieces_share_their_names():
    env = run("total = 0\ndef add(n):\n  global total\n  total += n", executor=PLAIN)
    assert run("add(2)\nadd(3)", env, PLAIN)["total"] == 5


def test_eval_binds_nothing():
    env: dict[str, Any] = {"x": 1}
    assert value_of("(y := x + 1)", env, PLAIN) == 2
    assert env == {"x": 1}


def test_what_was_bound_before_an_error_stays_bound():
    env: dict[str, Any] = {}
    with pytest.raises(ZeroDivisionError):
        run("x = 1\n1 / 0", env, PLAIN)
    assert env["x"] == 1


def test_future_imports_of_the_package_do_not_reach_the_code():
    assert run("def f(x: int): pass", executor=PLAIN)["f"].__annotations__ == {"x": int}


@pytest.mark.parametrize("executor", [PLAIN, RestrictedPythonExecutor()], ids=lambda one: type(one).__name__)
def test_source_and_tracebacks_show_the_lines(executor):
    source = "def f(x):\n    return 1 // x  # here\n"
    env = run(source, executor=executor)
    assert inspect.getsource(env["f"]) == source
    with pytest.raises(ZeroDivisionError) as raised:
        env["f"](0)
    assert "1 // x  # here" in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("executor", [PLAIN, RestrictedPythonExecutor()], ids=lambda one: type(one).__name__)
def test_what_is_no_python_is_a_syntax_error(executor):
    with handler(executor), pytest.raises(SyntaxError):
        code.parse("x =", "<code>")


@pytest.mark.parametrize(
    "source",
    ["x = " + "+".join("t" * 50_000), "x = t" + ".strip()" * 50_000, "x = " + "-" * 50_000 + "1"],
    ids=["sum", "chain", "signs"],
)
@pytest.mark.parametrize("executor", [PLAIN, RestrictedPythonExecutor()], ids=["builtin", "restricted"])
def test_what_lies_too_deep_is_a_syntax_error_that_says_what_to_write(source, executor):
    with pytest.raises(SyntaxError, match="Write several statements"):
        run("t = 1\n" + source, executor=executor)


def test_a_signal_that_a_bare_except_has_eaten_comes_out_at_the_end():
    @Operation.define
    def ask() -> str:
        raise Suspended

    with pytest.raises(Suspended), SignalScope():
        run("try: ask()\nexcept: pass", {"ask": ask}, PLAIN)


def test_without_an_executor_it_says_what_to_install():
    for perform in (
        lambda: code.parse("1", "<code>"),
        lambda: code.compile("1", "<code>"),
        lambda: code.exec(compile("1", "", "exec"), {}),
        lambda: code.eval(compile("1", "", "eval"), {}),
    ):
        with pytest.raises(MissingHandlerError, match="RestrictedPythonExecutor"):
            perform()


@Skill.define
def greet() -> str:
    """Greet."""
    raise NotHandled


def prompt_with(executor: Any) -> str:
    model = ScriptedModel("Hello.")
    with handler(model), handler(harness()), handler(executor):
        greet()
    return str(model.requests[0]["messages"][0]["content"])


def test_the_model_is_told_what_its_code_may_do():
    assert "BuiltinExecutor" in prompt_with(PLAIN)
    assert "nothing restricts it" in prompt_with(PLAIN)
    modules, rules = prompt_with(RestrictedPythonExecutor()).split("# Modules you may import")[1].split("##", 1)
    assert "`collections.abc`" in modules
    assert "`os`" not in modules
    assert rules.startswith(" RestrictedPythonExecutor")
