"""Results from outside of the process: asking for them as a question is asked, and reading what is answered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import decode, json_schema
from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import AnswerError, StepDenied
from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.effects import effect_of_call
from effectful_agents.operations.policy import Decision, Disposition, Question, ending_calls
from effectful_agents.runtime import bridged, fwd
from effectful_agents.types import Tool

__all__ = ["called", "check_result", "each_once", "result_of"]

_LONGEST = 4_000_000


def called(tool: Tool[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a handler of `Tool.__apply__` does that asks somebody: a call of an `external` tool asks for its result."""
    if not tool.external:
        return fwd()
    if tool.is_async:
        return bridged(_from_outside, tool, args, kwargs)
    return _from_outside(tool, args, kwargs)


def _from_outside(tool: Tool[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call, which somebody else finds out.

    Raises:
        StepDenied: They refused to, or nobody answered.
        Suspended: The run waits for it.
        AnswerError: Who answers in place gave something else; the calls end with it.
    """
    effect = effect_of_call(tool, tool.arguments_of(*args, **kwargs))
    question = Question(
        text=f"What is the result of `{tool.own_name}`?{f' (of {effect.receiver})' if effect.receiver else ''}",
        effect=effect,
        reason_code="external_result",
        returns=json_schema(_result_type(tool)),
    )
    answer = ask_person(question)
    if answer.from_nobody or answer.approved is not True:
        code, told = ("not_answered", "Nobody gave a result") if answer.from_nobody else ("refused", "It was refused")
        raise StepDenied(Decision(Disposition.DENY_STEP, code, f"{told}: {answer.reason}" if answer.reason else told))
    try:
        return result_of(tool, answer.text)
    except AnswerError as error:
        raise ending_calls(error) from error.__cause__


def _result_type(tool: Tool[..., Any]) -> Any:
    return tool.__signature__.return_annotation


def result_of(tool: Tool[..., Any], text: str) -> Any:
    """The result of a call, from the JSON that somebody gave.

    Raises:
        AnswerError: It is none that the tool is declared to return.
    """
    _read(text, tool.own_name)
    try:
        return decode(text, _result_type(tool), strict=True)
    except ValueError as error:
        raise AnswerError(f"this is no result of `{tool.own_name}`: {error}") from error


def check_result(name: str, schema: Mapping[str, Any], text: str) -> None:
    """Hold the JSON that somebody gives as a result to the schema of the tool.

    Args:
        name: The tool.
        schema: What it returns.
        text: What they give.

    Raises:
        AnswerError: It does not fit.
    """
    value = _read(text, name)
    if problems := held_to(dict(schema), f"what `{name}` returns")(value):
        raise AnswerError(f"this is no result of `{name}`: {'; '.join(problems)}")


def _read(text: str, name: str) -> Any:
    if not text.strip():
        raise AnswerError(f"the result of `{name}` is wanted, as JSON; this says nothing.")
    if len(text) > _LONGEST:
        raise AnswerError(f"the result of `{name}` has {len(text):,} characters; {_LONGEST:,} are the most.")
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise AnswerError(
            f'the result of `{name}` is to be JSON, in which a text stands in quotes ("…"); this is none: {error}'
        ) from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON: of a name that stands there twice, nobody knows which value is meant."""
    counted = Counter(name for name, _ in pairs)
    if twice := [name for name, count in counted.items() if count > 1]:
        raise ValueError(f"{json.dumps(twice[0])} stands in an object twice")
    return dict(pairs)
