"""A gateway on this machine, behind a real connection."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn

from effectful_agents.handlers.delegation import RemoteOperations
from effectful_agents.handlers.delegation.seam.performing import PerformingGateway
from effectful_agents.harness.serving.gateway.app import application
from effectful_agents.harness.serving.gateway.clients import Client, Clients, token_hash
from effectful_agents.harness.serving.gateway.seat import Seat
from effectful_agents.harness.serving.gateway.spending import Ledger
from effectful_agents.runtime import Layers

TOKEN = "a token for tests"


class Served:
    """A gateway that can be stopped, and started anew at the same address.

    Args:
        *handlers: Its stack.
        tools: The tools that it holds.
        clients: The programs that it lets in; by default one with `TOKEN` and `limits`.
        ledger: Where spending is kept.
        **options: Those of `application`.
    """

    def __init__(
        self,
        *handlers: Any,
        tools: Sequence[Any] = (),
        clients: Sequence[Client] | None = None,
        ledger: Ledger | None = None,
        limits: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.stack, self.tools = Layers(*handlers), tools
        self.clients = clients or [Client(name="ann", token_sha256=token_hash(TOKEN), **(limits or {}))]
        self.ledger = ledger or Ledger()
        self.options = options
        self._port = 0
        self._server: uvicorn.Server | None = None

    def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", self._port))
        self._port = listening.getsockname()[1]
        app = application(Clients(self.clients), self._seat, **self.options)
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        self._thread.start()

    def _seat(self, client: Client) -> Seat:
        tools = [tool for tool in self.tools if client.tools is None or tool.__name__ in client.tools]
        gateway = PerformingGateway(self.stack, tools=tools, approves=client.approves, models=client.models)
        return Seat(client, gateway, self.stack, self.ledger)

    def stop(self, *, at_once: bool = False) -> None:
        if self._server is not None:
            self._server.should_exit = True
            self._server.force_exit = at_once
            self._thread.join()
            self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def remote(self, **options: Any) -> RemoteOperations:
        return RemoteOperations(self.url, **{"token": TOKEN, "num_retries": 0, **options})


@contextlib.contextmanager
def served(*handlers: Any, **options: Any) -> Iterator[Served]:
    gateway = Served(*handlers, **options)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()
