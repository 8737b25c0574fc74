"""Texts that fit: a format, a regular expression, a length."""

from __future__ import annotations

import importlib
import random
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["text_like", "text_of_format"]

_MOST_ATTEMPTS = 200


def _date(chance: random.Random) -> str:
    return f"{chance.randint(2000, 2024)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def _time(chance: random.Random) -> str:
    return f"{chance.randint(0, 23):02}:{chance.randint(0, 59):02}:{chance.randint(0, 59):02}"


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 8)))


def _octets(chance: random.Random) -> str:
    return ".".join(str(chance.randint(1, 254)) for _ in range(4))


def _groups(chance: random.Random) -> str:
    return ":".join(f"{chance.randint(1, 0xFFFF):x}" for _ in range(8))


_FORMATS: Mapping[str, Callable[[random.Random], str]] = {
    "date": _date,
    "time": _time,
    "date of the future": lambda chance: f"{chance.randint(2101, 2199)}{_date(chance)[4:]}",
    "date-time of the future": lambda chance: f"{chance.randint(2101, 2199)}{_date(chance)[4:]}T{_time(chance)}Z",
    "date-time of no zone": lambda chance: f"{_date(chance)}T{_time(chance)}",
    "date-time of the future of no zone": lambda chance: f"{chance.randint(2101, 2199)}{_date(chance)[4:]}T00:00:00",
    "date-time": lambda chance: f"{_date(chance)}T{_time(chance)}Z",
    "duration": lambda chance: f"P{chance.randint(0, 9)}DT{chance.randint(0, 23)}H{chance.randint(0, 59)}M",
    "uuid": lambda chance: _uuid(chance, 4),
    **{f"uuid{version}": lambda chance, version=version: _uuid(chance, version) for version in (1, 3, 4, 5, 6, 7, 8)},
    "email": lambda chance: f"{_word(chance)}@example.org",
    "idn-email": lambda chance: f"{_word(chance)}@example.org",
    "name-email": lambda chance: f"{_word(chance)} <{_word(chance)}@example.org>",
    "hostname": lambda chance: f"{_word(chance)}.example.org",
    "idn-hostname": lambda chance: f"{_word(chance)}.example.org",
    "ipv4": _octets,
    "ipv6": _groups,
    "ipvanyaddress": _octets,
    "ipv4network": lambda chance: f"10.{chance.randint(0, 255)}.0.0/16",
    "ipv6network": lambda chance: f"{chance.randint(0x2000, 0x2FFF):x}::/16",
    "ipvanynetwork": lambda chance: f"10.{chance.randint(0, 255)}.0.0/16",
    "ipv4interface": lambda chance: f"{_octets(chance)}/24",
    "ipv6interface": lambda chance: f"{_groups(chance)}/64",
    "ipvanyinterface": lambda chance: f"{_octets(chance)}/24",
    "uri": lambda chance: f"https://example.org/{_word(chance)}",
    "uri-reference": lambda chance: f"/{_word(chance)}",
    "iri": lambda chance: f"https://example.org/{_word(chance)}",
    "multi-host-uri": lambda chance: f"https://example.org/{_word(chance)}",
    "path": _word,
    "file-path": _word,
    "directory-path": _word,
    "json-pointer": lambda chance: f"/{_word(chance)}",
    "json-string": lambda chance: str(chance.randint(0, 99)),
    "regex": _word,
    "byte": lambda chance: "YWJj",
    "base64url": lambda chance: "YWJj",
    "base64": lambda chance: "YWJj",
    "color": lambda chance: f"#{chance.randint(0, 0xFFFFFF):06x}",
}


def _uuid(chance: random.Random, version: int) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def text_of_format(name: str, chance: random.Random) -> str | None:
    """A text of a format of JSON schema, or of one of pydantic's; None for one that is not known.

    >>> text_of_format("uuid4", random.Random(1))
    'cd613e30-d8f1-4adf-81b7-584a2265b1f5'
    """
    make = _FORMATS.get(name)
    return None if make is None else make(chance)


def text_like(pattern: str, chance: random.Random, shortest: int = 0, longest: int | None = None) -> str | None:
    """A text in which a regular expression is found; None where none was come upon.

    Args:
        pattern: The expression.
        chance: Where choices come from.
        shortest: Characters that the text has at least.
        longest: Characters that it has at most; None for any number.

    >>> text_like(r"^[A-Z]{3}-[0-9]+$", random.Random(1), shortest=9)
    'PYO-63170669'
    """
    try:
        compiled = re.compile(pattern)
        parsed = _parser.parse(pattern)
    except re.error:
        return None
    for attempt in range(_MOST_ATTEMPTS):
        text = "".join(_Writer(chance, attempt % 8).write(parsed))
        if len(text) < shortest and compiled.search(text + "a" * (shortest - len(text))):
            text += "a" * (shortest - len(text))
        if len(text) < shortest:
            text = "".join(_Writer(chance, shortest).write(parsed))[: None if longest is None else longest]
        if shortest <= len(text) <= (len(text) if longest is None else longest) and compiled.search(text):
            return text
    return None


_parser: Any = importlib.import_module("re._parser")
_PLAIN = string.ascii_letters + string.digits
_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": _PLAIN + "_",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": string.ascii_letters,
    "CATEGORY_NOT_WORD": " -",
    "CATEGORY_NOT_SPACE": _PLAIN,
}


class _Writer:
    """Writes a text that follows a parsed expression; whether it fits is looked at afterwards.

    Args:
        chance: Where choices come from.
        more: How often a part is repeated at most, beyond what is needed.
    """

    def __init__(self, chance: random.Random, more: int) -> None:
        self._chance = chance
        self._more = more
        self._groups: dict[int, str] = {}

    def write(self, parsed: Any) -> list[str]:
        return [self._part(str(kind), value) for kind, value in parsed]

    def _part(self, kind: str, value: Any) -> str:
        match kind:
            case "LITERAL":
                return chr(value)
            case "ANY":
                return self._chance.choice(_PLAIN)
            case "NOT_LITERAL":
                return self._chance.choice([one for one in _PLAIN if ord(one) != value])
            case "IN":
                return self._chance.choice(_characters(value) or [""])
            case "BRANCH":
                return "".join(self.write(self._chance.choice(value[1])))
            case "SUBPATTERN":
                text = "".join(self.write(value[3]))
                if value[0] is not None:
                    self._groups[value[0]] = text
                return text
            case "ATOMIC_GROUP":
                return "".join(self.write(value))
            case "GROUPREF":
                return self._groups.get(value, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, part = value
                count = self._chance.randint(least, min(int(most), least + self._more))
                return "".join("".join(self.write(part)) for _ in range(count))
            case _:  # a place, or what stands ahead or behind
                return ""


def _characters(members: Any) -> list[str]:
    """The characters of a class in brackets, those that are usual first of all."""
    negated, found = False, set[str]()
    for kind, value in members:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found.add(chr(value))
            case "RANGE":
                found.update(map(chr, range(value[0], min(value[1], value[0] + 255) + 1)))
            case "CATEGORY":
                found.update(_CATEGORIES.get(str(value), ""))
    if negated:
        return [one for one in _PLAIN + " -_" if one not in found]
    plain = sorted(one for one in found if one in _PLAIN)
    return plain or sorted(found)
