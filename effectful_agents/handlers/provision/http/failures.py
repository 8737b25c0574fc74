"""What a service or the way to it raises, as errors of ours."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from effectful_agents.errors import (
    AgentsError,
    ContextLengthError,
    ModelAccessError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
)
from effectful_agents.handlers.provision.retries import retry_after

__all__ = ["Asked"]

_CONTEXT_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_POLICY_CODES = {"content_policy_violation", "content_filter"}
# vLLM, Ollama and gateways have no code for it.
_ABOUT_CONTEXT = re.compile(r"(maximum|max|available|exceeds?\b.*) (context|input) (length|size|window)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, where; it words the errors.

    Attributes:
        url: The address, without a password.
        model: The model; empty where none was named.
        provider: The kind of service.
        has_key: Whether a key was sent.
        secrets: What was sent and must stand in no error, though the service may repeat it.
    """

    url: str
    model: str
    provider: str
    has_key: bool = False
    secrets: tuple[str, ...] = ()

    def refused(self, status: int | None, body: Mapping[str, Any] | bytes, headers: Mapping[str, str]) -> AgentsError:
        """The error for an answer that is none.

        Args:
            status: Its HTTP status; None where that was 200, and the body says that something failed.
            body: What it says, read or not.
            headers: Its headers, the names in small letters.
        """
        error = _error(_read(body))
        said = self._clean(error.get("message") or "") or (f"status {status}" if status else "no reason is given")
        message = f"{self._what()}: {said}"
        codes = {error.get("code"), error.get("type")}
        if codes & _CONTEXT_CODES or (status in (400, 413, 422) and _ABOUT_CONTEXT.search(said)):
            tokens, limit = error.get("n_prompt_tokens"), error.get("n_ctx")
            return ContextLengthError(message, prompt_tokens=tokens, limit=limit, provider=self.provider)
        if codes & _POLICY_CODES:
            return RefusalError(message, status=status, provider=self.provider)
        if misuse := self._misuse(status, said, headers):
            return misuse
        kind = RequestTimeoutError if status == 408 else ProviderError
        retryable = True if status == 408 else None
        pause = retry_after(headers)
        return kind(message, status=status, provider=self.provider, retryable=retryable, retry_after=pause)

    def failed(self, httpx: ModuleType, error: Exception, timeout: float | None) -> ProviderError:
        """The error for a request that httpx could not carry out."""
        said = self._clean(str(error)) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            # Said by httpx in a word or none.
            return RequestTimeoutError(f"{self._what()}: nothing came for {timeout:g} s", provider=self.provider)
        if isinstance(error, httpx.TransportError):
            return NetworkError(f"{self._what()}: {said}", provider=self.provider)
        return self.unreadable(said)

    def broken(self) -> NetworkError:
        """The error for a stream that ends before the reply does."""
        return NetworkError(
            f"{self._what()}: the stream broke off before the reply was complete", provider=self.provider
        )

    def unreadable(self, why: object, *, status: int | None = None) -> ProviderError:
        """The error for a reply that is none; with a status, it will be none the next time either."""
        said = self._clean(str(why))
        return ProviderError(f"{self._what()}: the reply cannot be read: {said}", status=status, provider=self.provider)

    def _misuse(self, status: int | None, said: str, headers: Mapping[str, str]) -> ModelAccessError | None:
        if status in (401, 403):
            if not self.has_key:
                return ModelAccessError(f"{self._what()}: a key is wanted, pass `api_key=`: {said}")
            return ModelAccessError(f"{self._what()}: the `api_key` was refused: {said}")
        if status in (404, 405):
            return ModelAccessError(
                f"{self._what()}: there is no such model, or no such address; "
                f"look at `model`, `base_url` (it often ends in `/v1`) and `path`: {said}"
            )
        if status is not None and 300 <= status < 400:
            where = self._clean(headers.get("location", ""))
            return ModelAccessError(f"{self._what()}: it has moved to `{where}`; change `base_url`")
        return None

    def _what(self) -> str:
        return f"`{self.model}` at {self.url}" if self.model else self.url

    def _clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "…")
        text = " ".join(text.split())
        return text if len(text) <= 500 else text[:500] + "…"


def _read(body: Mapping[str, Any] | bytes) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _error(body: Any) -> dict[str, Any]:
    """What a body says went wrong: an object in `error`, a text there, or, with some servers, the body itself."""
    error = body
    for name in ("error", "detail"):
        if isinstance(body, Mapping) and body.get(name):
            error = body[name]
            break
    if not isinstance(error, Mapping):
        return {"message": error if isinstance(error, str) else json.dumps(error)}
    message = error.get("message")
    said = {name: value for name, value in error.items() if isinstance(value, (str, int))}
    return {**said, "message": message if isinstance(message, str) else json.dumps(error, ensure_ascii=False)}
