"""Ledgers: what runs have asked people, and what they said, each answered once."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Iterable, Mapping, Sequence

from effectful_agents.errors import QuestionChanged, TokenExpired, TokenUnknown, TokenUsed
from effectful_agents.operations.approvals import PendingQuestion, QuestionState
from effectful_agents.operations.policy import Answer

__all__ = ["MemoryLedger", "answered", "asked", "unknown"]


def asked(
    of_step: Iterable[PendingQuestion], question: PendingQuestion, instead_of: str = ""
) -> tuple[PendingQuestion, Mapping[str, QuestionState]]:
    """What becomes of a question that a run asks, and of the earlier ones of its step.

    Args:
        of_step: The questions that are kept of the same step of the run.
        question: The new one.
        instead_of: One that was answered in vain.

    Returns:
        The question to be kept, which may be one of those that are there; and the states that change, by token id.
    """
    changes: dict[str, QuestionState] = {}
    kept = None
    for one in of_step:
        same = one.digest == question.digest
        if same and one.token_id == instead_of and one.state is QuestionState.ANSWERED:
            changes[one.token_id] = QuestionState.REJECTED
        elif same and one.state is QuestionState.ANSWERED:
            kept = one
        elif one.state is QuestionState.WAITING:
            if same and one.scope == question.scope and one.is_open(question.asked):
                kept = kept or one
            else:
                changes[one.token_id] = QuestionState.RENEWED if same else QuestionState.CHANGED
    return kept or question, changes


def answered(question: PendingQuestion | None, answer: Answer, at: float) -> PendingQuestion:
    """A question as it is answered.

    Raises:
        TokenUnknown: There is none.
        TokenUsed: It has been answered.
        TokenExpired: It can no longer be answered.
        QuestionChanged: The run asks something else.
    """
    if question is None:
        raise unknown()
    told = f"the question of the run `{question.run_id}` at the step `{question.step_id}`"
    if question.state is QuestionState.CHANGED:
        raise QuestionChanged(f"{told} has changed: the run asks something else there by now, with another token.")
    if question.state in (QuestionState.ANSWERED, QuestionState.REJECTED):
        raise TokenUsed(f"{told} has been answered.")
    if not question.is_open(at):
        raise TokenExpired(f"{told} has expired. Resume the run: it asks again, with another token.")
    return dataclasses.replace(question, state=QuestionState.ANSWERED, answer=answer, answered=at)


def unknown() -> TokenUnknown:
    """The error for a token that nothing is asked with."""
    return TokenUnknown("nothing is asked with this token here. Is this the ledger that the run was begun with?")


class MemoryLedger:
    """Keep questions and answers in memory: for tests, and for programs whose runs end with their process.

    Threads and tasks may use it at the same time. What it is given, and what it gives, are copies of what it keeps.

    >>> from effectful_agents.operations.approvals import PendingQuestion
    >>> ledger = MemoryLedger()
    >>> question = PendingQuestion(token_id="t", run_id="r", step_id="s", digest="d", scope="ann", text="?", expires=9)
    >>> ledger.ask(question).state.value
    'waiting'
    >>> ledger.consume("t", Answer(approved=False, reason="no"), at=5).state.value
    'answered'
    >>> ledger.answer_for("r", "s", "d").answer.reason
    'no'
    """

    def __init__(self) -> None:
        # Held for what is done here and never while an operation is performed.
        self._lock = threading.Lock()
        self._kept: dict[str, PendingQuestion] = {}

    def ask(self, question: PendingQuestion, *, instead_of: str = "") -> PendingQuestion:
        place = question.run_id, question.step_id
        with self._lock:
            of_step = [one for one in self._kept.values() if (one.run_id, one.step_id) == place]
            kept, changes = asked(of_step, question, instead_of)
            for token_id, state in changes.items():
                self._kept[token_id] = dataclasses.replace(self._kept[token_id], state=state)
            kept = self._kept.setdefault(kept.token_id, copy.deepcopy(kept))
        return copy.deepcopy(kept)

    def find(self, token_id: str) -> PendingQuestion | None:
        with self._lock:
            kept = self._kept.get(token_id)
        return copy.deepcopy(kept)

    def consume(self, token_id: str, answer: Answer, at: float) -> PendingQuestion:
        answer = copy.deepcopy(answer)
        with self._lock:
            question = self._kept[token_id] = answered(self._kept.get(token_id), answer, at)
        return copy.deepcopy(question)

    def answer_for(self, run_id: str, step_id: str, digest: str) -> PendingQuestion | None:
        wanted = run_id, step_id, digest, QuestionState.ANSWERED
        with self._lock:
            kept = list(self._kept.values())
        found = (one for one in kept if (one.run_id, one.step_id, one.digest, one.state) == wanted)
        return copy.deepcopy(next(found, None))

    def questions(self, run_id: str | None = None, *, open_at: float | None = None) -> Sequence[PendingQuestion]:
        with self._lock:
            kept = list(self._kept.values())
        of_run = [one for one in kept if run_id is None or one.run_id == run_id]
        return copy.deepcopy([one for one in of_run if open_at is None or one.is_open(open_at)])

    def forget(self, run_id: str) -> None:
        with self._lock:
            self._kept = {token_id: one for token_id, one in self._kept.items() if one.run_id != run_id}
