"""The pictures of the docs, as the programs of their pages draw them.

`uv run python -m tests.handlers.observability.pictures` writes them anew, and a test compares them.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/pictures"
PAGE = ROOT / "docs/seeing.md"
PICTURES = ("economy.svg",)

_PROGRAM = re.compile(r"\bas `(?P<name>\w+\.py)`.*?^```python[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def programs() -> Iterator[tuple[str, str]]:
    """The files that the page tells its reader to save, in order: the name and the text."""
    for found in _PROGRAM.finditer(PAGE.read_text(encoding="utf-8")):
        yield found["name"], found["code"]


def run_page(folder: Path) -> dict[str, str]:
    """Save the programs of the page in a folder, as it says, and run each: what they print, by their names."""
    printed: dict[str, str] = {}
    path, modules = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(folder))  # as Python does for a script
    try:
        with contextlib.chdir(folder):
            for name, code in programs():
                (folder / name).write_text(code, encoding="utf-8")
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    runpy.run_path(str(folder / name), run_name="__main__")
                printed[name] = out.getvalue()
    finally:
        sys.path[:] = path
        for name, _ in programs():
            module = name.removesuffix(".py")
            if module not in modules:
                sys.modules.pop(module, None)
    return printed


def drawn(name: str) -> str:
    """A picture, as the program draws it now."""
    with tempfile.TemporaryDirectory() as folder:
        run_page(Path(folder))
        return (Path(folder) / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in PICTURES:
        (FOLDER / name).write_text(drawn(name), encoding="utf-8")
