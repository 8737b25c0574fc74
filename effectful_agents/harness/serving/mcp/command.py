"""The command `effectful-agents serve mcp`."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import ConfigurationError, MissingDependencyError, StorageError
from effectful_agents.harness.launcher import fail, one_line
from effectful_agents.harness.loading import NotLoaded
from effectful_agents.harness.options import add_stack_options, options_of, stack_parser
from effectful_agents.harness.serving.published import publish

__all__ = ["main"]

_PROGRAM = "effectful-agents serve mcp"
_VARIABLE = "EFFECTFUL_AGENTS_TOKEN"
_EPILOG = f"""\
The tools, skills and agents that SCRIPT defines are offered to one client, over standard input and output; with --http
to all that have the token. That is in FILE, or in the variable {_VARIABLE}, or else made up and printed. A handler that
SCRIPT makes at its top level, a policy above all, is put inside of the standard stack by `--with NAME`.

    %(prog)s desk.py --model gpt-5-mini
    %(prog)s desk.py --http --port 8800 --token-file token.txt --with rules
"""


@dataclasses.dataclass
class _Settings:
    """What the command line says besides the options of the stack."""

    script: str = ""
    http: bool = False
    host: str = "127.0.0.1"
    port: int = 8800
    token_file: str | None = None
    handlers: list[str] = dataclasses.field(default_factory=list)
    only: list[str] = dataclasses.field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    """Serve a script until the client is gone, or the process is told to end.

    Args:
        arguments: The words behind `serve mcp`.

    Returns:
        The exit code: 2 where something has to be written otherwise.
    """
    settings, options = _parsed(arguments)
    try:
        serve = _serving(settings, options)
    except NotLoaded as error:
        return error.code
    except (ConfigurationError, StorageError) as error:
        return fail(one_line(error), code=2)
    return serve()


def _parsed(arguments: Sequence[str]) -> tuple[_Settings, dict[str, Any]]:
    parser = stack_parser(_PROGRAM, "Offer the tools, skills and agents of a script to MCP clients.", _EPILOG)
    add = parser.add_argument
    add("script", metavar="SCRIPT", help="a script with tools, skills or agents")
    add("--http", action="store_true", help="listen at an address, in the place of standard input and output")
    add("--host", help="the address to listen at (127.0.0.1)")
    add("--port", type=int, metavar="N", help="the port (8800; 0 for a free one)")
    add("--token-file", metavar="FILE", help="a file that has the token which lets clients in")
    add("--with", dest="handlers", metavar="NAME", action="append", help="a handler that the script makes")
    add("--only", metavar="NAME", action="append", help="a tool or skill to offer, in the place of all of the script")
    add_stack_options(parser)
    given = vars(parser.parse_args(["--help" if word == "-h" else word for word in arguments]))
    names = {field.name for field in dataclasses.fields(_Settings)}
    settings = _Settings(**{name: value for name, value in given.items() if name in names})
    return settings, options_of({name: value for name, value in given.items() if name not in names})


def _serving(settings: _Settings, options: dict[str, Any]) -> Callable[[], int]:
    """What serves. Whatever can be wrong is found before.

    Raises:
        ConfigurationError: Something has to be written otherwise.
    """
    try:
        from effectful_agents.harness.serving.mcp.offered import offered  # noqa: PLC0415 - of an extra
        from effectful_agents.harness.serving.mcp.server import Publisher  # noqa: PLC0415 - of the same
        from effectful_agents.harness.serving.mcp.serving import over_http, over_stdio  # noqa: PLC0415 - of the same
    except ImportError as error:
        raise MissingDependencyError(
            "`serve mcp` needs the extra `mcp`: pip install 'effectful-agents[mcp]'"
        ) from error

    if named := [name for name in ("journal", "run_id") if name in options]:
        option = f"--{named[0].replace('_', '-')}"
        raise ConfigurationError(f"`{option}` names one run, and each call of a client is one of its own.")
    token = _token(settings) if settings.http else ""
    with _printing_to_stderr():
        published = publish(settings.script, options, settings.only)
        publisher = Publisher(offered(published.named_tools), published.stack_with(settings.handlers))
    server = publisher.server(published.name, published.description, _version())
    if settings.http:
        made_up = settings.token_file is None and not os.environ.get(_VARIABLE)
        return lambda: over_http(server, settings.host, settings.port, token, show_token=made_up)
    return lambda: over_stdio(server)


def _token(settings: _Settings) -> str:
    if settings.token_file is None:
        from effectful_agents.harness.serving.gateway.clients import new_token  # noqa: PLC0415 - with `--http` only

        token = os.environ.get(_VARIABLE) or new_token()
    else:
        try:
            token = Path(settings.token_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the file of the token cannot be read: {error}") from error
    if len(token) < 16 or not (token.isascii() and token.isprintable()):
        raise ConfigurationError("the token has fewer than 16 characters, or some that cannot be sent.")
    return token


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - here only

    return version("effectful-agents")


@contextlib.contextmanager
def _printing_to_stderr() -> Generator[None]:
    """Have what a script prints, while it is loaded, not come between what is said to the client."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no such output
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
