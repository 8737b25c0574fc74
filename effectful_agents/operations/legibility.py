"""What handlers do to the sections of the system message: describe themselves, and change what is there."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from effectful_agents.messages import ContentPart, SystemMessage
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["PromptInjectingInterpretation", "replaced_section", "with_section", "without_section"]


class PromptInjectingInterpretation(ObjectInterpretation[Any, Any]):  # noqa: D101 - the prompt must not show one
    # Notes for programmers; the docstring of a subclass goes to the model, so this class has none of its own.
    #
    # A handler derives from this class to have a section in the system message: its title is the name of the handler's
    # class, its text that class's docstring. What the model reads about a capability and what a programmer reads is
    # so one text. A class without a docstring takes the one of its nearest base below this class; if there is none
    # it adds nothing. To say more, override `call_system`, append sections to `harness_prompt`, and call `super()`.

    @implements(call_system)
    def call_system(self, harness_prompt: PromptSection, agent_prompt: PromptSection) -> SystemMessage:
        return fwd(with_section(harness_prompt, self.prompt_section()), agent_prompt)

    def prompt_section(self) -> PromptSection | None:
        # The section that describes this handler, or None.
        cls = type(self)
        for base in cls.__mro__[: cls.__mro__.index(PromptInjectingInterpretation)]:
            if base.__dict__.get("__doc__"):
                return section(cls.__name__, _cleaned(base.__doc__ or ""))
        return None


# Each call of a skill that begins a conversation asks for the same texts.
_cleaned = functools.lru_cache(maxsize=256)(inspect.cleandoc)


def with_section(prompt: PromptSection, added: PromptSection | None, *, first: bool = False) -> PromptSection:
    """The prompt with one more section, unless it has one with this title.

    A section that is there was put in its place by a handler further inside: it stays.

    Args:
        prompt: Stays as it is.
        added: The section; None adds nothing.
        first: Put it at the beginning, not at the end.
    """
    if added is None or any(_has_title(part, added["title"]) for part in prompt["content"]):
        return prompt
    parts = prompt["content"]
    return {**prompt, "content": [added, *parts] if first else [*parts, added]}


def replaced_section(prompt: PromptSection, title: str, new: PromptSection) -> PromptSection:
    """The prompt with another section in the place of the first one with a title, however deep it lies.

    Where there is none, the new one comes at the end. If it has the title of a section that a handler further out is
    about to add, that handler leaves it out.

    Args:
        prompt: Stays as it is.
        title: The whole title, or the words that it begins with: `Module` for `Module __main__`.
        new: The section.

    >>> prompt = section("Harness", section("Rules", "Be brief."), section("Tone", "Be kind."))
    >>> [part["title"] for part in replaced_section(prompt, "Rules", section("Manners", "Be polite."))["content"]]
    ['Manners', 'Tone']
    """
    return _replaced(prompt, title, new) or {**prompt, "content": [*prompt["content"], new]}


def without_section(prompt: PromptSection, title: str) -> PromptSection:
    """The prompt without the first section with a title, however deep it lies.

    An empty section stays in its place. It is not written, and keeps a handler further out from adding one with the
    same title.

    Args:
        prompt: Stays as it is.
        title: The whole title, or the words that it begins with: `Module` for `Module __main__`.

    >>> prompt = section("Harness", section("Rules", "Be brief."), section("Tone", "Be kind."))
    >>> without_section(prompt, "Rules")["content"][0]
    {'type': 'prompt_section', 'title': 'Rules', 'content': []}
    """
    return replaced_section(prompt, title, section(title))


def _replaced(prompt: PromptSection, title: str, new: PromptSection) -> PromptSection | None:
    """The prompt with the section replaced; None where there is no such section."""
    parts = list(prompt["content"])
    for place, part in enumerate(parts):
        if part["type"] != "prompt_section":
            continue
        here = part["title"] == title or part["title"].startswith(title + " ")
        changed = new if here else _replaced(part, title, new)
        if changed is not None:
            parts[place] = changed
            return {**prompt, "content": parts}
    return None


def _has_title(part: ContentPart | PromptSection, title: str) -> bool:
    return part["type"] == "prompt_section" and part["title"] == title
