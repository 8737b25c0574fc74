"""One turn of a run, and what its prompt consisted of."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from effectful_agents.messages import Usage

__all__ = ["PrefixBreak", "Section", "ToolEconomy", "TurnEconomy", "TurnOutcome"]


class Section(enum.StrEnum):
    """A part of a prompt, in the order in which a provider reads them."""

    TOOLS = "tools"
    """The definitions of the tools that are offered."""
    FORM = "form of the answer"
    """The schema that the answer has to fit."""
    SYSTEM = "system"
    """The system message."""
    EARLIER = "earlier calls"
    """What the user and the model said in earlier calls of the same agent."""
    USER = "user"
    """What the user says in this call."""
    REPLIES = "replies"
    """What the model said in earlier turns of this call: its text, its tool calls."""
    RESULTS = "tool results"
    """What tools returned, in this call and in earlier ones."""


class TurnOutcome(enum.StrEnum):
    """What came of a turn."""

    REPLIED = "replied"
    """The model replied, and the call went on with it."""
    REFUSED = "refused"
    """The model replied, and was asked again: the reply could not be decoded, or was not taken for another reason."""
    FAILED = "failed"
    """There was no reply, but an error. Whether it cost something is not known."""
    UNKNOWN = "unknown"
    """It was attempted, and nobody knows what came of it, nor what it cost."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToolEconomy:
    """What a tool costs in prompts, in tokens.

    Attributes:
        definition: Of its definition. It is sent with each request, and counted each time.
        results: Of its results. They stay in the prompt, and are counted in each request that has them.
        calls: How often the model called it, also in code that it wrote.

    >>> ToolEconomy(definition=40, results=10, calls=1) + ToolEconomy(definition=40, results=30)
    ToolEconomy(definition=80, results=40, calls=1)
    """

    definition: int = 0
    results: int = 0
    calls: int = 0

    def __add__(self, other: ToolEconomy) -> ToolEconomy:
        return ToolEconomy(
            definition=self.definition + other.definition,
            results=self.results + other.results,
            calls=self.calls + other.calls,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrefixBreak:
    """Where a request stops agreeing with the one before it, so that a provider's cache need not have what follows.

    Attributes:
        part: What differs: `model`, or the section.
        where: The first place that differs, in words: a tool, a section of the system message, a message.
        how: What was there and what is there now, in words.
        by: The handler that says of itself that it may do this, where the difference tells which; otherwise empty.
        lost: Tokens that the request before has beyond those with which this one begins as any earlier one to the same
            model: what a cache could have served, had it gone on.
    """

    part: str
    where: str
    how: str
    by: str = ""
    lost: int = 0

    def __str__(self) -> str:
        by = f" (`{self.by}` may do this)" if self.by else ""
        return f"{self.where}: {self.how}{by}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TurnEconomy:
    """A turn: one request to a model, and what it cost.

    Counts of the parts are ours: estimates, unless a handler of `count_tokens` knows the model's tokenizer. What the
    provider reported is in `usage`, and need not be the same number.

    Attributes:
        step_id: The step of the run.
        skill: The skill in whose call it was.
        model: The model that replied, or else was asked; empty where that is not recorded.
        outcome: What came of it.
        attempt: 1, and one more for each time that the step was made again.
        sections: Tokens by part of the prompt; those that were not there are left out.
        system: Tokens by section of the system message; they add up to its part.
        tools: Tokens by tool; they add up to the parts of the tools and of their results.
        agreed: Tokens at the beginning of the prompt that are those of an earlier one to the same model, the one that
            agrees longest: what a provider may still have.
        broken: What broke the prefix; None where nothing did, or there was no turn before.
        estimated: Whether one of the counts is an estimate.
        usage: What the provider reported; nothing is known of a turn without a reply.
        cost: In US dollars; None where it is not known.
        error: What the turn failed with, where it did.
    """

    step_id: str
    skill: str
    model: str
    outcome: TurnOutcome
    attempt: int = 1
    sections: Mapping[Section, int] = dataclasses.field(default_factory=dict)
    system: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tools: Mapping[str, ToolEconomy] = dataclasses.field(default_factory=dict)
    agreed: int = 0
    broken: PrefixBreak | None = None
    estimated: bool = True
    usage: Usage = dataclasses.field(default_factory=Usage)
    cost: float | None = None
    error: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether there was a reply. A turn without one is listed, and is in no sum."""
        return self.outcome in (TurnOutcome.REPLIED, TurnOutcome.REFUSED)

    @property
    def tokens(self) -> int:
        """Tokens of the prompt, as counted here: the sum of the parts."""
        return sum(self.sections.values())

    @property
    def cached(self) -> float | None:
        """The share of the prompt that was served from a cache, from 0 to 1; None where nobody reported it."""
        if self.usage.cache_read is None or not self.usage.input:
            return None
        return min(1.0, self.usage.cache_read / self.usage.input)
