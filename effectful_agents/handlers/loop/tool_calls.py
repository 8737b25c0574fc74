"""Carrying out the tool calls of one turn: together where they can be, and with their results in order always."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import Any

from effectful_agents.errors import Signal, ToolCallDecodingError, ToolCallExecutionError
from effectful_agents.messages import Message
from effectful_agents.operations.history import append_message
from effectful_agents.operations.loop import DecodedToolCall, ToolResult, call_tool
from effectful_agents.runtime import bridged, can_wait, carried, handler, wait

__all__ = ["carry_out"]

type _Call = DecodedToolCall[Any] | ToolCallDecodingError


def carry_out(tool_calls: Sequence[_Call], at_once: int) -> tuple[Any] | None:
    """Carry out the calls of one turn; each gets its result in the history, in the order of the calls.

    They run at the same time when each of their tools is `async def` or declared `concurrent=True`, and one after the
    other otherwise. In the latter case the first final call that succeeds ends the call of the skill: those behind it
    are not made, and are answered with that. Of calls that ran together the first final one counts.

    Args:
        tool_calls: The calls; one that could not be decoded is answered with what was wrong with it.
        at_once: Calls that may run at the same time.

    Returns:
        The answer, in a tuple, where a final call gave one.
    """
    if at_once > 1 and len(tool_calls) > 1 and all(map(_runs_beside_others, tool_calls)):
        return _together(tool_calls, at_once)
    final: tuple[Any] | None = None
    for call in tool_calls:
        if isinstance(call, ToolCallDecodingError):
            append_message(call.to_feedback_message())
        elif final is not None:
            note = "(This call was not made: a call before it in the same turn ended the conversation.)"
            append_message({"role": "tool", "tool_call_id": call.id, "content": note})
        else:
            final = _answer(call_tool(call))
    return final


def _runs_beside_others(call: _Call) -> bool:
    return isinstance(call, ToolCallDecodingError) or call.tool.is_async or call.tool.concurrent


def _answer(result: ToolResult[Any]) -> tuple[Any] | None:
    _, value, is_final = result
    return (value,) if is_final and not isinstance(value, ToolCallExecutionError) else None


# --- together ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Branch:
    """One of several calls that run at the same time.

    Attributes:
        call: The call.
        messages: What it adds to the history, when all are done.
        answer: The answer, if it was a final call.
        error: What it raised.
    """

    call: _Call
    messages: list[Message] = dataclasses.field(default_factory=list)
    answer: tuple[Any] | None = None
    error: BaseException | None = None

    def run(self) -> None:
        if isinstance(self.call, ToolCallDecodingError):
            self.messages.append(self.call.to_feedback_message())
            return
        # Whatever records the result records it here, for results come in any order.
        with handler({append_message: self.messages.append}):
            try:
                self.answer = _answer(call_tool(self.call))
            except (Exception, Signal) as error:
                self.error = error

    @property
    def needs_thread(self) -> bool:
        return isinstance(self.call, DecodedToolCall) and not self.call.tool.is_async


def _together(tool_calls: Sequence[_Call], at_once: int) -> tuple[Any] | None:
    branches = [_Branch(call) for call in tool_calls]
    if can_wait():
        wait(_run_in_tasks(branches, at_once))
    else:
        _run_in_threads(branches, at_once)
    for branch in branches:
        for message in branch.messages:
            append_message(message)
        if branch.error is not None:
            raise branch.error
    return next((branch.answer for branch in branches if branch.answer is not None), None)


async def _run_in_tasks(branches: Sequence[_Branch], at_once: int) -> None:
    import anyio.to_thread  # noqa: PLC0415 - loads asyncio

    limit = anyio.CapacityLimiter(at_once)

    async def run(branch: _Branch) -> None:
        if branch.needs_thread:
            # A function cannot be stopped: cancelled, its thread goes on by itself and nobody waits for it.
            await anyio.to_thread.run_sync(carried(branch.run), limiter=limit, abandon_on_cancel=True)
        else:
            async with limit:
                await bridged(branch.run)

    try:
        async with anyio.create_task_group() as tasks:
            for branch in branches:
                tasks.start_soon(run, branch)
    except BaseExceptionGroup as group:  # what is no error of a tool ends all of them
        raise _first(group) from group


def _first(group: BaseExceptionGroup) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _run_in_threads(branches: Sequence[_Branch], at_once: int) -> None:
    pool = concurrent.futures.ThreadPoolExecutor(
        min(at_once, len(branches)), thread_name_prefix="effectful-agents-tool"
    )
    try:
        for future in [pool.submit(carried(branch.run)) for branch in branches]:
            future.result()
    finally:
        # Interrupted, those that have begun go on by themselves.
        pool.shutdown(wait=False, cancel_futures=True)
