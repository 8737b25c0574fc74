"""Doing what a step consists of, and telling of it as step events; where nobody listens, nothing is told."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

from effectful_agents.errors import Denied, StepDenied, ToolCallExecutionError
from effectful_agents.messages import Finish, Request, Response, StreamEvent, ToolMessage
from effectful_agents.messages.exchange import SETTINGS_OF_ANSWERS
from effectful_agents.messages.telling import told, unstreamed
from effectful_agents.operations.authority import authorize
from effectful_agents.operations.calls_by_code import carrying_out
from effectful_agents.operations.effects import bound_to, effect_of_call, effect_of_request
from effectful_agents.operations.journal import attempt_of, perform_step
from effectful_agents.operations.loop import (
    DecodedToolCall,
    ToolResult,
    call_tool,
    model_in_use,
    send_request,
)
from effectful_agents.operations.policy import Decision, ending_calls, is_decided, same_objects
from effectful_agents.operations.steps import (
    DelegateStep,
    FinalStep,
    ModelStep,
    Phase,
    StepEvent,
    StepIds,
    ToolStep,
    current_ids,
    emit,
    ids_of_call,
)
from effectful_agents.operations.usage import answered, tell_replayed
from effectful_agents.runtime import fwd, handler, interpretation
from effectful_agents.types import Skill

__all__ = ["ToldCall", "ask", "ask_aside", "tell_end"]


def ask(request: Request) -> Response:
    """Perform `completion`, as a step, and tell of it."""
    ids = current_ids()
    if ids is None or ids.skill is None:
        _authorize_request(request)
        return answered(request)
    step_id = ids.next("model")
    below = ids.below(step_id)
    _authorize_request(request, step_id, ids.run_id)

    made = False

    def complete() -> Response:
        nonlocal made
        made = True
        with below:
            return answered(request)

    if not _is_followed():
        return complete()
    step = ModelStep(**_place(ids, ids.skill, step_id), request=request)

    def make() -> ModelStep:
        return dataclasses.replace(step, phase=Phase.COMPLETED, response=complete())

    emit(step)
    try:
        completed = _streamed(lambda: perform_step(step, make), below)
    except Exception as error:
        _tell_end_of(step, error=error)
        raise
    if not made:
        tell_replayed(request, completed.response)
    emit(completed)
    return cast(Response, completed.response)


def _authorize_request(request: Request, step_id: str = "", run_id: str = "") -> None:
    if not is_decided():
        return
    replayed = bool(step_id) and attempt_of(step_id)[1]
    effect = effect_of_request(request, model_in_use() or "")
    try:
        authorize(dataclasses.replace(effect, step_id=step_id, run_id=run_id, replayed=replayed))
    except StepDenied as error:  # there is nothing to go on with
        raise ending_calls(Denied(error.decision)) from error


def _is_followed() -> bool:
    """Whether anybody wants to know of steps, or decides about them."""
    here = interpretation()
    return emit in here or perform_step in here


def ask_aside(request: Request) -> Response:
    """Ask the model on behalf of a handler, and not for the answer to the call that is running.

    It is a step of a call nested in that one, so that whoever listens does not take its pieces for those of a turn. Of
    the settings that handlers fill in, those that are meant for answers (`SETTINGS_OF_ANSWERS`) are left out again;
    where they limit the reply by `max_completion_tokens`, so does this request.
    """
    ids = current_ids()
    with contextlib.nullcontext() if ids is None else ids_of_call(ids.skill):
        with handler({send_request: lambda **filled: fwd(**_without_settings_of_answers(filled, request))}):
            return ask(request)


def _without_settings_of_answers(filled: dict[str, Any], request: Request) -> dict[str, Any]:
    def own(settings: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name not in SETTINGS_OF_ANSWERS or name in request}

    # Of those that a model has itself, null switches off what says how a reply must look.
    kept = {"stop": None, "response_format": None, **own(filled)}
    if "provider_options" in kept:
        kept["provider_options"] = own(kept["provider_options"] or {})
    if "max_completion_tokens" in filled and "max_tokens" in request:  # services that know this name refuse the other
        kept["max_completion_tokens"] = kept.pop("max_tokens")
    return kept


def _streamed(take: Callable[[], ModelStep], ids: StepIds) -> ModelStep:
    """Take a step of the model; a reply that nobody has told of in pieces is told in one."""
    finished = False

    def hear(event: StreamEvent | StepEvent) -> None:
        nonlocal finished
        # Not that of a call which a handler makes meanwhile.
        finished = finished or (isinstance(event, Finish) and current_ids() is ids)
        fwd()

    with handler({emit: hear}):
        step = take()
    if finished:
        return step
    try:
        whole = unstreamed(cast(Response, step.response))
        events = list(told(whole))
    except (LookupError, TypeError, AttributeError):  # it is no reply, as those who read it will say
        return step
    with ids:
        for event in events:
            emit(event)
    return dataclasses.replace(step, response=whole)


class ToldCall:
    """A tool call that has its place among the steps.

    Args:
        call: The call.
    """

    def __init__(self, call: DecodedToolCall[Any]) -> None:
        self._call = call
        self._ids = current_ids() or StepIds()
        self._kind = DelegateStep if call.tool.delegates else ToolStep
        self._id = self._ids.next("tool" if self._kind is ToolStep else "delegate")
        self._step: ToolStep | None = None
        self._announced = False

    def announce(self) -> None:
        """Tell that the call is about to be made, unless that has been told."""
        if self._announced:
            return
        self._announced = True
        if self._ids.skill is not None and _is_followed():
            self._step = self._kind(**_place(self._ids, self._ids.skill, self._id), tool_call=self._call)
            emit(self._step)

    def make(self) -> ToolResult[Any]:
        """Perform `call_tool`, as a step, and tell of it."""
        self.announce()
        step = self._step
        try:
            call, denied = self._authorized(), None
        except StepDenied as error:
            call, denied = self._call, error.decision

        def carry_out() -> ToolResult[Any]:
            return _not_made(call, denied) if denied is not None else self._call_tool(call)

        if step is None:
            return carry_out()
        step = dataclasses.replace(step, denied=denied)

        def make() -> ToolStep:
            message, value, is_final = carry_out()
            failed = isinstance(value, ToolCallExecutionError)
            result: dict[str, Any] = {"error": value} if failed else {"value": value}
            return dataclasses.replace(step, phase=Phase.COMPLETED, message=message, is_final=is_final, **result)

        try:
            completed = perform_step(step, make)
        except Exception as error:
            _tell_end_of(step, error=error)
            raise
        emit(completed)
        value = completed.value if completed.error is None else completed.error
        return cast(ToolMessage, completed.message), value, completed.is_final

    def _authorized(self) -> DecodedToolCall[Any]:
        """The call as it may be made.

        Raises:
            StepDenied: It may not be.
        """
        call = self._call
        if not is_decided():
            return call
        # One that is declared `rerun` happens again when its run is resumed.
        happens_again = call.tool.rerun and not call.tool.runs_code
        effect = dataclasses.replace(
            effect_of_call(call.tool, call.bound_args, offered_as=call.name),
            step_id=self._id,
            run_id=self._ids.run_id,
            replayed=attempt_of(self._id)[1] and not happens_again,
        )
        allowed = authorize(effect)
        if same_objects(allowed.arguments, effect.arguments):
            return call
        return dataclasses.replace(call, bound_args=bound_to(call.bound_args.signature, allowed.arguments))

    def _call_tool(self, call: DecodedToolCall[Any]) -> ToolResult[Any]:
        with self._ids.below(self._id), carrying_out(call.tool):
            return call_tool(call)


def _not_made(call: DecodedToolCall[Any], decision: Decision) -> ToolResult[Any]:
    """What a call comes to that may not be made: the model reads why."""
    error = StepDenied(decision)
    message: ToolMessage = {"role": "tool", "tool_call_id": call.id, "content": f"This call was {error}"}
    return message, ToolCallExecutionError(error, call), False


def tell_end(ids: StepIds, value: Any) -> None:
    """Tell that a call which the program made is about to return a value."""
    if ids.depth == 0 and ids.skill is not None and emit in interpretation():
        place = _place(ids, ids.skill, ids.next("final"))
        emit(dataclasses.replace(FinalStep(**place, value=value), phase=Phase.COMPLETED))


def _place(ids: StepIds, skill: Skill[..., Any], step_id: str) -> dict[str, Any]:
    """Which step it is, about to happen, and in which call."""
    attempt, replayed = attempt_of(step_id)
    return {
        "step_id": step_id,
        "phase": Phase.ATTEMPTED,
        "skill": skill,
        "prompt": skill.template.stamp,
        "depth": ids.depth,
        "run_id": ids.run_id,
        "attempt": attempt,
        "replayed": replayed,
    }


def _tell_end_of(step: StepEvent | None, **fields: Any) -> None:
    if step is not None:
        emit(dataclasses.replace(step, phase=Phase.COMPLETED, **fields))
