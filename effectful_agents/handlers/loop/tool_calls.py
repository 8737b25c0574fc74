"""Carrying out the tool calls of one turn: together where they can be, and with their results in order always."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, cast

from effectful_agents.errors import Cancelled, HistoryError, Signal, ToolCallDecodingError, ToolCallExecutionError
from effectful_agents.messages import AssistantMessage, ToolCallID, ToolMessage
from effectful_agents.operations.history import append_message
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.operations.telling import ToldCall
from effectful_agents.runtime import InThread, SignalScope, StopScope, bridged, can_wait, in_tasks, in_threads, wait

__all__ = ["carry_out"]

_THREAD = "effectful-agents-tool"

type _Call = DecodedToolCall[Any] | ToolCallDecodingError


def carry_out(message: AssistantMessage, tool_calls: Sequence[_Call], at_once: int) -> tuple[Any] | None:
    """Carry out the calls of one turn; each gets its result in the history, in the order of the calls.

    They run at the same time when each of their tools is `async def` or declared `concurrent=True`, and one after the
    other otherwise. In the latter case the first final call that succeeds ends the call of the skill: those behind it
    are not made, and are answered with that. Of calls that ran together the first final one counts.

    Args:
        message: The reply that holds the calls.
        tool_calls: The calls; one that could not be decoded is answered with what was wrong with it, and one that the
            message has and a handler left out of these, with that.
        at_once: Calls that may run at the same time.

    Returns:
        The answer, in a tuple, where a final call gave one.
    """
    branches = {branch.id: branch for branch in map(_Branch, tool_calls)}
    to_make = sum(isinstance(branch.call, DecodedToolCall) for branch in branches.values())
    if at_once > 1 and to_make > 1 and all(branch.runs_beside_others for branch in branches.values()):
        _run_together(branches.values(), at_once)
    final: tuple[Any] | None = None
    for call in message.get("tool_calls", ()):
        branch = branches.pop(call["id"], None)
        if branch is None:
            append_message(_said(call["id"], "not made"))
        elif final is not None and not branch.begun:
            append_message(_said(branch.id, "not made: a call before it in the same turn ended the conversation"))
        else:
            append_message({**branch.run(), "tool_call_id": branch.id})
            final = final or branch.answer
    if branches:
        raise HistoryError(f"the tool call `{next(iter(branches))}` was added to a reply that does not have it.")
    return final


def _said(call: ToolCallID, what: str) -> ToolMessage:
    return {"role": "tool", "tool_call_id": call, "content": f"(This call was {what}.)"}


class _Branch:
    """One of the calls of a turn.

    Attributes:
        begun: Whether it was begun.
        answer: The answer of the skill, if it was a final call.
    """

    begun = False
    answer: tuple[Any] | None = None

    def __init__(self, call: _Call) -> None:
        self.call = call
        self._told = ToldCall(call) if isinstance(call, DecodedToolCall) else None
        self._result: ToolMessage | BaseException | None = None

    @property
    def id(self) -> ToolCallID:
        return self.call.raw_tool_call["id"] if isinstance(self.call, ToolCallDecodingError) else self.call.id

    @property
    def runs_beside_others(self) -> bool:
        call = self.call
        return isinstance(call, ToolCallDecodingError) or call.tool.is_async or call.tool.concurrent

    @property
    def is_async(self) -> bool:
        return isinstance(self.call, DecodedToolCall) and self.call.tool.is_async

    def announce(self) -> None:
        """Tell that it is about to be carried out."""
        if self._told is not None:
            self._told.announce()

    def run(self) -> ToolMessage:
        """Carry the call out, unless that was begun, and return what the model is told; or raise what it raised."""
        if not self.begun:
            self.attempt()
        if isinstance(self._result, BaseException):
            raise self._result
        return cast(ToolMessage, self._result)

    def attempt(self) -> None:
        """Carry the call out, and keep what comes of it. It is never begun twice, however it ended."""
        self.begun = True
        if self._told is None:
            self._result = cast(ToolCallDecodingError, self.call).to_feedback_message()
            return
        try:
            # A signal ends this call; those beside it have scopes of their own, and come to their ends.
            with SignalScope():
                self._result, value, is_final = self._told.make()
        except BaseException as error:
            self._result = error
            if not isinstance(error, Exception | Signal):  # cancelled, or interrupted: that ends the others too
                raise
        else:
            if is_final and not isinstance(value, ToolCallExecutionError):
                self.answer = (value,)


def _run_together(everything: Collection[_Branch], at_once: int) -> None:
    branches = [branch for branch in everything if isinstance(branch.call, DecodedToolCall)]
    for branch in branches:
        branch.announce()
    with StopScope() as scope:
        try:
            if can_wait() or any(branch.is_async for branch in branches):
                wait(_run_in_tasks(branches, at_once))
            else:
                in_threads([branch.attempt for branch in branches], at_once, _THREAD)
        except BaseException:
            # What still runs in threads ends at its next operation.
            scope.stop(Cancelled)
            raise


async def _run_in_tasks(branches: Collection[_Branch], at_once: int) -> None:
    import anyio  # noqa: PLC0415 - loads asyncio

    limit = anyio.CapacityLimiter(at_once)

    async def run(branch: _Branch) -> None:
        async with limit:
            await _attempted(branch)

    # What is no error of a tool ends all of them.
    await in_tasks([functools.partial(run, branch) for branch in branches])


async def _attempted(branch: _Branch) -> None:
    if branch.is_async:
        await bridged(branch.attempt)
    else:
        # A function cannot be stopped: cancelled, its thread goes on by itself and nobody waits for it.
        thread = InThread(branch.attempt, _THREAD)
        await thread.ended()
        thread.result()
