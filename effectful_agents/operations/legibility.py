"""The base class of handlers that describe themselves to the model."""

from __future__ import annotations

import inspect
from typing import Any

from effectful_agents.messages import SystemMessage
from effectful_agents.operations.loop import call_system
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["PromptInjectingInterpretation"]


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
                return section(cls.__name__, inspect.cleandoc(base.__doc__ or ""))
        return None


def with_section(prompt: PromptSection, added: PromptSection | None) -> PromptSection:
    """The prompt with one more section at its end; the prompt that is given stays as it is."""
    if added is None:
        return prompt
    return {**prompt, "content": [*prompt["content"], added]}
