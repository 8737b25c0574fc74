"""The pictures of the docs, as the programs of their pages draw them.

`uv run python -m tests.handlers.observability.pictures` writes them anew, and a test compares them.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import types
from pathlib import Path

from tests.test_docs import ROOT, execute

FOLDER = ROOT / "docs/pictures"
PAGE = ROOT / "docs/seeing.md"
PICTURES = ("economy.svg",)


def run_page(folder: Path) -> None:
    """Run the program of the page in a folder, where it leaves its files."""
    module = types.ModuleType("page")
    outer = sys.modules.get("page")
    sys.modules["page"] = module  # agents look up their module by its name
    try:
        with contextlib.chdir(folder):
            execute(PAGE.read_text(encoding="utf-8"), PAGE, module)
    finally:
        if outer is None:
            del sys.modules["page"]
        else:
            sys.modules["page"] = outer


def drawn(name: str) -> str:
    """A picture, as the program draws it now."""
    with tempfile.TemporaryDirectory() as folder:
        run_page(Path(folder))
        return (Path(folder) / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in PICTURES:
        (FOLDER / name).write_text(drawn(name), encoding="utf-8")
