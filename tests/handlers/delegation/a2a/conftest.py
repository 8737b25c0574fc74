"""An agent on the SDK's own server."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

AGENT = str(Path(__file__).with_name("agent.py"))


def start(port: int) -> subprocess.Popen[bytes]:
    """Start it, and wait until it listens."""
    process = subprocess.Popen([sys.executable, AGENT, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/seen")
            return process
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the agent does not start"
            assert process.poll() is None, "the agent has ended"
            time.sleep(0.05)  # until it listens: no test sleeps


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def agent() -> Iterator[str]:
    """The address of an agent."""
    port = free_port()
    process = start(port)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()
