"""What a type checker found, as a model reads it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from effectful_agents.encoding.source_text import plain_lines
from effectful_agents.encoding.splicing import WRAPPER

__all__ = [
    "CANARY",
    "CANARY_MISSING",
    "Finding",
    "PassedChecks",
    "import_paths",
    "inside",
    "path_of",
    "raise_findings",
    "region_of",
]

_MOST = 10
"""Findings that a report shows; beyond them it says how many more there are."""
_MOST_LINES = 8
_MOST_CHARACTERS = 400
_KEPT = 512
_UNRESOLVED = frozenset({"unresolved-import", "import-not-found", "import-untyped", "import"})
_SYNTAX = frozenset({"invalid-syntax", "syntax"})
_PATH = re.compile(r"(?<![\w:/.~])(?:file://)?(?:/|[A-Za-z]:\\)(?:[\w.+@~-]+[/\\])+([\w.+@~-]+)")


CANARY = "\n__canary__: int = ''\n"
"""A mistake behind the module: a checker that does not report it did not look, and a silence of that kind is no pass.

It would be silent of a file that some setting excludes, say.
"""
CANARY_MISSING = "{} looks at no line of this module. Is there a comment in it that turns the check off?"


class Finding(NamedTuple):
    """One error.

    Attributes:
        line: Its line in the module, from 1.
        column: Its column, from 0.
        end: The column behind its end; the same as `column` where that is not known.
        rule: What the checker calls this kind of error.
        message: What is wrong; further lines are hints.
        notes: Lines of the module that the checker points to besides, with what it says of them.
    """

    line: int
    column: int
    end: int
    rule: str
    message: str
    notes: tuple[tuple[int, str], ...] = ()


def region_of(source: str, lo: int | None, hi: int | None) -> tuple[int, int]:
    """The first and the last line that are looked at."""
    return lo or 1, hi or len(plain_lines(source))


def inside(findings: Iterable[Finding], source: str, lo: int, hi: int) -> list[Finding]:
    """What was found between two lines, in their order.

    A module that cannot be resolved is no finding where Python finds it.
    """
    count = len(plain_lines(source))
    placed = (_placed(one, count) for one in findings)
    return sorted({one for one in placed if lo <= one.line <= hi and not _is_there(one)})


def raise_findings(found: Sequence[Finding], source: str, first: int, last: int) -> None:
    """Raise what was found between two lines.

    Raises:
        TypeError: There is something; lines are counted from `first`.
    """
    if not found:
        return
    lines = plain_lines(source)
    indent = next((len(line) - len(line.lstrip()) for line in lines[first - 1 : last] if line.strip()), 0)
    count = f"{len(found)} error{'s' if len(found) > 1 else ''}"
    shown = [_shown(one, lines, first, last, indent) for one in found[:_MOST]]
    more = [f"… and {len(found) - _MOST} more."] if len(found) > _MOST else []
    raise TypeError("\n".join([f"the code does not pass the type check: {count}.", *shown, *more]))


def _placed(finding: Finding, count: int) -> Finding:
    """What is open at the end of a source is only noticed behind it."""
    if finding.line > count and finding.rule in _SYNTAX:
        return finding._replace(line=count, column=0, end=0)
    return finding


def _shown(finding: Finding, lines: list[str], first: int, last: int, indent: int) -> str:
    told = [_short(_PATH.sub(r"\1", line)) for line in finding.message.split("\n") if line.strip()]
    message, *hints = told[:_MOST_LINES] or [""]
    text = lines[finding.line - 1]
    cut = min(indent, len(text) - len(text.lstrip()))
    start = max(finding.column - cut, 0)
    marks = "^" * max(min(finding.end, len(text)) - finding.column, 1)
    written = [
        f"line {finding.line - first + 1}: {message} [{finding.rule}]",
        f"    {_short(text[cut:].rstrip())}",
        f"    {_short(' ' * start + marks)}",
    ]
    for line, note in finding.notes:
        if line > len(lines):
            continue
        inside = first <= line <= last
        if not inside and WRAPPER in lines[line - 1]:
            continue  # it was put there, and tells nothing
        place = f"line {line - first + 1}" if inside else "outside of the code"
        written.append(f"  {place}: {_short(note)}: `{_short(lines[line - 1].strip())}`")
    return "\n".join([*written, *(f"  {hint}" for hint in hints)])


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _is_there(finding: Finding) -> bool:
    """Whether a module that the checker did not find is one that Python finds: by an import hook, say."""
    named = re.search(r"[`\"]([\w.]+)[`\"]", finding.message)
    if finding.rule not in _UNRESOLVED or named is None:
        return False
    name = named[1]
    if sys.modules.get(name) is not None:
        return True
    parent = name.rpartition(".")[0]
    if parent and parent not in sys.modules:
        return False  # to look further would import it
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class PassedChecks:
    """The checks that were passed, by what was asked; the oldest are forgotten.

    A failure is not kept: the mistake may be in another module, and mended there.
    """

    def __init__(self) -> None:
        self._passed: dict[bytes, None] = {}
        self._lock = threading.Lock()

    def key(self, source: str, *options: object) -> bytes:
        """What a check is remembered by."""
        asked = "\0".join([*map(repr, options), *import_paths(), path_of(source) or "", source])
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()

    def __contains__(self, key: bytes) -> bool:
        return key in self._passed

    def add(self, key: bytes) -> None:
        """Remember a check."""
        with self._lock:
            while len(self._passed) >= _KEPT:
                del self._passed[next(iter(self._passed))]
            self._passed[key] = None


def path_of(source: str) -> str | None:
    """The file that a source stands for, where it says so (`effectful_agents.encoding.splicing.ModuleSource`)."""
    path = getattr(source, "path", None)
    return path if isinstance(path, str) else None


def import_paths() -> list[str]:
    """The folders that the program imports its own modules from: `sys.path` without what belongs to the interpreter.

    A checker finds the standard library and installed packages by itself, and an entry of its own would come first.
    """
    own = os.path.realpath(os.path.dirname(os.__file__))
    found: dict[str, None] = {}
    for entry in sys.path:
        folder = os.path.abspath(entry)
        inside = os.path.realpath(folder).startswith(own)
        if os.path.isdir(folder) and not inside and os.path.basename(folder) not in ("site-packages", "dist-packages"):
            found[folder] = None
    return list(found)
