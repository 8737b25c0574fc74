"""Questions that wait for a person while nobody runs: what is kept of them, and what has to keep it.

A durable run that has to ask somebody ends there (`Suspended`) and is resumed when they have answered, in another
process, days later. What they are asked, and what they said, is kept in a *ledger*: `handlers.policy.SqliteLedger`, or
anything with the methods of `ConsumptionLedger`. `testing.ledgers.LedgerContract` is what each has to pass.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from effectful_agents.operations.policy import Answer

__all__ = ["ConsumptionLedger", "PendingQuestion", "QuestionState"]


class QuestionState(enum.StrEnum):
    """What has become of a question."""

    WAITING = "waiting"
    """Nobody has answered it; it may have expired meanwhile."""
    ANSWERED = "answered"
    """Somebody has, and the run gets it."""
    RENEWED = "renewed"
    """It had expired, and the run has asked it again, with another token."""
    CHANGED = "changed"
    """The run asks something else at this step."""
    REJECTED = "rejected"
    """The run could do nothing with the answer, and has asked again, with another token."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PendingQuestion:
    """A question that a run waits with, as plain data.

    Attributes:
        token_id: Identifies it, and its token. It gives no right to anything.
        run_id: The run.
        step_id: The step of the run that it is about.
        digest: Stands for all that is asked, see `encoding.question_digest`.
        scope: Who may answer it.
        text: What is asked, for people.
        kind: What kind of effect it is about, an `operations.policy.EffectKind`; empty where something is to be told.
        name: The tool, skill or module.
        arguments: What it is called with, as JSON.
        parameters: The JSON schema of these arguments; empty where there is none.
        risk: The name of its `Risk`, in small letters.
        returns: The JSON schema of the result that is wanted, of a call that somebody else is to make; else None.
        reason_code: Why somebody is asked, as a word for programs.
        asked: When it was asked, in seconds since 1970-01-01 UTC.
        expires: From when on it can no longer be answered with this token.
        state: What has become of it.
        answer: What they said; amended arguments are JSON.
        answered: When they did.
    """

    token_id: str
    run_id: str
    step_id: str
    digest: str
    scope: str
    text: str
    kind: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    risk: str = ""
    returns: Mapping[str, Any] | None = None
    reason_code: str = ""
    asked: float = 0.0
    expires: float = 0.0
    state: QuestionState = QuestionState.WAITING
    answer: Answer | None = None
    answered: float = 0.0

    @property
    def wants_text(self) -> bool:
        """Whether something is to be told, and nothing to be approved."""
        return not self.kind

    def is_open(self, at: float) -> bool:
        """Whether it can be answered at a time."""
        return self.state is QuestionState.WAITING and at < self.expires


@runtime_checkable
class ConsumptionLedger(Protocol):
    """What keeps questions and their answers, for all processes that resume runs or redeem tokens."""

    def ask(self, question: PendingQuestion, *, instead_of: str = "") -> PendingQuestion:
        """Keep a question of a run, unless it is kept already.

        The same question (run, step, digest) that waits already, of the same scope, is left as it is; one that is
        answered too. If it has expired by `question.asked` it is `RENEWED` by this one. Any other question of this step
        that waits is `CHANGED`.

        Args:
            question: What is asked now.
            instead_of: The token id of one that was answered, and with whose answer nothing can be done: it becomes
                `REJECTED`, and this one is kept.

        Returns:
            What is kept: this question, or the one that was there.
        """
        ...

    def find(self, token_id: str) -> PendingQuestion | None:
        """The question of a token, whatever has become of it."""
        ...

    def consume(self, token_id: str, answer: Answer, at: float) -> PendingQuestion:
        """Answer a question. Of several who do, at the same time and in whatever processes, one succeeds.

        Args:
            token_id: Its token.
            answer: What they say; amended arguments as JSON.
            at: The time.

        Returns:
            The question as it is answered; when this returns, the answer is kept whatever happens to the process.

        Raises:
            TokenUnknown: There is no such question.
            TokenUsed: It has been answered.
            TokenExpired: It can no longer be answered.
            QuestionChanged: The run asks something else.
        """
        ...

    def answer_for(self, run_id: str, step_id: str, digest: str) -> PendingQuestion | None:
        """A question that was answered, with its answer; None while it is not."""
        ...

    def questions(self, run_id: str | None = None, *, open_at: float | None = None) -> Sequence[PendingQuestion]:
        """Questions, in the order in which they were asked.

        Args:
            run_id: The run whose questions they are; None for those of all.
            open_at: A time at which they can be answered; None for all, whatever has become of them.
        """
        ...

    def forget(self, run_id: str) -> None:
        """Remove the questions of a run."""
        ...
