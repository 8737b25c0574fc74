"""Prompts as data: which prompt a skill gets, what is refused, and what is recorded."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run, steps
from effectful_agents.encoding import to_jsonable
from effectful_agents.errors import ConfigurationError, DefinitionError, OptionError, PromptError, UnknownPromptError
from effectful_agents.handlers.legibility import (
    DeferredTools,
    InMemoryPrompts,
    LexicalToolExtractor,
    PromptRegistry,
    PromptTemplate,
    PromptVersion,
)
from effectful_agents.operations.steps import FinalStep, ModelStep, ToolStep
from effectful_agents.operations.templates import prompted, prompted_tools, skill_prompt
from effectful_agents.testing import ScriptedModel, calls

TONE = "calm"


@dataclasses.dataclass
class Ticket:
    text: str


@Skill.define
def triage(ticket: Ticket, hint: str = "") -> str:
    """Sort {ticket.text}. {hint}"""
    raise NotHandled


@Skill.define
def thank(name: str) -> str:
    """Thank {name}."""
    raise NotHandled


@Skill.define(prompt="greeting")
def greet(name: str) -> str:
    """Greet somebody."""
    raise NotHandled


class Desk(Agent):
    """A desk."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def tell(self, text: str) -> str:
        """Tell {text}."""
        raise NotHandled


class FrontDesk(Desk):
    """A desk at the front."""

    @Skill.define
    def tell(self, text: str) -> str:
        """Tell {text} kindly."""
        raise NotHandled


def registry(**prompts: Any) -> PromptRegistry:
    return PromptRegistry(InMemoryPrompts({name.replace("__", "."): text for name, text in prompts.items()}))


def asked(skill: Any, *arguments: Any, under: tuple[Any, ...] = ()) -> str:
    """The last paragraph of the user message."""
    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")) as model:
        _under(under, lambda: skill(*arguments))
    return model.requests[0]["messages"][-1]["content"].partition("\n\n")[2]


def _under(handlers: tuple[Any, ...], program: Any) -> Any:
    if not handlers:
        return program()
    with handler(handlers[0]):
        return _under(handlers[1:], program)


# Which prompt a skill gets


def test_a_prompt_takes_the_place_of_the_docstring_of_the_skill_with_its_name():
    under = (registry(triage="Which queue is this for?\n{ticket.text!r} {hint:>5}{TONE}"),)
    assert asked(triage, Ticket("no mail"), "x", under=under) == "Which queue is this for?\n'no mail'     xcalm"
    assert asked(thank, "Ann", under=under) == "Thank Ann."


def test_a_method_goes_by_its_class_and_name():
    under = (registry(ask="Nobody: {question}", Desk__ask="Desk: {question}"),)
    assert asked(Desk().ask, "why", under=under) == "Desk: why"


def test_an_inherited_method_goes_by_the_heir_first_and_an_overriding_one_by_its_own_class():
    base = registry(Desk__ask="Base: {question}", Desk__tell="Base: {text}")
    assert asked(FrontDesk().ask, "why", under=(base,)) == "Base: why"
    assert asked(FrontDesk().tell, "it", under=(base,)) == "Tell it kindly."
    heir = registry(Desk__ask="Base: {question}", FrontDesk__ask="Heir: {question}")
    assert asked(FrontDesk().ask, "why", under=(heir,)) == "Heir: why"
    assert asked(Desk().ask, "why", under=(heir,)) == "Base: why"


def test_a_method_that_another_class_took_over_goes_by_both():
    class Counter(Agent):
        """A counter."""

    Counter.ask = Desk.ask
    assert asked(Counter().ask, "why", under=(registry(Desk__ask="Desk: {question}"),)) == "Desk: why"
    both = registry(Desk__ask="Desk: {question}", Counter__ask="Counter: {question}")
    assert asked(Counter().ask, "why", under=(both,)) == "Counter: why"


def test_static_and_class_methods_have_prompts():
    class Office(Agent):
        """An office."""

        @staticmethod
        @Skill.define
        def open(hour: int) -> str:
            """Open at {hour}."""
            raise NotHandled

        @classmethod
        @Skill.define
        def close(cls, hour: int) -> str:
            """Close at {hour}."""
            raise NotHandled

    under = (registry(Office__open="Unlock: {hour}", Office__close="Lock: {hour}"),)
    assert asked(Office.open, 8, under=under) == "Unlock: 8"
    assert asked(Office.close, 18, under=under) == "Lock: 18"


