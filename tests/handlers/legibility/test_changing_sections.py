"""Handlers that replace or drop sections of the system message, in both halves and on either side of who adds them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from effectful_agents import NotHandled, ObjectInterpretation, Skill, handler, harness, implements
from effectful_agents.operations.legibility import (
    PromptInjectingInterpretation,
    replaced_section,
    with_section,
    without_section,
)
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import fwd
from effectful_agents.testing import ScriptedModel

type Change = Callable[[PromptSection], PromptSection]


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


class Careful(PromptInjectingInterpretation):
    """Be careful."""


class Changed(ObjectInterpretation):
    """Change the two halves."""

    def __init__(
        self, harness_half: Change = lambda prompt: prompt, agent_half: Change = lambda prompt: prompt
    ) -> None:
        self.harness_half, self.agent_half = harness_half, agent_half

    @implements(call_system)
    def call_system(self, harness_prompt, agent_prompt):
        return fwd(self.harness_half(harness_prompt), self.agent_half(agent_prompt))


def message(*handlers: ObjectInterpretation) -> str:
    with contextlib.ExitStack() as stack:
        stack.enter_context(handler(harness()))
        for each in handlers:
            stack.enter_context(handler(each))
        model = stack.enter_context(handler(ScriptedModel("ok")))
        ask("?")
    return model.requests[0]["messages"][0]["content"]


HARNESS = ["Careful", "AgentLoop", "LexicalToolExtractor", "FrameworkDocumenter", "The effectful-agents framework"]
AGENT = ["Module", "Skill", "Imported modules", "Lexical scope"]


@pytest.mark.parametrize("title", HARNESS)
@pytest.mark.parametrize("inside", [True, False])
def test_any_section_of_a_handler_can_be_dropped_or_replaced(title, inside):
    def changed(change: Change) -> str:
        both = [Careful(), Changed(change)]
        return message(*both if inside else reversed(both))

    before = message(Careful())
    assert f"\n## {title}\n" in before
    without = changed(lambda prompt: without_section(prompt, title))
    assert f"\n## {title}\n" not in without
    assert len(without) < len(before)
    replaced = changed(lambda prompt: replaced_section(prompt, title, section(title, "Something else.")))
    assert replaced.count(f"\n## {title}\n\nSomething else.\n") == 1
    assert replaced.count(f"\n## {title}\n") == 1
    assert len(replaced) == len(without) + len(f"## {title}\n\nSomething else.\n\n")


@pytest.mark.parametrize("title", AGENT)
def test_any_section_of_the_task_can_be_dropped_or_replaced_in_its_place(title):
    before = message()
    assert f"\n## {title}" in before
    without = message(Changed(agent_half=lambda prompt: without_section(prompt, title)))
    assert f"\n## {title}" not in without[without.index("\n# ask(") :]
    new = section("New", "Something else.")
    replaced = message(Changed(agent_half=lambda prompt: replaced_section(prompt, title, new)))
    assert replaced.replace("## New\n\nSomething else.", "").split() == without.split()


def test_the_rest_stays_as_it_is():
    dropped = Changed(lambda prompt: without_section(prompt, "AgentLoop"))
    before, after = message(), message(dropped)
    start = before.index("## AgentLoop\n")
    assert after == before[:start] + before[before.index("# ask(", start) :]


def test_a_section_inside_a_section_is_found():
    prompt = section("Agent Guide", "About.", section("ask() -> str", "Ask."), section("tell() -> str", "Tell."))
    changed = without_section(section("Task", section("Module m", "x"), prompt), "ask() -> str")
    assert changed["content"][1]["content"][1:] == [section("ask() -> str"), section("tell() -> str", "Tell.")]


def test_a_title_is_found_by_its_first_words_but_not_by_half_a_word():
    prompt = section("Task", section("Modules", "x"), section("Module m.n", "y"))
    assert [part["title"] for part in without_section(prompt, "Module")["content"]] == ["Modules", "Module"]
    assert prompt["content"][1] == section("Module m.n", "y")


def test_of_two_only_the_first_is_changed():
    prompt = section("Task", section("A", "1"), section("A", "2"))
    assert replaced_section(prompt, "A", section("B"))["content"] == [section("B"), section("A", "2")]


def test_what_is_not_there_is_added_at_the_end():
    prompt = section("Harness", section("A", "1"))
    assert replaced_section(prompt, "C", section("B", "2"))["content"] == [section("A", "1"), section("B", "2")]


def test_a_section_is_added_once():
    prompt = section("Harness", section("A", "1"))
    assert with_section(prompt, section("A", "2")) is prompt
    assert with_section(prompt, None) is prompt
    assert [each["title"] for each in with_section(prompt, section("B"), first=True)["content"]] == ["B", "A"]
