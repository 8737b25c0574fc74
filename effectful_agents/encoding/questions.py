"""Questions to people: what is asked as plain JSON, and the arguments that they amend."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from effectful_agents.encoding.faithful import faithful
from effectful_agents.encoding.records import dumps
from effectful_agents.encoding.tools import tool_codec
from effectful_agents.encoding.values import encode
from effectful_agents.errors import AnswerError, EncodingError
from effectful_agents.messages.text import printable_text
from effectful_agents.operations.policy import ProposedEffect, Question
from effectful_agents.types import Tool

__all__ = [
    "amended_arguments",
    "apart",
    "asked_of",
    "declared_type",
    "printable",
    "printable_text",
    "question_digest",
    "shown_arguments",
    "told_argument",
]


def asked_of(question: Question) -> dict[str, Any]:
    """What is asked, as JSON: of an effect what it is, with its arguments; otherwise the text.

    The text about an effect is not part of it: it may tell the time of day.
    """
    effect = question.effect
    if effect is None:
        return {"text": question.text}
    asked = {
        "kind": str(effect.kind),
        "name": effect.name,
        "arguments": shown_arguments(effect),
        "reason": question.reason_code,
    }
    if effect.receiver:
        asked["of"] = effect.receiver
    # All of a request, which may be long, by its digest.
    return asked if effect.request is None else asked | {"request": _digest(effect.request)}


def question_digest(question: Question, *, asked_in: str = "") -> str:
    """What stands for all that is asked: equal for equal questions, in every process.

    Args:
        question: The question.
        asked_in: What tells apart those who ask it.

    >>> question_digest(Question(text="Which city?")) == question_digest(Question(text="Which town?"))
    False
    """
    asked = asked_of(question) | ({"asked in": asked_in} if asked_in else {})
    return _digest(asked)


def _digest(data: Any) -> str:
    return hashlib.blake2b(dumps(data).encode(), digest_size=16).hexdigest()


def shown_arguments(effect: ProposedEffect, *, strict: bool = False) -> dict[str, Any]:
    """The arguments of an effect as JSON that makes the same values again, where there is such JSON.

    Args:
        effect: The effect.
        strict: Whether each must have such a form; otherwise what there is to tell of it is told, if only its class.

    Raises:
        EncodingError: `strict`, and one has none. Types may leave out what they are told to leave out: who is asked
            would approve what they do not see.
    """
    signature = None if effect.tool is None else effect.tool.__signature__
    shown = {}
    for name, value in effect.arguments.items():
        declared = declared_type(signature, name)
        try:
            shown[name] = faithful(value, declared)
        except EncodingError as error:
            if strict:
                raise EncodingError(
                    f"nobody can be asked about `{effect.name}`: its argument `{name}`, of the class "
                    f"`{type(value).__name__}`, cannot be shown to them as it is."
                ) from error
            shown[name] = _told(value, declared)
    return shown


def declared_type(signature: inspect.Signature | None, name: str) -> Any:
    """The type that a parameter is declared with; Any where it has none, or takes several arguments."""
    parameter = None if signature is None else signature.parameters.get(name)
    if parameter is None or parameter.annotation is parameter.empty:
        return Any
    return Any if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) else parameter.annotation


def _told(value: Any, tp: Any) -> Any:
    """What there is to tell of a value, which may not be all of it."""
    for each in (tp, Any):
        with contextlib.suppress(EncodingError):
            return json.loads(dumps(encode(value, each)))
    return {"class": type(value).__qualname__}


def _as_declared(effect: ProposedEffect, tool: Tool[..., Any]) -> dict[str, Any]:
    return {name: _told(value, declared_type(tool.__signature__, name)) for name, value in effect.arguments.items()}


def amended_arguments(effect: ProposedEffect, amended: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an effect, with those that a person changed.

    Args:
        effect: What they were asked about.
        amended: Those that they changed, as JSON; the others stay.

    Returns:
        All arguments, as values of the types that the tool declares.

    Raises:
        AnswerError: They are none that the tool takes.
    """
    if effect.tool is None:
        raise AnswerError(f"`{effect.name or effect.kind}` has no arguments that can be amended; approve or refuse it.")
    if unknown := [name for name in amended if name not in effect.arguments]:
        known = ", ".join(f"`{name}`" for name in effect.arguments)
        raise AnswerError(f"`{effect.name}` has no parameter `{unknown[0]}`; it has {known or 'none'}.")
    try:
        bound = tool_codec(effect.tool).decode(
            _sent(effect.tool, {**_as_declared(effect, effect.tool), **amended}), strict=True
        )
    except ValueError as error:
        raise AnswerError(f"what was amended cannot be used: {error}") from error
    # Those of `**kwargs` stand beside the others in an effect.
    variadic = next((name for name, one in bound.signature.parameters.items() if one.kind is one.VAR_KEYWORD), "")
    given = {**bound.arguments.get(variadic, {}), **bound.arguments}
    return {**effect.arguments, **{name: given[name] for name in amended}}


def _sent(tool: Tool[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments as a model would send them: `**kwargs` are not one argument, but each of them is."""
    for name, parameter in tool.__signature__.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            further = arguments.pop(name, {})
            if not isinstance(further, Mapping):
                raise ValueError(f"`{name}` is a JSON object, of the arguments that it stands for")
            arguments |= further
    return arguments


def printable(value: Any) -> str:
    r"""JSON for a terminal: what steers one, turns the direction of the text or cannot be seen is written as an escape.

    >>> print(printable({"to": "ann\x1b[2J", "note": "über"}))
    {"to": "ann\u001b[2J", "note": "über"}
    """
    return printable_text(json.dumps(value, ensure_ascii=False))


def told_argument(name: str, value: Any) -> str:
    """An argument for a terminal. A name that is none of a parameter, since a model gave it, is quoted.

    >>> print(told_argument("to", "ann"), told_argument("to = ", "eve"))
    to = "ann" "to = " = "eve"
    """
    named = name if name.isascii() and name.isidentifier() else printable(name)
    return f"{named} = {printable(value)}"


def apart(text: str, width: int = 80, *, first: str = "  | ", mark: str = "  | ") -> str:
    r"""Text that somebody else wrote, in lines that begin with a mark, so that none looks like one of this program's.

    Lines are broken here, since a terminal that breaks them begins the rest of one without the mark.

    Args:
        text: The text.
        width: Columns of the terminal.
        first: What the first line begins with.
        mark: What the others begin with.

    >>> print(apart("May it go?\nApprove (y)?", 10))
      | May it
      |  go?
      | Approv
      | e (y)?
    """
    room = max(width - max(len(first), len(mark)), 1)
    lines = [part for line in text.split("\n") for part in _broken(printable_text(line), room)]
    return "\n".join(f"{mark if number else first}{line}" for number, line in enumerate(lines))


def _broken(line: str, room: int) -> Iterator[str]:
    part, taken = "", 0
    for one in line:
        columns = 2 if unicodedata.east_asian_width(one) in "WF" else 1
        if part and taken + columns > room:
            yield part
            part, taken = "", 0
        part, taken = part + one, taken + columns
    yield part
