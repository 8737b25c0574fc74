"""Asking an agent of another process."""

from __future__ import annotations

import contextlib
import math
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx
from a2a import types as wire
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from google.protobuf.message import DecodeError

from effectful_agents.errors import AgentsError, OptionError, PeerError
from effectful_agents.handlers.delegation.a2a.tasks import AgentCard, Task, answer_of, card_of, task_of
from effectful_agents.messages.text import printable_text
from effectful_agents.operations.call_context import current_call_context
from effectful_agents.operations.world import fresh_id
from effectful_agents.runtime import in_helper_loop, wait

__all__ = ["A2AClient"]

_MOST_PAGES, _MOST_TASKS = 20, 1_000
_LONGEST_ERROR = 1_000


class A2AClient:
    """Ask an agent that speaks A2A, from any thread, task or event loop.

    Args:
        url: Its address; its card stands at `/.well-known/agent-card.json` there.
        headers: What each request carries, a token say; or a function that makes it each time.
        timeout: Seconds that may pass between two signs of life.
        max_bytes: How large an answer may be.

    Raises:
        OptionError: `url` is no address of HTTP, or `timeout` no time.

    Each method raises `PeerError` where the agent cannot be reached, fails, or says what cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        timeout: float = 120.0,
        max_bytes: int = 16_000_000,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"`url` is {url!r}; it is an address such as `https://agents.example.org`.")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise OptionError(f"`timeout` is {timeout!r}; it is a number of seconds above 0.")
        self.url = url.rstrip("/")
        self.peer = printable_text(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/"))
        self._headers = headers
        self._timeout = timeout
        self._most = max_bytes
        self._card: Any = None

    def __repr__(self) -> str:
        return f"A2AClient({self.peer!r})"

    def card(self) -> AgentCard:
        """What the agent says of itself; it is asked once."""

        async def ask(client: Client) -> AgentCard:
            return card_of(self._card, self._card.supported_interfaces[0].url)

        return self._performed(ask)

    def send(self, text: str, *, context_id: str = "", task_id: str = "", message_id: str = "") -> Task:
        """Send a message, which begins a task, or goes on with one that waits. It does not wait for its end.

        Args:
            text: The message.
            context_id: What a new task belongs to.
            task_id: The task that goes on.
            message_id: Identifies the message, for an agent that gets it twice; a new one by default.
        """
        message = wire.Message(
            message_id=message_id or fresh_id(),
            context_id=context_id or None,
            task_id=task_id or None,
            role=wire.Role.ROLE_USER,
            parts=[wire.Part(text=text)],
        )
        request = wire.SendMessageRequest(message=message)
        request.configuration.return_immediately = True

        async def ask(client: Client) -> Task:
            found: Task | None = None
            async for event in client.send_message(request):
                kind = event.WhichOneof("payload")
                if kind == "message":
                    return answer_of(event.message)
                if kind == "task":
                    found = task_of(event.task)
                    break
            if found is None:
                raise PeerError("it answered with neither a task nor a message", peer=self.peer)
            return found

        return self._performed(ask)

    def get(self, task_id: str) -> Task:
        """What has become of a task."""

        async def ask(client: Client) -> Task:
            return task_of(await client.get_task(wire.GetTaskRequest(id=task_id)))

        return self._performed(ask)

    def list_tasks(self, context_id: str = "") -> list[Task]:
        """The tasks of a context, or all that we may see; a thousand at most."""

        async def ask(client: Client) -> list[Task]:
            found: list[Task] = []
            token = ""
            for _ in range(_MOST_PAGES):
                request = wire.ListTasksRequest(page_token=token, include_artifacts=True)
                if context_id:
                    request.context_id = context_id
                page = await client.list_tasks(request)
                found += map(task_of, page.tasks)
                token = page.next_page_token
                if not token or len(found) >= _MOST_TASKS:
                    break
            return found[:_MOST_TASKS]

        return self._performed(ask)

    def cancel(self, task_id: str) -> Task:
        """Have a task end."""

        async def ask(client: Client) -> Task:
            return task_of(await client.cancel_task(wire.CancelTaskRequest(id=task_id)))

        return self._performed(ask)

    # --- the way ------------------------------------------------------------------------------------------------------

    def _performed[T](self, ask: Callable[[Client], Awaitable[T]]) -> T:
        given: Any = self._headers() if callable(self._headers) else self._headers
        headers: dict[str, str] = {**(given or {}), **current_call_context().headers()}

        async def performed() -> T:
            try:
                async with self._connected(headers) as client:
                    return await ask(client)
            except AgentsError:
                raise
            except (Exception, DecodeError) as error:
                raise PeerError(_told(error), peer=self.peer, retryable=_may_pass(error)) from error

        return wait(in_helper_loop(performed))

    @contextlib.asynccontextmanager
    async def _connected(self, headers: Mapping[str, str]) -> AsyncGenerator[Client]:
        # A client for each request: nobody has to close one that is kept.
        transport = _Bounded(self._most)
        async with httpx.AsyncClient(headers=headers, timeout=self._timeout, transport=transport) as http:
            if self._card is None:
                self._card = self._checked(await A2ACardResolver(http, self.url).get_agent_card())
            yield ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(self._card)

    def _checked(self, card: Any) -> Any:
        """A card that sends nobody elsewhere: requests carry what lets us in here."""
        here = urllib.parse.urlsplit(self.url)
        kept = [
            one
            for one in card.supported_interfaces
            if one.protocol_binding == "JSONRPC" and _origin(urllib.parse.urlsplit(one.url)) == _origin(here)
        ]
        if not kept:
            raise PeerError(
                "its card has no interface by JSON-RPC at the same address; it is not asked anywhere else.",
                peer=self.peer,
            )
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        return card


def _origin(parts: urllib.parse.SplitResult) -> tuple[str, str | None, int | None]:
    try:
        port = parts.port
    except ValueError:  # it is no number
        port = -1
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)


class _Bounded(httpx.AsyncHTTPTransport):
    """A transport that ends an answer which is too large."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        response.stream = _BoundedStream(response.stream, self._most)
        return response


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, inner: Any, most: int) -> None:
        self._inner = inner
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._left -= len(piece)
            if self._left < 0:
                raise httpx.ReadError("the answer is larger than `max_bytes`")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _told(error: BaseException) -> str:
    text = printable_text(" ".join(str(error).split()))
    return (text or type(error).__name__)[:_LONGEST_ERROR]


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, httpx.TransportError) or isinstance(error.__cause__, httpx.TransportError)
