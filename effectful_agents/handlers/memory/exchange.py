"""A call as texts: what was asked, what of it the caller gave, and what was answered."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import dumps, encode, format_as_content_blocks, render_section
from effectful_agents.errors import AgentsError, EncodingError
from effectful_agents.messages.text import text_for_reading
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.types import Scope, Skill

__all__ = ["answer_text", "given_text", "request_text"]


def request_text(user_prompt: PromptSection) -> str:
    """What is asked, without the heading that names the skill."""
    return text_for_reading(render_section(section("", *user_prompt["content"])))


def given_text(skill: Skill, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    r"""What the caller gave: the arguments as the prompt shows them, without the words around them.

    Those are the same in every call, and would be found in whatever an earlier one has left.

    >>> from effectful_agents import NotHandled
    >>> @Skill.define
    ... def ask(question: str, about: str) -> str:
    ...     '''Answer kindly what the user asks about {about}: {question}'''
    ...     raise NotHandled
    >>> given_text(ask, ("Which tea?",), {"about": "shopping"})
    'shopping\nWhich tea?'
    """
    try:
        bound = skill.arguments_of(*args, **kwargs)
        template = "\n".join(_fields(skill.prompt, bound.arguments))
        return text_for_reading(format_as_content_blocks(template, Scope.of_call(skill, bound))).strip()
    except (AgentsError, TypeError):
        return ""  # a handler has changed them on their way, and what arrived is known from the request


def _fields(template: str, arguments: Mapping[str, Any]) -> list[str]:
    """The fields of a template that show arguments, as they stand there."""
    found = []
    for _, field, specification, conversion in string.Formatter().parse(template):
        if field is not None and field.partition(".")[0].partition("[")[0] in arguments:
            found.append(
                f"{{{field}{f'!{conversion}' if conversion else ''}{f':{specification}' if specification else ''}}}"
            )
    return found


def answer_text(value: Any, skill: Skill, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What was answered: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return dumps(encode(value, skill.result_type(*args, **kwargs)))
    except EncodingError:
        return f"(a value of the class {type(value).__name__})"
