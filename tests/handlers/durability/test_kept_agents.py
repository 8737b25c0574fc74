"""Agents that are kept in a database, called in a run: wherever the process ended, run and database agree."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.testing import calls
from tests.handlers.durability.journaling import Crash, Crashing, plays, running


@dataclasses.dataclass
class Clerk(Agent):
    __agent_id__ = "clerk"
    notes: list[str] = dataclasses.field(default_factory=list)

    @Tool.define(rerun=True)
    def note(self, text: str) -> str:
        """Note something."""
        self.notes.append(text)
        return f"{len(self.notes)} notes"

    @Skill.define
    def ask(self, question: str) -> str:
        """Answer {question}."""
        raise NotHandled


MODEL = (
    ("Answer zero", ["none"]),
    ("Answer one", ["-", calls("note", text="first"), "yes"]),
    ("Answer two", ["-"] * 3 + [calls("note", text="second"), "no"]),
)


def program():
    clerk = Clerk()
    return clerk.ask("one"), clerk.ask("two"), clerk.notes, told(clerk)


def told(clerk):
    return [(message["role"], message.get("content")) for message in clerk.__history__]


def before(path):
    """The database, in which the agent has said something in an earlier process."""
    model, _ = plays(*MODEL)
    with running(Crashing(), model, "before", persist_db=path):
        Clerk().ask("zero")


def kept(path):
    """What the next process finds."""
    with handler(SQLitePersister(path)):
        clerk = Clerk()
        return told(clerk), clerk.notes


APPENDS = 14


def whole(path):
    before(path)
    store, (model, _) = Crashing(), plays(*MODEL)
    value = go_on(store, model, path)
    assert store.appends == APPENDS
    return value, kept(path)


def test_what_a_run_does_with_a_kept_agent(tmp_path):
    (one, two, notes, history), (found, _) = whole(tmp_path / "a.db")
    assert (one, two, notes) == ("yes", "no", ["first", "second"])
    assert len(history) == 2 + 4 + 4
    assert found == history


@pytest.mark.parametrize("written", [False, True], ids=["lost", "written"])
@pytest.mark.parametrize("at", range(APPENDS))
def test_a_run_that_ended_anywhere_goes_on_with_what_it_had_saved(at, written, tmp_path):
    expected = whole(tmp_path / "whole.db")
    path = tmp_path / "a.db"
    before(path)
    store, (model, _) = Crashing(at, written), plays(*MODEL)
    with pytest.raises(Crash):
        go_on(store, model, path)
    store.at = None
    assert go_on(store, model, path) == expected[0]
    assert kept(path) == expected[1]
    assert go_on(store, {}, path) == expected[0]
    assert kept(path) == expected[1]


def go_on(store, model, path):
    with running(store, model, persist_db=path):
        return program()


@pytest.mark.parametrize("again", range(1, APPENDS, 3))
@pytest.mark.parametrize("at", range(1, APPENDS, 2))
def test_a_run_that_ended_twice_goes_on_with_what_it_had_saved(at, again, tmp_path):
    expected = whole(tmp_path / "whole.db")
    path = tmp_path / "a.db"
    before(path)
    store, (model, _) = Crashing(at, written=True), plays(*MODEL)
    with pytest.raises(Crash):
        go_on(store, model, path)
    store.at = store.appends + again
    with contextlib.suppress(Crash):
        go_on(store, model, path)
    store.at = None
    assert go_on(store, model, path) == expected[0]
    assert kept(path) == expected[1]


def test_the_system_message_stays_at_the_head_of_a_history_that_a_journal_gave(tmp_path):
    path = tmp_path / "a.db"
    store, (model, _) = Crashing(4), plays(*MODEL)
    with pytest.raises(Crash), running(store, model, persist_db=path, system_prompt="full"):
        program()
    store.at = None
    with running(store, model, persist_db=path, system_prompt="full"):
        *_, history = program()
    assert [role for role, _ in history].index("system") == 0
