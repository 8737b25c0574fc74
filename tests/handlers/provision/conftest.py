from __future__ import annotations

from collections.abc import Iterator

import pytest

from effectful_agents.operations.world import random, sleep
from effectful_agents.runtime import handler
from tests.handlers.provision.http.server import Server


@pytest.fixture(scope="package")
def running_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def server(running_server: Server) -> Server:
    running_server.clear()
    return running_server


@pytest.fixture
def pauses() -> Iterator[list[float]]:
    """How long the program would have waited, each time it did."""
    waited: list[float] = []
    with handler({sleep: waited.append, random: lambda: 0.0}):
        yield waited
