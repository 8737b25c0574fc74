"""Which tools a skill is offered: those that it sees where it is written."""

from __future__ import annotations

import dataclasses
import logging
import types
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.handlers.durability import HistoryBuilder
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.loop import call_assistant
from effectful_agents.testing import ScriptedModel, calls


def names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def offered(skill: Any, *arguments: Any) -> list[str]:
    """The tools of the first request of a call, without those of this module."""
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        skill(*arguments)
    return [name for name in names(model.requests[0]) if not name.endswith("_the_module")]


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


class Bot(Agent):
    """A bot."""

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled

    @Skill.define
    def other(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    def count(self, number: int) -> int:
        """Count."""
        return number + 1

    @Tool.define
    def _secret(self) -> str:
        """Kept back."""
        return "secret"


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
    assert offered(ask) == ["innermost", "outermost"]


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

    assert offered(ask) == []
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
    assert [offered(ask) for ask, _ in made] == [["one"], ["other"]]


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

    assert offered(ask) == ["tool"]
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

    assert offered(ask) == ["tool"]
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
    assert offered(namespace.ask) == []

    @Tool.define
    def added() -> str:
        """Added."""
        return ""

    namespace.added = added
    assert offered(namespace.ask) == ["added"]
    del namespace.added
    assert offered(namespace.ask) == []


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

    assert offered(one) == ["other"]
    assert offered(other) == ["one"]


@pytest.mark.parametrize("recursive", [False, True])
def test_a_skill_is_offered_to_itself_only_if_it_is_recursive(recursive):
    @Skill.define(recursive=recursive)
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == (["ask"] if recursive else [])


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

    assert offered(Own().ask) == (["ask"] if recursive else [])


# Agents


def test_a_method_is_offered_its_public_siblings():
    assert offered(Bot().ask) == ["count", "other"]


def test_the_siblings_act_on_the_same_agent():
    @dataclasses.dataclass
    class Counter(Agent):
        total: int = 0

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def add(self, number: int) -> int:
            """Add."""
            self.total += number
            return self.total

    counter, other = Counter(), Counter()
    model = ScriptedModel(calls("add", number=2), calls("add", number=3, id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        counter.ask()
    assert (counter.total, other.total) == (5, 0)


def test_inherited_and_overriding_methods_are_offered_once():
    class Child(Bot):
        @Tool.define
        def count(self, number: int) -> int:
            """Count otherwise."""
            return number + 2

        @Tool.define
        def more(self) -> str:
            """More."""
            return ""

    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        Child().ask()
    tools = {tool["function"]["name"]: tool["function"]["description"] for tool in model.requests[0]["tools"]}
    assert {name: tools[name] for name in ("count", "more", "other")} == {
        "count": "Count otherwise.",
        "more": "More.",
        "other": "{question}",
    }


def test_a_method_hidden_by_something_else_in_the_child_is_not_offered():
    class Child(Bot):
        count = None

    assert offered(Child().ask) == ["other"]


def class_method_outside(function):
    return classmethod(Skill.define(function))


def class_method_inside(function):
    return Skill.define(classmethod(function))


@pytest.mark.parametrize("define", [class_method_outside, class_method_inside])
def test_the_siblings_of_a_class_method_are_those_of_the_class(define):
    class Factory:
        @define
        def make(cls) -> str:
            """Make."""
            raise NotHandled

        @classmethod
        @Tool.define
        def outside(cls) -> str:
            """Describe."""
            return cls.__name__

        @Tool.define
        @classmethod
        def inside(cls) -> str:
            """Describe."""
            return cls.__name__

        @staticmethod
        @Tool.define
        def fixed() -> str:
            """Fixed."""
            return "fixed"

        @Tool.define
        def needs_an_instance(self) -> str:
            """It needs one."""
            return ""

    class Child(Factory): ...

    assert offered(Factory.make) == ["fixed", "inside", "outside"]
    model = ScriptedModel(calls("inside"), calls("outside", id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Child.make()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["Child", "Child"]


def test_a_skill_taken_from_the_class_is_offered_the_siblings_of_its_instance():
    bot = [Bot()]
    assert offered(Bot.ask, *bot) == ["count", "other"]


def test_another_agent_in_view_offers_its_tools_under_its_name():
    helper = Bot()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["helper__ask", "helper__count", "helper__other"]
    assert helper


def test_two_agents_of_one_class_are_told_apart():
    @dataclasses.dataclass
    class Named(Agent):
        name: str

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def tell(self) -> str:
            """Tell."""
            return self.name

    ann, bob = Named("Ann"), Named("Bob")

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    model = ScriptedModel(calls("bob__tell", id="a"), calls("ann__tell", id="b"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        ask()
    results = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["Bob", "Ann"]
    assert ann != bob


def test_an_argument_that_is_an_agent_offers_its_tools_under_the_name_of_the_parameter():
    @Skill.define
    def ask(partner: Bot) -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask, Bot()) == ["partner__ask", "partner__count", "partner__other"]


def test_each_call_is_offered_the_tools_of_its_own_arguments():
    @dataclasses.dataclass
    class Named(Agent):
        name: str

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def tell(self) -> str:
            """Tell."""
            return self.name

    @Skill.define
    def ask(partner: Named) -> str:
        """Ask."""
        raise NotHandled

    for name in ("Ann", "Bob"):
        with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("partner__tell"), "ok")) as model:
            ask(Named(name))
        assert model.requests[-1]["messages"][-1]["content"] == name


def test_an_argument_that_is_a_tool_is_offered():
    @Tool.define
    def given() -> str:
        """Given."""
        return ""

    def make():
        @Skill.define
        def ask(tool: Tool) -> str:
            """Ask."""
            raise NotHandled

        return ask

    [tool] = [given]
    del given
    ask = make()
    assert offered(ask, tool) == ["given"]


def test_an_agent_is_not_offered_its_own_tools_twice():
    class Knowing(Agent):
        def __init__(self) -> None:
            self.me = self

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def tell(self) -> str:
            """Tell."""
            return ""

    knowing = Knowing()
    assert offered(knowing.ask) == ["tell"]
    assert knowing


def test_no_property_of_an_agent_is_run():
    class Costly(Agent):
        @property
        def expensive(self) -> Any:
            raise AssertionError("the property was run")

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    assert offered(Costly().ask) == []
    costly = Costly()

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask) == ["costly__ask"]
    assert costly


# In the course of a conversation


def test_a_tool_set_on_the_agent_by_a_tool_is_offered_on_the_next_turn():
    class Learner(Agent):
        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

        @Tool.define
        def learn(self) -> str:
            """Learn."""

            @Tool.define
            def learned() -> str:
                """Learned."""
                return "it works"

            self.learned = learned
            return "done"

        @Tool.define
        def forget(self) -> str:
            """Forget."""
            del self.learned
            return "done"

    model = ScriptedModel(calls("learn"), calls("learned", id="b"), calls("forget", id="c"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Learner().ask()
    assert ["learned" in names(request) for request in model.requests] == [False, True, True, False]
    assert model.requests[2]["messages"][-1]["content"] == "it works"


def test_a_name_bound_by_a_tool_is_offered_on_the_next_turn():
    def make():
        learned = None

        @Tool.define
        def learn() -> str:
            """Learn."""
            nonlocal learned

            @Tool.define
            def new() -> str:
                """New."""
                return ""

            learned = new
            return "done"

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, learn, learned

    model = ScriptedModel(calls("learn"), "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        make()[0]()
    assert ["new" in names(request) for request in model.requests] == [False, True]


def test_the_tools_are_the_same_bytes_from_turn_to_turn():
    model = ScriptedModel(*[calls("count", number=number) for number in range(5)], "ok")
    with handler(harness(system_prompt="brief")), handler(model):
        Bot().ask()
    first, *others = [request["tools"] for request in model.requests]
    assert all(tools == first for tools in others)


# What cannot be offered


class Machine:
    """It has no form on the wire."""


def test_a_tool_without_a_schema_is_left_out_with_a_warning_that_names_it(caplog):
    @Tool.define
    def start(machine: Machine) -> str:
        """Start."""
        return ""

    @Tool.define
    def fine() -> str:
        """Fine."""
        return ""

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with caplog.at_level(logging.WARNING):
        assert offered(ask) == ["fine"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name.startswith("effectful_agents.")
    assert "`start`" in record.getMessage()
    assert "`machine`" in record.getMessage()


def test_the_warning_comes_once_for_all_turns(caplog):
    @Tool.define
    def start(machine: Machine) -> str:
        """Start."""
        return ""

    @Tool.define
    def fine() -> str:
        """Fine."""
        return ""

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("fine"), calls("fine", id="b"), "ok")):
        ask()
    assert len(caplog.records) == 1


def test_the_skill_that_is_called_is_no_reason_for_a_warning(caplog):
    @Skill.define
    def ask(machine: Machine) -> str:
        """Ask."""
        raise NotHandled

    assert offered(ask, Machine()) == []
    assert not caplog.records


# The handler alone


def seen_by_a_handler_inside(extractor: LexicalToolExtractor, skill: Any) -> list[str]:
    """The names of the tools that the extractor hands on to what stands outside of it."""
    seen: list[str] = []

    def watch(messages, response_type, env, tools=frozenset()):
        seen.extend(sorted(tool.__name__ for tool in tools))
        return {"role": "assistant", "content": "ok"}, [], "ok"

    with handler(AgentLoop(system_prompt="brief")), handler({call_assistant: watch}), handler(extractor):
        with handler(HistoryBuilder()):
            skill()
    return seen


def test_tools_without_a_schema_are_left_to_the_handler_inside_if_it_is_said(caplog):
    def make():
        @Tool.define
        def start(machine: Machine) -> str:
            """Start."""
            return ""

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, start

    ask, _ = make()
    assert "start" in seen_by_a_handler_inside(LexicalToolExtractor(json_only=False), ask)
    assert not caplog.records
    assert "start" not in seen_by_a_handler_inside(LexicalToolExtractor(), ask)


def test_tools_that_others_offer_are_kept():
    def make():
        @Tool.define
        def extra() -> str:
            """Extra."""
            return "extra"

        return extra

    tools = frozenset({make()})

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    def offer(messages, response_type, env, given=frozenset()):
        return fwd(messages, response_type, env, given | tools)

    with handler(harness(system_prompt="brief")), handler({call_assistant: offer}):
        with handler(ScriptedModel(calls("extra"), "ok")) as model:
            ask()
    assert "extra" in names(model.requests[0])
    assert "of_the_module" in names(model.requests[0])


def test_without_it_no_tool_is_offered():
    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    with handler(AgentLoop()), handler(HistoryBuilder()), handler(ScriptedModel("ok")) as model:
        ask()
    assert "tools" not in model.requests[0]
