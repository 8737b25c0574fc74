"""Encoded values as content blocks, so that a picture inside a value reaches the model as a picture."""

from __future__ import annotations

import json
from typing import Any

from effectful_agents.messages import ContentPart
from effectful_agents.messages.text import safe_text

__all__ = ["as_parts", "join", "to_content_blocks"]

# The parts that are not text: what holds the payload, and the keys of which it has at least one.
_PAYLOADS = {
    "image_url": frozenset({"url"}),
    "input_audio": frozenset({"data"}),
    "file": frozenset({"file_data", "file_id"}),
}


def to_content_blocks(value: Any) -> list[ContentPart]:
    """Spread an encoded value over content blocks.

    A dictionary in the shape of an image, audio or file part becomes that part, and the JSON around it text. Text
    alone is bare, without quotes. Read in order, with each part written as JSON, the blocks of anything but a text are
    exactly `json.dumps(value)`; a dictionary in the shape of a *text* part therefore stays JSON.

    >>> picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    >>> to_content_blocks({"photo": picture})[0]
    {'type': 'text', 'text': '{"photo": '}
    """
    blocks: list[ContentPart] = []
    if isinstance(value, str):
        join(blocks, safe_text(value))
    else:
        _spread(value, blocks)
    return blocks


def _spread(value: Any, blocks: list[ContentPart]) -> None:
    if is_media(value):
        blocks.append(value)
    elif not holds_media(value):
        join(blocks, json.dumps(value))
    elif isinstance(value, dict):
        join(blocks, "{")
        for number, (key, part) in enumerate(value.items()):
            join(blocks, f"{', ' if number else ''}{json.dumps(key)}: ")
            _spread(part, blocks)
        join(blocks, "}")
    else:
        join(blocks, "[")
        for number, part in enumerate(value):
            join(blocks, ", " if number else "")
            _spread(part, blocks)
        join(blocks, "]")


def join(blocks: list[ContentPart], text: str) -> None:
    """Add text at the end, to the last block where that is text too; an empty text adds nothing."""
    if not text:
        return
    if blocks and blocks[-1]["type"] == "text":
        blocks[-1] = {"type": "text", "text": blocks[-1]["text"] + text}
    else:
        blocks.append({"type": "text", "text": text})


def is_media(value: Any) -> bool:
    """Whether an encoded value has the shape of a part that is not text."""
    if not isinstance(value, dict) or len(value) != 2:
        return False
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _PAYLOADS:
        return False
    payload = value.get(kind)
    return isinstance(payload, dict) and not _PAYLOADS[kind].isdisjoint(payload)


def holds_media(value: Any) -> bool:
    """Whether such a part is anywhere in an encoded value."""
    if isinstance(value, dict):
        return is_media(value) or any(map(holds_media, value.values()))
    return isinstance(value, list) and any(map(holds_media, value))


def as_parts(value: Any) -> list[ContentPart] | None:
    """An encoded value that *is* one part, or a list of parts, texts included; None for any other."""
    parts = value if isinstance(value, list) else [value]
    return list(parts) if parts and all(is_media(part) or _is_text(part) for part in parts) else None


def _is_text(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"type", "text"}
        and value["type"] == "text"
        and isinstance(value["text"], str)
    )
