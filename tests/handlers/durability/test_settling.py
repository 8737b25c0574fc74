"""Settling a step of a run of which nobody knows, and going on."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents.errors import JournalError, UncertainEffect
from effectful_agents.handlers.durability import MemoryCheckpointer, settle, unsettled
from tests.handlers.durability.journaling import MODEL, RESULT, Crash, World, a_program, plays, running


class Dying(World):
    """A world in which the process ends right after something was paid."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: Any = self

    def append(self, amount: int) -> None:
        raise Crash


@pytest.fixture
def store() -> MemoryCheckpointer:
    """A store with a run that ended while it paid."""
    store = MemoryCheckpointer()
    with pytest.raises(Crash), running(store, plays(*MODEL)[0]):
        a_program(Dying())()
    return store


def test_a_value_that_is_none_of_the_tool_can_be_corrected(store: MemoryCheckpointer) -> None:
    (step_id,) = unsettled(store.load("run"))
    model, world = plays(*MODEL)[0], World()
    with pytest.raises(UncertainEffect, match=step_id), running(store, model):
        a_program(world)()
    settle(store, "run", step_id, done="oops")
    told = f"settled for the step `{step_id}` is no result of `pay`.* Settle it again"
    with pytest.raises(JournalError, match=told), running(store, model):
        a_program(world)()
    settle(store, "run", step_id, done=300)
    with running(store, model):
        assert a_program(world)() == RESULT
    assert world.paid == [7]
    assert [info.status.value for info in store.runs()] == ["finished"]


def test_a_step_that_did_not_happen_is_made(store: MemoryCheckpointer) -> None:
    (step_id,) = unsettled(store.load("run"))
    settle(store, "run", step_id, fail="no money")
    settle(store, "run", step_id, redo=True)
    world = World()
    with running(store, plays(*MODEL)[0]):
        assert a_program(world)() == RESULT
    assert world.paid == [3, 7]
