"""Doing what a step consists of, and telling of it as step events; where nobody listens, nothing is told."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from effectful_agents.errors import ToolCallExecutionError
from effectful_agents.messages import Finish, Request, Response, StreamEvent
from effectful_agents.messages.exchange import SETTINGS_OF_ANSWERS
from effectful_agents.messages.telling import told, unstreamed
from effectful_agents.operations.loop import DecodedToolCall, ToolResult, call_tool, completion, send_request
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
from effectful_agents.runtime import fwd, handler, interpretation
from effectful_agents.types import Skill

__all__ = ["ToldCall", "ask", "ask_aside", "tell_end"]


def ask(request: Request) -> Response:
    """Perform `completion`, and tell of it."""
    ids = current_ids()
    if ids is None or ids.skill is None:
        return completion(**request)
    step_id = ids.next("model")
    if emit not in interpretation():
        return completion(**request)
    step = ModelStep(step_id=step_id, phase=Phase.ATTEMPTED, **_place(ids, ids.skill), request=request)
    emit(step)
    try:
        response = _streamed(request, ids)
    except Exception as error:
        _tell_end_of(step, error=error)
        raise
    _tell_end_of(step, response=response)
    return response


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


def _streamed(request: Request, ids: StepIds) -> Response:
    """Perform `completion`; a reply that nobody has told of in pieces is told in one."""
    finished = False

    def hear(event: StreamEvent | StepEvent) -> None:
        nonlocal finished
        # Not that of a call which a handler makes meanwhile.
        finished = finished or (isinstance(event, Finish) and current_ids() is ids)
        fwd()

    with handler({emit: hear}):
        response = completion(**request)
    if finished:
        return response
    try:
        whole = unstreamed(response)
        events = list(told(whole))
    except (LookupError, TypeError, AttributeError):  # it is no reply, as those who read it will say
        return response
    for event in events:
        emit(event)
    return whole


class ToldCall:
    """A tool call that has its place among the steps.

    Args:
        call: The call.
    """

    def __init__(self, call: DecodedToolCall[Any]) -> None:
        self._call = call
        self._ids = current_ids() or StepIds()
        self._kind = DelegateStep if isinstance(call.tool, Skill) else ToolStep
        self._id = self._ids.next("tool" if self._kind is ToolStep else "delegate")
        self._step: ToolStep | None = None
        self._announced = False

    def announce(self) -> None:
        """Tell that the call is about to be made, unless that has been told."""
        if self._announced:
            return
        self._announced = True
        if self._ids.skill is not None and emit in interpretation():
            self._step = self._kind(
                step_id=self._id,
                phase=Phase.ATTEMPTED,
                **_place(self._ids, self._ids.skill),
                tool_call=self._call,
            )
            emit(self._step)

    def make(self) -> ToolResult[Any]:
        """Perform `call_tool`, and tell of it."""
        self.announce()
        with self._ids.below(self._id):
            try:
                result = call_tool(self._call)
            except Exception as error:
                _tell_end_of(self._step, error=error)
                raise
        message, value, _ = result
        if isinstance(value, ToolCallExecutionError):
            _tell_end_of(self._step, message=message, error=value)
        else:
            _tell_end_of(self._step, message=message, value=value)
        return result


def tell_end(ids: StepIds, value: Any) -> None:
    """Tell that a call which the program made is about to return a value."""
    if ids.depth == 0 and ids.skill is not None and emit in interpretation():
        emit(FinalStep(step_id=ids.next("final"), phase=Phase.COMPLETED, **_place(ids, ids.skill), value=value))


def _place(ids: StepIds, skill: Skill[..., Any]) -> dict[str, Any]:
    """In which call a step happens."""
    return {"skill": skill, "prompt": skill.template.stamp, "depth": ids.depth}


def _tell_end_of(step: StepEvent | None, **fields: Any) -> None:
    if step is not None:
        emit(dataclasses.replace(step, phase=Phase.COMPLETED, **fields))
