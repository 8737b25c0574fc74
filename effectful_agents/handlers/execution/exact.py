"""What a value of a class of the code is to the interpreter, whatever the methods of that class say.

A class that derives from `int` may say that it is not larger than anything, and one that derives from `str` that its
small letters are none. Functions in C take what is really there; what is written in Python, in the library and in the
guards, believes it. So such a value is replaced by one of the class of the library before it gets there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from effectful_agents.handlers.execution.kinds import PLAIN, is_own

__all__ = ["exact", "exact_count"]


def _exact_fraction(value: Fraction) -> Fraction:
    slots: Any = (Fraction._numerator, Fraction._denominator)
    numerator, denominator = [slot.__get__(value) for slot in slots]
    return Fraction(exact(numerator), exact(denominator))


_OF_CLASSES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__pos__),
    (str, str.__str__),
    (float, float.__pos__),
    (complex, complex.__pos__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (Decimal, Decimal),
    (Fraction, _exact_fraction),
)


def exact(value: Any) -> Any:
    """A number or a text of a class of the code as one of the library's; each other value as it is.

    >>> exact(5), exact("a")
    (5, 'a')
    """
    kind = type(value)
    if kind in PLAIN or not is_own(kind):
        return value
    for cls, made in _OF_CLASSES:
        if isinstance(value, cls):
            return made(value)
    return value


def exact_count(value: Any) -> Any:
    """The same where an integer is expected: what `__index__` says is asked for once.

    >>> exact_count(5)
    5
    """
    value = exact(value)
    kind = type(value)
    return exact(operator.index(value)) if kind not in PLAIN and hasattr(kind, "__index__") else value
