"""Asking a person, as a step of the call: each question has its place among the steps, and is answered once."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, cast

from effectful_agents.errors import ConfigurationError
from effectful_agents.operations.journal import attempt_of, perform_step
from effectful_agents.operations.policy import Answer, Question, ending_calls, request_approval
from effectful_agents.operations.steps import ApprovalStep, Phase, StepIds, current_ids, emit, make_step_id
from effectful_agents.runtime import interpretation, wait

__all__ = ["ask_person", "was_answered"]


def ask_person(question: Question, number: int = 1) -> Answer:
    """Perform `request_approval` as a step of its own, below the one that it is about, and tell of it.

    Where the question names no step and no run, it gets those that it is asked in.

    Args:
        question: What is asked.
        number: 1, and one more for each further question about the same step.

    Raises:
        ConfigurationError: What answers is no `Answer`.
        Exception: Whatever kept the question from being asked, or the answer from being had, such as a `StorageError`.
            It is no decision: the calls in which the code is end with it, though something inside should eat it.
    """
    ids = current_ids()
    question = dataclasses.replace(question, number=number)
    if ids is None:
        return _answer_to(question)
    step_id = _place(ids, question.step_id, number)
    question = dataclasses.replace(question, step_id=question.step_id or step_id, run_id=question.run_id or ids.run_id)
    step = ApprovalStep(
        step_id=step_id,
        phase=Phase.ATTEMPTED,
        skill=cast(Any, ids.skill),  # None where code of the program is asked about
        prompt=None if ids.skill is None else ids.skill.template.stamp,
        depth=ids.depth,
        run_id=ids.run_id,
        question=question,
    )
    step = dataclasses.replace(step, replayed=attempt_of(step.step_id)[1])
    if emit in interpretation():
        emit(step)
    completed = perform_step(
        step, lambda: dataclasses.replace(step, phase=Phase.COMPLETED, decision=_answer_to(question))
    )
    if emit in interpretation():
        emit(completed)
    return completed.decision


def was_answered(step_id: str, number: int) -> bool:
    """Whether a run that is resumed has the answer to this question about a step."""
    ids = current_ids()
    return ids is not None and bool(step_id) and attempt_of(_place(ids, step_id, number))[1]


def _answer_to(question: Question) -> Answer:
    try:
        answer: Any = request_approval(question)
        if inspect.isawaitable(answer):
            answer = wait(answer)
        if not isinstance(answer, Answer):
            raise ConfigurationError(
                f"who handles `request_approval` returns an `Answer`, as `Answer(approved=True)`; this was {answer!r}."
            )
    except Exception as error:  # the model could do nothing about it, and code that eats it would take it for a denial
        raise ending_calls(error) from error.__cause__
    return answer


def _place(ids: StepIds, step_id: str, number: int) -> str:
    # Not among the steps, which would have other places where nobody has to be asked any more.
    if not step_id:
        return ids.aside("approval")
    return f"{step_id}/approval/{make_step_id(number, 'approval')}"
