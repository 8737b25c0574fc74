"""Arguments of skills are held to the constraints in their annotations, before a model is asked."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
import pytest
from annotated_types import Ge, Le, Len, Predicate
from typing_extensions import Doc

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.handlers.validation import PydanticSkillArgValidator
from effectful_agents.operations.loop import call_agent
from effectful_agents.testing import ScriptedModel, calls

type Digit = Annotated[int, Ge(0), Le(9)]
Small = Annotated[int, Ge(0), Le(9)]


@Skill.define
def spell(digit: Annotated[int, Ge(0), Le(9)]) -> str:
    """Spell {digit}."""
    raise NotHandled


@Skill.define
def join(
    first: Annotated[str, Len(1)],
    *others: Annotated[str, Len(1)],
    times: Annotated[int, Ge(1)] = 1,
    **named: Annotated[int, Ge(0)],
) -> str:
    """Join {first}, {others}, {times}, {named}."""
    raise NotHandled


def arguments(skill: Any, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the loop would be given."""
    seen: list[Any] = []

    def loop(skill: Any, /, *args: Any, **kwargs: Any) -> str:
        seen.append((args, kwargs))
        return "answer"

    with handler({call_agent: loop}), handler(PydanticSkillArgValidator()):
        assert skill(*args, **kwargs) == "answer"
    (found,) = seen
    return found


def refused(skill: Any, *args: Any, **kwargs: Any) -> str:
    """What is said of arguments that are not let through."""
    with handler(harness()), handler(ScriptedModel()) as model, pytest.raises(pydantic.ValidationError) as caught:
        skill(*args, **kwargs)
    assert model.requests == []
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


# Where a constraint stands


@pytest.mark.parametrize(("args", "kwargs"), [((3,), {}), ((), {"digit": 3}), ((0,), {}), ((9,), {})])
def test_what_satisfies_it_passes(args, kwargs):
    assert arguments(spell, *args, **kwargs) == ((3 if 3 in args or kwargs else args[0],), {})


@pytest.mark.parametrize("digit", [-1, 10, "many", None, 1.5])
def test_what_does_not_is_refused_before_a_model_is_asked(digit):
    assert "1 validation error" in refused(spell, digit)


@pytest.mark.parametrize("alias", [Digit, Small], ids=["type statement", "assignment"])
def test_a_constraint_may_have_a_name(alias):
    def count(digit) -> str:
        """Count to {digit}."""
        raise NotHandled

    count.__annotations__["digit"] = alias
    skill = Skill.define(count)
    assert arguments(skill, 3) == ((3,), {})
    assert "less than or equal to 9" in refused(skill, 10)


def test_each_of_the_variable_arguments_is_checked_by_itself():
    assert arguments(join, "a", "b", "c", times=2, x=1, y=2) == (("a", "b", "c"), {"times": 2, "x": 1, "y": 2})
    for args, kwargs in [(("",), {}), (("a", "b", ""), {}), (("a",), {"x": 1, "y": -1}), (("a",), {"times": 0})]:
        refused(join, *args, **kwargs)


def test_variable_arguments_may_be_left_out():
    assert arguments(join, "a") == (("a",), {"times": 1})


def test_a_default_is_held_to_it_as_well():
    @Skill.define
    def spell(digit: Annotated[int, Ge(0)] = -1) -> str:
        """Spell {digit}."""
        raise NotHandled

    assert arguments(spell, 2) == ((2,), {})
    refused(spell)


def test_methods_are_checked():
    class Bot(Agent):
        @Skill.define
        def spell(self, digit: Annotated[int, Ge(0)]) -> str:
            """Spell {digit}."""
            raise NotHandled

        @classmethod
        @Skill.define
        def outside(cls, digit: Annotated[int, Ge(0)]) -> str:
            """Spell {digit}."""
            raise NotHandled

        @Skill.define
        @classmethod
        def inside(cls, digit: Annotated[int, Ge(0)]) -> str:
            """Spell {digit}."""
            raise NotHandled

        @staticmethod
        @Skill.define
        def static(digit: Annotated[int, Ge(0)]) -> str:
            """Spell {digit}."""
            raise NotHandled

    bot = Bot()
    for skill in (bot.spell, Bot.outside, Bot.inside, Bot.static):
        refused(skill, -1)
        with handler(harness()), handler(ScriptedModel("one")):
            assert skill(1) == "one"


def test_an_agent_whose_call_is_refused_keeps_its_history():
    class Bot(Agent):
        @Skill.define
        def spell(self, digit: Annotated[int, Ge(0)]) -> str:
            """Spell {digit}."""
            raise NotHandled

    bot = Bot()
    refused(bot.spell, -1)
    assert bot.__history__ == []


type NonEmpty[T] = Annotated[list[T], Len(1)]


def test_an_alias_with_parameters_has_its_constraint():
    @Skill.define
    def total(numbers: NonEmpty[int]) -> int:
        """Add {numbers}."""
        raise NotHandled

    assert arguments(total, [1]) == (([1],), {})
    assert "at least 1 item" in refused(total, [])


