"""What the commands print."""

from __future__ import annotations

import sys

__all__ = ["print_text"]


def print_text(text: str, plainer: str | None = None) -> None:
    """Print a text; where the output has no form for a character of it, another text, or without the character."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "replace").decode(encoding) if plainer is None else plainer
    print(text)
