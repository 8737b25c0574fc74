"""Defining tools: what is checked and kept, and that they stay functions."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import Any, NewType

import pytest

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import ConfigurationError, DefinitionError


@Tool.define
def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Both are small.
    """
    return a + b


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.total = start

    @Tool.define
    def count(self, by: int) -> int:
        """Count on."""
        self.total += by
        return self.total


def described(**options: Any) -> Tool:
    @Tool.define(**options)
    def other() -> None:
        """Do."""

    return other


# Functions


def test_a_tool_is_called_as_the_function_it_was_made_of():
    assert [add(1), add(1, 2), add(a=1, b=3)] == [2, 3, 4]
    assert (add.__name__, add.__doc__, add.__module__) == ("add", add.__wrapped__.__doc__, __name__)
    assert inspect.signature(add) == inspect.signature(add.__wrapped__, eval_str=True)


def test_wrong_arguments_are_the_error_of_python():
    for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"c": 2})]:
        with pytest.raises(TypeError):
            add(*args, **kwargs)


def test_what_it_raises_passes():
    @Tool.define
    def fail() -> None:
        """Fail."""
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_handler_replaces_a_tool():
    with handler({add: lambda a, b=0: "replaced"}):
        assert add(1) == "replaced"
    assert add(1) == 2


def test_the_description_is_the_docstring_unless_it_is_given():
    assert add.description == "Add two numbers.\n\nBoth are small."
    assert described().description == "Do."
    assert described(description="Otherwise.").description == "Otherwise."

    @Tool.define(description="Without a docstring.")
    def bare() -> None: ...

    assert bare.description == "Without a docstring."


def test_a_tool_may_have_another_name_for_the_model():
    other = described(name="another")
    assert other.__name__ == "another"
    assert described().__name__ == "other"


# Options


def test_the_options_have_these_defaults():
    tool = described()
    found = tool.parameters, tool.risk, tool.idempotent, tool.effect, tool.concurrent, tool.timeout
    assert found == (None, Risk.READ, False, "once", False, None)


@pytest.mark.parametrize("risk", list(Risk))
def test_a_risk_is_kept(risk):
    assert described(risk=risk).risk is risk
    assert described(risk=int(risk)).risk is risk


def test_risks_are_in_ascending_order():
    assert sorted(Risk) == [Risk.READ, Risk.SOFT_WRITE, Risk.HARD_WRITE, Risk.DESTRUCTIVE]


@pytest.mark.parametrize(
    ("options", "effect", "idempotent"),
    [
        ({"effect": "once"}, "once", False),
        ({"effect": "keyed"}, "keyed", False),
        ({"effect": "idempotent"}, "idempotent", True),
        ({"idempotent": True}, "idempotent", True),
        ({"idempotent": False, "effect": "keyed"}, "keyed", False),
        ({"idempotent": True, "effect": "idempotent"}, "idempotent", True),
    ],
)
def test_effect_and_idempotent_say_the_same(options, effect, idempotent):
    tool = described(**options)
    assert (tool.effect, tool.idempotent) == (effect, idempotent)


@pytest.mark.parametrize("timeout", [0.5, 1, 3600])
def test_a_timeout_is_a_number_of_seconds_above_zero(timeout):
    assert described(timeout=timeout).timeout == timeout


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "twice"},
        {"effect": "once", "idempotent": True},
        {"effect": "keyed", "idempotent": True},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"description": " "},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_told_with_the_name_of_the_tool(options):
    with pytest.raises(DefinitionError, match="`other`"):
        described(**options)


@pytest.mark.parametrize("options", [{"risk": 7}, {"risk": "high"}, {"timeout": "long"}], ids=str)
def test_options_of_the_wrong_kind_are_told_with_the_name_of_the_tool(options):
    with pytest.raises(DefinitionError, match="`other`"):
        described(**options)


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="retries"):
        described(retries=3)


# Definitions


def test_a_tool_needs_a_docstring():
    with pytest.raises(DefinitionError, match="the tool `silent` has no docstring"):

        @Tool.define
        def silent() -> None: ...


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (lambda: None, ["`return`"]),
        (lambda a, *b, c=1, **d: None, ["`a`", "`b`", "`c`", "`d`", "`return`"]),
    ],
)
def test_every_annotation_is_needed(function, missing):
    function.__doc__ = "Do."
    with pytest.raises(DefinitionError) as caught:
        Tool.define(function)
    assert all(name in str(caught.value) for name in missing)


