"""The task half of the system message, and the body of the user message: what is told about the called skill."""

from __future__ import annotations

import inspect
import json
import re
import types
from typing import Any

from effectful_agents.encoding import format_as_content_blocks, signature_text, tool_codec
from effectful_agents.errors import ConfigurationError, EncodingError, PromptError
from effectful_agents.handlers.loop.sources import module_section
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.operations.templates import prompted
from effectful_agents.types import Agent, LexicalContext, Scope, Skill
from effectful_agents.types.kinds import is_a, name_of_type
from effectful_agents.types.walk import tools_of

__all__ = ["brief_task", "full_task", "is_one_of_several", "user_section"]


def brief_task(skill: Skill) -> PromptSection:
    """What the author of an agent says about it, and nothing else: the request says the rest.

    For models with little room, and for programs that pay for each byte.
    """
    return section("", _about(type(skill.agent)) if skill.agent is not None else "")


def full_task(skill: Skill, scope: Scope) -> PromptSection:
    """The task with all that the code around it says, what changes least first."""
    parts = (module_section(skill), _specification_section(skill), *_tables(scope.context))
    return section(signature_text(skill), *(part for part in parts if part is not None))


def user_section(skill: Skill, scope: Scope, *, heading: bool) -> PromptSection:
    """The formatted docstring of a call, under the signature of the skill.

    Raises:
        EncodingError: An argument cannot be written into a prompt.
        PromptError: A field of a prompt that took the docstring's place cannot be filled.
    """
    try:
        body = format_as_content_blocks(skill.prompt, scope)
    except EncodingError as error:
        raise EncodingError(f"{_whose(skill)}: {error}") from error
    except ConfigurationError as error:
        kind = ConfigurationError if skill.template == skill.documented else PromptError
        raise kind(f"{_whose(skill)} cannot be filled: {error}") from error
    return {"type": "prompt_section", "title": signature_text(skill) if heading else "", "content": body}


def _whose(skill: Skill) -> str:
    if skill.template == skill.documented:
        return f"the docstring of the skill `{skill.__name__}`"
    return f"{skill.template}, which the skill `{skill.__name__}` takes for its docstring,"


def is_one_of_several(skill: Skill) -> bool:
    """Whether its agent has other skills, which the same conversation may be about."""
    return skill.agent is not None and sum(isinstance(tool, Skill) for tool in tools_of(skill.agent)) > 1


def _specification_section(skill: Skill) -> PromptSection:
    agent = skill.agent
    if agent is None:
        return section("Skill", _specification(skill))
    skills = [skill if tool == skill else prompted(tool) for tool in tools_of(agent) if isinstance(tool, Skill)]
    if skill not in skills:
        skills.insert(0, skill)
    cls = type(agent)
    return section(f"Agent {cls.__name__}", _about(cls), *map(_specification, skills))


def _about(cls: type) -> str:
    """What the author of an agent's class, or of the nearest base that is an agent too, says about it."""
    for base in cls.__mro__:
        # `Agent` itself, and bases from elsewhere, speak to programmers.
        if base is Agent or not issubclass(base, Agent):
            continue
        text = base.__dict__.get("__doc__")
        if isinstance(text, str) and text and not _is_generated(base, text):
            return inspect.cleandoc(text)
    return ""


def _is_generated(cls: type, text: str) -> bool:
    """Whether `dataclass` wrote the docstring: a signature, with the values of defaults."""
    return "__dataclass_fields__" in cls.__dict__ and text.startswith(f"{cls.__name__}(")


def _specification(skill: Skill) -> PromptSection:
    return section(signature_text(skill), skill.prompt, _arguments(skill))


def _arguments(skill: Skill) -> str:
    try:
        schema = tool_codec(skill).definition()["function"]["parameters"]
    except EncodingError:  # Python code can call it with values that have no JSON form; a model could not
        return ""
    properties = schema.get("properties")
    return f"Arguments:\n```json\n{json.dumps(properties, indent=2, ensure_ascii=False)}\n```" if properties else ""


def _tables(context: LexicalContext) -> tuple[PromptSection | None, PromptSection | None]:
    """The modules of a scope with their names, and the other names with their types; never a value."""
    names = context.snapshot()
    # A scope has hundreds of names and seldom changes: written again only when it has.
    shape = [(name, value if type(value) is types.ModuleType else type(value)) for name, value in names.items()]
    written = context.memo.get(_tables)
    if written is None or not _same(written[0], shape):
        written = context.memo[_tables] = shape, _write_tables(shape)
    return written[1]


def _same(one: list[tuple[Any, Any]], other: list[tuple[Any, Any]]) -> bool:
    # By identity: a metaclass may say anything of whether two classes are equal.
    return len(one) == len(other) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(one, other, strict=True))


def _write_tables(shape: list[tuple[Any, Any]]) -> tuple[PromptSection | None, PromptSection | None]:
    modules: list[tuple[str, str]] = []
    bindings: list[tuple[str, str]] = []
    for name, kind in shape:
        if not isinstance(name, str) or not name.isidentifier():  # a namespace may have any keys
            continue
        if is_a(kind, types.ModuleType):
            if name[0] != "_":
                modules.append((name, _in_a_table(vars(kind).get("__name__"))))
        elif name[:2] != "__" or name[-2:] != "__":
            bindings.append((name, _in_a_table(name_of_type(kind))))
    return (
        _table_section("Imported modules", ("Name", "Module"), modules),
        _table_section("Lexical scope", ("Name", "Type"), bindings),
    )


_ENDS_A_CELL = re.compile(r"[\s|`]+")


def _in_a_table(name: Any) -> str:
    return _ENDS_A_CELL.sub(" ", name) if isinstance(name, str) else "?"


def _table_section(title: str, heads: tuple[str, str], rows: list[tuple[str, str]]) -> PromptSection | None:
    if not rows:
        return None
    lines = [f"| {heads[0]} | {heads[1]} |", "| --- | --- |", *(f"| `{one}` | `{other}` |" for one, other in rows)]
    return section(title, "\n".join(lines))
