"""Types that pydantic's core schema tells by a validator of its own only: regular expressions and time zones.

It writes them without a look at their kind, and loses the flags of an expression.
"""

from __future__ import annotations

import re
import zoneinfo
from typing import Annotated, Any

import pydantic

from effectful_agents.encoding.registry import Codec

__all__ = ["VALIDATORS"]

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


def _zone(key: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(key)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("it is no time zone, such as `Europe/Oslo`") from error


_ABOUT = pydantic.Field(description="a regular expression of Python")
_PATTERN = Codec(Annotated[str, _ABOUT], _write, _read)
_ZONE = Codec(Annotated[str, pydantic.Field(description="a time zone, as Europe/Oslo")], str, _zone)

VALIDATORS: dict[str, tuple[type, Codec]] = {
    "pattern_either_validator": (re.Pattern, _PATTERN),
    "pattern_str_validator": (re.Pattern, _PATTERN),
    "pattern_bytes_validator": (re.Pattern, Codec(Annotated[bytes, _ABOUT], _write, _read)),
    "validate_str_is_valid_iana_tz": (zoneinfo.ZoneInfo, _ZONE),
}
"""Classes and their codecs, by the names of pydantic's validators."""
