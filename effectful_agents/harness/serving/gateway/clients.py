"""The programs that a gateway serves: who they are, and what each may do."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import math
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import ConfigurationError

__all__ = ["Client", "Clients", "new_token", "read_clients", "token_hash"]

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Client:
    """A program, as the file of clients describes it.

    Attributes:
        name: What it is called in the log and where its spending is kept.
        token_sha256: The digest of its token.
        requests_per_minute: Requests of any kind in 60 seconds; None for no limit.
        tokens_per_minute: Tokens of prompts and replies in 60 seconds.
        budget_tokens: Tokens that it may use in all.
        budget_usd: US dollars that it may spend in all, by the prices of `cost_of`.
        models: The models that it may ask; None for all.
        tools: The tools of the gateway that it has; None for all.
        approves: Whether its people may approve what a policy wants approved.
    """

    name: str
    token_sha256: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    models: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    approves: bool = False


class Clients:
    """Those who are let in.

    Args:
        clients: Who they are.
    """

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = tuple(clients)

    def __iter__(self) -> Any:
        return iter(self._clients)

    def of_token(self, token: str) -> Client | None:
        """Whose token it is; how long that takes tells nothing about it."""
        given, found = token_hash(token), None
        for client in self._clients:
            # All of them are compared, also behind the one that was found.
            if hmac.compare_digest(given, client.token_sha256):
                found = client
        return found


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is kept of a token. A token is random and long, so that a plain digest gives nothing away.

    >>> token_hash("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_clients(path: str) -> Clients:
    """Read a file of clients, in TOML or, where its name ends so, in JSON.

    Raises:
        ConfigurationError: It cannot be read, or something in it has to be written otherwise.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(f"the file of clients `{path}` cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the file of clients `{path}` is no TOML or JSON: {error}") from error
    tables = data.get("clients") if isinstance(data, dict) else None
    if not isinstance(tables, dict) or not tables or set(data) != {"clients"}:
        raise ConfigurationError(f"`{path}` has a table for each client and nothing else, as in `[clients.alice]`.")
    clients = [_client(path, name, table) for name, table in tables.items()]
    hashes = [client.token_sha256 for client in clients]
    if len(set(hashes)) < len(hashes):
        raise ConfigurationError(f"in `{path}` two clients have the same token; each needs its own.")
    return Clients(clients)


def _client(path: str, name: str, table: Any) -> Client:
    where = f"the client `{name}` in `{path}`"
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where} has a name that is not made of up to 64 letters, digits, and `_ . -`.")
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{where} is no table.")
    known = [field.name for field in dataclasses.fields(Client) if field.name != "name"]
    for key, value in table.items():
        if key not in known:
            raise ConfigurationError(f"{where} has `{key}`; there can be {', '.join(known)}.")
        if problem := _problem(key, value):
            raise ConfigurationError(f"{where}: `{key}` {problem}.")
    if "token_sha256" not in table:
        raise ConfigurationError(f"{where} has no `token_sha256`; `serve gateway --new-token` makes a token.")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Client(name=name, **values)


def _problem(key: str, value: Any) -> str:
    """What is wrong with a value, in words; empty for nothing."""
    match key:
        case "token_sha256":
            fits = isinstance(value, str) and bool(_HASH.fullmatch(value))
            return "" if fits else "is a digest, 64 hexadecimal digits, and not the token itself"
        case "models" | "tools":
            fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
            return "" if fits else "is a list of names"
        case "approves":
            return "" if isinstance(value, bool) else "is true or false"
        case "budget_usd":
            fits = type(value) in (int, float) and 0 <= value < math.inf
            return "" if fits else "is a number of US dollars"
        case _:
            return "" if type(value) is int and value >= 0 else "is a whole number"
