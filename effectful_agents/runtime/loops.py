"""Which event loop runs here, asyncio's or trio's. Neither is loaded to find out: what is not loaded does not run."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["current_task", "in_event_loop", "running_trio"]


def running_trio() -> ModuleType | None:
    """The module `trio`, where its event loop runs in this thread."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_run() else None


def in_event_loop() -> bool:
    """Whether an event loop runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    return running_trio() is not None or (asyncio is not None and asyncio._get_running_loop() is not None)


def current_task() -> Any:
    """The task of asyncio or trio that runs here, if one does."""
    if trio := running_trio():
        return trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None
    return sys.modules["asyncio"].current_task() if in_event_loop() else None
