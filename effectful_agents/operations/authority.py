"""Asking before an effect whether it may happen: what everything does that is about to have one."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import inspect
from collections.abc import Generator, Mapping
from typing import Any, cast

from effectful_agents.errors import ConfigurationError, StepDenied
from effectful_agents.operations.code import arguments_from_code, risk_of_code
from effectful_agents.operations.journal import attempt_of, perform_step, record, recorded_below
from effectful_agents.operations.policy import (
    Answer,
    Decision,
    Disposition,
    EffectKind,
    ProposedEffect,
    Question,
    callers,
    ending_calls,
    enforced,
    is_decided,
    judged,
    request_approval,
    same_objects,
)
from effectful_agents.operations.steps import ApprovalStep, Phase, StepIds, current_ids, emit, make_step_id
from effectful_agents.runtime import interpretation
from effectful_agents.types import Agent, Risk, Skill, Tool
from effectful_agents.types.walk import tools_in_scope

__all__ = ["ask_person", "authorize", "authorize_code", "bound_to", "carrying_out", "effect_of_call", "risk_of"]


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


_MOST_QUESTIONS = 8


def _answered(
    effect: ProposedEffect, decision: Decision, answer: Answer, asked: int
) -> tuple[ProposedEffect, Decision]:
    """What is decided once a person has answered: they can allow what needs approval, and nothing else."""
    rule = decision.rule
    # Not what only counts as true, as the text "no" does.
    if answer.approved is not True or asked >= _MOST_QUESTIONS:
        message = f"A person refused it: {answer.reason}" if answer.reason else "A person refused it."
        return effect, Decision(Disposition.DENY_STEP, "refused", message, rule=rule)
    approved = effect
    if answer.arguments is not None:
        approved = _amended(effect, answer)
        effect, decision = judged(approved)
    needs_approval = decision.disposition is Disposition.REQUIRE_APPROVAL
    if decision.disposition > Disposition.REQUIRE_APPROVAL or (
        # A policy has amended what the person said: that is another question.
        needs_approval and not same_objects(effect.arguments, approved.arguments)
    ):
        return effect, decision
    return effect, Decision(Disposition.ALLOW, "approved", answer.reason, rule=rule)


def _amended(effect: ProposedEffect, answer: Answer) -> ProposedEffect:
    """An effect with those arguments that a person changed."""
    changed = answer.arguments or {}
    if unknown := [name for name in changed if name not in effect.arguments]:
        raise ending_calls(
            ConfigurationError(
                f"who answered for `{effect.name}` amended the argument `{unknown[0]}`, which it does not have. It has "
                f"{', '.join(f'`{name}`' for name in effect.arguments) or 'none'}."
            )
        )
    return dataclasses.replace(effect, arguments={**effect.arguments, **changed}, again=True)


def ask_person(question: Question, number: int = 1) -> Answer:
    """Perform `request_approval` as a step of its own, below the one that it is about, and tell of it.

    Where the question names no step and no run, it gets those that it is asked in.

    Args:
        question: What is asked.
        number: 1, and one more for each further question about the same step.

    Raises:
        ConfigurationError: What answers is no `Answer`.
    """
    ids = current_ids()
    if ids is None:
        return _answer_to(question)
    step_id = _place_of_approval(ids, question.step_id, number)
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


def _answer_to(question: Question) -> Answer:
    try:
        answer = request_approval(question)
        if not isinstance(answer, Answer):
            raise ConfigurationError(
                f"who handles `request_approval` returns an `Answer`, as `Answer(approved=True)`; this was {answer!r}."
            )
    except ConfigurationError as error:  # the model could do nothing about it, and neither could code that eats it
        raise ending_calls(error) from error.__cause__
    return answer


def _place_of_approval(ids: StepIds, step_id: str, number: int = 1) -> str:
    # Not among the steps, which would have other places where nobody has to be asked any more.
    if not step_id:
        return ids.aside("approval")
    return f"{step_id}/approval/{make_step_id(number, 'approval')}"


def _as_it_was_approved(effect: ProposedEffect) -> ProposedEffect:
    """An effect that has happened, with the arguments that a person gave it, if one was asked."""
    ids, number = current_ids(), 1
    while ids is not None and effect.step_id and attempt_of(_place_of_approval(ids, effect.step_id, number))[1]:
        answer = ask_person(Question(text="", effect=effect, step_id=effect.step_id), number)
        if answer.arguments is not None:
            effect = judged(_amended(effect, answer))[0]
        number += 1
    return effect


# --- tools that code calls --------------------------------------------------------------------------------------------

_carried_out: contextvars.ContextVar[list[Tool]] = contextvars.ContextVar("effectful_agents_carried_out")
"""The tool whose call has been decided about and that is about to be called; empty once it was."""


@contextlib.contextmanager
def carrying_out(tool: Tool) -> Generator[None]:
    """Where a tool is called once because a model called it, which has been decided about."""
    token = _carried_out.set([tool])
    code = _code_allowed.set(len(callers()) if tool.runs_code else None)
    try:
        yield
    finally:
        _code_allowed.reset(code)
        _carried_out.reset(token)


_code_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "effectful_agents_code_allowed", default=None
)
"""How many calls the code is in that has been decided about and runs; None where none does."""


@contextlib.contextmanager
def authorize_code() -> Generator[None]:
    """Where code of a model is run: ask about it, unless it runs because a tool call was decided about.

    Code runs before that where a model wrote it as an argument, or as an answer. It counts as a tool call without a
    tool, called `code`.

    Raises:
        StepDenied: It may not run.
    """
    inside = len(callers())
    if not is_decided() or _code_allowed.get() == inside:
        yield
        return
    authorize(
        ProposedEffect(kind=EffectKind.TOOL_CALL, name="code", risk=risk_of_code(), callers=callers(), by_code=True)
    )
    token = _code_allowed.set(inside)
    try:
        yield
    finally:
        _code_allowed.reset(token)


def _is_carried_out(tool: Tool) -> bool:
    left = _carried_out.get([])
    if tool not in left:
        return False
    left.clear()
    return True


def _before_call(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a tool is to be called with, if it may be.

    Raises:
        StepDenied: It may not be called.
        Denied: It may not, and the call in which it would be ends.
    """
    if _is_carried_out(tool):
        return args, kwargs
    ids = current_ids()
    if not is_decided() and (ids is None or not ids.run_id):
        return args, kwargs
    if isinstance(tool, Skill) and not callers():  # a call of the program's: what it does is asked about
        return args, kwargs
    place = None if ids is None else _Place(ids, "call" if isinstance(tool, Skill) else "tool")
    if place is not None and place.was_denied:
        raise place.denied(StepDenied(Decision(Disposition.DENY_STEP)))
    if not is_decided():
        return args, kwargs
    asked = tool.arguments_of(*args, **kwargs)
    bound = arguments_from_code(tool, asked)
    effect = effect_of_call(tool, bound, by_code=True)
    if place is not None:
        effect = place.of(effect)
    try:
        effect = authorize(effect)
    except StepDenied as error:
        raise error if place is None else place.denied(error) from None
    if same_objects(effect.arguments, _by_name(asked)):
        return args, kwargs
    bound = bound_to(bound.signature, effect.arguments)
    return bound.args, bound.kwargs


