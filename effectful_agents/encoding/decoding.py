"""JSON text as values, and errors that a model can read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pydantic
from pydantic_core import ErrorDetails, from_json

from effectful_agents.encoding.adapters import type_adapter
from effectful_agents.encoding.forgiving import place, reread, unpack, well_formed
from effectful_agents.messages.text import safe_text

__all__ = ["Misfit", "decode", "explain", "validate_text"]

_SHOWN_ERRORS, _SHOWN_INPUT, _SHOWN_MESSAGE = 8, 60, 300
_SPACED = re.compile(r'"\s+:')
_ROUNDS = 4
"""How often data is read again; one round uncovers the next where a text holds JSON."""

type Validate = Callable[..., Any]
"""A validator of JSON text: it takes the text and `context`."""


class Misfit(ValueError):
    """What a model wrote is not what the type says.

    Attributes:
        details: What is wrong, as pydantic tells it.
        data: The parsed JSON; None where it is none.
    """

    def __init__(self, details: list[ErrorDetails], data: Any) -> None:
        super().__init__(explain(details, data))
        self.details = details
        self.data = data


def decode(data: str, tp: Any, context: Any = None, *, strict: bool = False) -> Any:
    r"""A value of a type, from JSON text.

    Values have to be what the type says. Where they are not, a few are read otherwise, as long as nothing is guessed
    and nothing lost: `"1"` for an `int`. The packaging is forgiven once: JSON inside a JSON string, or inside a
    Markdown code fence. A key that stands twice in an object is refused.

    Args:
        data: The text.
        tp: The type.
        context: What validators of the type see as `info.context`.
        strict: Whether nothing is forgiven.

    Raises:
        ValueError: The text is not JSON, or not what the type says; the message is short enough for a model.
        EncodingError: The type cannot be described.

    >>> decode('```json\n[1, 2]\n```', tuple[int, int])
    (1, 2)
    >>> decode('{"a": "x"}', dict[str, int])
    Traceback (most recent call last):
    ValueError: a: Input should be a valid integer; it is "x"
    """
    try:
        return validate_text(type_adapter(tp).validate_json, data, context, strict=strict)
    except Misfit as error:
        raise ValueError(str(error)) from error


def validate_text(validate: Validate, text: str, context: Any = None, *, strict: bool = False) -> Any:
    """Validate JSON text; where it fails, once more with what is forgiven.

    Raises:
        Misfit: It does not fit. Where there is packaging around, the error is about what is inside.
        ValueError: A key stands twice in an object.
    """
    text = safe_text(text)
    try:
        value = validate(text, context=context)
    except pydantic.ValidationError as error:
        return _validate_again(validate, text, context, error, strict=strict)
    refuse_double_keys(text)
    return value


def _validate_again(
    validate: Validate, text: str, context: Any, error: pydantic.ValidationError, *, strict: bool
) -> Any:
    first = _misfit(error, text)
    texts = [text]
    if not strict:
        texts = [well_formed(text)]
        inside = unpack(texts[0])
        if inside is not None:
            texts.append(inside)
    last = first
    for candidate in texts:
        refuse_double_keys(candidate)
        try:
            return _reread(validate, candidate, context, strict=strict)
        except Misfit as misfit:
            if last is first or not is_no_json(misfit):
                last = misfit
    raise last


def _reread(validate: Validate, text: str, context: Any, *, strict: bool) -> Any:
    best: Misfit | None = None
    for _ in range(_ROUNDS):
        try:
            return validate(text, context=context)
        except pydantic.ValidationError as error:
            misfit = _misfit(error, text)
        left_out = best is not None and any(detail["type"] == "missing" for detail in misfit.details)
        best = best if left_out else misfit
        if misfit.data is None:
            break
        again = reread(misfit.details, from_json(text), strict=strict)
        if again is None:
            break
        text = json.dumps(again[0])
    assert best is not None
    raise best


def _misfit(error: pydantic.ValidationError, text: str) -> Misfit:
    details = error.errors(include_url=False, include_context=False)
    try:
        data = from_json(text)
    except ValueError:
        data = None
    return Misfit(details, data)


def is_no_json(misfit: Misfit) -> bool:
    """Whether the text could not even be parsed."""
    return misfit.details[0]["type"] == "json_invalid"


def refuse_double_keys(text: str) -> None:
    """Refuse an object in which a key stands twice: one of the two values would be lost.

    Raises:
        ValueError: There is one; the message has its path.
    """
    colons = text.count(":")
    if colons < 2:
        return
    try:
        # Each key ends so, and parsers leave out one of two that are alike. The next step is slower.
        ends = text.count('":')
        if (ends == colons or not _SPACED.search(text)) and _count_keys(from_json(text)) == ends:
            return
        json.loads(text, object_pairs_hook=_unique)
    except _Double:
        path = path_of(_path_of_double(json.loads(text, object_pairs_hook=_marked)))
        raise ValueError(f"{_cut(path, _SHOWN_MESSAGE)} stands twice in one object") from None
    except (ValueError, RecursionError):  # it is no JSON, and was told to be none
        return


def _count_keys(data: Any) -> int:
    if type(data) is dict:
        return len(data) + sum(
            [_count_keys(part) for part in data.values() if type(part) is dict or type(part) is list]
        )
    if type(data) is list:
        return sum([_count_keys(part) for part in data if type(part) is dict or type(part) is list])
    return 0


class _Double(Exception):
    """The key that stands twice."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) < len(pairs):
        raise _Double


