"""What LiteLLM raises, as errors of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from effectful_agents.errors import (
    AgentsError,
    ConfigurationError,
    ContextLengthError,
    MissingDependencyError,
    ModelAccessError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
)
from effectful_agents.handlers.provision.retries import retry_after

__all__ = ["translated"]

_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?:: | - ))+")
_BROKEN_OFF = "Stream ended before a finish_reason was received"
_ABOUT_KEY = re.compile(r"api.?key|credential", re.IGNORECASE)


def translated(
    litellm: ModuleType, error: Exception, request: Mapping[str, Any], handled: BaseException | None
) -> AgentsError | None:
    """Our error for one that came out of LiteLLM.

    LiteLLM gives the same failure another class and status with each provider: a refused connection is a status of 500
    here and an error of the connection there. What really happened is in the chain of causes.

    Args:
        litellm: The module.
        error: What its `completion`, or a stream that it gave, raised.
        request: What it was asked.
        handled: The exception that was being handled already when the request began, or None.

    Returns:
        The error to raise from it; None where it is the caller's mistake, such as a TypeError.
    """
    import httpx  # noqa: PLC0415 - both belong to LiteLLM, and are loaded with it
    import openai  # noqa: PLC0415

    if not isinstance(error, openai.OpenAIError):
        return None
    causes = tuple(_causes(error, handled))
    if isinstance(error, litellm.exceptions.MidStreamFallbackError):
        error = error.original_exception or error  # the text is in the wrapping twice
    refused = next((cause for cause in causes if isinstance(cause, httpx.HTTPStatusError)), None)
    answer = None if refused is None else refused.response
    said = _said(error)
    if misuse := _misuse(litellm, error, causes, request, said, answered=answer is not None):
        return misuse

    def caused_by(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    message = f"`{request['model']}`: {said}"
    provider = getattr(error, "llm_provider", None) or ""
    pause = None if answer is None else retry_after(answer.headers)
    codes = {getattr(cause, "code", None) for cause in causes}  # LiteLLM looks at the text only
    status = _status(error, codes) if answer is None else answer.status_code
    if isinstance(error, litellm.ContextWindowExceededError) or "context_length_exceeded" in codes:
        return ContextLengthError(message, provider=provider)
    if isinstance(error, litellm.ContentPolicyViolationError) or codes & {"content_policy_violation", "content_filter"}:
        return RefusalError(message, status=status, provider=provider)
    if isinstance(error, litellm.Timeout) or caused_by(httpx.TimeoutException):
        status = None if answer is None else status  # LiteLLM says 408 where nobody has answered
        return RequestTimeoutError(message, status=status, provider=provider, retryable=True, retry_after=pause)
    if caused_by(httpx.TransportError, ConnectionError) or _BROKEN_OFF in said:
        return NetworkError(message, provider=provider)
    if answer is None and caused_by(json.JSONDecodeError):
        return ProviderError(f"`{request['model']}`: the reply is not JSON: {said}", provider=provider)
    return ProviderError(message, status=status, provider=provider, retry_after=pause)


def _misuse(
    litellm: ModuleType,
    error: Exception,
    causes: tuple[BaseException, ...],
    request: Mapping[str, Any],
    said: str,
    *,
    answered: bool,
) -> ConfigurationError | None:
    model = request["model"]
    if "LLM Provider NOT provided" in said:
        return ConfigurationError(f"LiteLLM knows no model `{model}`; name its provider too, as in `openai/gpt-5-mini`")
    if isinstance(error, litellm.UnsupportedParamsError):
        return ConfigurationError(f"`{model}`: {said}")
    if isinstance(error, litellm.NotFoundError):
        where = f" at {request['base_url']}" if "base_url" in request else ""
        return ModelAccessError(f"the model `{model}` was not found{where}: {said}")
    if not answered and any(isinstance(cause, ImportError) for cause in causes):
        return MissingDependencyError(f"`{model}`: {said}")
    if isinstance(error, litellm.AuthenticationError) or (not answered and _ABOUT_KEY.search(said)):
        # With some providers a missing key is a failed connection, or a status of 500.
        return ModelAccessError(_about_key(litellm, request, said))
    return None


def _about_key(litellm: ModuleType, request: Mapping[str, Any], said: str) -> str:
    model = request["model"]
    missing = litellm.validate_environment(model)["missing_keys"]
    if request.get("api_key") or not missing:
        return f"the key for `{model}` was refused: {said}"
    variables = ", ".join(f"`{name}`" for name in missing)
    return f"there is no key for `{model}`: set {variables} in the environment, or pass `api_key=`"


def _causes(error: BaseException | None, handled: BaseException | None) -> Iterator[BaseException]:
    # What was being handled when the request began stands at the end of the chain, and is none of its causes.
    while error is not None and error is not handled:
        yield error
        error = error.__cause__ or error.__context__


def _said(error: Exception) -> str:
    text = " ".join(str(error).partition("Traceback (most recent call last)")[0].split())
    text = _PREFIX.sub("", text)
    return text if len(text) <= 500 else text[:500] + "…"


def _status(error: Exception, codes: set[Any]) -> int | None:
    # A stream has begun with 200; what ends it may name another.
    for code in codes:
        if str(code).isdecimal() and 400 <= int(code) < 600:
            return int(code)
    # Nothing was answered. LiteLLM's 4xx is then its own refusal of the request, its 5xx a word for anything else.
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and 400 <= status < 500 else None
