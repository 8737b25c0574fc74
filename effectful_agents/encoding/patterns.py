"""Regular expressions on the wire: as text, with their flags."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pydantic

from effectful_agents.encoding.registry import Codec

__all__ = ["BYTES_PATTERN", "PATTERN"]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII, "L": re.LOCALE}


_GROUP = re.compile(r"\(\?([imsxaL]+)\)")


def _write(pattern: re.Pattern[Any]) -> Any:
    """A pattern as text, its flags in front: `(?i)a+`. A pattern that begins so itself gets them once more."""
    text = pattern.pattern
    plain = text.decode("latin-1") if isinstance(text, bytes) else text
    has_own = _GROUP.match(plain) is not None
    letters = "".join(letter for letter, flag in _FLAGS.items() if pattern.flags & flag)
    prefix = f"(?{letters})" if letters and (has_own or pattern.flags & ~re.compile(text).flags) else ""
    return prefix.encode() + text if isinstance(text, bytes) else prefix + text


def _read(text: Any) -> re.Pattern[Any]:
    group = _GROUP.match(text.decode("latin-1") if isinstance(text, bytes) else text)
    flags = 0
    if group is not None:
        text = text[group.end() :]
        for letter in group[1]:
            flags |= _FLAGS[letter]
    try:
        return re.compile(text, flags)
    except (re.error, ValueError) as error:
        raise ValueError(f"it is no regular expression: {error}") from error


_ABOUT = pydantic.Field(description="a regular expression of Python")
PATTERN = Codec(Annotated[str, _ABOUT], _write, _read)
BYTES_PATTERN = Codec(Annotated[bytes, _ABOUT], _write, _read)
