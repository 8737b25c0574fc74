"""Programs that mix both kinds of handlers and operations give what the library alone gives."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from effectful.ops import semantics, syntax
from effectful.ops.types import NotHandled
from effectful.ops.types import Operation as EffectfulOperation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effectful_agents.runtime import Operation, coproduct, fwd, handler

PROGRAMS = Path(__file__).parent / "stack_programs.py"


def load_programs() -> ModuleType:
    """The file that the other process runs, under a name of its own."""
    spec = importlib.util.spec_from_file_location("runtime_stack_programs", PROGRAMS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


programs = load_programs()


@pytest.fixture(scope="module")
def library() -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """The library's answer to a program, from a process that has never imported `effectful_agents`."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAMS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def ask(program: dict[str, Any]) -> dict[str, Any]:
            questions.write(json.dumps(program) + "\n")
            questions.flush()
            return json.loads(answers.readline())

        yield ask
        questions.close()
        assert process.wait() == 0


MIXED = programs.Vocabulary(
    operations=[EffectfulOperation, Operation],
    handlers=[semantics.handler, handler],
    coproducts=[semantics.coproduct, coproduct],
    fwd=fwd,
    not_handled=NotHandled,
    object_interpretation=syntax.ObjectInterpretation,
    implements=syntax.implements,
)


ARGUMENTS = {"one": 1, "two": 2, "none": 0, "many": 3}
WHICH = st.integers(0, 1)
KEYS = st.sampled_from([*ARGUMENTS, *ARGUMENTS, "apply", "apply_second"])

PLAIN = st.one_of(
    st.integers(0, 9).map(lambda number: ["const", number]), st.integers(0, 1).map(lambda index: ["arg", index])
)
RARE = st.sampled_from([["fail", "a"], ["fail", "b"], ["leave"], ["fwd"]])
OUTSIDE = st.one_of(*[PLAIN] * 8, RARE)
"""The smallest expressions of programs and default rules, where `fwd` is mostly an error."""
INSIDE = st.one_of(*[PLAIN] * 3, *[st.just(["fwd"])] * 5, RARE)
"""The smallest expressions of handlers."""


def expression(*parts: Any) -> st.SearchStrategy[list]:
    return st.tuples(*(each if isinstance(each, st.SearchStrategy) else st.just(each) for each in parts)).map(list)


def around(inner: st.SearchStrategy[list]) -> st.SearchStrategy[list]:
    """Expressions made of smaller ones."""
    return st.one_of(
        *(
            expression("perform", name, st.lists(inner, min_size=count, max_size=count))
            for name, count in ARGUMENTS.items()
        ),
        expression("mark", st.integers(0, 99), inner),
        expression("add", inner, inner),
        expression("guard", inner, inner),
        expression(st.sampled_from(["with", "decorated"]), WHICH, interpretations(), inner),
    )


def interpretations() -> st.SearchStrategy[list]:
    body = st.deferred(lambda: HANDLERS).flatmap(lambda inner: expression("mark", st.integers(0, 99), st.just(inner)))
    simple = expression(st.sampled_from(["dict", "object"]), st.dictionaries(KEYS, body, min_size=1, max_size=3))
    return simple | expression("coproduct", WHICH, simple, simple)


HANDLERS = st.recursive(
    INSIDE, lambda inner: around(inner) | expression("fwd_with", st.lists(inner, max_size=2)), max_leaves=4
)
EXPRESSIONS = st.recursive(OUTSIDE, around, max_leaves=8)
DEFAULTS = expression("add", expression("arg", 0), expression("const", 100)) | st.just(["leave"]) | EXPRESSIONS


@st.composite
def whole_programs(draw: st.DrawFn) -> dict[str, Any]:
    """Several handlers around expressions that perform what they handle."""
    body = draw(around(EXPRESSIONS))
    for _ in range(draw(st.integers(1, 5))):
        body = ["with", draw(WHICH), draw(interpretations()), body]
    return {
        "classes": {name: draw(WHICH) for name in ARGUMENTS},
        "defaults": {name: draw(DEFAULTS) for name in ARGUMENTS},
        "body": body,
    }


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=whole_programs())
def test_mixed_stacks_give_the_result_and_the_trace_of_the_library(
    library: Callable[[dict[str, Any]], dict[str, Any]], program: dict[str, Any]
) -> None:
    expected = library(program)
    assert programs.outcome(program, MIXED) == expected
