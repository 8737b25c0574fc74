"""A run goes on where it stopped: nothing in it is paid or done twice, and nothing is lost."""

from __future__ import annotations

import pytest

from effectful_agents.errors import UncertainEffect
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.durability.runs import settle
from tests.handlers.durability.journaling import (
    MODEL,
    RESULT,
    Crash,
    Crashing,
    World,
    a_program,
    plays,
    running,
)

APPENDS = 42
"""How often the program writes to its journal."""


def test_a_program_does_under_a_journal_what_it_does_without():
    world, (model, asked) = World(), plays(*MODEL)
    store = Crashing()
    with running(store, model):
        assert a_program(world)() == RESULT
    assert world.paid == [3, 7]
    assert world.looked[0] == "the east"
    assert sorted(world.looked[1:]) == ["a", "b"]
    assert len(asked) == 12
    assert store.appends == APPENDS


@pytest.mark.parametrize("written", [False, True], ids=["lost", "written"])
@pytest.mark.parametrize("at", range(APPENDS))
def test_a_run_that_ended_anywhere_goes_on(at, written):
    store, world = Crashing(at, written), World()
    model, asked = plays(*MODEL)
    with pytest.raises(Crash), running(store, model):
        a_program(world)()
    store.at = None
    for _ in range(3):
        try:
            with running(store, model):
                result = a_program(world)()
            break
        except UncertainEffect as error:
            # Nobody but the world knows whether it happened.
            state = store.load("run")
            wanted = state.attempted(error.step_id).body["arguments"].get("amount")
            if wanted is None or wanted in world.paid:
                value = {"pay": (wanted or 0) * 100, "post": "posted", "note": "1 notes"}
                settle(store, "run", error.step_id, done=value[state.attempted(error.step_id).name])
            else:
                settle(store, "run", error.step_id, redo=True)
    assert result[:3] == RESULT[:3]
    assert result[4] == RESULT[4]
    assert world.paid == [3, 7]
    # One that was on its way when the process ended is asked again.
    assert len(asked) in (12, 13)


def test_a_run_that_has_ended_gives_its_values_and_its_objects_again():
    world, (model, asked), store = World(), plays(*MODEL), MemoryCheckpointer()
    with running(store, model):
        a_program(world)()
    with running(store, {}):
        assert a_program(world)() == RESULT
    assert world.paid == [3, 7]
    assert len(asked) == 12
