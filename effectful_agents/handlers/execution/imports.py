"""Asking whether code of a model may run, and import what it imports."""

from __future__ import annotations

import contextlib
import dis
import sys
from collections.abc import Collection, Generator, Iterable, Iterator
from types import CodeType

from effectful_agents.operations.authority import authorize
from effectful_agents.operations.calls_by_code import authorize_code
from effectful_agents.operations.policy import EffectKind, ProposedEffect, callers, is_decided

__all__ = ["authorized"]


@contextlib.contextmanager
def authorized(bytecode: CodeType, modules: Collection[str] | None = None) -> Generator[None]:
    """Where a piece of code is run, if it may be: ask about it, and about each module that it imports, before it runs.

    It is the import statements that are asked about, those in functions included. Code that may do anything can import
    in other ways as well. Nothing is imported by asking.

    Args:
        bytecode: The piece of code.
        modules: All that it could import; None for whatever there is.

    Raises:
        StepDenied: It may not run, or one of them may not be imported.
    """
    with authorize_code():
        if is_decided():
            asked: set[str] = set()
            for name in _imported(bytecode, modules):
                if name not in asked:
                    asked.add(name)
                    authorize(ProposedEffect(kind=EffectKind.IMPORT, name=name, callers=callers(), by_code=True))
        yield


def _imported(bytecode: CodeType, modules: Collection[str] | None) -> Iterator[str]:
    module = ""
    for instruction in dis.get_instructions(bytecode):
        if instruction.opname == "IMPORT_NAME":
            module = instruction.argval
            yield module
        elif instruction.opname == "IMPORT_FROM":
            name = f"{module}.{instruction.argval}"
            if _is_module(name) if modules is None else name in modules:
                yield name
    for constant in bytecode.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant, modules)


def _is_module(name: str) -> bool:
    """Whether there is a module of this name, as far as can be seen without importing the packages that it is in.

    `importlib.util.find_spec` imports them.
    """
    path: Iterable[str] | None = None
    parts = name.split(".")
    if not all(parts):
        return False
    for length in range(1, len(parts) + 1):
        here = ".".join(parts[:length])
        if here in sys.modules:
            path = getattr(sys.modules[here], "__path__", None)
        else:
            try:
                path = _path_of(here, path)
            except ImportError:
                return False
            except KeyError:  # a folder without an `__init__.py` in a package that is not imported: looked for in there
                return True
        if path is None and length < len(parts):
            return name in sys.modules
    return True


def _path_of(name: str, path: Iterable[str] | None) -> Iterable[str] | None:
    """Where the modules in a package lie; None if it is no package.

    Raises:
        ImportError: There is no such module.
    """
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = None if find is None else find(name, path)
        if spec is not None:
            return spec.submodule_search_locations
    raise ImportError(f"no module named `{name}`.", name=name)
