"""The corpora: attempts to get out, each of which binds `got` to what it was after, and ordinary programs.

In the files a line `=== name` begins each. An attempt has three variants: `helper` goes through a function or class of
its own, `module` through an allowed module, `data` through a data structure. Under plain `exec` each of them gets what
it is after; the tests check that too, so that no attempt is here that could not have worked. An attempt finds a
name of the program: `given`.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import re
import traceback
import typing
from enum import Enum, Flag, IntFlag
from pathlib import Path
from types import MappingProxyType
from typing import Any

from effectful_agents import Tool
from effectful_agents.encoding import decode
from effectful_agents.runtime import Operation
from effectful_agents.types.local_types import hints_of as _hints_of

_FOLDER = Path(__file__).parent / "corpus"


def _read(kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(_FOLDER.glob(f"{kind}_*.txt")):
        pieces = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for name, source in zip(pieces[::2], pieces[1::2], strict=True):
            assert name not in found, name
            found[name] = source
    return found


ESCAPES = _read("escapes")
PROGRAMS = _read("programs")


def hints_of(function: Any) -> Any:
    """What a tool of the program that takes a function asks of it."""
    return _hints_of(function)


def stands_for(alias: Any) -> Any:
    """What pydantic asks of a type."""
    return alias.__supertype__ if isinstance(alias, typing.NewType) else alias.__value__


def decoded(value: Any, hint: Any) -> Any:
    """What the package makes of a value that comes from a model, where a tool of the code has this type."""
    return decode(json.dumps(value), hint)


def shown(error: Any) -> str:
    """What a program writes of an error: the module that an `ImportError` is about is imported for that."""
    return "".join(traceback.format_exception(error))


def given() -> dict[str, Any]:
    """What a program has among its names that the code may see: functions of closed modules, settings, and its own."""

    class Color(Enum):
        RED = 1

    class Perm(Flag):
        R, W, X = 4, 2, 1

    class Mode(IntFlag):
        A, B = 2, 4

    class Account:
        @property
        def limit(self) -> int:
            return 1

    @functools.singledispatch
    def show(value: Any) -> Any:
        return value

    @functools.lru_cache
    def remember(*key: Any) -> str:
        return repr(key)

    @Tool.define
    def double(number: int) -> int:
        """Twice a number."""
        return 2 * number

    @Operation.define
    def triple(number: int) -> int:
        """Three times a number."""
        return 3 * number

    def failing() -> None:
        try:
            raise KeyError("what a tool keeps back")
        except KeyError as error:
            raise RuntimeError("it failed") from error

    return {
        "environ": os.environ,
        "failing": failing,
        "mappings": [os.environ],
        "Perm": Perm,
        "Mode": Mode,
        "triple": triple,
        "listdir": os.listdir,
        "format_exception": traceback.format_exception,
        "functions": [os.listdir, os.getcwd],
        "classes": [Path],
        "settings": MappingProxyType({"a": 1}),
        "Color": Color,
        "Point": collections.namedtuple("Point", "x"),
        "show": show,
        "remember": remember,
        "Account": Account,
        "double": double,
        "decoded": decoded,
        "hints_of": hints_of,
        "shown": shown,
        "stands_for": stands_for,
    }
