"""Answers as people send them: whether they fit what was asked, before they are kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding.handwritten import held_to
from effectful_agents.errors import AnswerError
from effectful_agents.handlers.policy.external import check_result
from effectful_agents.messages.text import printable_lines
from effectful_agents.operations.approvals import PendingQuestion
from effectful_agents.operations.policy import Answer, EffectKind

__all__ = ["checked_answer"]


_AMENDED = (EffectKind.TOOL_CALL, EffectKind.DELEGATE)


def checked_answer(question: PendingQuestion, answer: Answer) -> Answer:
    """An answer to a question, as it is kept.

    Amended arguments are held to the schema that the tool declares. The run reads them once more, by the types
    themselves; what it cannot use it asks about again.

    Raises:
        AnswerError: It does not fit.
    """
    if not isinstance(answer, Answer):
        raise AnswerError(f"an answer is an `Answer`, as `Answer(approved=True)`; this is {type(answer).__name__}.")
    if answer.from_nobody:
        raise AnswerError("this is from nobody; a question waits until somebody answers it.")
    if not isinstance(answer.approved, bool):
        raise AnswerError(f"`approved` is True or False; this is {answer.approved!r}.")
    if wrong := [name for name in ("reason", "text", "by") if not isinstance(getattr(answer, name), str)]:
        raise AnswerError(f"`{wrong[0]}` of an answer is text.")
    if question.wants_text and answer.approved and not answer.text.strip():
        raise AnswerError(f"this is to be answered with a text: {printable_lines(question.text)}")
    if question.returns is not None and answer.approved:
        if answer.arguments is not None:
            raise AnswerError(f"the result of `{question.name}` is wanted; its arguments cannot be amended any more.")
        check_result(question.name, question.returns, answer.text)
    if answer.arguments is None:
        return answer
    if question.kind not in _AMENDED or not answer.approved:
        raise AnswerError("only a call that is approved has arguments that can be amended.")
    return dataclasses.replace(answer, arguments=_checked_arguments(question, answer.arguments))


def _checked_arguments(question: PendingQuestion, arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, Mapping):
        raise AnswerError(f"amended arguments are a JSON object; this is {type(arguments).__name__}.")
    if unknown := [name for name in arguments if name not in question.arguments]:
        known = ", ".join(f"`{name}`" for name in question.arguments)
        raise AnswerError(f"`{question.name}` has no parameter `{unknown[0]}`; it has {known or 'none'}.")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise AnswerError(f"amended arguments are plain JSON: {error}") from error
    schemas = question.parameters.get("properties", {})
    part = {name: schemas[name] for name in plain if name in schemas}
    definitions = {"$defs": question.parameters["$defs"]} if "$defs" in question.parameters else {}
    problems = held_to({"type": "object", "properties": part, **definitions}, "the schema")(plain) if part else []
    if problems:
        raise AnswerError(f"the arguments of `{question.name}` cannot be amended so: {'; '.join(problems)}")
    return plain
