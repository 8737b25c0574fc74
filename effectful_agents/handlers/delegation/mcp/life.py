"""A connection from its beginning to its end: one task owns it, and everybody else asks that task."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self

import anyio
import mcp_types
from mcp import Client, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from effectful_agents.handlers.delegation.mcp.results import said
from effectful_agents.messages.text import printable_text

__all__ = ["Answering", "Life", "Served", "Transport"]

_log = logging.getLogger("effectful_agents.mcp")

_LAST_WAIT = 10.0
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO, "warning": logging.WARNING}

type Transport = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes the way to a server."""


class Answering(Protocol):
    """Who answers what a server asks."""

    def sample(self, params: Any) -> Any:
        """A reply of a model."""

    def elicit(self, params: Any) -> Any:
        """What a person says."""


class Served:
    """A call that is under way.

    Attributes:
        context: Where it was made.
        failure: What was raised when the program was to answer the server, and is not for the server.
    """

    def __init__(self, context: contextvars.Context) -> None:
        self.context = context
        self.failure: BaseException | None = None

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure


class Life:
    """One connection, in a task of its own.

    Args:
        transport: Makes the way to the server.
        protocol: How the version of the protocol is agreed on.
        answering: Who answers what the server asks.
        on_change: Called when it says that its tools are others now.

    Attributes:
        loop: The event loop in which it is.
    """

    def __init__(
        self, transport: Transport, protocol: str, answering: Answering, on_change: Callable[[], None]
    ) -> None:
        self._answering = answering
        self._on_change = on_change
        self._served: list[Served] = []
        self._leaving = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.loop = asyncio.get_running_loop()
        # Not in the context of whoever happens to be first: nothing of theirs is to be kept for good.
        self._task = self.loop.create_task(self._own(transport, protocol), context=contextvars.Context())

    @property
    def client(self) -> Client:
        return self._client.result()

    @property
    def is_open(self) -> bool:
        return not self._leaving.is_set() and not self._task.done() and self.loop is asyncio.get_running_loop()

    async def begun(self) -> None:
        await asyncio.shield(self._client)

    def leave(self) -> None:
        """Have it end; whoever is in the middle of something is told that the connection is closed."""
        self._leaving.set()
        if not self._client.done():
            self._task.cancel()

    async def ended(self) -> None:
        self.leave()
        await asyncio.wait([self._task], timeout=_LAST_WAIT)

    @contextlib.contextmanager
    def serving(self, served: Served) -> Generator[None]:
        self._served.append(served)
        try:
            yield
        finally:
            self._served.remove(served)

    async def _own(self, transport: Transport, protocol: str) -> None:
        try:
            client = Client(
                _Noticed(transport(), self._leaving.set),
                sampling_callback=self._sample,
                elicitation_callback=self._elicit,
                logging_callback=_log_of,
                log_level="info",
                message_handler=self._heard,
                mode=protocol,
                cache=None,
            )
            async with client, _listening(client, self._on_change):
                # A schema of the server may have patterns that take for ever, and holds all threads: `MCPTools` checks.
                client.session.validate_tool_result = _unchecked
                self._client.set_result(client)
                await self._leaving.wait()
        except BaseException as error:
            self._leaving.set()
            if not self._client.done():
                failure = error if isinstance(error, Exception) else ConnectionError("the connection was given up")
                self._client.set_exception(failure)
                self._client.exception()  # nobody may be left to look at it
            elif isinstance(error, Exception):
                _log.debug("a connection has ended", exc_info=True)
            else:
                raise

    async def _heard(self, message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._on_change()

    async def _sample(self, context: Any, params: Any) -> Any:
        return await self._answered(lambda: self._answering.sample(params))

    async def _elicit(self, context: Any, params: Any) -> Any:
        return await self._answered(lambda: self._answering.elicit(params))

    async def _answered(self, answer: Callable[[], Any]) -> Any:
        """What the program says to a server, in the context of the call in which it asks.

        A server does not say which call that is. Of several that are under way, the one that began first is taken.
        """
        if not self._served:
            return mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message="the program has no call under way")
        served = self._served[0]
        answered, error = await _in_thread(served.context.copy(), answer)
        if error is None:
            return answered
        served.failure = error
        return mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message="the program could not answer")


async def _in_thread(context: contextvars.Context, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a function returns, or raises, that may take its time; its thread does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def tell(outcome: tuple[Any, BaseException | None]) -> None:
        if not done.done():
            done.set_result(outcome)

    def run() -> None:
        try:
            outcome = context.run(function), None
        except BaseException as error:
            outcome = None, error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=run, name="effectful-agents-mcp", daemon=True).start()
    return await done


class _Noticed:
    """A transport of which one hears when the other side has ended it.

    Args:
        inner: The transport.
        ended: Called then.
    """

    def __init__(self, inner: AbstractAsyncContextManager[Any], ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._inner.__aenter__()
        return _NoticedStream(read, self._ended), write

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._inner.__aexit__(*raised)


class _NoticedStream:
    def __init__(self, inner: Any, ended: Callable[[], None]) -> None:
        self._inner = inner
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._inner.__aexit__(*raised)


@contextlib.asynccontextmanager
async def _listening(client: Client, on_change: Callable[[], None]) -> AsyncGenerator[None]:
    """Listen to a server of the current protocol, which tells of changes to those who ask for it."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
        yield
        return

    async def listen() -> None:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    on_change()
        except (MCPError, OSError, TimeoutError, RuntimeError) as error:
            _log.debug("changes are not listened to: %s", said(error))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listen())
        try:
            yield
        finally:
            task.cancel()


async def _unchecked(name: str, result: Any) -> None:
    pass


async def _log_of(params: Any) -> None:
    level = _LEVELS.get(params.level, logging.ERROR)
    if _log.isEnabledFor(level):
        _log.log(level, "%s", printable_text(str(params.data)[:2_000]))
