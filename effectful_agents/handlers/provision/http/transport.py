"""Sending one request over httpx, and reading its answer in pieces."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Generator, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from effectful_agents.runtime import can_wait, shielded, wait

if TYPE_CHECKING:
    import ssl

    import httpx

__all__ = ["Answer", "load", "post"]

_LAST_WAIT = 5.0
"""Seconds that closing a connection may take."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; its body comes while it is read.

    Attributes:
        status: The HTTP status.
        headers: The headers, the names in small letters.
        body: The body, in the pieces in which it arrives.
    """

    status: int
    headers: Mapping[str, str]
    body: Iterator[bytes]


def load() -> ModuleType:
    """The module httpx, whose loading takes a third of a second."""
    import httpx  # noqa: PLC0415 - see above

    return httpx


@contextlib.contextmanager
def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Generator[Answer, None, None]:
    """Send a request; leaving the block closes its connection, whether the answer was read or not.

    Each request has its own client. One that is kept belongs to the event loop in which it was made and has to be
    closed in it, and a handler outlives both; beside the seconds that a model takes, a new connection does not count.

    Args:
        url: The address.
        headers: All headers that are sent besides those of HTTP itself.
        body: What is sent.
        timeout: Seconds that may pass between any two signs of life; None waits for ever.

    Raises:
        httpx.RequestError: The request could not be carried out; the body raises it too.
    """
    send = _post_awaited if can_wait() else _post
    with send(load().Request("POST", url, headers=headers, content=body, extensions=_limits(timeout))) as answer:
        yield answer


def _limits(timeout: float | None) -> dict[str, Any]:
    return {"timeout": load().Timeout(timeout).as_dict()}


@functools.cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes longer than all the rest of making a client.
    return load().create_ssl_context()


@contextlib.contextmanager
def _post(request: httpx.Request) -> Generator[Answer, None, None]:
    with load().Client(verify=_tls()) as client, contextlib.closing(client.send(request, stream=True)) as response:
        yield Answer(response.status_code, response.headers, response.iter_bytes())


@contextlib.contextmanager
def _post_awaited(request: httpx.Request) -> Generator[Answer, None, None]:
    client = load().AsyncClient(verify=_tls())
    try:
        response = wait(client.send(request, stream=True))
        body = response.aiter_bytes()
        try:
            yield Answer(response.status_code, response.headers, _awaited(body))
        finally:
            with shielded():
                wait(_closed(response, body))
    finally:
        with shielded():
            wait(_closed(client))


def _awaited(body: Any) -> Iterator[bytes]:
    while True:
        try:
            piece = wait(anext(body))
        except StopAsyncIteration:
            return
        yield piece


async def _closed(connection: Any, body: Any = None) -> None:
    import anyio  # noqa: PLC0415 - loaded by httpx

    # In a task that was cancelled trio would not let anything be awaited.
    with anyio.move_on_after(_LAST_WAIT, shield=True):
        await connection.aclose()
        if body is not None:
            await _finished(body)


async def _finished(body: Any) -> None:
    # The generators in which httpx reads an answer stand in each other, and `aclose` ends the outer one only; trio
    # warns about the others. With the connection closed, reading on ends them all.
    with contextlib.suppress(load().RequestError, load().StreamError):
        async for _ in body:
            pass  # pragma: no cover - only what had arrived already
