"""What a queue of restricted code has in the place of locks; like those, it is closed to the code itself."""

from __future__ import annotations

__all__ = ["NoLock"]


class NoLock:
    """Stands for the lock and the conditions of a queue that only one thread has: there is nobody to wait for.

    The real ones are not taken twice, and code that a queue calls under its lock could wait for itself.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...

    def notify(self) -> None: ...

    def notify_all(self) -> None: ...
