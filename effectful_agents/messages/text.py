"""Text that every provider accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["arguments_text", "printable_lines", "printable_text", "safe_text", "text_for_reading"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def safe_text(text: str) -> str:
    r"""The text with U+FFFD for every lone surrogate, which no encoding can write.

    >>> safe_text("a\ud800") == "a\ufffd"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def text_for_reading(content: Any) -> str:
    r"""The content of a message as one text, its parts below each other; what is no text is named.

    >>> text_for_reading([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": "…"}}])
    'See:\n[image_url]'
    """
    if not isinstance(content, list):
        return content or ""
    return "\n".join(part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)


def arguments_text(raw: Any) -> str:
    """The arguments of a tool call as JSON text of an object, which is all that some providers accept back.

    What a model wrote instead is kept inside one, so that the model sees it again beside the error.

    >>> arguments_text(None), arguments_text('"{}"'), arguments_text("[1")
    ('{}', '{}', '{"malformed_arguments": "[1"}')
    """
    value = raw
    for _ in range(2):  # doubly encoded arguments are JSON of the JSON
        if isinstance(value, str):
            if not value.strip():
                value = {}
                break
            try:
                value = json.loads(value, parse_constant=_refuse)
            except (ValueError, RecursionError):
                break
    if value is None:
        return "{}"
    if isinstance(value, Mapping):
        if isinstance(raw, str) and raw.lstrip().startswith("{"):
            return safe_text(raw)
        text = _dumped(value)
        if text is not None:
            return text
    kept = _dumped({"malformed_arguments": raw})
    return kept if kept is not None else json.dumps({"malformed_arguments": type(raw).__name__})


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _dumped(value: Any) -> str | None:
    try:
        return safe_text(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str))
    except (TypeError, ValueError, RecursionError):
        return None


def printable_text(text: str) -> str:
    r"""Text for a terminal, in one line, with such characters as escapes.

    >>> printable_text("two\nlines, ann\u3164")
    'two\\nlines, ann\\u3164'
    """
    return "".join(one if one.isprintable() and not _UNSEEN.match(one) else json.dumps(one)[1:-1] for one in text)


_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What Unicode calls printable and fonts show as nothing: fillers, variation selectors, a blank of Braille."""


def printable_lines(text: str) -> str:
    """The same of a text in lines, which it keeps."""
    return "\n".join(map(printable_text, text.split("\n")))
