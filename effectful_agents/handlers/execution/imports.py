"""Asking whether code of a model may run, and import what it imports."""

from __future__ import annotations

import contextlib
import dis
import importlib.util
from collections.abc import Generator, Iterator
from types import CodeType

from effectful_agents.operations.authority import authorize, authorize_code
from effectful_agents.operations.policy import EffectKind, ProposedEffect, callers, is_decided

__all__ = ["authorized"]


@contextlib.contextmanager
def authorized(bytecode: CodeType) -> Generator[None]:
    """Where a piece of code is run, if it may be: ask about it, and about each module that it imports, before it runs.

    It is the import statements that are asked about, those in functions included. Code that may do anything can import
    in other ways as well.

    Raises:
        StepDenied: It may not run, or one of them may not be imported.
    """
    with authorize_code():
        if is_decided():
            asked: set[str] = set()
            for name in _imported(bytecode):  # one by one: to know what is in a package is to import it
                if name not in asked:
                    asked.add(name)
                    authorize(ProposedEffect(kind=EffectKind.IMPORT, name=name, callers=callers(), by_code=True))
        yield


def _imported(bytecode: CodeType) -> Iterator[str]:
    module = ""
    for instruction in dis.get_instructions(bytecode):
        if instruction.opname == "IMPORT_NAME":
            module = instruction.argval
            yield module
        elif instruction.opname == "IMPORT_FROM" and _is_module(f"{module}.{instruction.argval}"):
            yield f"{module}.{instruction.argval}"
    for constant in bytecode.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant)


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
