"""Permits: what shows that an effect has been decided about, so that it is not decided about twice."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict

__all__ = ["Permits"]

_SECONDS = 3_600.0
"""How long one holds. A person may take a while to approve; a run that was suspended asks again."""
_MOST = 10_000


class Permits:
    """Permits that were given and not yet used, each for one effect.

    >>> permits = Permits()
    >>> permit = permits.give("send to Ann")
    >>> permits.take(permit, "send to Eve")
    False
    >>> permits.take(permit, "send to Ann")  # whoever tries it for something else has used it up
    False
    """

    def __init__(self) -> None:
        self._given: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def give(self, about: str) -> str:
        """A new permit for an effect."""
        permit, until = secrets.token_urlsafe(24), time.monotonic() + _SECONDS
        with self._lock:
            self._given[permit] = about, until
            while len(self._given) > _MOST:
                self._given.popitem(last=False)
        return permit

    def take(self, permit: str, about: str) -> bool:
        """Whether it was given for this effect; it is used up by that."""
        with self._lock:
            given, until = self._given.pop(permit, ("", 0.0))
        return given == about and time.monotonic() < until
