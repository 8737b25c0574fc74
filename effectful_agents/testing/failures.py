"""Errors that a request ends with, as a cassette keeps them: those of providers, and of replies that may not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import to_jsonable
from effectful_agents.errors import ProviderError, ResultDecodingError, ToolCallDecodingError
from effectful_agents.handlers.durability.written import error_of, written_error

__all__ = ["failure_of", "written_failure"]


def written_failure(error: Exception) -> dict[str, Any] | None:
    """An error as JSON from which `failure_of` makes an equal one; None for one that asking again might not give."""
    if isinstance(error, ProviderError):
        return written_error(error)
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


def failure_of(written: Mapping[str, Any]) -> Exception:
    """The error that `written_failure` wrote."""
    if "problems" not in written:
        return error_of(written)
    problems, message = [ValueError(text) for text in written["problems"]], written["message"]
    if written["class"] == "ResultDecodingError":
        return ResultDecodingError(problems[0], message)
    calls = written["calls"]
    first, *others = (
        ToolCallDecodingError(problem, message, call) for problem, call in zip(problems, calls, strict=True)
    )
    return ToolCallDecodingError(first.original_error, message, first.raw_tool_call, others)
