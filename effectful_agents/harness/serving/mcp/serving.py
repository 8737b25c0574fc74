"""The two ways to a server: standard input and output, and HTTP."""

from __future__ import annotations

import contextlib
import hmac
import sys
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse

from effectful_agents.harness.serving.listening import LOOPBACK, listen, log_to_stderr

__all__ = ["over_http", "over_stdio"]

_MAX_BODY = 16_000_000


def over_stdio(server: Server[Any]) -> int:
    """Serve the client that has started this process, until it is gone."""
    log_to_stderr()

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    # A client that is gone in the middle of something is no failure of ours.
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        anyio.run(serve)
    return 0


def over_http(server: Server[Any], host: str, port: int, token: str, *, show_token: bool) -> int:
    """Serve all clients that have the token, until the process is told to end."""
    log_to_stderr()
    app = server.streamable_http_app(host=host, max_request_body_size=_MAX_BODY, transport_security=_origins(host))
    app = _guarded(app, token)
    if show_token:
        print(f"token: {token}", file=sys.stderr)

    def announce(address: str) -> None:
        print(f"serving at {address}/mcp", file=sys.stderr, flush=True)

    return listen(app, host, port, announce=announce, told="tokens cross")


def _origins(host: str) -> TransportSecuritySettings:
    """Pages of no other origin may ask; at an address that others reach, whoever is in front of it knows its name."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if host in LOOPBACK:
        hosts = [f"{name}:*" for name in names]
        origins = [f"http://{one}" for one in hosts]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
        )
    return TransportSecuritySettings(enable_dns_rebinding_protection=False)


def _guarded(app: Any, token: str) -> Any:
    """The application for whoever has the token."""
    expected = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if not hmac.compare_digest(headers.get(b"authorization", b""), expected):
                refusal = PlainTextResponse(
                    "The token is missing, or another one.", 401, {"www-authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded
