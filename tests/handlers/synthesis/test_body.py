"""Answering a skill by writing its body."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, fwd, handler
from effectful_agents.encoding import decode, encode, json_schema
from effectful_agents.errors import MissingHandlerError, ToolCallDecodingError, ToolCallExecutionError
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.handlers.synthesis import FinalBodySynthesizer, MethodSkillBody, SkillBody
from effectful_agents.handlers.synthesis.implementation import examples_of
from effectful_agents.operations.loop import call_tool
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.synthesis.coding import coding, results, roles, runs, submits
from tests.handlers.synthesis.skills import HERE, pick, through_helper

# What ends a call


def test_the_value_of_the_function_is_the_answer():
    with coding(submits("def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)")) as model:
        assert HERE.factorial(5) == 120
    assert len(model.requests) == 1


def test_the_answer_may_be_stated_as_well():
    with coding(says('{"value": 120}')):
        assert HERE.factorial(5) == 120


def test_other_tools_may_be_called_in_turns_before():
    with coding(
        calls("double", n=4), runs("print(n)"), submits("def f(n):\n    return [1, 1, 2, 6, 24, 120][n]")
    ) as model:
        assert HERE.factorial(5) == 120
    assert results(model) == ["8", "5\n"]


def test_the_history_ends_with_the_submission_and_its_value():
    walker = HERE.Walker(2)
    with coding(submits("def f(self, steps):\n    return self.step * steps"), says('{"value": 7}')) as model:
        assert walker.distance(4) == 8
        assert walker.distance(1) == 7
    assert roles(walker.__history__) == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert walker.__history__[3]["content"] == "8"
    assert "self.step * steps" in str(model.requests[1]["messages"])


def test_it_has_to_be_alone_in_its_turn():
    both = batch(calls("double", n=4), submits("def f(n):\n    return 6 if n == 3 else 1", id="b"))
    with coding(both, says('{"value": 2}')) as model:
        assert HERE.factorial(2) == 2
    first, second = results(model)
    assert first == "8"
    assert "has to be the only tool call of its turn" in second


def test_two_of_them_in_a_turn_are_both_refused():
    code = "def f(n):\n    return 6 if n == 3 else 1"
    with coding(batch(submits(code), submits(code, id="b")), says('{"value": 2}')) as model:
        assert HERE.factorial(2) == 2
    assert all("the only tool call of its turn" in text for text in results(model))


# How it is judged


def test_a_function_whose_examples_fail_is_refused_before_it_is_applied():
    with coding(*[submits("def factorial(n):\n    return n")] * 5) as model, pytest.raises(ToolCallDecodingError):
        HERE.factorial(5)
    told = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert "factorial(3)" in told[0]
    assert "This call was not made" in told[0]


def test_a_refused_function_can_be_mended():
    wrong, right = "def f(n):\n    return 2 * n", "def f(n):\n    return 1 if n < 2 else n * factorial(n - 1)"
    with coding(submits(wrong), submits(right)) as model:
        assert HERE.factorial(4) == 24
    assert len(model.requests) == 2


def test_the_examples_run_under_any_name_of_the_function():
    with coding(submits("def solve(k):\n    return 1 if k < 2 else k * factorial(k - 1)")) as model:
        assert HERE.factorial(4) == 24
    assert model.remaining == 0


def test_the_docstring_of_the_function_is_replaced_by_that_of_the_skill():
    code = "def f(n):\n    '''\n    >>> f(1)\n    'never run'\n    '''\n    return 1 if n < 2 else n * f(n - 1)"
    with coding(submits(code)):
        assert HERE.factorial(4) == 24


def test_a_method_is_run_on_its_receiver_and_recursion_goes_to_the_function():
    code = "def distance(self, steps):\n    return 0 if steps == 0 else self.step + self.distance(steps - 1)"
    with coding(submits(code)) as model:
        assert HERE.Walker(3).distance(4) == 12
    assert len(model.requests) == 1


def test_the_examples_of_a_method_make_instances_of_their_own():
    with coding(*[submits("def distance(self, steps):\n    return steps")] * 2, says('{"value": 0}')) as model:
        HERE.Walker(1).distance(4)
    assert "Walker(2).distance(3)" in results_of_attempts(model)


def results_of_attempts(model: ScriptedModel) -> str:
    return "\n".join(str(message["content"]) for request in model.requests for message in request["messages"])


def test_helpers_in_the_module_that_call_the_skill_reach_the_function():
    code = "def f(n):\n    return 1 if n < 2 else n * through_helper(n - 1)"
    with coding(submits(code)) as model:
        assert HERE.factorial(4) == 24
    assert len(model.requests) == 1


def test_recursion_has_the_defaults_of_the_skill():
    code = "def pick(numbers, least):\n    return numbers[0] if numbers[0] >= least else pick(numbers[1:], least)"
    with coding(submits(code)):
        assert pick([1, 2, 3]) == 2


def test_outside_of_the_call_the_skill_is_a_skill_again():
    with coding(submits("def f(n):\n    return 1 if n < 2 else n * factorial(n - 1)"), says('{"value": 1}')) as model:
        HERE.factorial(4)
        assert HERE.factorial(9) == 1
    assert len(model.requests) == 2


def test_a_function_that_raises_is_told_with_its_lines_and_may_be_mended():
    wrong = "def f(n):\n    if n > 3:\n        return n / 0  # here\n    return [1, 1, 2, 6][n]"
    with coding(submits(wrong), says('{"value": 24}')) as model:
        assert HERE.factorial(4) == 24
    [told] = results(model)
    assert 'File "factorial.py", line 3' in told
    assert "return n / 0  # here" in told
    assert "ZeroDivisionError" in told


def test_without_retrying_such_an_error_ends_the_call():
    with coding(submits("def f(n):\n    return [1, 1, 2, 6][n]"), num_retries=0):
        with pytest.raises(ToolCallExecutionError):
            HERE.factorial(9)


def test_a_value_that_does_not_fit_the_return_type_is_no_answer():
    with coding(
        submits("def f(numbers, least):\n    return 'two'"),
        submits("def f(numbers, least):\n    return -1"),
        says('{"value": 2}'),
    ) as model:
        assert pick([1, 2]) == 2
    first, second = results(model)
    assert "is no `int`" in first
    assert "greater than 0" in second


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def f():\n    return 6", "cannot be called like `factorial(n: int) -> int`"),
        ("def f(n, m):\n    return 6", "cannot be called like `factorial(n: int) -> int`"),
        ("x = 1", "does not end with a function"),
        ("", "does not end with a function"),
        ("def f(n):", "IndentationError"),
        ("1 / 0\ndef f(n):\n    return 6", "ZeroDivisionError"),
        ("f = 1\n@(lambda _: 5)\ndef f(n):\n    return 6", "is no function"),
    ],
)
def test_what_is_no_body_of_the_skill_is_refused(code, problem):
    with coding(submits(code), says('{"value": 1}')) as model:
        HERE.factorial(1)
    assert problem in model.requests[1]["messages"][-1]["content"]


def test_it_may_use_the_lexical_scope_and_what_the_session_has_bound():
    with coding(runs("offset = 5"), submits("def pick(numbers, least):\n    return numbers[0] + LIMIT + offset")):
        assert pick([1]) == 9


def test_imports_and_helpers_come_first():
    code = "import math\n\ndef helper(n):\n    return math.factorial(n)\n\ndef f(n):\n    return helper(n)"
    with coding(submits(code)):
        assert HERE.factorial(4) == 24


def test_a_class_method_gets_its_class():
    with coding(submits("def count(cls, word):\n    return len(cls.__name__ + word)")):
        assert HERE.Walker.count("ab") == 8


def test_a_static_method_has_no_receiver():
    with coding(submits("def length(word):\n    return len(word)")):
        assert HERE.Walker().length("abc") == 3


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_async_skill_may_have_either_kind_of_body(kind):
    @Skill.define
    async def later(n: int) -> int:
        """{n}"""
        raise NotHandled

    with coding(submits(f"{kind} later(n):\n    return n + 1")):
        assert asyncio.run(later(2)) == 3


def test_a_generic_skill_is_held_to_the_type_of_its_arguments():
    @Skill.define
    def last[T](items: list[T]) -> T:
        """The last of {items}."""
        raise NotHandled

    with coding(submits("def last(items):\n    return items[-1]")):
        assert last([1, 2]) == 2


# Compaction


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("none", ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool"]),
        ("turn", ["system", "user", "assistant", "user", "assistant", "tool"]),
        ("conversation", ["system", "user", "assistant", "tool"]),
    ],
)
def test_a_submission_that_succeeds_compacts_the_conversation(scope, left):
    walker = HERE.Walker()
    code = "def f(self, steps):\n    return self.step * steps"
    with coding(says('{"value": 1}'), runs("x = 1"), submits(code, compact=scope)):
        walker.distance(1)
        assert walker.distance(2) == 2
    assert roles(walker.__history__) == left
    assert "self.step * steps" in str(walker.__history__[-2])


def test_one_that_raises_compacts_nothing():
    walker = HERE.Walker()
    code = "def f(self, steps):\n    return self.step * steps if steps < 4 else 1 / 0"
    with coding(runs("x = 1"), submits(code, compact="conversation"), says('{"value": 9}')) as model:
        assert walker.distance(9) == 9
    assert roles(model.requests[-1]["messages"]) == ["system", "user", "assistant", "tool", "assistant", "tool"]


# Examples


def test_braces_that_are_doubled_for_the_format_stand_once():
    assert examples_of(">>> f({{'a': 1}})\n{{'b': 2}}\n") == ">>> f({'a': 1})\n{'b': 2}\n"


def test_examples_with_a_field_are_left_out():
    prompt = "Go {n} steps.\n\n>>> f({n})\n3\n\n>>> x = [\n...     1,\n... ]\n>>> f(x)\n1\n"
    assert examples_of(prompt) == "Go n steps.\n\n\n>>> x = [\n...     1,\n... ]\n>>> f(x)\n1\n"


def test_arguments_are_no_examples():
    @Skill.define
    def read(text: str) -> int:
        """Read {text}"""
        raise NotHandled

    ran: list[int] = []
    with coding(submits("def read(text):\n    return 1")):
        assert read(">>> 1 / 0\n2\n") == 1
    assert ran == []


# The type


def test_a_body_is_written_as_source_and_described_by_its_type():
    with handler(BuiltinExecutor()):
        assert "Callable[[int], str]" in json_schema(SkillBody[[int], str])["description"]
        assert "Callable[[self, int], str]" in json_schema(MethodSkillBody[[int], str])["description"]
    assert encode(through_helper, SkillBody[[int], int]) == {
        "code": "def through_helper(n: int) -> int:\n    return HERE.factorial(n)\n"
    }


def test_the_calls_that_are_running_do_not_disturb_each_other():
    from effectful_agents import acall

    counter = itertools.count()

    def reply(request: Any) -> Any:
        next(counter)
        return submits("def pick(numbers, least):\n    return numbers[0] + least")

    async def main() -> list[int]:
        return await asyncio.gather(*(acall(pick, [n], n) for n in range(1, 6)))

    with coding(*[reply] * 5):
        assert asyncio.run(main()) == [2 * n for n in range(1, 6)]


def test_two_of_them_in_a_stack_are_as_one():
    with coding(submits("def pick(numbers, least):\n    return numbers[0]")) as model, handler(FinalBodySynthesizer()):
        assert pick([4]) == 4
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]].count("write_and_run_body") == 1


def test_outside_of_a_skill_there_is_no_body_to_write():
    with handler(BuiltinExecutor()), pytest.raises(ValueError, match="no skill is being answered"):
        decode('{"code": "def f():\\n    return 1"}', SkillBody[[], int])


def test_the_tool_is_for_the_call_that_it_was_offered_in():
    kept: list[Any] = []

    def keep(tool_call: Any) -> Any:
        kept.append(tool_call)
        return fwd()

    with coding(submits("def pick(numbers, least):\n    return numbers[0]")), handler({call_tool: keep}):
        pick([4])
    [call] = kept
    assert call.tool.risk is Risk.DESTRUCTIVE
    with pytest.raises(MissingHandlerError, match="FinalBodySynthesizer"):
        call.tool(*call.bound_args.args)
