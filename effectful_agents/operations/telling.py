"""Doing what a step consists of, and telling of it as step events; where nobody listens, nothing is told."""

from __future__ import annotations

import dataclasses
from typing import Any

from effectful_agents.errors import ToolCallExecutionError
from effectful_agents.messages import Finish, Request, Response, StreamEvent
from effectful_agents.messages.telling import told, unstreamed
from effectful_agents.operations.loop import DecodedToolCall, ToolResult, call_tool, completion
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
)
from effectful_agents.runtime import fwd, handler, interpretation
from effectful_agents.types import Skill

__all__ = ["ToldCall", "ask", "tell_end"]


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
