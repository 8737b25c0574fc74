"""Errors as they cross the seam: those of our tree, with their fields, and never a traceback."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    Denied,
    GovernanceRefused,
    LimitExceeded,
    ModelAccessError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
    SeamVersionError,
    StepDenied,
    ToolCallDecodingError,
)
from effectful_agents.handlers.delegation.seam.gateway import BadRequest, UnknownToolRef
from effectful_agents.handlers.delegation.seam.wire import read_decision, write_decision
from effectful_agents.messages.text import printable_text

__all__ = ["bounded", "read_error", "write_error"]

_LONGEST = 1_000
_PROVIDERS: Mapping[str, type[ProviderError]] = {
    cls.__name__: cls for cls in (ProviderError, RequestTimeoutError, NetworkError, RefusalError)
}
_PLAIN: Mapping[str, type[ConfigurationError]] = {
    cls.__name__: cls for cls in (ConfigurationError, ModelAccessError, SeamVersionError, UnknownToolRef)
}


def bounded(text: object) -> str:
    """A text of the other side as it may stand in an error here: in one line, and not long."""
    said = printable_text(" ".join(str(text).split()))
    return said if len(said) <= _LONGEST else said[:_LONGEST] + "…"


def write_error(error: Exception) -> dict[str, Any] | None:
    """An error as it crosses; None for one that says more about the gateway than the program is to know."""
    said: dict[str, Any] = {"message": bounded(error)}
    more: dict[str, Any]
    match error:
        case Denied() | StepDenied() if hasattr(error.decision, "disposition"):
            return {"kind": "Denied", "decision": write_decision(error.decision)}
        case Denied() | StepDenied():
            return {"kind": "Denied", "decision": {"disposition": "terminate_run", **said}}
        case ContextLengthError():
            more = {"prompt_tokens": error.prompt_tokens, "limit": error.limit, "provider": error.provider}
            return {"kind": "ContextLengthError", **said, **more}
        case ProviderError():
            more = {"status": error.status, "provider": error.provider}
            more |= {"retryable": error.retryable, "retry_after": error.retry_after}
            kind = next(name for name in (cls.__name__ for cls in type(error).__mro__) if name in _PROVIDERS)
            return {"kind": kind, **said, **more}
        case LimitExceeded():
            return {"kind": "LimitExceeded", "limit": error.limit, "value": error.value}
        case GovernanceRefused():
            return {"kind": "GovernanceRefused", "rule": error.rule, **said}
        case ToolCallDecodingError():
            raw = {"raw_message": error.raw_message, "raw_tool_call": error.raw_tool_call}
            return {"kind": "ToolCallDecodingError", "message": bounded(error.original_error), **raw}
        case ResultDecodingError():
            reason = bounded(error.original_error)
            return {"kind": "ResultDecodingError", "message": reason, "raw_message": error.raw_message}
        case BadRequest():
            return {"kind": "ConfigurationError", **said}
        case SeamVersionError() | UnknownToolRef():
            return {"kind": type(error).__name__, **said}
    return None


def read_error(data: Any) -> Exception:
    """The error that a gateway sent.

    Raises:
        ValueError: It is none of ours.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise ValueError("it is an error of no kind that is known here")
    try:
        return read(data, bounded(data.get("message", "")))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("it is an error that lacks a part") from error


def _provider(data: Mapping[str, Any], message: str) -> ProviderError:
    status, retryable = data.get("status"), data.get("retryable")
    after: Any = data.get("retry_after")
    return _PROVIDERS[data["kind"]](
        message,
        status=status if type(status) is int and 100 <= status < 600 else None,
        provider=bounded(data.get("provider") or ""),
        retryable=retryable if isinstance(retryable, bool) else None,
        retry_after=float(after) if type(after) in (int, float) and 0 <= after < math.inf else None,
    )


def _context_length(data: Mapping[str, Any], message: str) -> ContextLengthError:
    tokens, limit = (value if type(value) is int else None for value in (data.get("prompt_tokens"), data.get("limit")))
    return ContextLengthError(message, prompt_tokens=tokens, limit=limit, provider=bounded(data.get("provider") or ""))


def _limit(data: Mapping[str, Any], message: str) -> LimitExceeded:
    return LimitExceeded(bounded(data["limit"]), float(data["value"]), advice="It is a limit of the gateway.")


def _tool_call(data: Mapping[str, Any], message: str) -> ToolCallDecodingError:
    return ToolCallDecodingError(ValueError(message), data["raw_message"], data["raw_tool_call"])


_READERS: Mapping[str, Callable[[Mapping[str, Any], str], Exception]] = {
    **dict.fromkeys(_PROVIDERS, _provider),
    **{kind: (lambda data, message: _PLAIN[data["kind"]](message)) for kind in _PLAIN},
    "ContextLengthError": _context_length,
    "LimitExceeded": _limit,
    "GovernanceRefused": lambda data, message: GovernanceRefused(bounded(data["rule"]), message),
    "ToolCallDecodingError": _tool_call,
    "ResultDecodingError": lambda data, message: ResultDecodingError(ValueError(message), data["raw_message"]),
    "Denied": lambda data, _: Denied(read_decision(data["decision"])),
}
