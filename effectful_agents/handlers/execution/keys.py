"""Values as keys of what the library and the program remember: `functools.lru_cache`, the caches of `typing`.

Such a cache asks a value for its hash, and whether it is equal to another one. An object of a class of the code that
has a `__hash__` of its own may answer what it likes, and would stand there in the place of a value of the program.
"""

from __future__ import annotations

import datetime
import gc
import types
import uuid
from decimal import Decimal
from enum import Enum
from typing import Any

from effectful_agents.handlers.execution.kinds import PLAIN, is_own

__all__ = ["check_key", "is_fixed"]

_FIXED = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, type(None), type(...), type(NotImplemented), range}
    | {datetime.date, datetime.timedelta, Decimal, uuid.UUID, types.FunctionType, types.BuiltinFunctionType}
)
_MOST = 1_000
"""Values in a key that are looked at; a key of more is not remembered."""


def is_fixed(value: Any) -> bool:
    """Whether what a value is equal to does not depend on the code: now, and when the code has changed its classes.

    An object that goes by its identity is that. One that counts by what it holds is, if that is.

    >>> is_fixed((1, "a", [2.5]))
    True
    """
    kind = type(value)
    if kind in _FIXED:
        return True
    seen: set[int] = {id(value)}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind in _FIXED or isinstance(one, type):
            continue
        if kind not in PLAIN:
            found = kind.__hash__
            if found is object.__hash__ or (found is Enum.__hash__ and not is_own(kind)):
                continue  # a member of the code's own says what it is equal to, and its name is its hash
            if is_own(kind) and found is not None:
                return False
        for part in gc.get_referents(one):
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
        if len(seen) > _MOST:
            return False
    return True


def check_key(value: Any, what: str) -> None:
    """Raise if a value may not be a key of something that is remembered.

    Raises:
        TypeError: It says itself what it is equal to.
    """
    if not is_fixed(value):
        raise TypeError(f"{what} cannot hold an object of a class with a `__hash__` of its own here.")
