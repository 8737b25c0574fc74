"""The command `effectful-agents serve gateway`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError, MissingDependencyError, StorageError
from effectful_agents.handlers.delegation.seam.performing import PerformingGateway
from effectful_agents.harness.launcher import fail, one_line, stack_of
from effectful_agents.harness.loading import NotLoaded
from effectful_agents.harness.options import add_stack_options, options_of, stack_parser
from effectful_agents.harness.serving.gateway.clients import Client, Clients, new_token, read_clients, token_hash
from effectful_agents.harness.serving.gateway.seat import Seat
from effectful_agents.harness.serving.gateway.spending import Ledger
from effectful_agents.harness.serving.published import publish
from effectful_agents.runtime import Interpretation
from effectful_agents.types import Tool

__all__ = ["main"]

_PROGRAM = "effectful-agents serve gateway"
_EPILOG = """\
Programs connect with `RemoteOperations(URL, token=…)`. The tools and skills that SCRIPT defines run here, and programs
are offered them. A handler that SCRIPT makes at its top level, a policy above all, is put inside of the standard stack
by `--with NAME`, several in their order, the outermost first.

FILE of --clients is TOML, or JSON, with a table for each program:

    [clients.reports]
    token_sha256 = "…"            # of `--new-token`
    requests_per_minute = 60      # the rest may be left out
    tokens_per_minute = 100000
    budget_tokens = 5000000
    budget_usd = 20.0
    models = ["gpt-5-mini"]
    tools = ["search"]
    approves = true               # the program's people may approve what a policy wants approved

    %(prog)s --new-token
    %(prog)s policy.py --with rules --model gpt-5-mini --clients clients.toml --database spent.db
"""


@dataclasses.dataclass
class _Settings:
    """What the command line says besides the options of the stack."""

    script: str | None = None
    clients: str | None = None
    database: str | None = None
    handlers: list[str] = dataclasses.field(default_factory=list)
    only: list[str] = dataclasses.field(default_factory=list)
    allow_setting: list[str] = dataclasses.field(default_factory=list)
    host: str = "127.0.0.1"
    port: int = 8700
    max_body: int = 16_000_000
    new_token: bool = False


def main(arguments: Sequence[str]) -> int:
    """Run a gateway until the process is told to end.

    Args:
        arguments: The words behind `serve gateway`.

    Returns:
        The exit code: 2 where something has to be written otherwise.
    """
    settings, options = _parsed(arguments)
    if settings.new_token:
        token = new_token()
        print(f"token = {token}\ntoken_sha256 = {token_hash(token)}")
        return 0
    try:
        serve = _server(settings, options)
    except NotLoaded as error:
        return error.code
    except (ConfigurationError, StorageError) as error:
        return fail(one_line(error), code=2)
    return serve()


def _parsed(arguments: Sequence[str]) -> tuple[_Settings, dict[str, Any]]:
    parser = stack_parser(_PROGRAM, "Ask models, decide and run tools for programs that hold no keys.", _EPILOG)
    add = parser.add_argument
    add("script", metavar="SCRIPT", nargs="?", help="a script with tools, skills and policies")
    add("--clients", metavar="FILE", help="the programs that are let in; without, one, with a token that is printed")
    add("--database", metavar="FILE", help="an SQLite database that keeps what each program has used")
    add("--with", dest="handlers", metavar="NAME", action="append", help="a handler that the script makes")
    add("--only", metavar="NAME", action="append", help="a tool or skill to offer, in the place of all of the script")
    add("--allow-setting", metavar="NAME", action="append", help="a setting that requests may have besides the usual")
    add("--host", help="the address to listen at (127.0.0.1)")
    add("--port", type=int, metavar="N", help="the port (8700; 0 for a free one)")
    add("--max-body", type=int, metavar="BYTES", help="how large a request may be (16000000)")
    add("--new-token", action="store_true", help="print a new token, and what --clients has of it")
    add_stack_options(parser)
    given = vars(parser.parse_args(["--help" if word == "-h" else word for word in arguments]))
    names = {field.name for field in dataclasses.fields(_Settings)}
    settings = _Settings(**{name: value for name, value in given.items() if name in names})
    return settings, options_of({name: value for name, value in given.items() if name not in names})


def _server(settings: _Settings, options: dict[str, Any]) -> Callable[[], int]:
    """What runs the gateway. Whatever can be wrong is found before.

    Raises:
        ConfigurationError: Something has to be written otherwise.
    """
    try:
        from effectful_agents.harness.serving.gateway.app import application  # noqa: PLC0415 - of an extra
        from effectful_agents.harness.serving.listening import listen, log_to_stderr  # noqa: PLC0415 - of the same
    except ImportError as error:
        raise MissingDependencyError(
            "`serve gateway` needs the extra `web`: pip install 'effectful-agents[web]'"
        ) from error

    if named := [name for name in ("journal", "run_id") if name in options]:
        option = f"--{named[0].replace('_', '-')}"
        raise ConfigurationError(f"`{option}` is for the run of one program, which keeps its journal itself.")
    token = new_token() if settings.clients is None else ""
    clients = read_clients(settings.clients) if settings.clients is not None else _one_client(token)
    stack, tools = _performing(settings, options)
    ledger = Ledger(settings.database)
    seats = {client.name: _seat(client, stack, tools, ledger, settings) for client in clients}
    app = application(clients, lambda client: seats[client.name], max_body=settings.max_body)

    def serve() -> int:
        log_to_stderr()
        if token:
            print(f"token: {token}", file=sys.stderr)
        try:
            return listen(app, settings.host, settings.port, announce=_announce, told="tokens cross")
        finally:
            ledger.close()

    return serve


def _announce(address: str) -> None:
    print(f"serving at {address}", file=sys.stderr, flush=True)


def _one_client(token: str) -> Clients:
    return Clients([Client(name="program", token_sha256=token_hash(token))])


def _performing(settings: _Settings, options: dict[str, Any]) -> tuple[Interpretation, list[Tool[..., Any]]]:
    """The stack of the gateway, and the tools that it holds."""
    if settings.script is None:
        if settings.handlers or settings.only:
            raise ConfigurationError("`--with` and `--only` name what a SCRIPT has, and there is none.")
        return stack_of(options), []
    published = publish(settings.script, options, settings.only, required=False)
    return published.stack_with(settings.handlers), published.named_tools


def _seat(
    client: Client, stack: Interpretation, tools: Sequence[Tool[..., Any]], ledger: Ledger, settings: _Settings
) -> Seat:
    wanted = client.tools
    gateway = PerformingGateway(
        stack,
        tools=[tool for tool in tools if wanted is None or tool.__name__ in wanted],
        approves=client.approves,
        models=client.models,
        settings=settings.allow_setting,
    )
    return Seat(client, gateway, stack, ledger)
