"""What is wrong with what is kept: journals of runs, and files."""

from __future__ import annotations

from effectful_agents.errors.base import AgentsError

__all__ = ["JournalError", "LeaseLost", "ReplayDivergence", "RunInUse", "StorageError", "UncertainEffect"]


class UncertainEffect(AgentsError):
    """A step was attempted before a crash and its outcome is not known.

    Attributes:
        step_id: The step, as the journal names it.
        detail: What is known about it.
    """

    ends_call = True

    def __init__(self, step_id: str, *, detail: str = "") -> None:
        super().__init__(f"the step `{step_id}` was attempted, and whether it happened is not known. {detail}".rstrip())
        self.step_id = step_id
        self.detail = detail


class ReplayDivergence(AgentsError):
    """A resumed program asked for something else than its journal recorded at that step."""

    ends_call = True


class JournalError(AgentsError):
    """The journal of a run cannot be written, read, or understood."""

    ends_call = True


class RunInUse(JournalError):
    """A run was asked for that somebody else has."""

    retryable = True


class LeaseLost(JournalError):
    """A run was taken over by another process, since this one had not been heard of for too long."""


class StorageError(AgentsError):
    """A file in which something is kept cannot be opened, read or written, or is not what it should be.

    Attributes:
        path: The file.
    """

    ends_call = True

    def __init__(self, message: str, *, path: str, retryable: bool | None = None) -> None:
        super().__init__(message, retryable=retryable)
        self.path = path