Tool.before_call = _before_call


def effect_of_call(
    tool: Tool, bound: inspect.BoundArguments, *, offered_as: str = "", by_code: bool = False
) -> ProposedEffect:
    """What a call of a tool is, to be decided about."""
    return ProposedEffect(
        kind=EffectKind.DELEGATE if isinstance(tool, Skill) else EffectKind.TOOL_CALL,
        name=tool.own_name,
        arguments=_by_name(bound),
        tool=tool,
        receiver=_whose(tool, offered_as),
        risk=risk_of(tool),
        callers=callers(),
        by_code=by_code,
    )


def _whose(tool: Tool, offered_as: str) -> str:
    receiver = tool.receiver
    if receiver is None:
        return ""
    cls = receiver if isinstance(receiver, type) else type(receiver)
    known = getattr(receiver, "__agent_id__", "") if isinstance(receiver, Agent) else ""
    name = known or offered_as.removesuffix(tool.own_name).removesuffix("__")
    return f"{cls.__name__} {name}" if isinstance(name, str) and name else cls.__name__


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments by the names that the caller used: those of `**kwargs` beside the others."""
    whole = inspect.BoundArguments(bound.signature, dict(bound.arguments))
    whole.apply_defaults()
    arguments = dict(whole.arguments)
    variadic = _keywords(bound.signature)
    if variadic is not None and not arguments.keys() & arguments[variadic].keys():
        arguments |= arguments.pop(variadic)
    return arguments


def bound_to(signature: inspect.Signature, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
    """Arguments as `ProposedEffect` has them, bound to the parameters again."""
    variadic = _keywords(signature)
    if variadic is None or variadic in arguments:
        return inspect.BoundArguments(signature, dict(arguments))
    own = {name: arguments[name] for name in signature.parameters if name in arguments}
    others = {name: value for name, value in arguments.items() if name not in own}
    return inspect.BoundArguments(signature, {**own, variadic: others})


def _keywords(signature: inspect.Signature) -> str | None:
    """The name of the parameter that takes all other keywords, if there is one."""
    kind = inspect.Parameter.VAR_KEYWORD
    return next((name for name, one in signature.parameters.items() if one.kind is kind), None)


class _Place:
    """Where a call by code is among the steps of its run, and whether it was denied there.

    A denial that the program survived is written down. So a run that is resumed goes on in the same way, whatever has
    become of the policies meanwhile.
    """

    def __init__(self, ids: StepIds, kind: str) -> None:
        self._ids = ids
        self._kind = kind
        # Others may call tools at the same time, while somebody is asked about this one.
        self._step_id = ids.reserve(kind) if ids.run_id else ids.coming(kind)
        self._denial = StepIds(prefix=f"{self._step_id}/denied/", run_id=ids.run_id)

    @property
    def was_denied(self) -> bool:
        return attempt_of(self._denial.coming("record"))[1]

    def of(self, effect: ProposedEffect) -> ProposedEffect:
        replayed = attempt_of(self._step_id)[1]
        return dataclasses.replace(effect, step_id=self._step_id, run_id=self._ids.run_id, replayed=replayed)

    def denied(self, error: StepDenied) -> Exception:
        """The error to raise: this one, or what was raised before."""

        def deny() -> None:
            raise error

        self._ids.next(self._kind)
        try:
            with self._denial:
                record(deny)
        except Exception as raised:
            return raised
        return error


# --- risk -------------------------------------------------------------------------------------------------------------


def risk_of(tool: Tool) -> Risk:
    """What a tool can do to the world; of a skill, the highest of what it declares and of all that it could call.

    >>> from effectful_agents import NotHandled
    >>> @Tool.define(risk=Risk.HARD_WRITE)
    ... def send(text: str) -> None:
    ...     '''Send a mail.'''
    >>> @Skill.define
    ... def inform(topic: str) -> str:
    ...     '''Inform everybody of {topic}.'''
    ...     raise NotHandled
    >>> risk_of(inform)
    <Risk.HARD_WRITE: 2>
    """
    highest, seen, left = Risk.READ, set[Tool](), [tool]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        highest = max(highest, risk_of_code() if one.runs_code else one.risk)
        if isinstance(one, Skill) and one.uses_tools:
            left += tools_in_scope(one.__context__, one.receiver)
    return highest
