"""What keeps runs, answers and memories for a program, whoever wrote its class."""

from __future__ import annotations

from effectful_agents.operations.approvals import ConsumptionLedger
from effectful_agents.operations.memory import MemoryStore
from effectful_agents.operations.records import Checkpointer, RunStore

__all__ = ["is_keeper"]

_BY_METHODS = (ConsumptionLedger, MemoryStore, RunStore)


def is_keeper(cls: type) -> bool:
    """Whether instances of a class give what anybody has said, and take what is said in their name.

    They decide nothing, so that who reaches one passes by whoever decides. A `Checkpointer` that is no `RunStore` has
    to derive from it to be known: many a class has `append` and `load`.

    >>> from effectful_agents.handlers.memory import InMemoryStore
    >>> is_keeper(InMemoryStore), is_keeper(dict)
    (True, False)
    """
    return Checkpointer in cls.__mro__ or any(issubclass(cls, kept) for kept in _BY_METHODS)
