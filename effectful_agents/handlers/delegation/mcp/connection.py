"""The ways to a server: a connection in the loop that the process keeps, and a session that the program has made."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol

import anyio
import httpx2
import mcp_types
from mcp import Client, ClientSession, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from effectful_agents.errors import AgentsError, ConfigurationError, PeerError
from effectful_agents.handlers.delegation.mcp.life import Answering, Life, Served, Transport
from effectful_agents.handlers.delegation.mcp.results import said
from effectful_agents.runtime import can_wait, in_event_loop, in_helper_loop, wait

__all__ = ["Connection", "GivenSession", "Reached", "over_http", "over_stdio"]

_ANSWERED = frozenset({mcp_types.INVALID_PARAMS, mcp_types.METHOD_NOT_FOUND, mcp_types.INTERNAL_ERROR})

type Ask[T] = Callable[[Any], Awaitable[T]]
"""What is done with a client of the SDK."""


class Connection(Protocol):
    """A way to a server."""

    def perform[T](self, ask: Ask[T], *, timeout: float | None, again: bool = False) -> T:
        """Do something with a client of the SDK, from any thread or task, and wait for what comes of it.

        Args:
            ask: What is done.
            timeout: Seconds that it may take.
            again: Whether it may be done once more, where the server went away in the middle of it.

        Raises:
            PeerError: The server cannot be reached, failed, takes too long, or says what cannot be read.
        """
        ...

    def close(self) -> None:
        """End it; the next use begins another one."""


def over_stdio(command: str, args: list[str], env: dict[str, str] | None, cwd: str | None) -> Transport:
    """A server that is a process of its own, and ends with the connection."""
    parameters = StdioServerParameters(command=command, args=args, env=env, cwd=cwd)

    @contextlib.asynccontextmanager
    async def start() -> AsyncGenerator[Any]:
        # What stands for standard error here, in a notebook say, need not be a file that a process can write to.
        with open(_stderr(), "w", closefd=False) as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams

    return start


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return 2


def over_http(url: str, headers: Callable[[], dict[str, str]], timeout: float) -> Transport:
    """A server behind an address."""

    @contextlib.asynccontextmanager
    async def connect() -> AsyncGenerator[Any]:
        limits = httpx2.Timeout(timeout, read=None)  # an open stream may be silent; calls have their own limit
        async with (
            httpx2.AsyncClient(headers=headers(), timeout=limits) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    return connect


@dataclasses.dataclass(frozen=True)
class Reached:
    """A server that one connects to by oneself.

    Attributes:
        peer: The server, for errors.
        transport: Makes the way to it.
        connect_timeout: Seconds that it may take until it has said who it is.
        answering: Who answers what it asks.
        protocol: How the version of the protocol is agreed on, as the SDK's `Client` has it.
    """

    peer: str
    transport: Transport
    connect_timeout: float
    answering: Answering
    protocol: str = "auto"

    def connect(self, on_change: Callable[[], None]) -> Connection:
        """The connection to it, which begins at its first use."""
        return OwnedConnection(self, on_change)


class OwnedConnection:
    """A connection that is made at the first use, and anew where it has ended.

    Args:
        server: The server.
        on_change: Called when it says that its tools are others now, from any thread.
    """

    def __init__(self, server: Reached, on_change: Callable[[], None]) -> None:
        self.peer = server.peer
        self._server = server
        self._on_change = on_change
        # Touched in the loop of the process only.
        self._life: Life | None = None

    def perform[T](self, ask: Ask[T], *, timeout: float | None, again: bool = False) -> T:
        here = contextvars.copy_context()
        return wait(in_helper_loop(lambda: self._performed(ask, timeout, again=again, caller=here)))

    def close(self) -> None:
        life = self._life
        if life is None:
            return
        if can_wait() or not in_event_loop():
            wait(in_helper_loop(self._closed))
        else:  # of a block in an `async def`, where nobody can wait for it: it ends by itself
            asyncio.run_coroutine_threadsafe(self._closed(), life.loop)

    async def _closed(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await life.ended()

    async def _performed[T](self, ask: Ask[T], timeout: float | None, *, again: bool, caller: Any) -> T:
        life = await self._living()
        served = Served(caller)
        try:
            with life.serving(served), _limited(timeout, self.peer):
                value = await ask(life.client)
            served.check()
            return value
        except AgentsError:
            served.check()
            raise
        except Exception as error:
            served.check()
            if not _has_answered(error):
                life.leave()
                if again and not isinstance(error, TimeoutError):
                    return await self._performed(ask, timeout, again=False, caller=caller)
            raise PeerError(_told(error), peer=self.peer) from error

    async def _living(self) -> Life:
        life = self._life
        if life is None or not life.is_open:
            server = self._server
            life = self._life = Life(server.transport, server.protocol, server.answering, self._on_change)
        try:
            with _limited(self._server.connect_timeout, self.peer):
                await life.begun()
        except Exception as error:
            life.leave()
            if isinstance(error, PeerError):
                raise
            raise PeerError(f"it cannot be reached: {_told(error)}", peer=self.peer, retryable=True) from error
        return life


class GivenSession:
    """A session that the program has made and owns, on an event loop of its own.

    Args:
        session: A `ClientSession` or `Client` of the SDK, initialized.
        peer: The server, for errors.
    """

    def __init__(self, session: ClientSession | Client, peer: str) -> None:
        self.peer = peer
        self._session = session
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    def perform[T](self, ask: Ask[T], *, timeout: float | None, again: bool = False) -> T:
        async def performed() -> T:
            try:
                with _limited(timeout, self.peer):
                    return await ask(self._session)
            except AgentsError:
                raise
            except Exception as error:
                raise PeerError(_told(error), peer=self.peer) from error

        return self._there(performed)

    def _there[T](self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await something in the loop of the session."""
        if can_wait():
            return wait(make())
        if self._loop is None or not self._loop.is_running() or in_event_loop():
            raise ConfigurationError(
                f"the session of `{self.peer}` belongs to an event loop, in which this cannot wait for it. Call the "
                "skill there, by `await acall(skill, …)`, or make the tools by `MCPTools.stdio` or `MCPTools.http`, "
                "which can be used from anywhere."
            )
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Whoever made it ends it."""


@contextlib.contextmanager
def _limited(seconds: float | None, peer: str) -> Generator[None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        told = "it took too long" if seconds is None else f"it took longer than {seconds:g} s"
        raise PeerError(told, peer=peer, retryable=True) from error


def _has_answered(error: Exception) -> bool:
    """Whether a server has answered, however badly: then the connection is as good as before."""
    if isinstance(error, MCPError):
        return error.code in _ANSWERED
    return not isinstance(error, _OF_THE_WAY)


_OF_THE_WAY = (OSError, httpx2.HTTPError, anyio.BrokenResourceError, anyio.ClosedResourceError)


def _told(error: BaseException) -> str:
    """What went wrong, of the first of several things."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return said(error.error.message if isinstance(error, MCPError) else error)  # ty: ignore[invalid-argument-type]
