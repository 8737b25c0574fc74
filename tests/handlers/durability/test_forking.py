"""Runs that begin as another one did: what they share is not done again, and everything else is."""

from __future__ import annotations

import pytest

from effectful_agents.errors import JournalError
from effectful_agents.handlers.durability import MemoryCheckpointer, forked_records
from effectful_agents.handlers.durability.forking import no_such
from effectful_agents.operations.records import RunState
from effectful_agents.testing import calls
from tests.handlers.durability.journaling import MODEL, RESULT, World, a_program, plays, running

STEPS = 24
"""How many steps the program has."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[pytest.mark.slow] if place % 5 else []) for place in range(STEPS)]
)
def test_a_fork_at_any_step_does_what_comes_from_there_on(place: int) -> None:
    store, (model, asked), world = MemoryCheckpointer(), plays(*MODEL), World()
    with running(store, model):
        a_program(world)()
    state = store.load("run")
    assert len(state.steps()) == STEPS
    at = state.steps()[place]
    anew = {step_id for step_id in state.steps() if step_id.split("/") >= at.split("/")}
    store.fork("run", "fork", at)

    asked.clear()
    world.paid.clear()
    with running(store, model, "fork"):
        assert a_program(world)() == RESULT
    assert len(asked) == sum(step_id.endswith("-model") for step_id in anew)
    pays = {step_id: amount for step_id in anew if (amount := paid(state, step_id)) is not None}
    assert sorted(world.paid) == sorted(pays.values())
    assert store.load("fork").steps()[0] == "000001-call"
    assert set(store.load("fork").steps()) == set(state.steps())
    assert len(store.load("run").records) == len(state.records)


def paid(state: RunState, step_id: str) -> int | None:
    record = state.attempted(step_id)
    return record.body["arguments"]["amount"] if record is not None and record.name == "pay" else None


def test_the_tail_may_be_another() -> None:
    store, world = MemoryCheckpointer(), World()
    with running(store, plays(*MODEL)[0]):
        a_program(world)()
    store.fork("run", "fork", "000001-call/000005-model")
    less = [calls("pay", amount=3), calls("advise", topic="war"), calls("pay", amount=5), "stopped"]
    other = tuple((key, less if key == "dear worker" else replies) for key, replies in MODEL)
    model, asked = plays(*other)
    with running(store, model, "fork"):
        assert a_program(world)()[0] == "stopped"
    assert world.paid == [3, 7, 5]
    assert len(asked) == 2 + 4


def test_there_has_to_be_a_run() -> None:
    with pytest.raises(JournalError, match="no run `r`"):
        forked_records(RunState("r"), "s")


def test_what_is_not_there_is_told_with_what_is() -> None:
    assert no_such("run", "r", [], "here") == "there is no run `r` here. There are none."
    assert no_such("run", "r", ["one", "two"], "here") == "there is no run `r` here. There are: `one`, `two`."
    assert no_such("run", "x", [f"run {n}" for n in range(20)], "here").endswith("`run 9`, ….")
