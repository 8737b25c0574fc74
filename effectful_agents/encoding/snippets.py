"""Code objects on the wire: a piece of code that a model wrote, checked as part of the skill that it answers."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import CodeType
from typing import Any

from effectful_agents.encoding.functions import called_skill, told_as_problem
from effectful_agents.encoding.registry import Codec, register
from effectful_agents.encoding.splicing import splice_snippet
from effectful_agents.errors import EncodingError
from effectful_agents.generated import awaits_at_top, generated_name, source_of
from effectful_agents.operations import code, session

__all__: list[str] = []


def _read(source: str, context: Any) -> CodeType:
    names: Any = context if isinstance(context, Mapping) else {}
    with told_as_problem():
        earlier = session.repl_history()
        filename = generated_name(source, f"snippet_{len(earlier) + 1}")
        tree = code.parse(source, filename)
        code.type_check(*splice_snippet(source, called_skill(context), names, earlier), lenient=True)
        # A flag that executors which know nothing of it are given only where the code needs it.
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if any(awaits_at_top(tree)) else 0
        return code.compile(tree, filename, flags=flags) if flags else code.compile(tree, filename)


def _write(bytecode: CodeType) -> str:
    source = source_of(bytecode)
    if source is None:
        raise EncodingError("a value of type `code` cannot be encoded; its source is not known.")
    return source


register(CodeType, Codec(str, _write, _read, runs_code=True))