def test_a_skill_may_ask_for_a_prompt_by_its_name():
    assert asked(greet, "Ann", under=(registry(greeting="Say hello to {name}.", greet="no"),)) == "Say hello to Ann."


def test_the_innermost_registry_wins_and_asks_those_further_out():
    outer, inner = registry(thank="outer {name}", greeting="outer {name}"), registry(thank="inner {name}")
    assert asked(thank, "Ann", under=(outer, inner)) == "inner Ann"
    assert asked(greet, "Ann", under=(outer, inner)) == "outer Ann"


NAMES = st.sampled_from(["thank", "greeting", "other"])
PROVIDERS = st.builds(
    lambda names, mark: InMemoryPrompts(dict.fromkeys(names, f"{mark} {{name}}")),
    st.sets(NAMES),
    st.integers(0, 9).map(str),
)


@given(st.lists(PROVIDERS, max_size=4))
def test_a_stack_of_registries_is_one_registry_of_the_providers_innermost_first(providers):
    def found(*registries: PromptRegistry) -> list[Any]:
        def look(skill: Any) -> Any:
            try:
                return skill_prompt(skill)
            except UnknownPromptError as error:
                return error.available

        return [_under(registries, lambda skill=skill: look(skill)) for skill in (thank, greet)]

    assert found(*map(PromptRegistry, providers)) == found(PromptRegistry(*reversed(providers)))


def test_the_first_provider_that_has_a_prompt_wins():
    first, second = InMemoryPrompts({"a": "first"}), InMemoryPrompts({"a": "second", "b": "second"})
    both = PromptRegistry(first, PromptRegistry(second))
    assert [both.prompt(name).text for name in "ab"] == ["first", "second"]
    assert both.find("c") is None
    assert both.names() == ["a", "b"]


def test_a_function_may_choose_the_prompt():
    def choose(skill):
        return PromptTemplate("b", "B {name}", version="b") if skill == thank else fwd()

    assert asked(thank, "Ann", under=({skill_prompt: choose},)) == "B Ann"


def test_a_call_inside_a_call_has_its_own_prompt():
    under = registry(thank="Thanks: {name}", triage="Outer: {ticket.text}")
    with (
        handler(harness(eval_provider="none")),
        handler(under),
        handler(ScriptedModel(calls("thank", name="Bob"), "thanks", "done")) as m,
    ):
        assert triage(Ticket("x")) == "done"
    assert m.requests[1]["messages"][-1]["content"].endswith("Thanks: Bob")


def test_a_handler_of_a_skill_handles_it_whatever_its_prompt_is():
    desk = Desk()
    with (
        handler(harness(eval_provider="none")),
        handler(registry(Desk__ask="new {question}")),
        handler(ScriptedModel()),
    ):
        with handler({desk.ask: lambda question: "stub"}):
            assert desk.ask("?") == "stub"
            assert prompted(desk.ask)("?") == "stub"
        with handler({Desk.ask: lambda self, question: type(self).__name__}):
            assert prompted(desk.ask)("?") == "Desk"


# What the model sees besides


def test_the_system_message_says_what_the_user_message_says():
    with (
        handler(harness(eval_provider="none")),
        handler(registry(Desk__ask="New: {question}", Desk__tell="Newer: {text}")),
    ):
        messages = _with("ok", lambda: run(Desk().ask, "?")).messages
    system = messages[0]["content"]
    agent = system[system.index("\n## Agent Desk") :]
    assert "### ask(question: str) -> str\n\nNew: {question}\n" in agent
    assert "### tell(text: str) -> str\n\nNewer: {text}\n" in agent


def _with(reply: Any, program: Any) -> Any:
    with handler(ScriptedModel(reply)):
        return program()


def tool(request: Any, name: str) -> str:
    return next(one["function"]["description"] for one in request["tools"] if one["function"]["name"] == name)


def test_other_skills_are_told_of_it_in_the_same_words():
    with (
        handler(harness(eval_provider="none")),
        handler(registry(thank="Thank {name}, warmly.")),
        handler(ScriptedModel("ok")) as model,
    ):
        triage(Ticket("x"))
    assert tool(model.requests[0], "thank") == "Thank {name}, warmly."


