"""JSON text as values, and errors that a model can read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from effectful_agents.encoding.adapters import type_adapter
from effectful_agents.encoding.forgiving import (
    WrittenFloat,
    has_double_keys,
    parsed,
    place,
    reread,
    unpack,
    well_formed,
    written,
)
from effectful_agents.encoding.functions import PROBLEM
from effectful_agents.encoding.names import without_addresses
from effectful_agents.encoding.once import one_decoding
from effectful_agents.errors import AgentsError
from effectful_agents.messages.text import safe_text
from effectful_agents.tracebacks import summary

__all__ = ["Misfit", "cut_name", "cut_text", "decode", "explain", "validate_text"]

_SHOWN_ERRORS, _SHOWN_INPUT, _SHOWN_NAME, _SHOWN_MESSAGE, _SHOWN_TEXT = 8, 60, 60, 300, 4000
_MOST_DETAILS = 1000
"""Of so many places it is told how many there are that do not fit; beyond it, only that there are more."""
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
        super().__init__(details, data)
        self.details = details
        self.data = data

    def __str__(self) -> str:
        return explain(self.details, self.data)


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
        with one_decoding():
            try:
                value = validate(text, context=context)
            except pydantic.ValidationError:
                return _validate_again(validate, text, context, strict=strict)
    except (AgentsError, ValueError):
        raise
    except Exception as error:  # a user's default, hash or the like, of which nobody knows for which part it ran
        raise ValueError(without_addresses(summary(error))) from error
    refuse_double_keys(text)
    return value


def _validate_again(validate: Validate, text: str, context: Any, *, strict: bool) -> Any:
    texts = [text]
    if not strict:
        texts = [well_formed(text)]
        inside = unpack(texts[0])
        if inside is not None:
            texts.append(inside)
    last: Misfit | None = None
    for candidate in texts:
        refuse_double_keys(candidate)
        try:
            return _reread(validate, candidate, context, strict=strict)
        except Misfit as misfit:
            if last is None or not is_no_json(misfit):
                last = misfit
    assert last is not None
    raise last


def _reread(validate: Validate, text: str, context: Any, *, strict: bool) -> Any:
    given = _data(text)
    best: Misfit | None = None
    for _ in range(_ROUNDS):
        try:
            return validate(text, context=context)
        except pydantic.ValidationError as error:
            # What is told of is what the model wrote, and not what was made of it.
            misfit = Misfit(error.errors(include_url=False, include_context=False), given)
        left_out = best is not None and any(detail["type"] == "missing" for detail in misfit.details)
        best = best if left_out else misfit
        again = None if given is None else reread(misfit.details, parsed(text), strict=strict)
        if again is None:
            break
        text = written(again[0])
    assert best is not None
    raise best


def _data(text: str) -> Any:
    """What JSON text holds; None where it is none."""
    try:
        return parsed(text)
    except (ValueError, RecursionError):
        return None


def is_no_json(misfit: Misfit) -> bool:
    """Whether the text could not even be parsed."""
    return misfit.details[0]["type"] == "json_invalid"


def refuse_double_keys(text: str) -> None:
    """Refuse an object in which a key stands twice: one of the two values would be lost.

    Raises:
        ValueError: There is one; the message has its path.
    """
    try:
        if not has_double_keys(text):
            return
    except (ValueError, RecursionError):  # it is no JSON, and was told to be none
        return
    path = path_of(_path_of_double(json.loads(text, object_pairs_hook=_marked, parse_int=len)))
    raise ValueError(f"{path} stands twice in one object")


class _Double:
    """Stands for an object in which a key stands twice."""

    def __init__(self, key: str) -> None:
        self.key = key


def _marked(pairs: list[tuple[str, Any]]) -> Any:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return _Double(name)
        seen.add(name)
    return dict(pairs)


def _path_of_double(data: Any) -> list[int | str]:
    if isinstance(data, _Double):
        return [data.key]
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
    lines: dict[tuple[str, str], list[str]] = {}
    for detail in details[:_MOST_DETAILS]:
        own = describe(detail)
        if own is not None:
            lines["", own] = [""]
            continue
        where, text, found = _describe(detail, data)
        place_told = f"{where}: " if where and text[:3] != "is " else where
        lines.setdefault((place_told, found), []).append(text)
    told = [_line(where, found, texts) for (where, found), texts in lines.items()]
    if len(told) > _SHOWN_ERRORS:
        rest = "many" if len(details) > _MOST_DETAILS else len(told) - _SHOWN_ERRORS
        told = [*told[:_SHOWN_ERRORS], f"and {rest} more"]
    return cut_text("\n".join(told))


def _line(where: str, found: str, texts: list[str]) -> str:
    texts = list(dict.fromkeys(texts))
    # The alternatives of a union, each with what it wanted.
    joined = "; or ".join([texts[0], *(text.removeprefix("Input should be ") for text in texts[1:])])
    return f"{where}{' ' if texts[0][:3] == 'is ' and where else ''}{joined}{found}"


def _describe(detail: ErrorDetails, data: Any) -> tuple[str, str, str]:
    kind = detail["type"]
    path, value, is_there, _ = place(detail["loc"], data)
    if path and path[-1] == "[key]":  # pydantic's word for the key before it
        path.pop()
    if kind == PROBLEM:
        return path_of(path), cut_text(detail["msg"]), ""
    if kind in ("missing", "extra_forbidden", "unexpected_keyword_argument", "missing_argument"):
        return path_of(path), "is missing" if kind.startswith("missing") else "is not known", ""
    # A validator has words of its own, and says of the value what it has to say; pydantic puts two more in front.
    shown = value if is_there and data is not None else detail["input"]
    found = "" if kind in ("json_invalid", "value_error") else _found(shown)
    said = without_addresses(detail["msg"].removeprefix("Value error, "))
    return path_of(path), _cut(said, _SHOWN_MESSAGE), found


def path_of(location: Sequence[int | str]) -> str:
    """A place in a value as one writes it: `steps[2].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{cut_name(part)}" for part in location)
    text = text.removeprefix(".")
    half = _SHOWN_MESSAGE // 2  # of a long one the end says most
    return text if len(text) <= _SHOWN_MESSAGE else f"{text[: half - 1]}…{text[-half:]}"


def cut_name(name: str) -> str:
    """A name that a model made up, in a length and with characters that an error can show."""
    shown = name if name.isprintable() else json.dumps(name, ensure_ascii=False)[1:-1]
    return _cut(shown, _SHOWN_NAME)


def cut_text(text: str) -> str:
    """A whole error, in a length that a model can be asked to read."""
    return _cut(text, _SHOWN_TEXT)


def _found(value: Any) -> str:
    try:
        text = written(value) if isinstance(value, WrittenFloat) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # a value that a validator made of the model's JSON
        return ""
    return f"; it is {_cut(text, _SHOWN_INPUT)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
