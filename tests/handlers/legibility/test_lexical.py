"""Which tools a skill is offered: those that it sees where it is written."""

from __future__ import annotations

import types

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.legibility.offers import Bot, names, offered


def offered_by_scope(skill) -> list[str]:
    """The tools of the first request of a call, without those of this module."""
    return [name for name in offered(skill) if not name.endswith("_the_module")]


@Tool.define
def of_the_module() -> str:
    """A tool of the module."""
    return "module"


@Tool.define
def _private_of_the_module() -> str:
    """A tool of the module that is kept back."""
    return "private"


@Skill.define
def ask_of_the_module() -> str:
    """Ask."""
    raise NotHandled


@Tool.define
def later_in_the_module() -> str:
    """A tool further down."""
    return "later"


# Scopes


def test_the_module_is_seen_what_is_further_down_too():
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        ask_of_the_module()
    assert names(model.requests[0]) == ["later_in_the_module", "of_the_module"]


def test_enclosing_functions_are_seen_what_is_further_down_too():
    def outer():
        @Tool.define
        def outermost() -> str:
            """Outermost."""
            return ""

        def inner():
            @Skill.define
            def ask() -> str:
                """Ask."""
                raise NotHandled

            @Tool.define
            def innermost() -> str:
                """Innermost."""
                return ""

            return ask, innermost

        return inner(), outermost

    (ask, _), _ = outer()
    assert offered_by_scope(ask) == ["innermost", "outermost"]


def test_what_a_function_does_not_see_is_not_offered():
    def elsewhere():
        @Tool.define
        def hidden() -> str:
            """Hidden."""
            return ""

        return hidden

    hidden = [elsewhere()]

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered_by_scope(ask) == []
    assert hidden


def test_each_call_of_an_enclosing_function_has_its_own_scope():
    def make(word: str):
        @Tool.define(name=word)
        def tool() -> str:
            """A tool."""
            return word

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, tool

    made = [make("one"), make("other")]
    assert [offered_by_scope(ask) for ask, _ in made] == [["one"], ["other"]]


def test_an_inner_name_hides_an_outer_one():
    of_the_module = "no tool"

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        ask()
    assert names(model.requests[0]) == ["ask_of_the_module", "later_in_the_module"]
    assert of_the_module


def test_a_parameter_hides_an_outer_name():
    @Skill.define
    def ask(of_the_module: str) -> str:
        """Ask {of_the_module}."""
        raise NotHandled

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        ask("x")
    assert names(model.requests[0]) == ["ask_of_the_module", "later_in_the_module"]


def test_names_that_begin_with_an_underscore_are_kept_back():
    @Tool.define
    def tool() -> str:
        """A tool."""
        return ""

    _hidden = Tool.define(name="shown")(tool.__wrapped__) if hasattr(tool, "__wrapped__") else tool
    _bot = Bot()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered_by_scope(ask) == ["tool"]
    assert _hidden
    assert _bot


def test_a_tool_under_two_names_is_offered_once():
    @Tool.define
    def tool() -> str:
        """A tool."""
        return ""

    alias = tool

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered_by_scope(ask) == ["tool"]
    assert alias


def test_two_tools_of_one_name_are_told_apart():
    def make(answer: str):
        @Tool.define
        def tool() -> str:
            """A tool."""
            return answer

        return tool

    one, other = make("one"), make("other")

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with (
        handler(harness(system_prompt="brief")),
        handler(ScriptedModel(calls("tool", id="a"), calls("tool_2", id="b"), "ok")) as model,
    ):
        ask()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert sorted(results) == ["one", "other"]
    assert one != other


def test_what_is_defined_between_two_calls_is_offered_at_the_second():
    namespace = types.ModuleType("of_its_own")
    source = """
from effectful_agents import NotHandled, Skill, Tool

@Skill.define
def ask() -> str:
    '''Ask.'''
    raise NotHandled
"""
    exec(source, namespace.__dict__)
    assert offered_by_scope(namespace.ask) == []

    @Tool.define
    def added() -> str:
        """Added."""
        return ""

    namespace.added = added
    assert offered_by_scope(namespace.ask) == ["added"]
    del namespace.added
    assert offered_by_scope(namespace.ask) == []


# Skills as tools


def test_other_skills_in_view_are_offered():
    @Skill.define
    def one() -> str:
        """One."""
        raise NotHandled

    @Skill.define
    def other() -> str:
        """Other."""
        raise NotHandled

    assert offered_by_scope(one) == ["other"]
    assert offered_by_scope(other) == ["one"]


@pytest.mark.parametrize("recursive", [False, True])
def test_a_skill_is_offered_to_itself_only_if_it_is_recursive(recursive):
    @Skill.define(recursive=recursive)
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered_by_scope(ask) == (["ask"] if recursive else [])


def test_a_recursive_skill_calls_itself():
    @Skill.define(recursive=True)
    def factorial(n: int) -> int:
        """The factorial of {n}."""
        raise NotHandled

    model = ScriptedModel(calls("factorial", n=2), calls("factorial", n=1), 1, 2, 6)
    with handler(harness(system_prompt="brief")), handler(model):
        assert factorial(3) == 6


@pytest.mark.parametrize("recursive", [False, True])
def test_a_method_too_is_offered_to_itself_only_if_it_is_recursive(recursive):
    class Own(Agent):
        @Skill.define(recursive=recursive)
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    assert offered_by_scope(Own().ask) == (["ask"] if recursive else [])


def test_a_skill_that_says_it_uses_no_tools_is_offered_none():
    @Tool.define
    def weather(city: str) -> str:
        """The weather in a city."""
        return "sunny"

    class Desk(Agent):
        @Skill.define(tools=False)
        def plain(self, city: str) -> str:
            """What is {city} known for?"""
            raise NotHandled

        @Skill.define
        def rich(self, city: str) -> str:
            """How is it in {city}?"""
            raise NotHandled

    assert weather
    for collection in ("explicit", "auto"):
        desk = Desk()
        stack = harness(tool_collection=collection, eval_provider="none")
        with handler(stack), handler(ScriptedModel("a", "b")) as model:
            assert (desk.plain("Oslo"), desk.rich("Oslo")) == ("a", "b")
        assert "tools" not in model.requests[0]
        assert {tool["function"]["name"] for tool in model.requests[1]["tools"]} >= {"weather"}
