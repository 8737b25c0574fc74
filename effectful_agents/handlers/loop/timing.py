"""Calling a tool, within the time that it may take."""

from __future__ import annotations

import concurrent.futures
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.runtime import can_wait, carried, wait
from effectful_agents.types import Tool

__all__ = ["tool_value"]

_log = logging.getLogger(__name__)


def tool_value(tool_call: DecodedToolCall[Any]) -> Any:
    """Call the tool and return its value; one that is asynchronous is awaited.

    A tool with a `timeout` that is asynchronous is cancelled when its time is over. One that is not cannot be stopped:
    it runs in a thread, with the context of the call, and when its time is over it goes on without anybody waiting.

    Raises:
        TimeoutError: The tool took longer than its `timeout`.
    """
    tool, arguments = tool_call.tool, tool_call.bound_args

    def call() -> Any:
        return tool(*arguments.args, **arguments.kwargs)

    try:
        # A handler of the tool may be asynchronous where the tool is not, and the reverse.
        value = call() if tool.timeout is None or tool.is_async else _called_within(tool.timeout, call, tool)
        if not inspect.isawaitable(value):
            return value
        return wait(value if tool.timeout is None else _awaited_within(tool.timeout, value))
    except _Late:
        raise TimeoutError(f"`{tool_call.name}` took longer than {tool.timeout:g} s") from None


class _Late(Exception):
    """The time is over. A `TimeoutError` may be the tool's own."""


async def _awaited_within(seconds: float, awaitable: Awaitable[Any]) -> Any:
    import anyio  # noqa: PLC0415 - loads asyncio

    with anyio.move_on_after(seconds):
        return await awaitable
    raise _Late


def _called_within(seconds: float, call: Callable[[], Any], tool: Tool) -> Any:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=carried(work), name=f"effectful-agents-{tool.__name__}", daemon=True).start()
    done, _ = wait(_done_within(seconds, future)) if can_wait() else concurrent.futures.wait([future], seconds)
    if done:
        return future.result()
    future.add_done_callback(
        lambda _: _log.warning("`%s` came to its end too late; its result is dropped", tool.__name__)
    )
    raise _Late


async def _done_within(seconds: float, future: concurrent.futures.Future[Any]) -> tuple[bool, None]:
    import anyio  # noqa: PLC0415 - loads asyncio

    pause = 0.001
    with anyio.move_on_after(seconds):
        while not future.done():
            await anyio.sleep(pause)
            pause = min(1.5 * pause, 0.05)
    return future.done(), None
