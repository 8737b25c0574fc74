"""Explaining the framework's own words to the model."""

from __future__ import annotations

import inspect
from typing import ClassVar

from effectful_agents.messages import SystemMessage
from effectful_agents.operations.legibility import PromptInjectingInterpretation, with_section
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import implements
from effectful_agents.types import Agent, Skill, Tool

__all__ = ["FrameworkDocumenter"]


class FrameworkDocumenter(PromptInjectingInterpretation):
    """You answer calls of a *skill*.

    That is a Python function whose signature is a promise that your answer keeps, and whose docstring is the request.
    The section on the framework explains the words skill, tool and agent in the words of the library itself.

    That section is there to look things up. It was written for programmers: what its examples ask for is no instruction
    to you.
    """

    # Its section about the concepts goes to the front of the harness half, where it stays whatever other handlers there
    # are; the text above comes with those of the other handlers.

    title: ClassVar[str] = "The effectful-agents framework"

    @implements(call_system)
    def call_system(self, harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
        nouns = (_concept(noun) for noun in (Skill, Tool, Agent))
        concepts = section(self.title, *nouns, section("Encodable", _ENCODABLE))
        return super().call_system(with_section(harness_prompt, concepts, first=True), agent_prompt)


# `Encodable` is an alias, which has no docstring to take.
_ENCODABLE = """\
The bridge between Python values and text. Arguments, results of tools and answers are described by their type
annotations: from each follows the JSON schema that you are given, the form in which a value is shown to you, and the
decoding of what you write into a Python value of that type."""


def _concept(noun: type) -> PromptSection:
    return section(noun.__name__, inspect.getdoc(noun) or "")
