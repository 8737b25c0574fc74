"""Functions as values: answers of skills and arguments of tools that the model writes as source."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.encoding import (
    EncodedFunction,
    SynthesizedFunction,
    answer_codec,
    decode,
    encode,
    json_schema,
    tool_codec,
)
from effectful_agents.errors import EncodingError, MissingHandlerError, ResultDecodingError, TypeCheckerError
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.operations import code
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.synthesis.coding import coding, results, runs, tools

OFFSET = 100


@Skill.define
def adder(n: int) -> Callable[[int], int]:
    """A function that adds {n}."""
    raise NotHandled


@Tool.define
def apply(function: Callable[[int], int], to: list[int]) -> list[int]:
    """Apply a function to numbers."""
    return [function(n) for n in to]


@Skill.define
def ask(n: int) -> str:
    """{n}"""
    raise NotHandled


class Maker(Agent):
    """Makes functions."""

    @Skill.define
    def make(self, wish: str) -> Callable[[str], str]:
        """Make a function that {wish}."""
        raise NotHandled


def writes(source: str) -> Any:
    return says(json.dumps({"code": source}))


ADD = "def add(x: int) -> int:\n    return x + n"


# Answers


@pytest.mark.parametrize("packed", [str, "```json\n{}\n```".format, json.dumps], ids=["plain", "fenced", "in a text"])
def test_code_that_fails_has_run_once(packed):
    fails = json.dumps({"code": f"marks.append(1)\n1 / 0\n{ADD}"})
    marks: list[int] = []

    @Skill.define
    def make(n: int) -> Callable[[int], int]:
        """A function that adds {n}."""
        assert marks is not None
        raise NotHandled

    with coding(says(packed(fails)), writes(ADD)):
        assert make(3)(4) == 7
    assert marks == [1]


MARKS = f"marks.append(1)\n{ADD}"
FAILS = f"marks.append(1)\n1 / 0\n{ADD}"
type Named = tuple[Callable[[int], int], int]


@pytest.mark.parametrize("packed", [str, "```json\n{}\n```".format, json.dumps], ids=["plain", "fenced", "in a text"])
@pytest.mark.parametrize("given", [3, "3", "three"], ids=["right", "forgiven", "wrong"])
@pytest.mark.parametrize("source", [MARKS, FAILS], ids=["good", "failing"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_code_runs_once_whatever_stands_beside_it(source, given, packed, wrapped):
    marks: list[int] = []
    value = [{"code": source}, given]
    content = packed(json.dumps({"value": value} if wrapped else value))
    with handler(BuiltinExecutor()):
        if source == MARKS and given != "three":
            add, number = answer_codec(Named).decode(content, context={"marks": marks, "n": 1})
            assert (add(3), number) == (4, 3)
        else:
            with pytest.raises(ValueError, match="ZeroDivisionError" if source == FAILS else "valid integer"):
                answer_codec(Named).decode(content, context={"marks": marks, "n": 1})
    assert marks == [1]


def test_arguments_with_code_beside_what_is_forgiven_run_it_once():
    marks: list[int] = []
    arguments = {"function": {"code": MARKS}, "to": ["1", 2]}
    with handler(BuiltinExecutor()):
        bound = tool_codec(apply).decode(json.dumps(arguments), context={"marks": marks, "n": 1})
    assert apply(*bound.args, **bound.kwargs) == [2, 3]
    assert marks == [1]


def test_the_answer_is_a_function_of_its_source():
    with coding(writes(ADD)) as model:
        add = adder(3)
    assert add(4) == 7
    schema = model.requests[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["code"]
    assert "Callable[[int], int]" in schema["description"]


def test_it_goes_on_without_a_model_or_an_executor():
    with coding(writes("import math\n\ndef fact(x: int) -> int:\n    return math.factorial(x) + OFFSET")):
        function = adder(3)
    assert function(4) == 124


def test_its_source_can_be_read_and_written():
    source = "import math\n\ndef up(x: int) -> int:\n    return math.ceil(x) + n"
    with coding(writes(source)):
        function = adder(1)
    assert inspect.getsource(function) == "def up(x: int) -> int:\n    return math.ceil(x) + n\n"
    assert encode(function, Callable[[int], int]) == {"code": source}
    assert encode(function) == source


def test_tracebacks_of_it_have_its_lines():
    with coding(writes("def f(x: int) -> int:\n    return x // 0  # boom")):
        function = adder(1)
    with pytest.raises(ZeroDivisionError) as caught:
        function(1)
    assert str(caught.traceback[-1].statement).strip() == "return x // 0  # boom"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f(x) -> int:\n    return x", "no annotation for `x`"),
        ("def f(x: int):\n    return x", "no annotation for the result"),
        ("def f(x: int, *rest, key=1, **more) -> int:\n    return x", "`rest` and `key` and `more`"),
        ("def f() -> int:\n    return 1", "will be called with 1 by position"),
        ("def f(x: int, y: int) -> int:\n    return 1", "will be called with 1 by position"),
        ("f = lambda x: x", "does not end with a function"),
        ("def f(x: int) -> int:", "IndentationError"),
        ("import nothing_of_the_kind\ndef f(x: int) -> int:\n    return x", "ModuleNotFoundError"),
        ("def f(x: int) -> int:\n    '''\n    >>> f(1)\n    2\n    '''\n    return x", "1 of 1 example"),
    ],
)
def test_what_is_no_such_function_is_fed_back(source, problem):
    with coding(writes(source), writes(ADD)) as model:
        assert adder(1)(1) == 2
    told = model.requests[1]["messages"][-1]
    assert told["role"] == "user"
    assert problem in told["content"]


def test_without_retrying_it_is_an_error_of_the_answer():
    with coding(writes("x = 1"), num_retries=0), pytest.raises(ResultDecodingError):
        adder(1)


def test_its_own_docstring_stays_and_its_examples_are_run():
    source = "def add(x: int) -> int:\n    '''Add.\n\n    >>> add(1)\n    6\n    '''\n    return x + n"
    with coding(writes(source)):
        assert adder(5).__doc__.startswith("Add.")


def test_a_method_may_return_one_which_has_no_receiver():
    with coding(writes("def shout(text: str) -> str:\n    return text.upper() + self.__class__.__name__")):
        assert Maker().make("shouts")("a") == "AMaker"


def test_a_decorated_function_is_one_too():
    source = "import functools\n\n@functools.cache\ndef add(x: int) -> int:\n    return x + n"
    with coding(writes(source)):
        function = adder(2)
    assert function(2) == 4
    assert encode(function, Callable[[int], int]) == {"code": source}


def test_what_the_session_has_bound_is_in_view():
    with coding(runs("base = 50"), writes("def add(x: int) -> int:\n    return x + base")):
        assert adder(1)(1) == 51


@pytest.mark.parametrize("tp", [Callable, Callable[..., Any], Callable[..., int]])
def test_an_annotation_may_leave_the_parameters_open(tp):
    source = json.dumps({"code": "def f(a: int, b: int) -> int:\n    return a * b"})
    with handler(BuiltinExecutor()):
        assert decode(source, tp)(3, 4) == 12


def test_a_function_may_be_a_part_of_an_answer():
    with handler(BuiltinExecutor()):
        read = decode(
            json.dumps({"a": {"code": "def f(x: int) -> int:\n    return x"}}), dict[str, Callable[[int], int]]
        )
    assert read["a"](5) == 5


# Arguments


def test_a_tool_takes_a_function():
    with coding(
        calls("apply", function={"code": "def f(x: int) -> int:\n    return x * n"}, to=[1, 2]), "done"
    ) as model:
        ask(3)
    assert results(model) == ["[3,6]"]
    shown = tools(model.requests[0])["apply"]["parameters"]["properties"]["function"]
    assert "Callable[[int], int]" in shown["description"]


def test_a_function_that_does_not_fit_is_a_call_that_was_not_made():
    with coding(calls("apply", function={"code": "def f(x: int) -> int:\n    retrun x"}, to=[1]), "done") as model:
        ask(3)
    assert "was not made" in model.requests[1]["messages"][-1]["content"]
    assert 'File "function.py", line 2' in model.requests[1]["messages"][-1]["content"]


# Types


def test_with_a_checker_the_types_have_to_fit():
    wrong = "def add(x: int) -> str:\n    return str(x + n)"
    with coding(writes(wrong), writes(ADD), type_checker="ty") as model:
        assert adder(1)(1) == 2
    assert "does not pass the type check" in model.requests[1]["messages"][-1]["content"]


def test_a_session_is_checked_with_what_it_has_bound():
    with coding(runs("m = [n]"), runs("m.append('x' + n)"), runs("print(m)"), "done", type_checker="ty") as model:
        ask(3)
    assert "does not pass the type check" in model.requests[2]["messages"][-1]["content"]
    assert results(model)[-1] == "[3]\n"


def test_a_checker_that_cannot_run_ends_the_call():
    def broken(*_: Any, **__: Any) -> None:
        raise TypeCheckerError("ty is gone")

    with coding(runs("x = 1"), "done"), handler({code.type_check: broken}), pytest.raises(TypeCheckerError):
        ask(3)


# Without an executor


def test_a_skill_that_returns_a_function_is_refused_before_a_model_is_asked():
    with handler(harness(eval_provider="none")), handler(ScriptedModel("x")) as model:
        with pytest.raises(EncodingError, match=r"`adder` cannot be answered.*executor"):
            adder(1)
    assert model.requests == []


def test_it_is_refused_also_when_it_was_asked_for_before():
    with coding(writes(ADD)):
        adder(1)
    with pytest.raises(EncodingError, match="executor"):
        answer_codec(Callable[[int], int])
    with pytest.raises(EncodingError, match="executor"):
        json_schema(Callable[[int], int])
    with handler(harness(eval_provider="none")), handler(ScriptedModel("x")), pytest.raises(EncodingError):
        adder(1)


@pytest.mark.parametrize("first", ["builtin", "none"])
def test_a_tool_that_takes_one_is_offered_where_code_is_run(first):
    for provider in (first, "none" if first == "builtin" else "builtin"):
        with coding("done", eval_provider=provider, tool_calling="json") as model:
            ask(1)
        assert ("apply" in tools(model.requests[0])) is (provider == "builtin")


def test_a_definition_that_is_kept_is_not_given_out_without_one():
    codec = None
    with handler(BuiltinExecutor()):
        codec = tool_codec(apply)
        codec.definition()
    with pytest.raises(EncodingError, match=r"apply.*function.*executor"):
        codec.definition()


def test_an_executor_that_is_gone_while_a_reply_is_read_is_no_error_of_the_model():
    with handler(BuiltinExecutor()):
        codec = answer_codec(Callable[[int], int])
    with pytest.raises(MissingHandlerError):
        codec.decode(json.dumps({"code": ADD}))


# Other values


def test_functions_of_the_program_are_written_as_their_source():
    assert encode(helper, Callable[[int], int]) == {"code": "def helper(n: int) -> int:\n    return n\n"}


def helper(n: int) -> int:
    return n


@pytest.mark.parametrize("value", [lambda n: n, len, functools.partial(helper, 1)])
def test_a_function_without_a_source_cannot_be_written(value):
    with pytest.raises(EncodingError, match="cannot be encoded"):
        encode(value, Callable[[int], int])


def test_code_objects_are_written_as_their_source():
    with handler(BuiltinExecutor()):
        assert encode(decode('"x = 1"', CodeType)) == "x = 1"
    with pytest.raises(EncodingError, match="its source is not known"):
        encode(compile("x", "x", "eval"))


def test_the_models_of_the_wire_hold_the_source():
    assert issubclass(SynthesizedFunction, EncodedFunction)
    assert SynthesizedFunction(code="x").model_dump() == {"code": "x"}
