"""Listening at an address until the process is told to end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from effectful_agents.harness.launcher import fail

__all__ = ["LOOPBACK", "listen", "log_to_stderr"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LAST_SECONDS = 10
"""How long requests that are on their way may take when the server is told to end."""


def listen(app: Any, host: str, port: int, *, announce: Callable[[str], None], told: str = "") -> int:
    """Serve an application.

    Args:
        app: The ASGI application.
        host: The address to listen at.
        port: The port; 0 for a free one.
        announce: Gets the address, once somebody listens there.
        told: What crosses in the clear, for whoever listens for other machines.

    Returns:
        The exit code.
    """
    if host not in LOOPBACK and told:
        print(f"note: {told} in the clear; put a proxy with TLS before other machines.", file=sys.stderr)
    if not 0 <= port < 65_536:
        return fail(f"`--port {port}` is none; a port is a number from 0 to 65535.", code=2)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                announce(f"http://{host}:{self.servers[0].sockets[0].getsockname()[1]}")

    server = Server(config)
    try:
        server.run()
    except SystemExit:  # it could not listen, and has been logged
        return fail(f"nobody can listen at {host}:{port}.", code=1)
    except KeyboardInterrupt:  # it has ended in order, and hands the signal on
        return 0
    return 0 if server.started else 1


def log_to_stderr() -> None:
    """Write what the package logs to standard error."""
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("effectful_agents")
    log.addHandler(shown)
    log.setLevel(logging.INFO)