def test_a_description_stays_and_so_does_the_docstring_of_a_skill_that_asks_by_name():
    @Skill.define(description="Says goodbye.")
    def part(name: str) -> str:
        """Say goodbye to {name}."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(registry(part="Bye {name}", greeting="Hi {name}")):
        assert prompted(part).description == "Says goodbye."
        assert prompted(part).prompt == "Bye {name}"
        assert prompted(greet).description == "Greet somebody."
        with handler(ScriptedModel("ok")) as model:
            thank("Ann")
    assert tool(model.requests[0], "greet") == "Greet somebody."
    assert '"""Greet somebody."""' in model.requests[0]["messages"][0]["content"]


def test_a_skill_that_asks_by_name_is_offered_where_nobody_has_its_prompt():
    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")) as model:
        thank("Ann")
    assert tool(model.requests[0], "greet") == "Greet somebody."


def test_deferred_skills_are_found_by_their_prompts():
    model = ScriptedModel(calls("search_tools", query="gratitude"), "ok")
    with (
        handler(harness(tool_collection="none", eval_provider="none")),
        handler(registry(thank="Express gratitude to {name}.")),
    ):
        with handler(DeferredTools(threshold=0, max_results=1)), handler(LexicalToolExtractor()), handler(model):
            triage(Ticket("x"))
    assert "Express gratitude" in model.requests[1]["messages"][-1]["content"]


def test_an_offer_stays_the_same_object_from_turn_to_turn_and_has_no_skill_twice():
    with handler(registry(thank="Thanks: {name}")):
        tools = frozenset({thank, greet, Desk().ask})
        changed = prompted_tools(tools)
        assert changed == tools
        assert len(changed) == 3
        assert prompted(thank) is prompted(prompted(thank))
    assert prompted_tools(tools) is tools
    with handler(registry(other="…")):
        assert prompted_tools(tools) is tools


def test_without_a_registry_a_program_sends_what_it_sent():
    def requests(*handlers: Any) -> list[Any]:
        with handler(harness(eval_provider="none")), handler(ScriptedModel("ok", "ok", "ok")) as model:
            _under(handlers, lambda: [triage(Ticket("x")), thank("Ann"), Desk().ask("?")])
        return model.requests

    same = registry(triage=triage.prompt, thank=thank.prompt, Desk__ask=Desk.ask.prompt)
    assert requests() == requests(PromptRegistry()) == requests(registry(other="…")) == requests(same)


def test_an_agent_goes_on_with_its_system_message_when_the_prompt_changes():
    desk = Desk()
    with handler(harness(eval_provider="none")), handler(ScriptedModel("a", "b")) as model:
        desk.ask("1")
        with handler(registry(Desk__ask="New: {question}")):
            desk.ask("2")
    first, second = model.requests
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert second["messages"][-1]["content"].endswith("New: 2")


# What is refused


def refused(text: str, skill: Any = triage, name: str = "triage", **about: str) -> str:
    prompts = InMemoryPrompts({name: PromptTemplate(name, text, **about)})
    with handler(harness(eval_provider="none")), handler(PromptRegistry(prompts)), handler(ScriptedModel()) as model:
        with pytest.raises(PromptError) as raised:
            skill(Ticket("x"))
    assert model.requests == []
    return str(raised.value)


def test_a_field_that_the_skill_does_not_have_is_refused_before_a_model_is_asked():
    message = refused("{ticket} {tikcet}", version="7", source="p.yaml")
    assert "the prompt `triage` (version 7, from p.yaml)" in message
    assert "skill `triage`" in message
    assert "`{tikcet}`" in message


def test_an_argument_that_the_docstring_shows_and_the_prompt_lacks_is_refused():
    assert "lacks the field `{ticket}`" in refused("Sort it. {hint}")


def test_an_argument_with_a_default_may_be_left_out():
    assert asked(triage, Ticket("x"), under=(registry(triage="{ticket.text}"),)) == "x"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ticket", "is not a format string"),
        ("{ticket} {}", "a field without a name"),
        ("{ticket}\n>>> f({hint})\n1", "in the example `f({hint})`"),
        ("{ticket}\n>>>f()", "a malformed example"),
    ],
)
def test_a_text_that_is_no_prompt_is_refused(text, problem):
    assert problem in refused(text, source="p.md")


def test_a_field_that_cannot_be_filled_names_the_prompt():
    message = refused("{ticket.colour}", version="7")
    assert "the prompt `triage` (version 7)" in message
    assert "no attribute 'colour'" in message


def test_the_wrong_prompt_of_a_skill_that_is_only_offered_is_refused_too():
    with handler(harness(eval_provider="none")), handler(registry(thank="{nobody}")), handler(ScriptedModel()):
        with pytest.raises(PromptError, match="nobody"):
            triage(Ticket("x"))


def test_a_missing_prompt_lists_those_that_there_are():
    with (
        handler(harness(eval_provider="none")),
        handler(registry(farewell="Bye {name}")),
        handler(registry(greetings="Hi {name}")),
    ):
        with pytest.raises(UnknownPromptError) as raised:
            greet("Ann")
    assert raised.value.available == ("farewell", "greetings")
    assert str(raised.value) == (
        "there is no prompt `greeting`, which the skill `greet` asks for. Is `greetings` meant? "
        "There are: `farewell`, `greetings`."
    )
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.available) == (str(raised.value), raised.value.available)


def test_without_any_registry_the_error_says_what_to_install():
    with handler(harness(eval_provider="none")), pytest.raises(UnknownPromptError, match="PromptRegistry"):
        greet("Ann")
    with pytest.raises(UnknownPromptError, match="`farewell`"):
        registry(farewell="Bye").prompt("hello")


def test_a_wrong_name_is_refused_when_the_skill_is_defined():
    for name in ("", 3):
        with pytest.raises(DefinitionError, match="prompt="):

            @Skill.define(prompt=name)
            def skill() -> str:
                """Do."""
                raise NotHandled


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: PromptTemplate("a", " \n"), "`a` has no text"),
        (lambda: PromptTemplate("a", " \n", source="p.json"), "`a` of p.json has no text"),
        (lambda: PromptTemplate(" ", "x"), "has no name"),
        (lambda: PromptTemplate("a", "x", version=3), "the version of the prompt `a` is 3"),
        (lambda: InMemoryPrompts({"a": 3}), "the text of the prompt `a` of memory is 3"),
    ],
)
def test_a_template_has_a_name_and_a_text(make, problem):
    with pytest.raises(PromptError, match=problem):
        make()


@pytest.mark.parametrize("wrong", [{"a": "x"}, "prompts.yaml", InMemoryPrompts, None])
def test_what_is_no_provider_is_refused(wrong):
    with pytest.raises(OptionError, match="is no provider"):
        PromptRegistry(wrong)


def test_prompts_can_be_held_to_skills_without_a_call():
    prompts = registry(triage="{ticket}", Desk__ask="{question}", thank="{nobody}")
    prompts.check(triage, Desk.ask, Desk().ask)
    with pytest.raises(PromptError, match="nobody"):
        prompts.check(triage, thank)
    with pytest.raises(UnknownPromptError, match=r"`Desk\.tell`"):
        prompts.check(Desk.tell)


# Versions, and what is recorded


def test_a_version_that_is_not_given_is_told_by_the_text():
    one, other = PromptTemplate("a", "x"), PromptTemplate("a", "y")
    assert one.version == one.digest != other.version
    assert PromptTemplate("b", "x", source="elsewhere").version == one.version


def test_a_text_that_changed_under_its_version_has_another_digest():
    one, other = (PromptTemplate("a", text, version="1").stamp for text in "xy")
    assert (one.version, one.digest != other.digest) == (other.version, True)


def test_every_step_says_which_prompt_its_call_was_opened_with():
    @Tool.define
    def look() -> str:
        """Look."""
        return "seen"

    @Skill.define
    def outer(name: str) -> str:
        """Do {name}."""
        raise NotHandled

    prompts = InMemoryPrompts({"thank": PromptTemplate("thank", "Thanks: {name}", version="4")})
    replies = calls("look"), calls("thank", id="b", name="Bob"), "thanks", "done"
    with handler(harness(eval_provider="none")), handler(PromptRegistry(prompts)), handler(ScriptedModel(*replies)):
        seen = list(steps(outer, "it"))
    kinds = {type(step) for step in seen}
    assert {ModelStep, ToolStep, FinalStep} <= kinds
    inner = [step for step in seen if step.depth == 1]
    docstring = PromptVersion("outer", outer.documented.digest, outer.documented.digest)
    assert {step.prompt for step in seen if step.depth == 0} == {docstring}
    assert [step.prompt.version for step in inner] == ["4", "4"]
    assert to_jsonable(inner[0].prompt) == {
        "name": "thank",
        "version": "4",
        "digest": PromptTemplate("thank", "Thanks: {name}").digest,
    }


def test_the_docstring_of_a_method_is_recorded_under_its_class():
    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")):
        first, *_ = steps(Desk().ask, "?")
    assert first.prompt.name == "Desk.ask"
    assert first.skill == first.skill.prompted(PromptTemplate("x", "{question}!"))


def test_a_call_keeps_the_prompt_that_it_was_opened_with():
    texts = iter(["first {name}", "second {name}"])

    def changing(skill):
        return PromptTemplate("thank", next(texts)) if skill == thank else fwd()

    with handler(harness(tool_collection="none", eval_provider="none")), handler({skill_prompt: changing}):
        with handler(ScriptedModel(calls("nobody"), "ok")) as model:
            seen = list(steps(thank, "Ann"))
    assert len({step.prompt for step in seen}) == 1
    assert model.requests[1]["messages"][1]["content"].endswith("first Ann")


def test_a_skill_has_its_docstring_again_where_its_prompt_is_gone():
    desk = Desk()
    with handler(registry(thank="Thanks: {name}", Desk__ask="New: {question}")):
        changed = [prompted(thank), prompted(desk.ask), prompted(desk.ask.named("desk__ask"))]
    assert [skill.prompt for skill in changed] == ["Thanks: {name}", "New: {question}", "New: {question}"]
    assert [skill.__name__ for skill in changed] == ["thank", "ask", "desk__ask"]
    assert changed == [thank, desk.ask, desk.ask]
    assert [prompted(skill).prompt for skill in changed] == ["Thank {name}.", "{question}", "{question}"]


def test_prompts_of_many_versions_do_not_add_up():
    for number in range(100):
        with handler(registry(thank=f"{number} {{name}}")):
            assert prompted(thank).prompt == f"{number} {{name}}"
    with handler(registry(thank=thank.prompt)):
        assert prompted(thank).prompt == thank.prompt
    assert thank.prompt == "Thank {name}."


def test_errors_of_prompts_are_the_developers():
    assert issubclass(PromptError, ConfigurationError)
    assert issubclass(UnknownPromptError, LookupError)


# What comes from elsewhere


class _Odd:
    """A provider that keeps texts."""

    def find(self, name: str) -> Any:
        return "Which? {name}"

    def names(self) -> list[str]:
        return ["thank"]

    def __repr__(self) -> str:
        return "Odd()"


def test_a_provider_that_finds_no_template_is_named():
    registry = PromptRegistry(_Odd())
    with handler(harness()), handler(registry), handler(ScriptedModel()):
        with pytest.raises(PromptError, match=r"`find\('thank'\)` of the provider Odd\(\) gave str"):
            thank("Ann")
    with pytest.raises(PromptError, match="gave str"):
        registry.check(thank)


@pytest.mark.parametrize("given", ["Thank {name}!", None])
def test_a_handler_that_gives_no_template_is_told_with_the_skill(given):
    with handler(harness()), handler({skill_prompt: lambda _: given}), handler(ScriptedModel()):
        with pytest.raises(PromptError, match=f"gave {type(given).__name__} for the skill `thank`"):
            thank("Ann")


def test_a_lone_surrogate_in_a_text_is_shown_as_the_character_for_what_is_none():
    registry = PromptRegistry(InMemoryPrompts({"thank": "Thank {name} \ud800!"}))
    with handler(harness()), handler(registry), handler(ScriptedModel("ok")) as model:
        thank("Ann")
    for message in model.requests[0]["messages"]:
        assert "Thank" in message["content"].encode().decode()


def test_another_text_has_another_version_unless_its_author_gave_one():
    first = PromptTemplate("a", "old")
    second = dataclasses.replace(first, text="new")
    assert second.version == second.digest != first.version
    assert pickle.loads(pickle.dumps(second)) == second
    assert dataclasses.replace(PromptTemplate("a", "old", "2"), text="new").version == "2"


class _Thing:
    @property
    def bad(self) -> str:
        raise RuntimeError("not now")


def test_a_field_that_cannot_be_filled_is_told_with_the_prompt_and_the_skill():
    thing = _Thing()
    thing_too = object()

    @Skill.define
    def show(name: str) -> str:
        """Show {name} {thing.bad}."""
        raise NotHandled

    @Skill.define
    def look(name: str) -> str:
        """Look at {name} {thing_too}."""
        raise NotHandled

    assert thing is not thing_too  # the fields name them
    registry = PromptRegistry(InMemoryPrompts({"look": "{name} {thing.bad}"}))
    with handler(harness()), handler(ScriptedModel()):
        with pytest.raises(ConfigurationError, match=r"docstring of the skill `show` .*RuntimeError: not now"):
            show("x")
        with pytest.raises(ConfigurationError, match="docstring of the skill `look`"):
            look("x")
        with handler(registry), pytest.raises(PromptError, match=r"the prompt `look` .*skill `look` .*not now"):
            look("x")
