"""Secrets and personal data in texts: how they are recognized."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["PATTERNS", "found_in", "hidden", "is_secret_name", "replaced", "without_secrets"]


# None of them takes longer than in proportion to the text: what repeats is bounded.
PATTERNS: Mapping[str, str] = {
    "KEY": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----)){0,10000}-----END [A-Z ]{0,30}PRIVATE KEY-----",
    "TOKEN": r"\b(?:sk-[A-Za-z0-9_-]{16,200}|gh[pousr]_[A-Za-z0-9]{20,100}|github_pat_[A-Za-z0-9_]{20,200}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,200}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|glpat-[A-Za-z0-9_-]{20,60}"
    r"|eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000})",
    "EMAIL": r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
    "IBAN": r"\b[A-Za-z]{2}\d{2}(?:[ \u00a0]?[A-Za-z0-9]){11,30}(?![A-Za-z0-9])",
    "CARD": r"(?<!\d)\d(?:[ \u00a0\n-]{0,2}\d){12,22}",
    "PHONE": r"(?<![\w+])\+\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,6}(?!\w)",
}
"""What can be recognized, by name: the pattern of each. A card and an account also need the right check digits."""


def replaced(text: str, patterns: Iterable[tuple[str, re.Pattern[str]]], put: Callable[[str, str], str]) -> str:
    """The text with something else in the place of each datum that a pattern finds.

    Args:
        text: The text.
        patterns: Names and patterns; those named as in `PATTERNS` need the check digits that are said there.
        put: Gets the name and the datum, and says what stands in its place.

    >>> replaced("To ann@example.org", [("EMAIL", re.compile(PATTERNS["EMAIL"]))], lambda kind, datum: kind.lower())
    'To email'
    """
    for kind, pattern in patterns:
        text = pattern.sub(lambda found, kind=kind: _put_one(kind, found[0], put), text)
    return text


def found_in(text: str, kind: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where a pattern finds data in a text: from where to where.

    >>> list(found_in("To ann@example.org", "EMAIL", re.compile(PATTERNS["EMAIL"])))
    [(3, 18)]
    """
    for found in pattern.finditer(text):
        length = len(_datum(kind, found[0]))
        if length:
            yield found.start(), found.start() + length


def _put_one(kind: str, found: str, put: Callable[[str, str], str]) -> str:
    datum = _datum(kind, found)
    return f"{put(kind, datum)}{found[len(datum) :]}" if datum else found


def _datum(kind: str, found: str) -> str:
    check = _CHECKS.get(kind)
    return found if check is None else _longest(found, check)


def _longest(text: str, check: Callable[[str], bool]) -> str:
    """The longest beginning of a text that passes a check; what follows a number may look like a part of it."""
    ends = [end for end in range(len(text), 0, -1) if text[end - 1].isalnum()]
    return next((text[:end] for end in ends if check(text[:end])), "")


def _is_card(digits: str) -> bool:
    """Whether digits have the check digit of a card's number."""
    numbers = [int(digit) for digit in re.sub(r"\D", "", digits)]
    doubled = [sum(divmod(2 * number, 10)) for number in numbers[-2::-2]]
    return 13 <= len(numbers) <= 19 and len(set(numbers)) > 1 and (sum(numbers[::-2]) + sum(doubled)) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether a text has the check digits of an IBAN."""
    compact = re.sub(r"\s", "", text).upper()
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


_CHECKS: Mapping[str, Callable[[str], bool]] = {"CARD": _is_card, "IBAN": _is_account}


# --- secrets alone ----------------------------------------------------------------------------------------------------

_SECRETS = [
    *((kind, re.compile(PATTERNS[kind])) for kind in ("KEY", "TOKEN")),
    ("KEY", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*")),  # one that was cut off
]
_NAME = (
    r"[A-Za-z0-9_-]{0,40}"
    r"(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credentials?|token|cookie)"
)
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token$|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization|cookie|^pin$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"""(\b{_NAME}["']?\s{{0,3}}[:=]\s{{0,3}})(?!\[[A-Za-z]{{1,20}}\])"""
    r"""(?:bearer\s{1,3}|basic\s{1,3})?("(?:[^"\\]|\\.){0,5000}"|'(?:[^'\\]|\\.){0,5000}'|[^\s,;&)\]}"']{1,5000})""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer|basic)\s{1,3}[A-Za-z0-9._~+/=-]{8,5000}", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,500}(?=@)")


def is_secret_name(name: str) -> bool:
    """Whether what has such a name is usually a secret.

    >>> [name for name in ("api_key", "X-Auth-Token", "max_tokens", "city") if is_secret_name(name)]
    ['api_key', 'X-Auth-Token']
    """
    return _SECRET_NAME.search(name) is not None


def without_secrets(text: str, mark: str = "[secret]") -> str:
    """The text with a mark in the place of what looks like a secret, or is named like one.

    Those are keys, tokens, passwords in addresses, and whatever stands behind a name such as `password=`.

    >>> without_secrets("login(user='ann', password='hunter2') by sk-abcdefghijklmnop1234")
    "login(user='ann', password=[secret]) by [secret]"
    >>> without_secrets("postgresql://ann:hunter2@db/mail")
    'postgresql://[secret]@db/mail'
    """
    text = replaced(text, _SECRETS, lambda kind, datum: mark)
    text = _IN_ADDRESS.sub(mark, text)
    text = _NAMED.sub(lambda found: f"{found[1]}{mark}", text)
    return _BEARER.sub(lambda found: f"{found[1]} {mark}", text)


_ALL = [(kind, re.compile(pattern)) for kind, pattern in PATTERNS.items()]


def hidden(text: str) -> str:
    """The text without secrets and without personal data, with the kind of each in its place.

    >>> hidden("Mail ann@example.org, the key is sk-abcdefghijklmnop, password: hunter2.")
    'Mail [EMAIL], the key is [TOKEN], password: [secret]'
    """
    return without_secrets(replaced(text, _ALL, lambda kind, datum: f"[{kind}]"))
