"""A tool call through an MCP server, against the SDK's client alone: over stdio and over HTTP."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from effectful_agents.handlers.delegation.mcp import MCPTools

pytestmark = pytest.mark.benchmark(timer=time.perf_counter)

SERVER = str(Path(__file__).parents[1] / "tests" / "handlers" / "delegation" / "mcp" / "server.py")
ROUNDS = 100


@contextlib.contextmanager
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@contextlib.contextmanager
def bare(server: Any) -> Iterator[Callable[[], Any]]:
    """The SDK's client in an event loop in a thread."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        portal.call(client.list_tools)
        yield lambda: portal.call(client.call_tool, "note", {"text": "x"})


@contextlib.contextmanager
def ours(tools: MCPTools) -> Iterator[Callable[[], Any]]:
    tool = tools.tool("note")
    yield lambda: tool(text="x")
    tools.close()


@contextlib.contextmanager
def _made(way: str, who: str) -> Iterator[Callable[[], Any]]:
    if way == "stdio":
        made = (
            bare(StdioServerParameters(command=sys.executable, args=[SERVER]))
            if who == "the SDK"
            else ours(MCPTools.stdio(sys.executable, [SERVER]))
        )
        with made as call:
            yield call
        return
    with address() as url, bare(url) if who == "the SDK" else ours(MCPTools.http(url)) as call:
        yield call


@pytest.mark.parametrize("who", ["the SDK", "MCPTools"])
@pytest.mark.parametrize("way", ["stdio", "http"])
def bench_call(benchmark: Any, way: str, who: str) -> None:
    with _made(way, who) as call:
        call()
        benchmark.pedantic(call, rounds=ROUNDS)
