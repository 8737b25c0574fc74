"""What keeps runs, answers and memories for a program, whoever wrote its class."""

from __future__ import annotations

import inspect
from types import FunctionType

from effectful_agents.operations.approvals import ConsumptionLedger
from effectful_agents.operations.memory import MemoryStore
from effectful_agents.operations.records import Checkpointer, RunStore

__all__ = ["is_keeper"]

_BY_METHODS = (ConsumptionLedger, MemoryStore, RunStore)


def is_keeper(cls: type) -> bool:
    """Whether instances of a class give what anybody has said, and take what is said in their name.

    They decide nothing, so that who reaches one passes by whoever decides. Many a class has `append` and `load`: the
    `load` of a `Checkpointer` takes a `run_id`.

    >>> from effectful_agents.handlers.memory import InMemoryStore
    >>> is_keeper(InMemoryStore), is_keeper(dict)
    (True, False)
    """
    if any(issubclass(cls, kept) for kept in _BY_METHODS):
        return True
    load = inspect.getattr_static(cls, "load", None) if issubclass(cls, Checkpointer) else None
    return isinstance(load, FunctionType) and "run_id" in load.__code__.co_varnames[: load.__code__.co_argcount]
