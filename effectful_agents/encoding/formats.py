"""Data as lines of text, for prompts that are put together by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from effectful_agents.encoding.templates import format_as_content_blocks
from effectful_agents.encoding.values import encode, text_of
from effectful_agents.errors import EncodingError

__all__ = ["fmt_dict", "fmt_list", "fmt_records"]


def fmt_dict(data: Mapping[str, Any], *, max_value: int = 500) -> str:
    """A dictionary as lines of `key: value`, in its own order.

    Args:
        data: The dictionary.
        max_value: Characters of a value that are written; a longer one ends in `…`.

    Raises:
        EncodingError: A value has no form.

    >>> print(fmt_dict({"city": "Oslo", "days": [1, 2]}))
    city: Oslo
    days: [1,2]
    """
    return "\n".join(f"{key}: {_cut(_text(value), max_value)}" for key, value in data.items())


def fmt_list(items: Iterable[Any], *, prefix: str = "· ") -> str:
    """Values as lines, each behind a prefix; those of a set in an order that is the same in every process.

    Args:
        items: The values.
        prefix: What stands before each.

    Raises:
        EncodingError: A value has no form.

    >>> print(fmt_list(["bread", {"milk": 2}], prefix="- "))
    - bread
    - {"milk":2}
    """
    lines = [prefix + _text(item) for item in items]
    return "\n".join(sorted(lines) if isinstance(items, set | frozenset) else lines)


def fmt_records(items: Iterable[Mapping[str, Any]], template: str) -> str:
    """Records as lines, each a filled template.

    Args:
        items: The records.
        template: As of a prompt: `{name}` is the value of a key, `{{` a brace.

    Raises:
        ConfigurationError: A field names a key that a record does not have.
        EncodingError: A value has no form as text.

    >>> print(fmt_records([{"name": "Ann", "age": 3}, {"name": "Bob", "age": 40}], "{name} ({age:>2})"))
    Ann ( 3)
    Bob (40)
    """
    return "\n".join(_line(format_as_content_blocks(template, item)) for item in items)


def _line(blocks: Iterable[Any]) -> str:
    texts = []
    for block in blocks:
        if block["type"] != "text":
            raise EncodingError(f"a line of text cannot hold a part of type `{block['type']}`")
        texts.append(block["text"])
    return "".join(texts)


def _text(value: Any) -> str:
    encoded = encode(value)
    return encoded if isinstance(encoded, str) else text_of(encoded)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"
