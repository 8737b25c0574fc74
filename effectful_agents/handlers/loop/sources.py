"""The section with the source of a skill's module, in which docstrings say what the skills are asked with."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

from effectful_agents.messages.text import safe_text
from effectful_agents.operations.prompt import PromptSection, section
from effectful_agents.operations.templates import skill_prompt
from effectful_agents.runtime import interpretation
from effectful_agents.types import Skill
from effectful_agents.types.kinds import is_a, names_in
from effectful_agents.types.walk import tools_of

__all__ = ["module_section"]


def module_section(skill: Skill) -> PromptSection | None:
    """The source of the module that a skill is written in, or its docstring where there is no source."""
    module = sys.modules.get(skill.__module__)
    if module is None:
        return None
    try:
        changed = os.stat(module.__file__ or "").st_mtime_ns
    except (AttributeError, OSError):
        changed = 0
    replaced = tuple(_replaced(module, skill)) if skill_prompt in interpretation() else ()
    return _module_source(module, changed, replaced)


type _Docstring = tuple[str, int, str]
"""The name of a function, the line of its module at which it begins, and what its docstring is to be."""


def _replaced(module: types.ModuleType, called: Skill) -> Iterator[_Docstring]:
    """The docstrings of the module in whose place something else is said: a model must not read both."""
    of_agent = () if called.agent is None else tools_of(called.agent)
    # What is asked in this conversation comes before what a base class has.
    seen: set[Any] = set()
    for skill in (called, *(tool for tool in of_agent if isinstance(tool, Skill)), *_skills_of(module)):
        code = getattr(inspect.unwrap(skill.function.__wrapped__), "__code__", None)  # ty: ignore[missing-attribute]
        # One that asks for its prompt by name keeps its docstring, as a description.
        if code is None or code in seen or skill.prompt_name is not None or skill.__module__ != module.__name__:
            continue
        template = skill.template if skill == called else skill_prompt(skill)
        if template.text != skill.documented.text:
            seen.add(code)
            yield code.co_name, code.co_firstlineno, template.text


def _skills_of(module: types.ModuleType) -> Iterator[Skill[..., Any]]:
    for value in list(vars(module).values()):
        if is_a(value, Skill):
            yield value
        elif is_a(value, type) and names_in(value).get("__module__") == module.__name__:
            for attribute in list(names_in(value).values()):
                bare = attribute.__func__ if is_a(attribute, classmethod, staticmethod) else attribute
                if is_a(bare, Skill):
                    yield bare


@functools.lru_cache(maxsize=64)  # a source is read once, and again when its file has changed
def _module_source(module: types.ModuleType, changed: int, replaced: tuple[_Docstring, ...]) -> PromptSection | None:
    linecache.checkcache(getattr(module, "__file__", None))
    try:
        text = _fenced(_with_docstrings(inspect.getsource(module), replaced).strip())
    except (OSError, TypeError):
        text = inspect.getdoc(module) or ""
    return section(f"Module {module.__name__}", text) if text else None


def _fenced(source: str) -> str:
    # Longer than any fence in the source, which would end it there.
    fence = "`" * max(3, *(len(run) + 1 for run in _FENCES.findall(source)), 0)
    return f"{fence}python\n{source}\n{fence}"


_FENCES = re.compile("^ {0,3}(`{3,})", re.MULTILINE)


def _with_docstrings(source: str, replaced: tuple[_Docstring, ...]) -> str:
    if not replaced:
        return source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # not what the module was loaded from
        return source
    texts = {(name, line): safe_text(text) for name, line, text in replaced}
    lines = source.encode().splitlines(keepends=True)  # the offsets of the tree are those of bytes
    for node in sorted(_functions(tree), key=lambda one: one.lineno, reverse=True):
        line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        text, old = texts.get((node.name, line)), node.body[0]
        if text is None or ast.get_docstring(node) is None:
            continue
        first, last = old.lineno - 1, (old.end_lineno or old.lineno) - 1
        before, after = lines[first][: old.col_offset].decode(), lines[last][old.end_col_offset :].decode()
        margin = before if before.isspace() else " " * old.col_offset
        lines[first : last + 1] = [(before + _literal(text, margin) + after).encode()]
    return b"".join(lines).decode()


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _literal(text: str, margin: str) -> str:
    """A docstring of this text, as it is written behind this margin."""
    quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    first, *others = quoted.split("\n")
    if not others:
        return f'"""{first}{" " if first.endswith(chr(34)) else ""}"""'
    return "\n".join([f'"""{first}', *(margin + line if line else line for line in others), f'{margin}"""'])