def test_a_description_is_no_constraint():
    class Engine: ...

    @Skill.define
    def start(
        engine: Annotated[Engine, Doc("what runs")],
        names: Annotated[list[str], pydantic.Field(description="whose it is")],
        more: Annotated[list[str], "whatever"],
    ) -> str:
        """Start."""
        raise NotHandled

    given = (Engine(), ["a"], ["b"])
    args, _ = arguments(start, *given)
    assert all(found is one for found, one in zip(args, given, strict=True))


def test_what_has_no_form_on_the_wire_may_have_a_constraint():
    class Engine:
        on = False

    @Skill.define
    def drive(engine: Annotated[Engine, Predicate(lambda engine: engine.on)]) -> str:
        """Drive."""
        raise NotHandled

    engine = Engine()
    assert "Predicate" in refused(drive, engine)
    assert "instance of" in refused(drive, "an engine")
    engine.on = True
    assert arguments(drive, engine)[0][0] is engine


# What takes the place of an argument


def test_what_a_validator_makes_of_an_argument_takes_its_place():
    @Skill.define
    def greet(
        name: Annotated[str, pydantic.StringConstraints(strip_whitespace=True, to_upper=True)],
        *others: Annotated[str, pydantic.AfterValidator(str.title)],
        **more: Annotated[str, pydantic.BeforeValidator(str)],
    ) -> str:
        """Greet {name}, {others}, {more}."""
        raise NotHandled

    assert arguments(greet, " ann ", "bob", "cy", x=1) == (("ANN", "Bob", "Cy"), {"x": "1"})
    with handler(harness()), handler(ScriptedModel("ok")) as model:
        greet(" ann ")
    assert "Greet ANN," in model.requests[0]["messages"][1]["content"]


def test_what_has_no_constraint_is_the_same_object():
    class Engine: ...

    @Skill.define
    def start(engine: Engine, names: list[str], digit: Annotated[int, Ge(0)], *rest: list[str], **more: Engine) -> str:
        """Start {digit}."""
        raise NotHandled

    engine, names, rest, more = Engine(), ["a"], ["b"], Engine()
    args, kwargs = arguments(start, engine, names, 1, rest, more=more)
    assert args[0] is engine
    assert args[1] is names
    assert args[3] is rest
    assert kwargs["more"] is more


def test_without_any_constraint_the_call_passes_as_it_was_made():
    @Skill.define
    def plain(a: list[int], b: int = 2, *, c: int = 3) -> str:
        """{a} {b} {c}"""
        raise NotHandled

    given = [1]
    args, kwargs = arguments(plain, a=given)
    assert (args, kwargs) == ((), {"a": [1]})
    assert kwargs["a"] is given


# What a validator sees


def test_a_validator_sees_the_other_arguments_and_the_scope():
    limit = 5
    seen = []

    def check(value: int, info: pydantic.ValidationInfo) -> int:
        assert info.context is not None
        seen.append((info.context["low"], info.context["limit"], "nothing" in info.context))
        if not info.context["low"] <= value <= info.context["limit"]:
            raise ValueError("not between")
        return value

    @Skill.define
    def between(low: int, value: Annotated[int, pydantic.AfterValidator(check)]) -> str:
        """{value}"""
        raise NotHandled

    assert arguments(between, 1, 3) == ((1, 3), {})
    assert seen == [(1, 5, False)]
    assert "not between" in refused(between, 4, 3)
    limit = 2
    assert "not between" in refused(between, 1, 3)
    assert limit == 2


def test_a_validator_of_a_method_sees_the_agent():
    def check(value: int, info: pydantic.ValidationInfo) -> int:
        assert info.context is not None
        if value > info.context["self"].limit:
            raise ValueError("above the limit of the agent")
        return value

    class Bot(Agent):
        limit = 3

        @Skill.define
        def spell(self, digit: Annotated[int, pydantic.AfterValidator(check)]) -> str:
            """Spell {digit}."""
            raise NotHandled

    with handler(harness()), handler(ScriptedModel("three")):
        assert Bot().spell(3) == "three"
    assert "above the limit of the agent" in refused(Bot().spell, 4)


# In the stack


def test_a_validator_is_run_once_whatever_is_repeated():
    counted = []

    def count(x: int) -> int:
        counted.append(x)
        return x

    @Skill.define
    def ask(x: Annotated[int, pydantic.AfterValidator(count)]) -> int:
        """{x}"""
        raise NotHandled

    with handler(harness(num_retries=3)), handler(ScriptedModel("a", "b", 3)):
        assert ask(1) == 3
    assert counted == [1]


def test_a_wrong_number_of_arguments_is_the_error_of_python():
    for args, kwargs in [((), {}), ((1, 2), {}), ((1,), {"digit": 1}), ((1,), {"other": 1})]:
        with handler(harness()), handler(ScriptedModel()), pytest.raises(TypeError):
            spell(*args, **kwargs)


def test_a_skill_that_the_model_calls_wrongly_is_told_to_the_model():
    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("spell", digit=10), "ok")) as model:
        assert ask() == "ok"
    assert "9" in model.requests[1]["messages"][-1]["content"]


def test_tools_are_not_its_concern():
    @Tool.define
    def double(x: Annotated[int, Ge(0)]) -> int:
        """Double."""
        return 2 * x

    with handler(harness()):
        assert double(-1) == -2
