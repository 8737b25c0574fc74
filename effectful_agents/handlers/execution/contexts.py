"""Context managers, as restricted code enters them: none makes a stop, or what is no `Exception`, disappear."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from types import CodeType
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

    def __exit__(self, *details: Any) -> Any:
        # In a class of the code anything can stand for the callbacks; what calls them reads no attribute again.
        stack: Any = contextlib.ExitStack()
        stack._exit_callbacks = _Callbacks(self._exit_callbacks)  # ty: ignore[missing-attribute]
        return stack.__exit__(*details)


class _Callbacks:
    """The callbacks of a stack, as they are taken from it: only those that were pushed by its methods."""

    def __init__(self, callbacks: Any) -> None:
        if type(callbacks) is not collections.deque:
            raise TypeError(f"a `{type(callbacks).__name__}` cannot be the callbacks of a stack here; push them.")
        self._callbacks = callbacks

    def __len__(self) -> int:
        return len(self._callbacks)

    def pop(self) -> Any:
        entry = self._callbacks.pop()
        if type(entry) is not tuple or getattr(entry[-1], "__code__", None) is not _LEAVE:
            raise TypeError("the callbacks of a stack are pushed by its methods here.")
        return entry


_LEAVE = next(one for one in ExitStack._push_exit_callback.__code__.co_consts if isinstance(one, CodeType))


@replace(contextlib.suppress)
class suppress(contextlib.suppress):
    """`contextlib.suppress`: the library enters it too, where a function is decorated."""

    def __exit__(self, exctype: Any, excinst: Any, exctb: Any) -> bool:
        return left(super().__exit__, exctype, excinst, exctb)


# What is private there is not for everybody.
ExitStack.__module__ = suppress.__module__ = contextlib.ExitStack.__module__
