"""Asking a journal what became of a step."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from collections.abc import Mapping, Sequence

from effectful_agents.operations.records import Durability, Phase, Record, RunState

__all__ = ["Known", "Outcome", "Replay"]


class Outcome(enum.StrEnum):
    """What a journal knows of a step."""

    DONE = "done"
    """What came of it is recorded: it is returned, and nothing happens again."""
    NEW = "new"
    """Nothing: it is made."""
    DENIED = "denied"
    """It was not allowed. It is asked for again: somebody may have changed their mind."""
    UNCERTAIN = "uncertain"
    """It was attempted, and what came of it is not known: a crash came between."""


@dataclasses.dataclass(frozen=True)
class Known:
    """What a journal knows of a step.

    Attributes:
        outcome: What became of it.
        attempt: The attempt that is recorded, or that comes next.
        record: What was recorded last about it: what came of it, or else what was attempted.
        asked: What was attempted.
    """

    outcome: Outcome
    attempt: int
    record: Record | None = None
    asked: Record | None = None


class Replay:
    """Looks up the steps of a run that is resumed.

    Args:
        state: The journal of the run.

    >>> state = RunState("r", [Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool")])
    >>> Replay(state).of("000001-tool").outcome, Replay(state).of("000002-tool").outcome
    (<Outcome.UNCERTAIN: 'uncertain'>, <Outcome.NEW: 'new'>)
    """

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._at = {_position(step_id): step_id for step_id in state.steps()}
        self._place = {record.key: place for place, record in enumerate(state.records)}
        self._changing = {
            record.step_id.partition("/")[0]
            for record in state.records
            if "again" in record.body or "self" in record.body
        }

    def of(self, step_id: str) -> Known:
        """What became of a step."""
        asked, came = self.state.attempted(step_id), self.state.completed(step_id)
        if came is not None:
            if came.body.get("settled") == "redo":
                return Known(Outcome.NEW, came.attempt + 1, came, asked)
            if came.body.get("denied"):
                return Known(Outcome.DENIED, came.attempt + 1, came, asked)
            if _failed(came) and self._is_last(came):  # the run ended with it: now it may go better
                return Known(Outcome.NEW, came.attempt + 1, came, asked)
            return Known(Outcome.DONE, came.attempt, came, asked)
        if asked is not None:
            return Known(Outcome.UNCERTAIN, asked.attempt, asked, asked)
        return Known(Outcome.NEW, 1)

    def instead(self, step_id: str) -> str | None:
        """What the run did at the place of a step, where that is something of another kind."""
        there = self._at.get(_position(step_id))
        return None if there == step_id else there

    def below(self, step_id: str) -> Sequence[Record]:
        """What a step did inside, if it is answered whole: its requests, tool calls and delegations, as attempted."""
        came = self.state.completed(step_id)
        if came is None or "again" in came.body or (came.kind == "delegate" and "whole" not in came.body):
            return ()
        return self._inside.get(step_id, ())

    @functools.cached_property
    def _inside(self) -> Mapping[str, Sequence[Record]]:
        found: dict[str, list[Record]] = {}
        for step_id in self.state.steps():
            asked = self.state.attempted(step_id)
            if asked is None or asked.kind not in ("model", "tool", "delegate"):
                continue
            outer = step_id
            while outer := outer.rpartition("/")[0]:
                found.setdefault(outer, []).append(asked)
        return found

    def ended(self, record: Record) -> int:
        """The place of a record in the journal."""
        return self._place[record.key]

    def changes_program(self, step_id: str) -> bool:
        """Whether something in a call of the program's changed objects of the program."""
        return step_id in self._changing

    def _is_last(self, record: Record) -> bool:
        """Whether nothing was recorded after a step but the ends of what it is nested in."""
        for later in itertools.islice(self.state.records, self._place[record.key] + 1, None):
            if later.step_id and not (later.phase is Phase.COMPLETED and record.step_id.startswith(later.step_id)):
                return False
        return True


def _failed(record: Record) -> bool:
    """Whether a step failed that can be made again: a request to a model, or one that could wait to be written."""
    if "not made" in record.body:  # nobody allowed it: now somebody may
        return True
    repeatable = record.kind in ("model", "approval") or record.durability is Durability.DEFERRABLE
    return repeatable and "error" in record.body and "settled" not in record.body


def _position(step_id: str) -> str:
    return step_id.rpartition("-")[0]
