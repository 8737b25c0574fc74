"""Asking whether code may import a module: nothing is imported to find out."""

from __future__ import annotations

import sys

import pytest

from effectful_agents import handler
from effectful_agents.errors import StepDenied
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.operations import policy
from effectful_agents.operations.policy import ALLOW, Disposition, EffectKind, ProposedEffect
from effectful_agents.runtime import ObjectInterpretation, implements
from tests.sandbox.running import run

EXECUTORS = {"builtin": BuiltinExecutor(), "restricted": RestrictedPythonExecutor()}
each_executor = pytest.mark.parametrize("executor", EXECUTORS)


class Asked(ObjectInterpretation):
    """Allows everything but some modules, and keeps which ones it was asked about."""

    def __init__(self, *denied: str) -> None:
        self.denied = denied
        self.names: list[str] = []

    @implements(policy.decide)
    def decide(self, effect: ProposedEffect) -> Disposition:
        if effect.kind is EffectKind.IMPORT:
            self.names.append(effect.name)
        return Disposition.DENY_STEP if effect.name in self.denied else ALLOW


@pytest.fixture
def loud(tmp_path, monkeypatch):
    """A package that leaves a trace in `sys.modules` when it is imported, with modules in it."""
    (tmp_path / "loud" / "deep").mkdir(parents=True)
    (tmp_path / "loud" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "loud" / "inner.py").touch()
    (tmp_path / "loud" / "deep" / "inner.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield "loud"
    for name in [name for name in sys.modules if name.partition(".")[0] == "loud"]:
        del sys.modules[name]


@each_executor
@pytest.mark.parametrize(
    "source",
    [
        "def never():\n    from loud import inner",
        "def never():\n    from loud.inner import x",
        "def never():\n    from loud.deep import inner, x",
        "class A:\n    def never(self): from loud import x",
        "never = lambda: 0\nif never():\n    from unittest.__main__ import x",
        "if not 1 + 1:\n    from this import x",
    ],
)
def test_a_module_is_not_imported_to_be_asked_about(executor, source, loud, capsys):
    with handler(Asked()):
        run(source, executor=EXECUTORS[executor])
    assert loud not in sys.modules
    assert "unittest.__main__" not in sys.modules
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from loud import inner", ["loud", "loud.inner"]),
        ("from loud import x", ["loud"]),
        ("from loud.inner import x", ["loud.inner"]),
        ("from loud.deep import inner", ["loud.deep", "loud.deep.inner"]),
        ("from os import path", ["os", "os.path"]),
        ("from xml.dom import minidom, x", ["xml.dom", "xml.dom.minidom"]),
        ("from math import pi", ["math"]),
        ("from nowhere import x", ["nowhere"]),
        ("from . import x", [""]),
    ],
)
def test_a_module_in_a_package_is_asked_about_as_well(source, names, loud):
    asked = Asked()
    with handler(asked):
        run(f"def never():\n    {source}", executor=EXECUTORS["builtin"])
    assert asked.names == names


@each_executor
def test_a_module_in_a_package_may_be_denied_on_its_own(executor):
    asked = Asked("collections.abc")
    with handler(asked):
        run("from collections import deque", executor=EXECUTORS[executor])
        with pytest.raises(StepDenied):
            run("from collections import abc", executor=EXECUTORS[executor])
