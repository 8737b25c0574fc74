"""Descriptions of parameters and fields, from docstrings in the styles of Google, numpy and reST.

Written here and not taken from a library: what is found is also taken out of the text, so that a model is not told
everything twice, and the libraries that parse docstrings do not say where they found it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

__all__ = ["Described", "described"]

_SECTION = "Args|Arguments|Parameters|Params|Attributes|Fields|Keyword Args|Keyword Arguments|Other Parameters"
_GOOGLE = re.compile(rf"(?:{_SECTION}):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY = re.compile(rf"(?:{_SECTION})\s*")
_RULE = re.compile(r"-{3,}\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword|ivar|var|cvar|attribute)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
)
_REST_TYPE = re.compile(r":(?:type|vartype)\s+\w+\s*:.*")


class Described(NamedTuple):
    """A docstring taken apart.

    Attributes:
        text: What is left of it.
        names: The descriptions found, by name.
    """

    text: str
    names: dict[str, str]


def described(doc: str | None, names: Collection[str]) -> Described:
    """Find the descriptions of some names in a docstring.

    A section with other names in it stays in the text as well: it is not only about these.

    Args:
        doc: The docstring.
        names: The names of the parameters or fields.

    >>> described('''Order a dish.
    ...
    ... Args:
    ...     dish: Its name on the
    ...         menu.
    ... ''', ["dish"])
    Described(text='Order a dish.', names={'dish': 'Its name on the menu.'})
    """
    lines = inspect.cleandoc(doc or "").splitlines()
    found: dict[str, str] = {}
    left: list[str] = []
    place = 0
    while place < len(lines):
        entries, after = _section(lines, place)
        own = {name: text for name, text in entries if name in names}
        found.update((name, text) for name, text in own.items() if text)
        if after == place or len(own) < len(entries):
            after = after if after > place else place + 1
            left += lines[place:after]
        place = after
    return Described(re.sub(r"\n{3,}", "\n\n", "\n".join(left)).strip(), found)


def _section(lines: list[str], start: int) -> tuple[list[tuple[str, str]], int]:
    """The entries of the section that begins at a line, and the line behind it; that line itself where none does."""
    line = lines[start]
    if _GOOGLE.fullmatch(line):
        end = _end_of_indented(lines, start + 1)
        entries = list(_google_entries(lines[start + 1 : end]))
        return (entries, end) if entries else ([], start)
    if _NUMPY.fullmatch(line) and start + 1 < len(lines) and _RULE.fullmatch(lines[start + 1]):
        end = start + 2
        while end < len(lines) and not (end + 1 < len(lines) and _RULE.fullmatch(lines[end + 1])):
            end += 1
        entries = list(_numpy_entries(lines[start + 2 : end]))
        return (entries, end) if entries else ([], start)
    if match := _REST.fullmatch(line):
        end = _end_of_indented(lines, start + 1)
        return [(match[1], _joined([match[2], *lines[start + 1 : end]]))], end
    return [], start + 1 if _REST_TYPE.fullmatch(line) else start  # the schema says the type


def _end_of_indented(lines: list[str], start: int) -> int:
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    return end


def _google_entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    for group in _groups(lines, margin):
        match = _GOOGLE_ENTRY.fullmatch(group[0].strip())
        if match:
            yield match[1], _joined([match[2], *group[1:]])


def _numpy_entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    for group in _groups(lines, 0):
        match = _NUMPY_ENTRY.fullmatch(group[0].strip())
        if match:
            for name in match[1].split(","):
                yield name.strip().lstrip("*"), _joined(group[1:])


def _groups(lines: list[str], margin: int) -> Iterator[list[str]]:
    """Lines at the margin, each with the deeper ones that follow it."""
    group: list[str] = []
    for line in lines:
        if line.strip() and _indent(line) <= margin and group:
            yield group
            group = []
        if line.strip() or group:
            group.append(line)
    if group:
        yield group


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
