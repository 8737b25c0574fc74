"""The texts in what is no text of a message: names of files, documents that are text, addresses of pictures."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

__all__ = ["with_attachments"]

type Change = Callable[[str], str]


def with_attachments(message: Mapping[str, Any], change: Change) -> Any:
    """A message with such texts changed; one that does not change is the same object.

    What is written in a form that is no text (a PDF, a picture, a sound) stays.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return message
    changed = [_part(part, change) for part in content]
    return message if changed == content else {**message, "content": changed}


def _part(part: Any, change: Change) -> Any:
    kind = part.get("type") if isinstance(part, Mapping) else None
    held = part.get(kind) if kind in _FIELDS else None
    if not isinstance(held, Mapping):
        return part
    made = {
        name: _FIELDS[kind][name](value, change) if name in _FIELDS[kind] else value for name, value in held.items()
    }
    return part if made == held else {**part, kind: made}


def _name(name: Any, change: Change) -> Any:
    return change(name) if isinstance(name, str) else name


def _address(url: Any, change: Change) -> Any:
    """An address, or what a `data:` address holds where that is text."""
    if not isinstance(url, str):
        return url
    if url[:5].lower() == "data:":
        return _data(url, change)
    passed = change(url)
    if passed != url or "%" not in url:
        return passed
    plain = unquote(url)  # `%40` is a `@`
    passed = change(plain)
    return url if passed == plain else quote(passed, safe=_SAFE)


def _data(url: str, change: Change) -> str:
    head, comma, body = url.partition(",")
    if not comma or not _IS_TEXT.match(head):
        return url
    is_base64 = head.lower().endswith(";base64")
    try:
        text = base64.b64decode(body, validate=True).decode() if is_base64 else unquote(body, errors="strict")
    except (binascii.Error, ValueError):  # whoever takes it to the model says what is wrong with it
        return url
    passed = change(text)
    if passed == text:
        return url
    raw = passed.encode("utf-8", "replace")
    return f"{head},{base64.b64encode(raw).decode() if is_base64 else quote(raw)}"


_SAFE = "/:?#[]@!$&'()*+,;=~"
_IS_TEXT = re.compile(
    r"data:(?=[;,]|$|text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|csv|rtf|javascript)\b)"
    r"|data:image/svg\+xml\b",
    re.IGNORECASE,
)
_FIELDS: Mapping[Any, Mapping[str, Callable[[Any, Change], Any]]] = {
    "file": {"filename": _name, "file_data": _address},
    "image_url": {"url": _address},
}
