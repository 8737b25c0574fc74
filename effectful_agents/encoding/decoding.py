"""JSON text as values, and errors that a model can read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pydantic
from pydantic_core import ErrorDetails, from_json

from effectful_agents.encoding.adapters import type_adapter
from effectful_agents.messages.text import safe_text

__all__ = ["FENCE", "decode", "explain", "unpack", "validate_text"]

FENCE = re.compile(r"```[\w-]*[ \t]*\n")
"""The opening of a Markdown code fence."""
_SHOWN_ERRORS, _SHOWN_INPUT, _SHOWN_MESSAGE = 8, 60, 300


def decode(data: str, tp: Any, context: Any = None) -> Any:
    r"""A value of a type, from JSON text.

    Values are read as pydantic reads JSON in its lax mode: `"1"` is taken for an `int`. The packaging is forgiven once:
    JSON inside a JSON string, or inside a Markdown code fence.

    Args:
        data: The text.
        tp: The type.
        context: What validators of the type see as `info.context`.

    Raises:
        ValueError: The text is not JSON, or not what the type says; the message is short enough for a model.
        EncodingError: The type cannot be described.

    >>> decode('```json\n[1, 2]\n```', tuple[int, int])
    (1, 2)
    >>> decode('{"a": "x"}', dict[str, int])
    Traceback (most recent call last):
    ValueError: a: Input should be a valid integer, unable to parse string as an integer; it is "x"
    """
    try:
        return validate_text(type_adapter(tp).validate_json, data, context)
    except pydantic.ValidationError as error:
        raise ValueError(explain(error)) from error


def validate_text(validate: Callable[..., Any], text: str, context: Any = None) -> Any:
    """Validate JSON text, and once more without the packaging around it, if it has any."""
    text = safe_text(text)
    try:
        return validate(text, context=context)
    except pydantic.ValidationError:
        inside = unpack(text)
        if inside is not None:
            try:
                return validate(inside, context=context)
            except pydantic.ValidationError as error:
                if not _is_no_json(error):
                    raise
        raise


def unpack(text: str) -> str | None:
    """The text inside a code fence or inside a JSON string; None where there is no such packaging."""
    text = text.strip()
    fence = FENCE.match(text)
    if fence and text.endswith("```") and len(text) >= fence.end() + 3:
        return text[fence.end() : -3].rstrip()
    if text.startswith('"'):
        try:
            return from_json(text)
        except ValueError:
            return None
    return None


def _is_no_json(error: pydantic.ValidationError) -> bool:
    return error.errors(include_url=False, include_context=False)[0]["type"] == "json_invalid"


def explain(error: pydantic.ValidationError, describe: Callable[[ErrorDetails], str | None] = lambda _: None) -> str:
    """What did not fit, a line for each place: where it is, what was wanted, what was found.

    Args:
        error: The error.
        describe: Words of one's own for some of the places; None leaves them to this function.
    """
    details = error.errors(include_url=False, include_context=False)
    lines = [describe(detail) or _describe(detail) for detail in details[:_SHOWN_ERRORS]]
    if len(details) > len(lines):
        lines.append(f"and {len(details) - len(lines)} more")
    return "\n".join(lines)


def _describe(detail: ErrorDetails) -> str:
    path, kind = path_of(detail["loc"]), detail["type"]
    if kind == "missing":
        return f"{path} is missing"
    if kind == "extra_forbidden":
        return f"{path} is not known"
    found = "" if kind == "json_invalid" else _found(detail["input"])
    return f"{path + ': ' if path else ''}{_cut(detail['msg'], _SHOWN_MESSAGE)}{found}"


def path_of(location: Sequence[int | str]) -> str:
    """A place in a value as one writes it: `steps[2].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _found(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # a value that a validator made of the model's JSON
        return ""
    return f"; it is {_cut(text, _SHOWN_INPUT)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
