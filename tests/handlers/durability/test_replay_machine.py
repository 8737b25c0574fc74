"""What a journal knows of its steps, against a few lines that know it too, over random courses of events."""

from __future__ import annotations

import dataclasses
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from effectful_agents.errors import JournalError
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.durability.replay import Outcome, Replay
from effectful_agents.handlers.durability.runs import settle, unsettled
from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.operations.steps import make_step_id


@dataclasses.dataclass
class Step:
    """What is known of a step: the attempt that counts, and what came of it."""

    attempt: int = 1
    outcome: Outcome = Outcome.UNCERTAIN
    failed: bool = False
    made_by_person: bool = False


class Journals(RuleBasedStateMachine):
    """A run whose steps are attempted, end, are settled and are told again."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryCheckpointer()
        self.state = RunState("run")
        self.known: dict[str, Step] = {}

    def write(self, step_id: str, attempt: int, phase: Phase, **body: Any) -> None:
        record = Record(run_id="run", step_id=step_id, attempt=attempt, phase=phase, kind="tool", name="pay", body=body)
        self.store.append(record)
        self.state.add(record)

    def some(self, data: st.DataObject, *outcomes: Outcome) -> str | None:
        steps = [step_id for step_id, step in self.known.items() if step.outcome in outcomes]
        return data.draw(st.sampled_from(steps)) if steps else None

    @rule()
    def begins(self) -> None:
        step_id = make_step_id(len(self.known) + 1, "tool")
        self.write(step_id, 1, Phase.ATTEMPTED)
        self.known[step_id] = Step()

    @rule(data=st.data())
    def is_made_again(self, data: st.DataObject) -> None:
        step_id = self.some(data, Outcome.NEW, Outcome.DENIED, Outcome.UNCERTAIN)
        if step_id is None:
            return
        step = self.known[step_id]
        attempt = step.attempt + (step.outcome is Outcome.UNCERTAIN)
        self.write(step_id, attempt, Phase.ATTEMPTED)
        self.known[step_id] = Step(attempt)

    @rule(data=st.data(), came=st.sampled_from([{"value": 1}, {"error": {"text": "no"}}, {"denied": "not today"}]))
    def ends(self, data: st.DataObject, came: dict[str, Any]) -> None:
        step_id = self.some(data, Outcome.UNCERTAIN)
        if step_id is None:
            return
        step = self.known[step_id]
        self.write(step_id, step.attempt, Phase.COMPLETED, **came)
        if "denied" in came:
            self.known[step_id] = Step(step.attempt + 1, Outcome.DENIED)
        else:
            self.known[step_id] = Step(step.attempt, Outcome.DONE, failed="error" in came)

    @rule(data=st.data(), redo=st.booleans())
    def is_settled(self, data: st.DataObject, redo: bool) -> None:
        step_id = self.some(data, Outcome.UNCERTAIN, Outcome.DONE)
        if step_id is None:
            return
        step = self.known[step_id]
        answer: Any = {"redo": True} if redo else {"done": 2}
        may_be = step.outcome is Outcome.UNCERTAIN or (redo and step.failed)
        if step.made_by_person:
            return  # whether another answer may follow is a matter of `settle`
        if not may_be:
            with pytest.raises(JournalError):
                settle(self.store, "run", step_id, **answer)
            return
        record = settle(self.store, "run", step_id, **answer)
        self.state.add(record)
        if redo:
            self.known[step_id] = Step(record.attempt + 1, Outcome.NEW, made_by_person=True)
        else:
            self.known[step_id] = Step(record.attempt, Outcome.DONE, made_by_person=True)

    @precondition(lambda self: self.state.records)
    @rule(data=st.data())
    def is_written_twice(self, data: st.DataObject) -> None:
        self.store.append(data.draw(st.sampled_from(self.state.records)))

    @invariant()
    def the_journal_knows(self) -> None:
        loaded = self.store.load("run")
        for state in self.state, loaded:
            replay = Replay(state)
            assert {step_id: replay.of(step_id).outcome for step_id in self.known} == {
                step_id: step.outcome for step_id, step in self.known.items()
            }
            assert {step_id: replay.of(step_id).attempt for step_id in self.known} == {
                step_id: step.attempt for step_id, step in self.known.items()
            }
            assert list(state.steps()) == list(self.known)
            assert replay.of(make_step_id(len(self.known) + 1, "tool")).outcome is Outcome.NEW
            uncertain = [step_id for step_id, step in self.known.items() if step.outcome is Outcome.UNCERTAIN]
            assert list(state.uncertain()) == list(unsettled(state)) == uncertain
        assert [record.key for record in loaded.records] == [record.key for record in self.state.records]


TestJournals = Journals.TestCase
TestJournals.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
