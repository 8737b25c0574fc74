"""The answer to one request: performed while the client waits, and ended when it goes away."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio

from effectful_agents.errors import (
    AgentsError,
    Cancelled,
    ConfigurationError,
    Denied,
    ModelAccessError,
    ProviderError,
    RequestTimeoutError,
    SeamVersionError,
    Signal,
    StepDenied,
)
from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.failures import write_error
from effectful_agents.handlers.delegation.seam.gateway import BadRequest, UnknownToolRef
from effectful_agents.harness.serving.gateway.seat import Seat
from effectful_agents.messages import StreamEvent
from effectful_agents.operations.call_context import CallContext
from effectful_agents.runtime import InThread, bridged

__all__ = ["Answering", "refusal"]

_log = logging.getLogger("effectful_agents.gateway")

type _Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type _Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def refusal(error: BaseException) -> tuple[int, dict[str, Any]]:
    """The HTTP status of an error, and how it is told. What is not for the client is logged, and told in general."""
    written = write_error(error) if isinstance(error, Exception) else None
    if written is None and isinstance(error, ModelAccessError):
        _log.error("a model cannot be asked: %s", error)
        message = "the gateway cannot ask this model; its log says why"
        written = {"kind": "ModelAccessError", "message": message}
    elif written is None and isinstance(error, ConfigurationError):
        _log.error("the gateway is not set up for a request: %s", error)
        written = {"kind": "ConfigurationError", "message": "the gateway is not set up for this; its log says why"}
    elif written is None:
        _log.error("a request failed", exc_info=error)
        message = "the gateway failed; its log says why"
        written = {"kind": "ProviderError", "message": message, "status": 500, "retryable": False}
    return _status(error), written


def _status(error: BaseException) -> int:
    match error:
        case Denied() | StepDenied():
            return 403
        case UnknownToolRef():
            return 409
        case ProviderError(status=429):
            return 429
        case RequestTimeoutError():
            return 504
        case ProviderError():
            return 502
        case BadRequest() | SeamVersionError():
            return 400
        case AgentsError():
            return 422
    return 500


class Answering:
    """An answer, as ASGI has it.

    Its first line decides about the HTTP status, unless that takes longer than a sign of life may: then the status is
    200, and the lines say what became of it.

    Args:
        seat: The client.
        what: What is asked for.
        body: What the request says.
        context: The trace that it belongs to.
        heartbeat: Seconds between two signs of life.
        threads: Limits how many tools and policies are at work at once.
    """

    def __init__(
        self,
        seat: Seat,
        what: str,
        body: dict[str, Any],
        context: CallContext,
        heartbeat: float,
        threads: anyio.CapacityLimiter,
    ) -> None:
        self._seat, self._what, self._body, self._context = seat, what, body, context
        self._heartbeat = heartbeat
        self._threads = threads
        self._begun = time.monotonic()
        self._lines, self._waiting = anyio.create_memory_object_stream[tuple[int, dict[str, Any]]](math.inf)
        self._outcome = "gone"
        self._tokens = 0

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._until_gone, receive, group.cancel_scope)
                group.start_soon(self._perform)
                await self._send_lines(send)
                group.cancel_scope.cancel()
        finally:
            self._lines.close()
            self._waiting.close()
            spent = 1_000 * (time.monotonic() - self._begun)
            _log.info(
                "client=%s op=%s outcome=%s ms=%.0f tokens=%d trace=%s",
                *(self._seat.client.name, self._what, self._outcome, spent, self._tokens),
                self._context.traceparent[3:35] or "-",
            )

    async def _until_gone(self, receive: _Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _send_lines(self, send: _Send) -> None:
        started = False
        while True:
            status, line = 200, None
            with anyio.move_on_after(self._heartbeat):
                status, line = await self._waiting.receive()
            if not started:
                started = True
                headers = [(b"content-type", b"application/x-ndjson")]
                after = (line or {}).get("error", {}).get("retry_after")
                if after is not None:
                    headers.append((b"retry-after", str(math.ceil(after)).encode()))
                await send({"type": "http.response.start", "status": status, "headers": headers})
            is_last = line is not None and "event" not in line
            data = b"\n" if line is None else wire.as_json(line) + b"\n"
            await send({"type": "http.response.body", "body": data, "more_body": not is_last})
            if is_last:
                return

    # --- performing ---------------------------------------------------------------------------------------------------

    async def _perform(self) -> None:
        perform = functools.partial(self._seat.perform, self._what, self._body, self._context, self._tell)
        try:
            # Models are waited for; tools and policies may be ordinary functions that take their time.
            in_loop = self._what in ("hello", "completion")
            reply, self._tokens = await (bridged(perform) if in_loop else self._in_thread(perform))
            line = {"reply": reply}
            wire.as_json(line)  # what has no form on the wire shows here
            status, self._outcome = 200, "200"
        except (Exception, Signal) as error:
            status, told = refusal(error)
            line, self._outcome = {"error": told}, f"{status} {told['kind']}"
        self._lines.send_nowait((status, line))

    async def _in_thread[T](self, perform: Callable[[], T]) -> T:
        async with self._threads:
            thread = InThread(perform, "effectful-agents-gateway")
            try:
                await thread.ended()
            except BaseException:
                # What it is in the middle of goes on; its next operation ends it.
                thread.abandon(Cancelled, lambda: None)
                raise
            return thread.result()

    def _tell(self, event: StreamEvent) -> None:
        if (written := wire.write_event(event)) is not None:
            self._lines.send_nowait((200, {"event": written}))
