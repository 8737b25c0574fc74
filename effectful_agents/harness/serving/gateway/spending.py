"""What each client has used: in the last minute, and in all."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from effectful_agents.errors import Denied, ProviderError
from effectful_agents.harness.serving.gateway.clients import Client
from effectful_agents.operations.policy import Decision, Disposition
from effectful_agents.storage.database import Database, Schema

__all__ = ["Ledger", "Meter"]

_MINUTE = 60.0
_SCHEMA = Schema(
    "gateway",
    [["CREATE TABLE gateway_spent (client TEXT PRIMARY KEY, tokens INTEGER NOT NULL, usd REAL NOT NULL) STRICT"]],
)


class Ledger:
    """What clients have used in all, in an SQLite file or for as long as the process lives.

    Args:
        path: The file; None keeps nothing.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._database = None if path is None else Database(path, _SCHEMA)
        self._spent: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def spent(self, client: str) -> tuple[int, float]:
        """Tokens and US dollars."""
        if self._database is None:
            return self._spent.get(client, (0, 0.0))
        with self._database.reading() as connection:
            row = connection.execute("SELECT tokens, usd FROM gateway_spent WHERE client = ?", (client,)).fetchone()
        return (row[0], row[1]) if row else (0, 0.0)

    def add(self, client: str, tokens: int, usd: float) -> None:
        """Count what was used."""
        if self._database is None:
            with self._lock:
                had = self._spent.get(client, (0, 0.0))
                self._spent[client] = had[0] + tokens, had[1] + usd
            return
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO gateway_spent VALUES (?, ?, ?) ON CONFLICT (client) DO UPDATE SET "
                "tokens = tokens + excluded.tokens, usd = usd + excluded.usd",
                (client, tokens, usd),
            )

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()


@dataclasses.dataclass
class _Window:
    """What happened in the last minute."""

    entries: deque[tuple[float, int]] = dataclasses.field(default_factory=deque)
    total: int = 0

    def until_free(self, limit: int, now: float) -> float:
        """Seconds until less than the limit is in it; 0 for now."""
        while self.entries and self.entries[0][0] <= now - _MINUTE:
            self.total -= self.entries.popleft()[1]
        if self.total < limit:
            return 0.0
        left = self.total
        for at, number in self.entries:
            left -= number
            if left < limit:
                return at + _MINUTE - now
        return _MINUTE  # a limit of 0 lets nothing through

    def add(self, number: int, now: float) -> None:
        self.entries.append((now, number))
        self.total += number


class Meter:
    """Holds one client to its limits.

    What a request uses is known when it has ended: requests that run at the same time may exceed a limit on tokens, or
    a budget, together, each by what it uses itself.

    Args:
        client: The client.
        ledger: Where it is kept what clients have used.
        clock: Gives the time in seconds.
    """

    def __init__(self, client: Client, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._ledger = ledger
        self._clock = clock
        self._requests, self._tokens = _Window(), _Window()

    def admit(self) -> None:
        """Count a request, if there is room for it.

        Raises:
            ProviderError: It is one too many for this minute (status 429).
        """
        now, limit = self._clock(), self._client.requests_per_minute
        self._check("requests_per_minute", limit, self._requests, now)
        if limit is not None:
            self._requests.add(1, now)

    def admit_completion(self) -> None:
        """Let a request to a model through.

        Raises:
            ProviderError: There have been too many tokens in this minute (status 429).
            Denied: The budget is used up.
        """
        client = self._client
        self._check("tokens_per_minute", client.tokens_per_minute, self._tokens, self._clock())
        if client.budget_tokens is None and client.budget_usd is None:
            return
        tokens, usd = self._ledger.spent(client.name)
        over = (client.budget_tokens is not None and tokens >= client.budget_tokens) or (
            client.budget_usd is not None and usd >= client.budget_usd
        )
        if over:
            raise Denied(
                Decision(Disposition.TERMINATE_RUN, "budget", "The budget of this program is used up.", rule="budget")
            )

    def spend(self, tokens: int, usd: float) -> None:
        """Count what a request has used."""
        if self._client.tokens_per_minute is not None:
            self._tokens.add(tokens, self._clock())
        self._ledger.add(self._client.name, tokens, usd)

    def _check(self, name: str, limit: int | None, window: _Window, now: float) -> None:
        seconds = 0.0 if limit is None else window.until_free(limit, now)
        if seconds > 0:
            raise ProviderError(
                f"the limit `{name}` of {limit:,} for this program is reached",
                status=429,
                provider="gateway",
                retry_after=round(seconds, 3),
            )
