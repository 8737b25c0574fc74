"""The corpora: attempts to get out, each of which binds `got` to what it was after, and ordinary programs.

In the files a line `=== name` begins each. An attempt has three variants: `helper` goes through a function or class of
its own, `module` through an allowed module, `data` through a data structure. Under plain `exec` each of them gets what
it is after; the tests check that too, so that no attempt is here that could not have worked. An attempt finds a
name of the program: `given`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

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


def given() -> dict[str, Any]:
    """What a program has among its names that the code may see: a function of a closed module, and settings."""
    return {"listdir": os.listdir, "functions": [os.listdir, os.getcwd], "settings": MappingProxyType({"a": 1})}
