"""What a model service fails with, or the way to it."""

from __future__ import annotations

from typing import override

from effectful_agents.errors.base import AgentsError, retryable_for_status

__all__ = ["ContextLengthError", "NetworkError", "ProviderError", "RefusalError", "RequestTimeoutError"]


class ProviderError(AgentsError):
    """A model service answered with an error.

    Attributes:
        status: The HTTP status, or None where no answer came.
        provider: Name of the service.
    """

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        provider: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        if retryable is None:
            retryable = self._default_retryable(status)
        super().__init__(message, retryable=retryable, retry_after=retry_after)
        self.status = status
        self.provider = provider

    @classmethod
    def _default_retryable(cls, status: int | None) -> bool:
        return retryable_for_status(status)


class RequestTimeoutError(ProviderError):
    """No answer came within the time allowed."""


class NetworkError(ProviderError):
    """The way to the provider failed, not the provider."""


class RefusalError(ProviderError):
    """The model, or the filter of its provider, declined to answer; asking the same again does not help."""

    @classmethod
    @override
    def _default_retryable(cls, status: int | None) -> bool:
        return False


class ContextLengthError(ProviderError):
    """The prompt is longer than the model can read.

    Attributes:
        prompt_tokens: Tokens of the prompt, where they were counted.
        limit: Tokens that the model can read, prompt and reply together.
    """

    def __init__(
        self, message: str = "", *, prompt_tokens: int | None = None, limit: int | None = None, provider: str = ""
    ) -> None:
        super().__init__(message, provider=provider)
        self.prompt_tokens = prompt_tokens
        self.limit = limit

    @classmethod
    @override
    def _default_retryable(cls, status: int | None) -> bool:
        return False
