"""Calling a tool, within the time that it may take."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from effectful_agents.errors import Cancelled
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.runtime import InThread, check_stopped, time_left, wait
from effectful_agents.types import Tool

__all__ = ["tool_value"]

_log = logging.getLogger(__name__)


def tool_value(tool_call: DecodedToolCall[Any]) -> Any:
    """Call the tool and return its value; one that is asynchronous is awaited.

    A tool that is asynchronous is cancelled when its `timeout` is over, or the time of a `Deadline`. One that is not
    cannot be stopped: where there is such a limit it runs in a thread, with the context of the call, and when its time
    is over it goes on without anybody waiting, until it performs an operation.

    Raises:
        TimeoutError: The tool took longer than its `timeout`.
        BaseException: What ended the call meanwhile.
    """
    tool, arguments = tool_call.tool, tool_call.bound_args

    def call() -> Any:
        return tool(*arguments.args, **arguments.kwargs)

    try:
        # A handler of the tool may be asynchronous where the tool is not, and the reverse.
        limited = tool.timeout is not None or time_left() is not None
        value = _called_in_thread(tool, call) if limited and not tool.is_async else call()
        if inspect.isawaitable(value):
            value = wait(value if tool.timeout is None else _awaited_within(tool.timeout, value))
    except _Late:
        raise TimeoutError(f"`{tool_call.name}` took longer than {tool.timeout:g} s") from None
    try:
        check_stopped()
    except BaseException:
        _drop(tool)
        raise
    return value


class _Late(Exception):
    """The time is over. A `TimeoutError` may be the tool's own."""


async def _awaited_within(seconds: float, awaitable: Awaitable[Any]) -> Any:
    import anyio  # noqa: PLC0415 - loads asyncio

    with anyio.move_on_after(seconds):
        return await awaitable
    raise _Late


def _called_in_thread(tool: Tool, call: Callable[[], Any]) -> Any:
    running = InThread(call, f"effectful-agents-{tool.__name__}")
    ended = False
    try:
        ended = running.wait(tool.timeout)
    finally:
        if not ended:
            running.abandon(lambda: Cancelled(f"nobody waits for `{tool.__name__}` any more"), lambda: _drop(tool))
    if not ended:
        raise _Late
    return running.result()


def _drop(tool: Tool) -> None:
    _log.warning("`%s` came to its end too late; its result is dropped", tool.__name__)
