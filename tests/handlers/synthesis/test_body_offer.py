"""The tool that takes the body of a skill: when it is offered, and what it says."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.synthesis.coding import coding, results, submits, tools
from tests.handlers.synthesis.skills import HERE, pick


def test_the_tool_says_the_signature_and_the_receiver():
    with coding(says('{"value": 1}'), says('{"value": 1}')) as model:
        HERE.factorial(1)
        HERE.Walker().distance(1)
    function, method = (tools(request)["write_and_run_body"] for request in model.requests)
    assert "`def factorial(n)`" in function["description"]
    assert "receiver" not in function["description"]
    assert "`def distance(self, steps)`" in method["description"]
    assert "`self`" in method["description"]
    assert list(function["parameters"]["properties"]) == ["implementation", "compact"]


def test_a_skill_that_returns_a_function_is_answered_directly():
    @Skill.define
    def adder(n: int) -> Callable[[int], int]:
        """A function that adds {n}."""
        raise NotHandled

    with coding(says('{"code": "def add(x: int) -> int:\\n    return x + n"}')) as model:
        assert adder(3)(4) == 7
    assert "write_and_run_body" not in tools(model.requests[0])


def test_a_recursive_call_is_offered_one_tool_of_the_kind():
    @Skill.define(recursive=True)
    def nest(n: int) -> int:
        """{n}"""
        raise NotHandled

    with coding(calls("nest", n=1), says('{"value": 1}'), submits("def nest(n):\n    return n")) as model:
        assert nest(5) == 5
    for request in model.requests:
        names = [tool["function"]["name"] for tool in request["tools"]]
        assert names.count("write_and_run_body") == 1


def test_a_call_inside_a_call_answers_itself_only():
    @Tool.define
    def inside() -> int:
        """Call another skill."""
        return HERE.factorial(4)

    @Skill.define
    def outer(n: int) -> int:
        """{n}"""
        raise NotHandled

    inner = submits("def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)")
    with coding(calls("inside"), inner, submits("def outer(n):\n    return n + 1")) as model:
        assert outer(1) == 2
    assert "`def factorial(n)`" in tools(model.requests[1])["write_and_run_body"]["description"]
    assert "`def outer(n)`" in tools(model.requests[2])["write_and_run_body"]["description"]
    assert results(model) == ["24"]


def test_the_arguments_are_those_of_this_call():
    with coding(*[submits("def pick(numbers, least):\n    return numbers[0] + least")] * 2):
        assert (pick([1]), pick([5], least=4)) == (3, 9)


def test_the_tool_does_not_keep_the_skill_alive():
    def program() -> weakref.ref[Any]:
        @Skill.define
        def local(n: int) -> int:
            """{n}"""
            raise NotHandled

        with coding(submits("def local(n):\n    return n")):
            local(1)
        return weakref.ref(local)

    kept = program()
    gc.collect()
    assert kept() is None


def test_the_model_is_told_of_it_and_of_skills_that_return_functions():
    with handler(harness(type_checker="none")), handler(ScriptedModel(1)) as model:
        HERE.factorial(1)
    section = model.requests[0]["messages"][0]["content"].split("## FinalBodySynthesizer")[1]
    assert "write_and_run_body" in section
    assert "return a function" in section
