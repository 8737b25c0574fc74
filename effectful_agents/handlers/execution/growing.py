"""Texts that become longer when something is made of them: in capitals, in a normal form, quoted, encoded.

How much longer depends on the letters. So where the longest case would be too much, the text is gone through in pieces,
each of which is made alone, and what comes out is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from effectful_agents.handlers.execution.exact import exact
from effectful_agents.handlers.execution.limits import current, tick
from effectful_agents.handlers.execution.sizes import WORTH_COUNTING, check_size

__all__ = ["CASES", "check_cased", "check_coded", "check_growth"]

_PIECE = 65_536


def check_growth(text: Any, make: Callable[[Any], Any], most: int) -> None:
    """Raise if what is made of a text, or of bytes, would be too large.

    Args:
        text: The text.
        make: Makes it, of a piece as of the whole.
        most: How many characters one letter may become.
    """
    if not isinstance(text, str | bytes | bytearray):
        return
    text = exact(text)
    size = len(text)
    if size * most <= max(WORTH_COUNTING, current().size):
        return
    total = 0
    for start in range(0, size, _PIECE):
        tick()
        total += len(make(text[start : start + _PIECE]))
        check_size(total, "The text")


CASES = frozenset({"upper", "lower", "title", "casefold", "swapcase", "capitalize"})
"""Methods of texts that make two or three letters of some."""


def check_cased(name: str, text: Any) -> None:
    """Raise if such a method would give a text that is too long."""
    if isinstance(text, str) and not str.isascii(text):
        check_growth(text, getattr(str, name), 3)


_PLAIN_ERRORS = frozenset({"strict", "ignore", "replace", "surrogateescape", "surrogatepass"})


def check_coded(value: Any, encoding: Any, errors: Any) -> None:
    """Raise if a text in an encoding, or bytes as a text, would be too long."""
    encoding, errors = exact(encoding), exact(errors)
    if isinstance(value, str):
        most = 4 if errors in _PLAIN_ERRORS and str.startswith(encoding.lower(), ("utf", "ascii", "latin")) else 100
        check_growth(value, lambda piece: piece.encode(encoding, errors), most)
    elif errors not in _PLAIN_ERRORS:
        check_growth(value, lambda piece: piece.decode(encoding, errors), 10)
