"""Context managers, as restricted code enters them: none makes a stop, or what is no `Exception`, disappear."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from effectful_agents.handlers.execution.attributes import get_attribute
from effectful_agents.handlers.execution.kinds import replace
from effectful_agents.handlers.execution.specials import left

__all__ = ["ExitStack", "suppress", "within"]


class Within:
    """What a `with` statement enters in the place of a context manager."""

    __slots__ = ("_leave", "_manager")

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        kind = type(self._manager)
        if not hasattr(kind, "__enter__") or not hasattr(kind, "__exit__"):
            raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol")
        self._leave = kind.__exit__
        return kind.__enter__(self._manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if kind is None:
            return self._leave(self._manager, kind, error, traceback)
        return left(self._leave, self._manager, kind, error, traceback)


def within(manager: Any) -> Within:
    """What a `with` statement enters."""
    if hasattr(type(manager), "__enter__"):
        get_attribute(manager, "__enter__")
    return Within(manager)


@replace(contextlib.ExitStack)
class ExitStack(contextlib.ExitStack):
    """`contextlib.ExitStack`."""

    def _push_exit_callback(self, callback: Callable[..., Any], is_sync: bool = True) -> None:
        def leave(kind: Any, error: Any, traceback: Any) -> bool:
            return left(callback, kind, error, traceback)

        super()._push_exit_callback(leave, is_sync)  # ty: ignore[missing-attribute]


@replace(contextlib.suppress)
class suppress(contextlib.suppress):
    """`contextlib.suppress`: the library enters it too, where a function is decorated."""

    def __exit__(self, exctype: Any, excinst: Any, exctb: Any) -> bool:
        return left(super().__exit__, exctype, excinst, exctb)


# What is private there is not for everybody.
ExitStack.__module__ = suppress.__module__ = contextlib.ExitStack.__module__