def _marked(pairs: list[tuple[str, Any]]) -> Any:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    return dict(pairs) if twice is None else _Double(twice)


def _path_of_double(data: Any) -> list[int | str]:
    if isinstance(data, _Double):
        return [data.args[0]]
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return next(([key, *inside] for key, part in parts if (inside := _path_of_double(part))), [])


# --- errors -----------------------------------------------------------------------------------------------------------


def explain(
    details: Sequence[ErrorDetails], data: Any = None, describe: Callable[[ErrorDetails], str | None] = lambda _: None
) -> str:
    """What did not fit, a line for each place: where it is, what was wanted, what was found.

    Args:
        details: What is wrong.
        data: The parsed JSON.
        describe: Words of one's own for some of the places; None leaves them to this function.
    """
    lines: dict[str, list[str]] = {}
    for detail in details:
        own = describe(detail)
        if own is not None:
            lines[f"\0{own}"] = [""]
            continue
        where, text, found = _describe(detail, data)
        lines.setdefault((f"{where}: " if where and text[:3] != "is " else where) + "\0" + found, []).append(text)
    written = [_line(key, texts) for key, texts in lines.items()]
    if len(written) > _SHOWN_ERRORS:
        written = [*written[:_SHOWN_ERRORS], f"and {len(written) - _SHOWN_ERRORS} more"]
    return "\n".join(written)


def _line(key: str, texts: list[str]) -> str:
    where, _, found = key.partition("\0")
    texts = list(dict.fromkeys(texts))
    # The alternatives of a union, each with what it wanted.
    joined = "; or ".join([texts[0], *(text.removeprefix("Input should be ") for text in texts[1:])])
    return f"{where}{' ' if texts[0][:3] == 'is ' and where else ''}{joined}{found}"


def _describe(detail: ErrorDetails, data: Any) -> tuple[str, str, str]:
    kind = detail["type"]
    location = list(detail["loc"]) if data is None else place(detail["loc"], data)[0]
    if kind in ("missing", "extra_forbidden", "unexpected_keyword_argument", "missing_argument"):
        if data is not None and (not location or location[-1] != detail["loc"][-1]):
            location.append(detail["loc"][-1])
        return path_of(location), "is missing" if kind.startswith("missing") else "is not known", ""
    found = "" if kind == "json_invalid" else _found(detail["input"])
    return path_of(location), _cut(detail["msg"], _SHOWN_MESSAGE), found


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
