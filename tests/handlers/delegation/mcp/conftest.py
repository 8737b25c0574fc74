"""Servers of the SDK's own, over stdio and HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from effectful_agents.handlers.delegation.mcp import MCPTools

SERVER = Path(__file__).with_name("server.py")


@pytest.fixture(scope="module")
def box() -> Iterator[MCPTools]:
    """A server that is a process; it is shared, and comes back where a test has ended it."""
    tools = MCPTools.stdio(sys.executable, [str(SERVER)], prefix="box", max_bytes=200_000)
    yield tools
    tools.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}/mcp"
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(url)
            break
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the server does not start"
            assert process.poll() is None, "the server has ended"
            time.sleep(0.05)  # until it listens: no test sleeps
    yield url
    process.kill()
    process.wait()
