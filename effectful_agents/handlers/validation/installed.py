"""Where a checker is installed, asked of what is installed and not of `import`.

A script of the user's that is called `ty.py` or `mypy.py` comes first on `sys.path`: `import ty` would run it, from
inside of itself.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from pathlib import Path

__all__ = ["folder_of", "program_of"]


def folder_of(package: str) -> str | None:
    """The folder that an installed package lies in; None where it is not installed."""
    try:
        return os.path.abspath(str(importlib.metadata.distribution(package).locate_file("")))
    except importlib.metadata.PackageNotFoundError:
        return None


def program_of(package: str) -> str | None:
    """The program that came with an installed package, or one of its name on `PATH`; None where there is none."""
    try:
        installed = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return shutil.which(package)
    for one in installed.files or ():
        if one.stem == package and one.suffix in ("", ".exe") and one.parent.name in ("bin", "Scripts"):
            found = Path(str(installed.locate_file(one)))
            if found.is_file():
                return os.path.normpath(found)
    return shutil.which(package)
