"""Leases stay renewed while nothing is written, as during a long request to a model."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

from effectful_agents.errors import JournalError, LeaseLost

__all__ = ["Heartbeat", "heartbeat"]


class _Lease(Protocol):
    renewed: float
    """When it was renewed last, by `time.monotonic`."""
    seconds: float

    def renew(self) -> None: ...


class Heartbeat:
    """Renews leases when a third of their time is gone, in one daemon thread that lives while there are any.

    Leases are not kept alive by it: one that nobody refers to any more is left to expire.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._leases: weakref.WeakSet[_Lease] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, lease: _Lease) -> None:
        """Keep a lease renewed from now on."""
        with self._changed:
            self._leases.add(lease)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="effectful-agents leases", daemon=True)
                self._thread.start()
            self._changed.notify()

    def discard(self, lease: _Lease) -> None:
        """Leave a lease alone from now on."""
        with self._changed:
            self._leases.discard(lease)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while (delay := self._renew_all()) is not None:
                with self._changed:
                    if self._leases and delay > 0:
                        self._changed.wait(delay)
        except BaseException:
            with self._changed:
                self._thread = None  # the next lease gets another one
            raise

    def _renew_all(self) -> float | None:
        """Renew those whose time has come; the seconds until the next of them, None where there is none left."""
        with self._changed:
            leases = list(self._leases)
            if not leases:
                self._thread = None
                return None
        for lease in leases:
            if _due(lease) <= 0:
                self._renew(lease)
        return min(map(_due, leases))

    def _renew(self, lease: _Lease) -> None:
        try:
            lease.renew()
        except LeaseLost:
            self.discard(lease)  # its holder is told at the next record
        except JournalError:
            # The file is full or taken. It is tried again; the next record that cannot be written says what is wrong.
            lease.renewed = time.monotonic()


def _due(lease: _Lease) -> float:
    return lease.renewed + lease.seconds / 3 - time.monotonic()


heartbeat = Heartbeat()
"""The one of this process."""

if hasattr(os, "register_at_fork"):  # not on Windows
    # A forked process has neither the thread nor the leases of its parent.
    os.register_at_fork(after_in_child=heartbeat.__init__)
