"""Errors that a request ends with, as a cassette keeps them: those of providers, and of replies that may not be."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.errors import (
    AgentsError,
    NetworkError,
    ProviderError,
    RequestTimeoutError,
    ResultDecodingError,
    ToolCallDecodingError,
)

__all__ = ["failure_of", "is_passing", "written_failure"]

_NO_ACCESS = (401, 402, 403, 407)


def written_failure(error: Exception) -> dict[str, Any] | None:
    """An error as JSON from which `failure_of` makes an equal one; None for one that asking again might not give."""
    if isinstance(error, ProviderError):
        return _written(error)
    # A provider holds replies to `tool_choice`.
    if isinstance(error, ToolCallDecodingError):
        errors = [error, *error.others]
        written = {
            "class": "ToolCallDecodingError",
            "problems": [str(each.original_error) for each in errors],
            "calls": [to_jsonable(each.raw_tool_call) for each in errors],
        }
    elif isinstance(error, ResultDecodingError):
        errors = [error]
        written = {"class": "ResultDecodingError", "problems": [str(error.original_error)]}
    else:
        return None
    if any(type(each.original_error) is not ValueError for each in errors):
        return None
    return written | {"message": to_jsonable(error.raw_message)}


def is_passing(error: Exception) -> bool:
    """Whether an error says nothing about a request, but of the network, of a busy service or of a key.

    >>> from effectful_agents.errors import NetworkError
    >>> is_passing(NetworkError("no route")), is_passing(ProviderError("no such model", status=404))
    (True, False)
    """
    if not isinstance(error, ProviderError):
        return False
    on_its_way = isinstance(error, NetworkError | RequestTimeoutError)
    return on_its_way or error.retryable is True or error.status in _NO_ACCESS


def failure_of(written: Mapping[str, Any]) -> Exception:
    """The error that `written_failure` wrote."""
    if "problems" not in written:
        return _read(written)
    problems, message = [ValueError(text) for text in written["problems"]], written["message"]
    if written["class"] == "ResultDecodingError":
        return ResultDecodingError(problems[0], message)
    calls = written["calls"]
    first, *others = (
        ToolCallDecodingError(problem, message, call) for problem, call in zip(problems, calls, strict=True)
    )
    return ToolCallDecodingError(first.original_error, message, first.raw_tool_call, others)


def _written(error: ProviderError) -> dict[str, Any]:
    state = {}
    for name, value in vars(error).items():
        with contextlib.suppress(AgentsError):  # what is no data is of no use in another process
            state[name] = to_jsonable(value)
    kind = type(error)
    return {"class": f"{kind.__module__}:{kind.__qualname__}", "message": str(error), **state}


def _read(written: Mapping[str, Any]) -> ProviderError:
    state = {name: value for name, value in written.items() if name not in ("class", "message")}
    kind = _class(written["class"])
    # As errors are copied: a class may be made of other things than its message.
    error = kind.__new__(kind, written["message"])
    error.args = (written["message"],)
    vars(error).update(state)
    return error


def _class(path: str) -> type[ProviderError]:
    """The class at a place, `module:name`, where its module is loaded; else what it is one of."""
    module, _, name = path.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, ProviderError) else ProviderError
