"""The sections of a system message, by the headings that the model reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["UNTITLED", "sections_of"]

UNTITLED = "(the task)"
"""What has no heading, as in a brief system message."""

_HEADING = re.compile(r"(#{1,2}) +(.*\S)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def sections_of(content: Any) -> Iterator[tuple[str, Any]]:
    r"""The sections of the content of a message, in order: a title with the titles above it, and the text or part.

    Headings of the first two levels count, outside of fenced code. The texts together are the content.

    >>> list(sections_of("# Rules\nBe brief.\n## Tone\nBe kind."))
    [('Rules', '# Rules\nBe brief.\n'), ('Rules / Tone', '## Tone\nBe kind.')]
    >>> list(sections_of("Be brief."))
    [('(the task)', 'Be brief.')]
    """
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    titles = ["", ""]
    for part in parts:
        if part.get("type") == "text":
            yield from _sections_of_text(part.get("text") or "", titles)
        else:
            yield _titled(titles), part


def _sections_of_text(text: str, titles: list[str]) -> Iterator[tuple[str, str]]:
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark is not None and not fence:
            fence = mark[1]
        elif mark is not None and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        heading = None if fence else _HEADING.fullmatch(line.rstrip("\r\n"))
        if heading is not None:
            if lines:
                yield _titled(titles), "".join(lines)
                lines = []
            titles[:] = [heading[2], ""] if heading[1] == "#" else [titles[0], heading[2]]
        lines.append(line)
    if lines:
        yield _titled(titles), "".join(lines)


def _titled(titles: list[str]) -> str:
    return " / ".join(filter(None, titles)) or UNTITLED
