"""The examples in a docstring are run by the executor that is installed, and told in a few lines where they fail."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import pytest

from effectful_agents import Skill, handler, propagate
from effectful_agents.errors import Denied, MissingHandlerError, Suspended, TypeCheckerError
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.operations import code
from effectful_agents.runtime import ObjectInterpretation, fwd, implements


def double(n: int) -> int:
    return 2 * n


def documented(docstring: str) -> Any:
    """A function with a docstring."""

    def solve(n: int) -> int:
        return 2 * n

    solve.__doc__ = docstring
    return solve


def report(docstring: str, **names: Any) -> str:
    """What is said of the examples; empty where they pass."""
    with handler(BuiltinExecutor()):
        try:
            code.run_doctests(documented(docstring), {"double": double, **names})
        except TypeError as error:
            return str(error)
    return ""


@pytest.mark.parametrize(
    "docstring",
    [
        "",
        "No examples.",
        ">>> double(2)\n4",
        ">>> x = double(2)\n>>> x\n4\n>>> x + 1\n5",
        ">>> print('a')\na\n>>> None\n",
        ">>> 1; 2\n1\n2",
        ">>> for i in range(2):\n...     print(i)\n0\n1",
        ">>> def f():\n...     return double(1)\n>>> f()\n2",
        ">>> 1 / 0\nTraceback (most recent call last):\n    ...\nZeroDivisionError: division by zero",
        ">>> int('x')  # doctest: +IGNORE_EXCEPTION_DETAIL\nTraceback (most recent call last):\nValueError: no",
        ">>> list(range(100))  # doctest: +ELLIPSIS\n[0, 1, ..., 99]",
        ">>> nowhere  # doctest: +SKIP\n1",
        ">>> print('a\\n\\nb')\na\n<BLANKLINE>\nb",
        ">>> raise SystemExit(2)\nTraceback (most recent call last):\nSystemExit: 2",
        ">>> __name__\n'__main__'",
    ],
)
def test_what_is_right_passes(docstring):
    assert report(docstring) == ""


@pytest.mark.parametrize(
    ("docstring", "told"),
    [
        (">>> double(2)\n5", "    double(2)\nExpected:\n    5\nGot:\n    4"),
        (">>> double(2)", "    double(2)\nExpected nothing\nGot:\n    4"),
        (">>> print()\nx", "Expected:\n    x\nGot nothing"),
        (">>> 1 / 0\n1", "    1 / 0\nRaised:\n    "),
        (">>> 1 / 0\nTraceback (most recent call last):\nKeyError: 1", "Got:\n    ZeroDivisionError: division by zero"),
        (">>> 1\nTraceback (most recent call last):\nKeyError: 1", "Expected:\n    KeyError: 1\nGot:\n    1"),
        (">>> 1 +\n1", "Raised:\n    SyntaxError"),
    ],
)
def test_what_is_wrong_is_shown(docstring, told):
    said = report(docstring)
    assert said.startswith("1 of 1 example in the docstring of `solve` failed.\nIn `solve`:\n")
    assert told in said


def test_examples_that_cannot_be_read_are_wrong():
    assert "cannot be read" in report(">>> if 1:\n  ...     2\n")


def test_a_report_is_short_enough_for_a_model():
    said = report("\n\n".join(f">>> print('{n}' * 5000)\n{n}\n>>> list(range(5000))[::{n + 1}]\n1" for n in range(20)))
    assert "40 of 40 examples" in said
    assert said.endswith("… and 37 more.")
    assert len(said) < 8000
    assert len(report(">>> for i in range(1000): print(i)\n0").splitlines()) < 40


def test_later_examples_are_run_all_the_same():
    assert "2 of 3 examples" in report(">>> double(1)\n3\n\n>>> double(2)\n4\n\n>>> double(3)\n7")


def test_the_names_stay_as_they_are():
    names = {"double": double, "x": 1}
    with handler(BuiltinExecutor()):
        code.run_doctests(documented(">>> x = 2\n>>> y = 3\n>>> x + y\n5"), names)
    assert names == {"double": double, "x": 1}


def test_a_class_and_a_module_have_the_docstrings_of_what_is_in_them():
    class Stack:
        """A stack.

        >>> Stack().size()
        0
        """

        def size(self) -> int:
            """Its size.

            >>> Stack().size()
            1
            """
            return 0

    module = types.ModuleType("mine")
    exec("def f():\n    '''\n    >>> f()\n    2\n    '''\n    return 1\n", vars(module))
    vars(module)["imported"] = documented(">>> 1\n2")
    with handler(BuiltinExecutor()):
        with pytest.raises(TypeError, match=r"1 of 2 examples in the docstring of `Stack` failed\.\nIn `Stack.size`"):
            code.run_doctests(Stack, {"Stack": Stack})
        with pytest.raises(TypeError, match=r"1 of 1 example in the docstring of `mine` failed.\nIn `mine.f`"):
            code.run_doctests(module, vars(module))


def test_examples_run_by_the_operations():
    seen: list[str] = []

    class Watched(ObjectInterpretation):
        @implements(code.compile)
        def compile(self, source: Any, filename: str, *args: Any) -> Any:
            seen.append(f"compile {filename}")
            return fwd()

        @implements(code.exec)
        def exec(self, bytecode: Any, env: dict[str, Any]) -> None:
            seen.append("exec")
            return fwd()

    with handler(BuiltinExecutor()), handler(Watched()):
        code.run_doctests(documented(">>> 1\n1\n>>> 2\n2"), {})
    assert seen == ["compile <doctest solve[0]>", "exec", "compile <doctest solve[1]>", "exec"]


def test_without_an_executor_it_says_what_to_install():
    code.run_doctests(documented("No examples."), {})
    with pytest.raises(MissingHandlerError, match="Install an executor"):
        code.run_doctests(documented(">>> 1\n1"), {})


@pytest.mark.parametrize(
    "error", [Denied("no"), TypeCheckerError("broke off"), Suspended("wait"), MissingHandlerError("ask", "Install it.")]
)
def test_what_ends_a_call_is_no_failed_example(error):
    def act() -> None:
        raise error

    with handler(BuiltinExecutor()), pytest.raises(type(error)):
        code.run_doctests(documented(">>> act()"), {"act": act})


def test_imports_from_the_future_hold_for_the_examples():
    import __future__

    assert report(">>> def f(x: nowhere): pass", annotations=__future__.annotations) == ""
    assert "NameError" in report(">>> def f(x: nowhere): pass")


def test_a_skill_has_examples_as_well():
    @Skill.define
    def ask(n: int) -> int:
        """Double {n}.

        >>> ask(2)
        4
        """
        raise NotImplementedError

    with handler(BuiltinExecutor()), handler({ask: lambda n: 2 * n}):
        code.run_doctests(ask, {"ask": ask})


def test_other_threads_go_on_printing(capsys):
    before, during = threading.Event(), threading.Event()

    def meet() -> None:
        before.set()
        assert during.wait(10)
        print("mine")

    def other() -> None:
        assert before.wait(10)
        print("other")
        during.set()

    with handler(BuiltinExecutor()):
        thread = threading.Thread(target=propagate(other))
        thread.start()
        code.run_doctests(documented(">>> meet()\nmine"), {"meet": meet})
        thread.join()
    assert capsys.readouterr().out == "other\n"


def test_the_hooks_of_the_process_stay_as_they_are():
    class Hook:
        def __call__(self, value: Any) -> None:
            raise AssertionError("this is for the user's own REPL")

    stdout, hook = sys.stdout, sys.displayhook
    sys.displayhook = Hook()
    try:
        assert report(">>> 1\n1") == ""
    finally:
        sys.displayhook = hook
    assert sys.stdout is stdout
