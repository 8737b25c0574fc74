"""Which text a skill is asked with: its docstring, or one that a handler puts in its place."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from effectful_agents.errors import PromptError, UnknownPromptError
from effectful_agents.runtime import Operation, interpretation
from effectful_agents.types import PromptTemplate, PromptVersion, Skill, Tool
from effectful_agents.types.walk import ToolSet

__all__ = ["PromptTemplate", "PromptVersion", "prompted", "prompted_tools", "skill_prompt"]


@Operation.define
def skill_prompt(skill: Skill[..., Any]) -> PromptTemplate:
    """The prompt of a skill that is about to be called, or shown to a model; by default its docstring.

    `PromptRegistry` of `effectful_agents.handlers.legibility` answers with what it has for one of
    `skill.prompt_names`, and forwards for other skills. A function can be the handler as well: one that tries two
    texts, say.

    Raises:
        UnknownPromptError: The skill asks for a prompt by its name (`define(prompt=…)`), and nobody has it.

    >>> from effectful_agents import NotHandled, fwd, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def greet(name: str) -> str:
    ...     '''Greet {name}.'''
    ...     raise NotHandled
    >>> def in_norwegian(skill):
    ...     return PromptTemplate("greet", "Hils på {name}.") if skill == greet else fwd()
    >>> stack = harness(system_prompt="brief")
    >>> with handler(stack), handler({skill_prompt: in_norwegian}), handler(ScriptedModel("Hei!")) as model:
    ...     _ = greet("Ann")
    >>> model.requests[0]["messages"][-1]["content"].splitlines()[-1]
    'Hils på Ann.'
    """
    if skill.prompt_name is not None:
        raise UnknownPromptError(skill.prompt_name, skill=skill.__name__)
    return skill.documented


def prompted[**P, T](skill: Skill[P, T]) -> Skill[P, T]:
    """The skill with the prompt that it has here; it is equal to the first.

    Raises:
        PromptError: The prompt does not fit the skill, or there is none of the name that it asks for.
    """
    template: Any = skill_prompt(skill)
    if not isinstance(template, PromptTemplate):
        raise PromptError(
            f"a handler of `skill_prompt` gave {type(template).__name__} for the skill `{skill.__name__}`; it gives a "
            "`PromptTemplate`, or forwards."
        )
    return skill.prompted(template)


def prompted_tools(tools: Set[Tool]) -> Set[Tool]:
    """Tools to offer, the skills among them with the prompts that they have here; of the same the same set again.

    Raises:
        PromptError: A prompt does not fit its skill.
    """
    if skill_prompt not in interpretation():
        return tools
    order = tools.order if isinstance(tools, ToolSet) else tuple(tools)
    # What describes a skill that asks for its prompt by name is its docstring, whatever that prompt is.
    changed = tuple(prompted(tool) if isinstance(tool, Skill) and tool.prompt_name is None else tool for tool in order)
    if all(one is other for one, other in zip(order, changed, strict=True)):
        return tools
    if not isinstance(tools, ToolSet):
        return ToolSet(changed)
    templates = tuple(tool.template for tool in changed if isinstance(tool, Skill))
    made = tools.memo.get(prompted_tools)
    if made is None or made[0] != templates:
        made = tools.memo[prompted_tools] = templates, ToolSet(changed)
    return made[1]
