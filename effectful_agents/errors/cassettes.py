"""What is wrong with recorded replies of models."""

from __future__ import annotations

from effectful_agents.errors.base import AgentsError

__all__ = ["CassetteError", "UnrecordedRequest"]


class CassetteError(AgentsError):
    """A file of recorded replies cannot be read or written.

    Attributes:
        path: The file.
    """

    ends_call = True

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class UnrecordedRequest(CassetteError):
    """A request was made that has no recorded reply, or none that was not given yet."""
