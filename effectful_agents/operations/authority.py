"""Asking before an effect whether it may happen: what everything does that is about to have one."""

from __future__ import annotations

import dataclasses

from effectful_agents.errors import ConfigurationError
from effectful_agents.operations.amending import check_amended
from effectful_agents.operations.asking import ask_person, was_answered
from effectful_agents.operations.journal import recorded_below
from effectful_agents.operations.policy import (
    Answer,
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    Question,
    ending_calls,
    enforced,
    is_decided,
    judged,
    same_objects,
)

__all__ = ["authorize"]


def authorize(effect: ProposedEffect) -> ProposedEffect:
    """Ask whether an effect may happen, and a person where somebody has to be asked.

    Args:
        effect: What is about to happen.

    Returns:
        The effect with the arguments that it may happen with. Where nobody decides, that is the effect itself.

    Raises:
        StepDenied: It may not happen, and whoever asked goes on without it.
        Denied: It may not happen, and the call ends.
        Suspended: The run waits for a person.
        MissingHandlerError: A person has to be asked, and nobody asks them.
        Exception: Whatever kept a person from being asked, which ends the calls (see `ask_person`).
    """
    if not is_decided():
        return effect
    effect, decision = judged(effect)
    if effect.replayed:
        _ask_about_what_it_did(effect)
        return _as_it_was_approved(effect)
    answer = None
    asked = 0
    while decision.disposition is Disposition.REQUIRE_APPROVAL:
        asked += 1
        answer = ask_person(_question(effect, decision), asked)
        effect, decision = _answered(effect, decision, answer, asked)
    enforced(effect, decision, answer)
    return effect


def _ask_about_what_it_did(effect: ProposedEffect) -> None:
    """Have policies that count, or remember, know of what happened inside of a step that is only told again."""
    for inner in recorded_below(effect.step_id) if effect.step_id else ():
        judged(
            ProposedEffect(
                kind=_KINDS[inner.kind],
                name=inner.name,
                arguments=inner.body.get("arguments", {}),
                callers=effect.callers,
                by_code=bool(inner.body.get("direct")),
                step_id=inner.step_id,
                run_id=effect.run_id,
                replayed=True,
            )
        )


_KINDS = {"model": EffectKind.MODEL_CALL, "tool": EffectKind.TOOL_CALL, "delegate": EffectKind.DELEGATE}


def _question(effect: ProposedEffect, decision: Decision) -> Question:
    text = decision.message or f"May `{effect.name or effect.kind}` be done?"
    if effect.receiver:
        text = f"{text} (of {effect.receiver})"
    return Question(
        text=text, effect=effect, reason_code=decision.reason_code, step_id=effect.step_id, run_id=effect.run_id
    )


def _answered(
    effect: ProposedEffect, decision: Decision, answer: Answer, asked: int
) -> tuple[ProposedEffect, Decision]:
    """What is decided once a person has answered: they can allow what needs approval, and nothing else."""
    rule = decision.rule
    if answer.from_nobody:
        return effect, Decision(Disposition.DENY_STEP, "not_answered", _told("Nobody answered", answer), rule=rule)
    # Not what only counts as true, as the text "no" does.
    if answer.approved is not True:
        return effect, Decision(Disposition.DENY_STEP, "refused", _told("A person refused it", answer), rule=rule)
    approved = effect
    if answer.arguments is not None:
        approved = _amended(effect, answer)
        effect, decision = judged(approved)
    needs_approval = decision.disposition is Disposition.REQUIRE_APPROVAL
    if needs_approval and not same_objects(effect.arguments, approved.arguments):
        # A policy has amended what the person said: that is another question.
        return effect, decision if asked < _MOST_QUESTIONS else dataclasses.replace(_ENDLESS, rule=rule)
    if decision.disposition > Disposition.REQUIRE_APPROVAL:
        return effect, decision
    return effect, Decision(Disposition.ALLOW, "approved", answer.reason, rule=rule)


_MOST_QUESTIONS = 8
_ENDLESS = Decision(
    Disposition.DENY_STEP, "policy_error", "A rule changes again what a person had changed, each time they were asked."
)


def _told(what: str, answer: Answer) -> str:
    return f"{what}: {answer.reason}" if answer.reason else f"{what}."


def _amended(effect: ProposedEffect, answer: Answer) -> ProposedEffect:
    """An effect with those arguments that a person changed.

    Raises:
        ConfigurationError: The tool cannot be called with them. Only who answers in place gives such arguments.
    """
    changed = answer.arguments or {}
    try:
        check_amended(effect, changed, f"who answered{f' ({answer.by})' if answer.by else ''}")
    except ValueError as error:
        raise ending_calls(ConfigurationError(str(error))) from None
    return _with_answer(effect, answer)


def _with_answer(effect: ProposedEffect, answer: Answer) -> ProposedEffect:
    return dataclasses.replace(effect.with_arguments(answer.arguments), again=True)


def _as_it_was_approved(effect: ProposedEffect) -> ProposedEffect:
    """An effect that has happened, with the arguments that a person gave it, if one was asked."""
    number = 1
    while was_answered(effect.step_id, number):
        answer = ask_person(Question(text="", effect=effect, step_id=effect.step_id), number)
        if answer.arguments is not None:
            effect = judged(_with_answer(effect, answer))[0]
        number += 1
    return effect
