"""Laws of the journal: a program is the same without one, with one, and with one after any number of crashes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from effectful_agents import handler, harness
from effectful_agents.errors import UncertainEffect
from effectful_agents.handlers.durability import Journal
from effectful_agents.handlers.durability.bodies import text_of_body
from effectful_agents.handlers.durability.runs import settle
from tests.handlers.durability.programs import PROGRAMS, Mortal, Program, World, counted, lives

OPTIONS: Any = {"system_prompt": "brief", "eval_provider": "builtin", "type_checker": "none", "defer_tools": False}
CRASHES = st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=4)


def run(statements: Any, world: World, store: Mortal | None = None, **options: Any) -> Any:
    """Run a program, with a journal where there is a store."""
    program = Program(statements, world)
    with handler(harness(**{**OPTIONS, **options})), handler(program.model()):
        if store is None:
            return program()
        with handler(Journal("run", store)):
            return program()


def settled(store: Mortal, step_id: str, world: World) -> None:
    """Say of a step what the world knows of it."""
    store.at = None
    step = store.load("run").attempted(step_id)
    assert step is not None
    (what,) = step.body["arguments"].values()
    if step.name == "broken" and what in world.certain:
        settle(store, "run", step_id, fail=f"broke {what}")
    elif what in world.certain:
        verb = {"pay": "paid", "post": "posted"}[step.name]
        settle(store, "run", step_id, done=f"{verb} {what}")
    else:
        settle(store, "run", step_id, redo=True)


def the_same_however_it_goes(statements: Any, crashes: Any) -> None:
    plain = World()
    value = run(statements, plain)
    certain, repeatable = counted(plain)

    whole = World()
    store = Mortal()
    assert run(statements, whole, store) == value
    assert counted(whole) == (certain, repeatable)
    assert whole.asked == plain.asked

    appends = store.appends

    again = World()
    assert run(statements, again, store) == value
    assert (again.asked, again.certain, again.repeatable) == (0, [], [])

    broken = World()
    store = Mortal()
    ends: list[Any] = [*((at % appends, written) for at, written in crashes), *[(None, False)] * 60]
    for at, written in ends:
        try:
            came = lives(store, at, written, lambda: run(statements, broken, store))
        except UncertainEffect as error:
            settled(store, error.step_id, broken)
            event("settled")
        else:
            if came is not None:
                break
            event("crashed")
    assert came == value
    assert counted(broken)[0] == certain
    assert counted(broken)[1].keys() == repeatable.keys()
    assert all(
        repeatable[what] <= times <= repeatable[what] + len(crashes) for what, times in counted(broken)[1].items()
    )
    assert broken.asked <= plain.asked + 3 * len(crashes)  # several may be on their way at once


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, CRASHES)
def test_a_program_is_the_same_however_it_goes(statements, crashes):
    the_same_however_it_goes(statements, crashes)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(PROGRAMS, CRASHES)
def test_many_programs_are_the_same_however_they_go(statements, crashes):
    the_same_however_it_goes(statements, crashes)


def size(store: Mortal) -> int:
    return sum(len(text_of_body(record)) for record in store.load("run").records)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(lambda n: [("work", [["pay"]] * n)], id="a long call"),
        pytest.param(lambda n: [("clerk", [["note"]])] * n, id="an agent that remembers"),
        pytest.param(lambda n: [("work", [["look"]])] * n, id="many calls"),
        pytest.param(lambda n: [("work", [[("code", ["pay", "advise"])]] * n)], id="code"),
        pytest.param(lambda n: [("work", [[("work", [["pay"]])]] * n)], id="nested calls"),
        pytest.param(lambda n: [("malformed", [["ask_expert"]])] * n, id="retries"),
    ],
)
def test_a_journal_grows_by_the_same_with_each_step(statements):
    sizes = []
    for n in 5, 10, 20, 40:
        store = Mortal()
        run(statements(n), World(), store)
        sizes.append(size(store))
    first, second, third = (after - before for before, after in itertools.pairwise(sizes))
    assert second == pytest.approx(2 * first, rel=0.1)
    assert third == pytest.approx(2 * second, rel=0.1)


def test_calls_that_begin_with_the_same_system_message_write_it_once():
    sizes = []
    for n in 1, 2:
        store = Mortal()
        run([("work", [["look"]])] * n, World(), store, system_prompt="full")
        sizes.append(size(store))
    assert sizes[0] > 10_000
    assert sizes[1] - sizes[0] < 2_000
