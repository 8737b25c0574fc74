"""What a gateway adds: to a request, a decision and a tool call, in the same process and over a connection."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from effectful_agents import Tool, handler, harness
from effectful_agents.handlers.delegation import RemoteOperations, StackGateway
from effectful_agents.handlers.delegation.seam.performing import PerformingGateway
from effectful_agents.handlers.policy import Policy
from effectful_agents.harness.serving.gateway.app import application
from effectful_agents.harness.serving.gateway.clients import Client, Clients, token_hash
from effectful_agents.harness.serving.gateway.seat import Seat
from effectful_agents.harness.serving.gateway.spending import Ledger
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import Layers
from effectful_agents.testing import says

# By the clock: most of it is waiting for the other side, which here is a thread of the same process.
pytestmark = pytest.mark.benchmark(timer=time.perf_counter)

ROUNDS = 200
REPLY = says("A sentence of about a dozen words, as models write them all day. " * 4)
MESSAGES: Any = [{"role": "user", "content": "word " * 1_000}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": f"tool_{number}", "description": "Does something. " * 20, "parameters": {}},
    }
    for number in range(20)
]


@Tool.define
def stock(item: str) -> str:
    """How many of an item are in stock."""
    return "3"


STACK = Layers(harness(eval_provider="none"), {completion: lambda **request: REPLY}, Policy(lambda effect: None))


@contextlib.contextmanager
def local() -> Iterator[Any]:
    yield STACK


@contextlib.contextmanager
def in_process() -> Iterator[Any]:
    yield RemoteOperations(StackGateway(STACK, tools=[stock]))


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    clients = Clients([Client(name="program", token_sha256=token_hash("t"))])
    seat = Seat(next(iter(clients)), PerformingGateway(STACK, tools=[stock]), STACK, Ledger())
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application(clients, lambda client: seat), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield RemoteOperations(f"http://127.0.0.1:{listening.getsockname()[1]}", token="t")
    finally:
        server.should_exit = True
        thread.join()


WAYS = {"no gateway": local, "a gateway in the process": in_process, "a gateway over a connection": connected}


def _measure(benchmark: Any, report: Callable[[str, str], None], what: str, call: Callable[[], Any]) -> None:
    benchmark.group = what.partition(",")[0]
    benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=5)
    if benchmark.stats is not None:  # not with --benchmark-disable
        report(what, f"{benchmark.stats.stats.median * 1e3:8.3f} ms")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "in pieces"])
def test_request(benchmark: Any, report: Any, way: str, streamed: bool) -> None:
    with WAYS[way]() as stack, handler(stack):
        with handler({emit: lambda event: None} if streamed else {}):
            what = f"a request{' in pieces' if streamed else ''}, {way}"
            _measure(benchmark, report, what, lambda: completion(messages=MESSAGES, tools=TOOLS))


@pytest.mark.parametrize("way", WAYS)
def test_decision(benchmark: Any, report: Any, way: str) -> None:
    with WAYS[way]() as stack, handler(stack):
        _measure(benchmark, report, f"a tool of the program, {way}", lambda: stock("bolts"))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "no gateway"])
def test_tool_of_the_gateway(benchmark: Any, report: Any, way: str) -> None:
    with WAYS[way]() as remote, handler(remote):
        (tool,) = remote.tools
        _measure(benchmark, report, f"a tool of the gateway, {way}", lambda: tool(item="bolts"))


def test_bytes_of_a_request(report: Any) -> None:
    """What crosses for each request, with its tools and with references to them."""
    from effectful_agents.handlers.delegation.seam.refs import ref_of
    from effectful_agents.handlers.delegation.seam.wire import as_json

    report("20 tools with each request", f"{len(as_json(TOOLS)):8,} bytes")
    report("20 references with each request", f"{len(as_json([{'ref': ref_of(tool)} for tool in TOOLS])):8,} bytes")
