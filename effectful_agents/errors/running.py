"""What ends a call, or the code in it: limits and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from effectful_agents.errors.base import AgentsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from effectful_agents.messages import Message

__all__ = ["CodeStopped", "Denied", "GovernanceRefused", "LimitExceeded", "PeerError", "StepDenied", "TypeCheckerError"]


class TypeCheckerError(AgentsError, RuntimeError):
    """A type checker could not run, or broke off; it says nothing about the code that it was given."""


class CodeStopped(AgentsError):
    """Code that a model wrote reached one of the limits that it was run under; whatever ran it goes on.

    Attributes:
        limit: Name of the limit, as it is set.
        value: The value at which it was reached.
    """

    def __init__(self, limit: str, value: float, advice: str = "") -> None:
        super().__init__(f"the limit `{limit}` of {value:,} was reached{'. ' if advice else ''}{advice}")
        self.limit = limit
        self.value = value


class LimitExceeded(AgentsError):
    """A limit was reached.

    Attributes:
        limit: Name of the limit, as it is set.
        value: The value at which it was reached.
        messages: The conversation so far, where the limit stopped a call.
    """

    def __init__(self, limit: str, value: float, *, messages: Sequence[Message] = (), advice: str = "") -> None:
        super().__init__(f"the limit `{limit}` of {value} was reached. {advice}".rstrip())
        self.limit = limit
        self.value = value
        self.messages = tuple(messages)


class PeerError(AgentsError):
    """A server or agent of somebody else's failed, could not be reached, or said what nobody could use.

    A tool that raises it has failed as other tools do: the model is told.

    Attributes:
        peer: Which one, as the program names it.
    """

    def __init__(self, message: str, *, peer: str, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.peer = peer


class Denied(AgentsError):
    """A policy ended the run.

    Attributes:
        decision: The decision that was taken, or its reason as text.
    """

    ends_call = True

    def __init__(self, decision: Any) -> None:
        message = decision if isinstance(decision, str) else getattr(decision, "message", "")
        rule = getattr(decision, "rule", "")
        super().__init__((message or "a policy ended the run") + (f" (rule: {rule})" if rule else ""))
        self.decision = decision


class StepDenied(AgentsError):
    """A policy, or a person who was asked, did not allow one step; the model is told so and goes on.

    It is what code gets that calls a tool, imports a module or reads a memory which it may not.

    Attributes:
        decision: The decision that was taken.
    """

    def __init__(self, decision: Any) -> None:
        rule = getattr(decision, "rule", "")
        message = getattr(decision, "message", "") or "It is not allowed."
        super().__init__(f"not done: {message}" + (f" (rule: {rule})" if rule else ""))
        self.decision = decision


class GovernanceRefused(AgentsError):
    """A rule refused what a user said, a tool call asked, or a draft contained.

    Attributes:
        rule: Name of the rule.
    """

    def __init__(self, rule: str, message: str = "") -> None:
        super().__init__(message or f"the rule `{rule}` refused it")
        self.rule = rule
