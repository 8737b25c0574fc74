"""JSON for people: short things on one line, long texts a line each, so that a changed word is a changed line."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["laid_out", "read_text"]

_WIDTH = 120
_LINES = "$lines"
_SURROGATE = re.compile("[\ud800-\udfff]")


def laid_out(data: Any, depth: int = 0) -> str:
    r"""JSON data as text.

    Args:
        data: The data.
        depth: How far it stands to the right; its first line is not indented.

    >>> print(laid_out({"format": "example", "text": "one\ntwo\n" * 2}))
    {"format": "example", "text": {"$lines": ["one\n", "two\n", "one\n", "two\n"]}}
    """
    # A lone surrogate has no form in a file.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", _laid_out(_with_lines(data), depth, 0))


def read_text(text: str) -> Any:
    r"""The data that `laid_out` wrote.

    Raises:
        ValueError: The text is none of its; says where.

    >>> read_text(laid_out({"a": ["one\ntwo"]}))
    {'a': ['one\ntwo']}
    """
    try:
        return _without_lines(json.loads(text))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _with_lines(data: Any) -> Any:
    if isinstance(data, str):
        return {_LINES: data.splitlines(keepends=True)} if "\n" in data and len(data) > 10 else data
    if isinstance(data, dict):
        written = {name: _with_lines(part) for name, part in data.items()}
        # A mapping that looks like such a text is marked as none.
        return {_LINES: None, "mapping": written} if _LINES in data else written
    return [_with_lines(part) for part in data] if isinstance(data, list | tuple) else data


def _without_lines(data: Any) -> Any:
    if isinstance(data, list):
        return [_without_lines(part) for part in data]
    if not isinstance(data, dict):
        return data
    if _LINES in data:
        lines = data[_LINES]
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            return "".join(lines)
        if lines is not None or not isinstance(data.get("mapping"), dict):
            raise ValueError(f"a `{_LINES}` is no list of texts")
        data = data["mapping"]
    return {name: _without_lines(part) for name, part in data.items()}


def _laid_out(data: Any, depth: int, before: int) -> str:
    """A value as text; `before` are the characters that stand on its line already."""
    flat = json.dumps(data, ensure_ascii=False)
    if not isinstance(data, dict | list) or not data or len(flat) + depth + before <= _WIDTH:
        return flat
    inner = "\n" + " " * (depth + 1)
    if isinstance(data, list):
        parts = [_laid_out(part, depth + 1, 1) for part in data]
    else:
        names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in data]
        parts = [
            name + _laid_out(part, depth + 1, len(name) + 1) for name, part in zip(names, data.values(), strict=True)
        ]
    opening, closing = "[]" if isinstance(data, list) else "{}"
    return f"{opening}{inner}{f',{inner}'.join(parts)}\n{' ' * depth}{closing}"