def test_with_parameters_written_by_hand_none_is_needed():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def do(a):
        return a

    tool = Tool.define(do, parameters=schema, description="Do.")
    assert tool.parameters == schema
    assert tool(3) == 3


def test_an_annotation_that_names_nothing_is_told_when_it_is_needed():
    @Tool.define
    def do(a: Absent) -> None:  # noqa: F821
        """Do."""

    with pytest.raises(DefinitionError, match="`Absent`"):
        _ = do.__signature__


def test_an_annotation_of_a_method_may_name_a_new_type_of_its_class():
    class Till:
        Cents = NewType("Cents", int)

        @Tool.define
        def pay(self, cents: Cents) -> None:
            """Pay."""

    assert Till().pay.__signature__.parameters["cents"].annotation is Till.Cents


def test_a_definition_error_is_one_of_configuration_and_of_type():
    with pytest.raises(ConfigurationError):
        described(timeout=0)
    with pytest.raises(TypeError):
        described(timeout=0)


def test_annotations_may_name_what_comes_later():
    @Tool.define
    def do(point: Point) -> list[Point]:
        """Do."""
        return [point]

    @dataclasses.dataclass
    class Point:
        x: int

    assert do.__signature__.parameters["point"].annotation is Point
    assert do.__signature__.return_annotation == list[Point]


def test_a_method_may_name_its_own_class():
    class Node:
        @Tool.define
        def link(self, other: Node) -> Node:
            """Link."""
            return other

    (parameter,) = Node().link.__signature__.parameters.values()
    assert parameter.annotation is Node


def test_what_wraps_a_function_keeps_its_signature():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) + 1

        return wrapper

    @Tool.define
    @logged
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    assert double(2) == 5
    assert list(double.__signature__.parameters) == ["x"]


# Methods


def test_a_method_is_bound_to_its_instance():
    one, other = Counter(), Counter(10)
    assert [one.count(1), other.count(by=2), one.count(3)] == [1, 12, 4]
    assert list(one.count.__signature__.parameters) == ["by"]
    assert list(Counter.count.__signature__.parameters) == ["self", "by"]
    assert one.count.receiver is one
    assert one.count.function is Counter.count
    assert Counter.count.receiver is None


def test_a_bound_tool_is_equal_to_itself_and_to_no_other():
    one, other = Counter(), Counter()
    assert one.count == one.count
    assert hash(one.count) == hash(one.count)
    assert one.count != other.count
    assert one.count != Counter.count
    assert vars(one) == {"total": 0}


def test_a_bound_tool_keeps_what_was_declared():
    class Sender:
        @Tool.define(risk=Risk.HARD_WRITE, timeout=3, name="send_mail")
        def send(self) -> None:
            """Send."""

    bound = Sender().send
    assert (bound.__name__, bound.risk, bound.timeout, bound.description) == ("send_mail", Risk.HARD_WRITE, 3, "Send.")


def test_a_bound_tool_under_another_name_is_still_the_same():
    counter = Counter()
    renamed = counter.count.named("other__count")
    assert renamed.__name__ == "other__count"
    assert renamed == counter.count
    assert renamed(2) == 2
    with handler({counter.count: lambda by: "replaced"}):
        assert renamed(1) == "replaced"
    assert counter.count.__name__ == "count"


def test_instances_with_tools_are_copied_and_pickled():
    counter = Counter(3)
    for again in (copy.copy(counter), copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
        assert again.count(1) == 4
    assert counter.total == 3


def test_tools_of_the_module_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(add)) is add
    assert copy.deepcopy([add]) == [add]


def test_a_skill_is_a_tool():
    @Skill.define(risk=Risk.SOFT_WRITE, name="other", timeout=3)
    def ask(question: str) -> str:
        """{question}"""
        raise NotHandled

    assert isinstance(ask, Tool)
    assert (ask.__name__, ask.risk, ask.timeout, ask.description) == ("other", Risk.SOFT_WRITE, 3, "{question}")
