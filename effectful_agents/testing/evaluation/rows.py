"""One row of an evaluation: a case, what came of it, and how good that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from effectful_agents.messages import Message, Usage
from effectful_agents.testing.evaluation.cases import Case

__all__ = ["Failure", "Row"]


@dataclasses.dataclass(frozen=True)
class Failure:
    """What went wrong at a case.

    Attributes:
        scorer: The scorer that failed; empty where the skill did.
        kind: The class of the exception.
        message: Its text.
        traceback: The lines of user code that it passed through, and the exception. The same in every process.
        suspended: Whether it is no failure, but our `Suspended`: the call waits for somebody's decision.
    """

    scorer: str
    kind: str
    message: str
    traceback: str = ""
    suspended: bool = False

    def __str__(self) -> str:
        text = f"{self.kind}: {self.message}" if self.message else self.kind
        return f"{self.scorer}: {text}" if self.scorer else text


@dataclasses.dataclass(frozen=True)
class Row[T]:
    """What came of a case, at one of its trials.

    Attributes:
        case: The case.
        output: What the skill returned; None where it failed.
        scores: The scores, by name. What failed has none.
        notes: Texts that scorers gave beside their scores, by name.
        failures: What the skill, or scorers, failed with.
        trial: 1, and more where cases are repeated.
        seconds: How long the call took.
        usage: The tokens of all its requests, those of nested calls and of refused replies included; those of judges
            are not.
        cost: What these cost, in US dollars; None where a price is not known.
        messages: The conversation of the call; empty where it failed.
    """

    case: Case
    output: T | None = None
    scores: Mapping[str, bool | float] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    trial: int = 1
    seconds: float = 0.0
    usage: Usage = Usage()  # noqa: RUF009 - it is frozen
    cost: float | None = None
    messages: Sequence[Message] = ()

    @property
    def error(self) -> Failure | None:
        """What the skill failed with; None where it returned."""
        return next((each for each in self.failures if not each.scorer), None)

    @property
    def suspended(self) -> bool:
        """Whether the call waits for somebody's decision, and so has neither failed nor ended."""
        error = self.error
        return error is not None and error.suspended
