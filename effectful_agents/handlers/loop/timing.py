"""Calling a tool, within the time that it may take."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Generator
from typing import Any

from effectful_agents.errors import Cancelled
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.runtime import InThread, StopScope, check_stopped, wait
from effectful_agents.types import Tool

__all__ = ["tool_value"]

_log = logging.getLogger(__name__)


def tool_value(tool_call: DecodedToolCall[Any]) -> Any:
    """Call the tool and return its value; one that is asynchronous is awaited.

    When the `timeout` of the tool is over, one that is asynchronous is cancelled, and a skill or delegate ends at its
    next operation. Any other tool with a `timeout` cannot be stopped: it runs in a thread, with the context of the
    call, and when its time is over it goes on without anybody waiting, until it performs an operation.

    Raises:
        TimeoutError: The tool took longer than its `timeout`.
        BaseException: What ended the call meanwhile.
    """
    tool, arguments = tool_call.tool, tool_call.bound_args

    def call() -> Any:
        return tool(*arguments.args, **arguments.kwargs)

    try:
        in_thread = tool.timeout is not None and not (tool.is_async or tool.skill is not None)
        with _limited(tool.timeout):
            value = _called_in_thread(tool, call) if in_thread else call()
            # A handler of the tool may be asynchronous where the tool is not, and the reverse.
            if inspect.isawaitable(value):
                value = wait(value)
    except _Late:
        raise TimeoutError(f"`{tool_call.name}` took longer than {tool.timeout:g} s") from None
    try:
        check_stopped()
    except BaseException:
        _drop(tool)
        raise
    return value


class _Late(TimeoutError):
    """The time of the tool is over. A `TimeoutError` may be its own."""


@contextlib.contextmanager
def _limited(seconds: float | None) -> Generator[None]:
    if seconds is None:
        yield
        return
    with StopScope(seconds=seconds, too_late=_Late) as scope:
        yield
        scope.check()
        scope.finish()  # what the tool has left running is none of its work any more


def _called_in_thread(tool: Tool, call: Callable[[], Any]) -> Any:
    running = InThread(call, f"effectful-agents-{tool.__name__}")
    try:
        running.wait()
    except BaseException:
        running.abandon(lambda: Cancelled(f"nobody waits for `{tool.__name__}` any more"), lambda: _drop(tool))
        raise
    return running.result()


def _drop(tool: Tool) -> None:
    _log.warning("`%s` came to its end too late; its result is dropped", tool.__name__)
