"""Forks of runs in which people were asked: what has happened is not asked about again, and all else is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler
from effectful_agents.handlers.durability import MemoryCheckpointer, forked_records
from effectful_agents.handlers.policy import Policy
from effectful_agents.handlers.policy.ask_user import ask_user
from effectful_agents.operations.code import risk_of_code
from effectful_agents.operations.policy import Answer, Disposition, EffectKind, Question, request_approval
from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.testing import calls
from effectful_agents.types import Risk
from tests.handlers.durability.asking import YES, Office, Person
from tests.handlers.durability.journaling import plays, running

assert ask_user  # in the scope of the skills below

SNIPPET = """
import fractions
print('imported')
send('ann')
"""


class Project:
    """A program in which somebody is asked about something that is no step of its own."""

    def __init__(self, what: str) -> None:
        self.office = office = Office()
        send = office.send

        @Skill.define
        def plan(wish: str) -> str:
            """Plan {wish}, dear planner."""
            raise NotHandled

        assert send
        self.plan: Callable[[str], str] = plan
        ask = calls("ask_user", question="When?") if what == "ask_user" else calls("exec_code", code=SNIPPET)
        self.replies = ("dear planner", [ask, calls("send", to="bob"), "planned"])
        self.asks_about = EffectKind.IMPORT if what == "import" else None
        self.requests: list[Any] = []

    def run(self, store: MemoryCheckpointer, person: Callable[[Question], Answer]) -> str:
        model, self.requests = plays(self.replies)
        asks = Policy(
            lambda effect: Disposition.REQUIRE_APPROVAL if effect.kind == self.asks_about else None, name="asks"
        )
        with running(store, model), handler({risk_of_code: lambda: Risk.READ}), handler(asks):
            with handler({request_approval: person}):
                return self.plan("May")

    def told(self) -> list[str]:
        """What the model was told of the tool in which somebody was asked."""
        found = [one["messages"] for one in self.requests if one["messages"][-1]["role"] == "tool"]
        return [messages[-1]["content"] for messages in found if sum(one["role"] == "tool" for one in messages) == 1]


def fork_of(records: Sequence[Record], at: str | None = None) -> MemoryCheckpointer:
    store = MemoryCheckpointer()
    shared = forked_records(RunState("run", list(records)), "fork", at)
    store.append(*(dataclasses.replace(one, run_id="run") for one in shared))
    return store


SAID = {
    "ask_user": {"answered": Answer(text="In May."), "not answered": Answer(approved=False, reason="no time")},
    "import": {"approved": YES, "refused": Answer(approved=False, reason="not that one")},
}
CASES = [pytest.param(what, answer, id=f"{what}-{how}") for what, said in SAID.items() for how, answer in said.items()]


@pytest.mark.parametrize(("what", "answer"), CASES)
def test_what_has_happened_is_not_asked_about_again(what, answer):
    project, store = Project(what), MemoryCheckpointer()
    assert project.run(store, Person(answer)) == "planned"
    whole, told, sent = store.load("run"), project.told(), list(project.office.sent)
    assert len([one for one in whole.records if "/aside/" in one.step_id]) == 2
    # All of it; and all but the last request.
    for at in (None, whole.steps()[-1]):
        project.office.sent.clear()
        again = Project(what)
        assert again.run(fork_of(whole.records, at), Person(AssertionError("asked again"))) == "planned"
        assert again.told() in ([], told)
        assert again.office.sent == []
    assert sent


@pytest.mark.parametrize(("what", "answer"), CASES)
@pytest.mark.parametrize("ends", ["before the answer", "after the answer"])
def test_what_has_not_happened_is_asked_about_anew(what, answer, ends):
    """The first process ends right before, or right after, the answer is written; then the run is forked."""
    project, store = Project(what), MemoryCheckpointer()
    project.run(store, Person(answer))
    records = store.load("run").records
    asked = next(place for place, one in enumerate(records) if "/aside/" in one.step_id)
    assert [one.phase for one in records[asked : asked + 2]] == [Phase.ATTEMPTED, Phase.COMPLETED]
    for other in SAID[what].values():
        again, person = Project(what), Person(other)
        again.run(fork_of(records[: asked + 1 + (ends == "after the answer")]), person)
        assert len(person.asked) == 1
        said = other.text or other.reason or "imported"
        assert said in again.told()[0]
        # Code that may not import what it imports does not run.
        by_code = ["ann"] if what == "import" and other.approved else []
        assert [to for to, _ in again.office.sent] == [*by_code, "bob"]


@pytest.mark.parametrize(("what", "answer"), CASES)
def test_a_fork_at_the_step_in_which_somebody_was_asked_asks_again(what, answer):
    project, store = Project(what), MemoryCheckpointer()
    project.run(store, Person(answer))
    at = next(step for step in store.load("run").steps() if step.endswith("-tool"))
    again, person = Project(what), Person(answer)
    assert again.run(fork_of(store.load("run").records, at), person) == "planned"
    assert len(person.asked) == 1
    assert again.told() == project.told()
