"""Secrets and personal data: how they are recognized in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["PATTERNS", "hidden", "names_secret", "really"]


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


def _longest(text: str, check: Callable[[str], bool]) -> str:
    """The longest beginning of a text that passes a check; what follows a number may look like a part of it."""
    ends = [end for end in range(len(text), 0, -1) if text[end - 1].isalnum()]
    return next((text[:end] for end in ends if check(text[:end])), "")


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

_CHECKS: Mapping[str, Callable[[str], bool]] = {"CARD": _is_card, "IBAN": _is_account}


def really(kind: str, found: str) -> str:
    """What of a text that fits a pattern is such a datum: its longest beginning with the right check digits.

    Args:
        kind: The name of the pattern; one that has no check digits takes the text as it is.
        found: The text.
    """
    check = _CHECKS.get(kind)
    return found if check is None else _longest(found, check)


def hidden(text: str) -> str:
    """The text with the kind of each secret in its place.

    >>> hidden("Mail ann@example.org, the key is sk-abcdefghijklmnop.")
    'Mail [EMAIL], the key is [TOKEN].'
    """
    for kind, pattern in _COMPILED:
        text = pattern.sub(lambda found, kind=kind: _marked(kind, found[0]), text)
    return text


def _marked(kind: str, found: str) -> str:
    datum = really(kind, found)
    return f"[{kind}]{found[len(datum) :]}" if datum else found


_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in PATTERNS.items())
_NAMES = re.compile(r"passw|passphrase|secret|token$|api_?key|private_?key|credential|authorization|^pin$|cookie", re.I)


def names_secret(name: str) -> bool:
    """Whether a value of this name is a secret, whatever it looks like.

    >>> names_secret("api_key"), names_secret("db_password"), names_secret("max_tokens")
    (True, True, False)
    """
    return _NAMES.search(name) is not None
