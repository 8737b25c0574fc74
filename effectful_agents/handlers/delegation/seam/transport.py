"""Sending one request to a gateway over httpx, and reading the lines of its answer as they come."""

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

__all__ = ["Answer", "TooLarge", "load", "post"]

_LAST_WAIT = 5.0
"""Seconds that closing a connection may take."""


class TooLarge(ValueError):
    """An answer is larger than the program takes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a gateway; its lines come while they are read, blank ones too.

    Attributes:
        status: The HTTP status.
        headers: The headers, the names in small letters.
        lines: The lines of the body.
    """

    status: int
    headers: Mapping[str, str]
    lines: Iterator[bytes]


def load() -> ModuleType:
    """The module httpx, whose loading takes a third of a second."""
    import httpx  # noqa: PLC0415 - see above

    return httpx


@contextlib.contextmanager
def post(
    url: str, headers: Mapping[str, str], body: bytes, timeout: float | None, most: int
) -> Generator[Answer, None, None]:
    """Send a request; leaving the block closes its connection, whether the answer was read or not.

    Args:
        url: The address.
        headers: The headers.
        body: What is sent.
        timeout: Seconds that may pass between any two signs of life; None waits for ever.
        most: Bytes that the answer may have.

    Raises:
        httpx.RequestError: The request could not be carried out; reading the lines raises it too.
        TooLarge: From reading the lines.
    """
    limits = {"timeout": load().Timeout(timeout).as_dict()}
    request = load().Request("POST", url, headers=headers, content=body, extensions=limits)
    with (_awaited if can_wait() else _sent)(request) as (response, pieces):
        yield Answer(response.status_code, response.headers, _lines(pieces, most))


@functools.cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes longer than all the rest of making a client.
    return load().create_ssl_context()


@contextlib.contextmanager
def _sent(request: httpx.Request) -> Generator[tuple[httpx.Response, Iterator[bytes]], None, None]:
    # A client for each request: one that is kept would have to be closed in the event loop that it was made in.
    with load().Client(verify=_tls()) as client, contextlib.closing(client.send(request, stream=True)) as response:
        yield response, response.iter_bytes()


@contextlib.contextmanager
def _awaited(request: httpx.Request) -> Generator[tuple[httpx.Response, Iterator[bytes]], None, None]:
    client = load().AsyncClient(verify=_tls())
    try:
        response = wait(client.send(request, stream=True))
        body = response.aiter_bytes()
        try:
            yield response, _waited_for(body)
        finally:
            with shielded():
                wait(_closed(response, body))
    finally:
        with shielded():
            wait(_closed(client))


def _waited_for(body: Any) -> Iterator[bytes]:
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
            # httpx reads through generators in generators, of which `aclose` ends the outer one; trio warns about the
            # others. With the connection closed, reading on ends them all.
            with contextlib.suppress(load().RequestError, load().StreamError):
                async for _ in body:
                    pass  # pragma: no cover - only what had arrived already


def _lines(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """The lines of a body. The last one need not have an end: then it may have been cut, as whoever reads it sees."""
    left = b""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise TooLarge(f"it is larger than {most:,} bytes")
        *whole, left = (left + piece).split(b"\n") if b"\n" in piece else [left + piece]
        yield from whole
    if left:
        yield left
