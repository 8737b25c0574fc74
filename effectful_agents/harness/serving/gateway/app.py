"""The gateway as a web application."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from effectful_agents.errors import (
    AgentsError,
    ModelAccessError,
    SeamVersionError,
)
from effectful_agents.handlers.delegation import supported_versions
from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.failures import bounded
from effectful_agents.handlers.delegation.seam.gateway import BadRequest
from effectful_agents.handlers.delegation.seam.http import PATH, VERSION_HEADER
from effectful_agents.harness.serving.gateway.answering import Answering, refusal
from effectful_agents.harness.serving.gateway.clients import Client, Clients
from effectful_agents.harness.serving.gateway.seat import Seat
from effectful_agents.operations.call_context import CallContext

__all__ = ["MAX_BODY", "application"]

MAX_BODY = 16_000_000
"""Bytes of a request."""
_log = logging.getLogger("effectful_agents.gateway")
_THREADS = 64
_OPERATIONS = ("hello", "completion", "decide", "tool")


def application(
    clients: Clients,
    seat_of: Callable[[Client], Seat],
    *,
    max_body: int = MAX_BODY,
    heartbeat: float = 10.0,
) -> Starlette:
    """Make the application.

    Args:
        clients: Those who are let in.
        seat_of: Makes what performs for a client, at its first request.
        max_body: Bytes that a request may have.
        heartbeat: Seconds between two signs of life in an answer that takes a while.
    """
    seats: dict[str, Seat] = {}
    threads: list[anyio.CapacityLimiter] = []

    def seat(client: Client) -> Seat:
        if client.name not in seats:
            seats[client.name] = seat_of(client)
        return seats[client.name]

    async def endpoint(request: Request) -> Any:
        what = request.path_params["what"]
        name = "-"
        try:
            client = _client(clients, request.headers)
            name = client.name
            seat(client).meter.admit()
            if what not in _OPERATIONS:
                raise BadRequest(f"the gateway has no operation {bounded(what)!r}")
            _check_version(what, request.headers)
            body = _read(await _body(request, max_body))
        except ClientDisconnect:
            return Response(status_code=400)
        except AgentsError as error:
            return _refused(error, name, what if what in _OPERATIONS else "-")
        if not threads:
            threads.append(anyio.CapacityLimiter(_THREADS))
        context = CallContext.from_headers(request.headers)
        return Answering(seat(client), what, body, context, heartbeat, threads[0])

    return Starlette(routes=[Route(PATH + "{what}", endpoint, methods=["POST"])])


def _client(clients: Clients, headers: Mapping[str, str]) -> Client:
    kind, _, token = headers.get("authorization", "").partition(" ")
    client = clients.of_token(token.strip()) if kind.lower() == "bearer" and token else None
    if client is None:
        raise _NoToken("the gateway does not know the token; `RemoteOperations(…, token=…)` sends one.")
    return client


class _NoToken(ModelAccessError):
    """No token came, or one that is not known."""


class _TooLarge(BadRequest):
    """A request is larger than it may be."""


def _check_version(what: str, headers: Mapping[str, str]) -> None:
    spoken = headers.get(VERSION_HEADER, "")
    if what != "hello" and spoken not in supported_versions():
        versions = ", ".join(supported_versions())
        raise SeamVersionError(
            f"the gateway speaks {versions}, and the request {bounded(spoken)[:20] or 'no version'}."
        )


async def _body(request: Request, most: int) -> bytes:
    length = request.headers.get("content-length", "0")
    too_large = _TooLarge(f"the request is larger than the {most:,} bytes that the gateway takes")
    if not length.isdecimal() or len(length) > 15 or int(length) > most:
        raise too_large
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise too_large
    return bytes(body)


def _read(body: bytes) -> dict[str, Any]:
    try:
        return wire.read_json(body)
    except ValueError as error:
        raise BadRequest(f"the request cannot be read: {bounded(error)}") from error


def _refused(error: AgentsError, client: str, what: str) -> Response:
    match error:
        case _NoToken():
            status, told = 401, {"kind": "ModelAccessError", "message": str(error)}
        case _TooLarge():
            status, told = 413, {"kind": "ConfigurationError", "message": str(error)}
        case _:
            status, told = refusal(error)
    headers = {} if error.retry_after is None else {"retry-after": str(math.ceil(error.retry_after))}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    _log.info("client=%s op=%s outcome=%d %s", client, what, status, told["kind"])
    return Response(wire.as_json({"error": told}) + b"\n", status, headers, "application/x-ndjson")
