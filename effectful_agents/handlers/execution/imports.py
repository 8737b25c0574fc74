"""Asking whether code of a model may import what it imports."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

from effectful_agents.operations.authority import authorize
from effectful_agents.operations.policy import EffectKind, ProposedEffect, callers, is_decided

__all__ = ["authorize_imports"]


def authorize_imports(bytecode: CodeType) -> None:
    """Ask about each module that a piece of code imports, before any of it runs, where somebody decides.

    It is the import statements that are asked about, those in functions included. Code that may do anything can import
    in other ways as well.

    Raises:
        StepDenied: One of them may not be imported.
    """
    if not is_decided():
        return
    for name in dict.fromkeys(_imported(bytecode)):
        authorize(ProposedEffect(kind=EffectKind.IMPORT, name=name, callers=callers(), by_code=True))


def _imported(bytecode: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(bytecode):
        if instruction.opname == "IMPORT_NAME":
            yield instruction.argval
    for constant in bytecode.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant)
