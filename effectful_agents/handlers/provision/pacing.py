"""Waiting for one's turn: how many requests went out in the last minute, and who is next."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import threading

from effectful_agents.operations.world import now, sleep
from effectful_agents.runtime import StopScope, can_wait, pause, wait

__all__ = ["Closed", "Grant", "Pace"]

_MINUTE = 60.0


_LONGEST_PAUSE = 60.0
"""Seconds. Who would have to wait longer because the service says so should know at once."""


class Closed(Exception):
    """Nobody is let out for longer than one would wait.

    Attributes:
        seconds: For how long.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"closed for {seconds:.0f} seconds")
        self.seconds = seconds


class _Woken(BaseException):
    """Ends the waiting of somebody whose turn it may be."""


@dataclasses.dataclass(eq=False, slots=True)
class Grant:
    """A request that may go out.

    Attributes:
        expires: When it no longer counts.
        tokens: Tokens that it is taken to have.
        running: Whether it is one of those that are under way.
        counts: Whether it is one of those of the last minute.
    """

    expires: float
    tokens: int
    running: bool
    counts: bool = True


@dataclasses.dataclass(eq=False, slots=True)
class _Waiter:
    tokens: int
    inside: bool
    scope: StopScope | None = None


class Pace:
    """Lets requests out one after the other, in the order in which they came, and no faster than is allowed.

    Shared by threads, tasks and event loops. Only the first in the queue watches the clock; whoever leaves the queue
    wakes the one behind, so nobody waits in a loop, and no two set out for one place. Time is that of the operations
    `now` and `sleep`. It never runs backwards: who has slept takes the time to be over, whatever `now` says.

    Args:
        requests: Requests in any 60 seconds; None for any number.
        tokens: Tokens in any 60 seconds; None for any number.
        concurrent: Requests that are under way at a time; None for any number.
    """

    def __init__(self, requests: int | None, tokens: int | None, concurrent: int | None) -> None:
        self._requests = requests
        self._budget = tokens
        self._concurrent = concurrent
        # Held for a moment, never while an operation is performed. A call that was abandoned may leave in the middle of
        # that, in the same thread.
        self._lock = threading.RLock()
        self._queue: collections.deque[_Waiter] = collections.deque()
        self._granted: collections.deque[Grant] = collections.deque()  # those of the last minute, the oldest first
        self._used = 0
        self._running = 0
        self._clock = -math.inf
        self._closed_until = -math.inf

    def enter(self, tokens: int, *, inside: bool = False) -> Grant:
        """Wait for one's turn.

        Args:
            tokens: Tokens that the request is thought to have. One with more than there may be in a minute waits until
                no other counts, and goes alone.
            inside: Whether it is made in the middle of one that is under way, which waits for it. It goes to the front,
                and is not one more that is under way.

        Raises:
            Closed: It would take more than a minute until anybody is let out.
            BaseException: What ends the call meanwhile; nothing is taken then.
        """
        waiter = _Waiter(tokens, inside)
        try:
            with self._lock:
                self._queue.appendleft(waiter) if inside else self._queue.append(waiter)
            while True:
                time = now()
                with self._lock:
                    self._clock = max(self._clock, time)
                    until = self._turn_of(waiter)
                    if until <= self._clock:
                        return self._grant(waiter)
                    seconds = until - self._clock
                    scope = waiter.scope = StopScope()
                with contextlib.suppress(_Woken):
                    with scope:
                        _sleep(seconds)
                    with self._lock:
                        self._clock = max(self._clock, until)
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._queue.remove(waiter)
            self._wake_first()

    def leave(self, grant: Grant, tokens: int | None = None) -> None:
        """Say that a request is over, and how many tokens it had where that is known."""
        with self._lock:
            makes_room = grant.running and self._concurrent is not None
            self._running -= grant.running
            grant.running = False
            if tokens is not None and grant.counts:
                makes_room = makes_room or tokens < grant.tokens
                self._used += tokens - grant.tokens
                grant.tokens = tokens
        if makes_room:
            self._wake_first()

    def close(self, seconds: float) -> None:
        """Let nobody out for so many seconds."""
        time = now()
        with self._lock:
            self._clock = max(self._clock, time)
            self._closed_until = max(self._closed_until, self._clock + seconds)
        if seconds > _LONGEST_PAUSE:
            self._wake_first()

    def _turn_of(self, waiter: _Waiter) -> float:
        """The time at which a request may go out; infinity until somebody else has moved."""
        closed = self._closed_until - self._clock
        if closed > _LONGEST_PAUSE:
            raise Closed(closed)
        if self._queue[0] is not waiter:
            return math.inf
        self._forget_the_expired()
        if not waiter.inside and self._concurrent is not None and self._running >= self._concurrent:
            return math.inf
        return max(self._closed_until, self._time_for_one_more(), self._time_for(waiter.tokens))

    def _forget_the_expired(self) -> None:
        while self._granted and self._granted[0].expires <= self._clock:
            grant = self._granted.popleft()
            grant.counts = False
            self._used -= grant.tokens

    def _time_for_one_more(self) -> float:
        if self._requests is None or len(self._granted) < self._requests:
            return -math.inf
        return self._granted[len(self._granted) - self._requests].expires

    def _time_for(self, tokens: int) -> float:
        if self._budget is None:
            return -math.inf
        excess = self._used + min(tokens, self._budget) - self._budget
        until = -math.inf
        for grant in self._granted:
            if excess <= 0:
                break
            excess -= grant.tokens
            until = grant.expires
        return until

    def _grant(self, waiter: _Waiter) -> Grant:
        grant = Grant(self._clock + _MINUTE, waiter.tokens, not waiter.inside)
        self._granted.append(grant)
        self._used += grant.tokens
        self._running += grant.running
        return grant

    def _wake_first(self) -> None:
        with self._lock:
            scope = self._queue[0].scope if self._queue else None
        if scope is not None:
            scope.stop(_Woken)


def _sleep(seconds: float) -> None:
    if seconds < math.inf:
        sleep(seconds)
    elif can_wait():
        import anyio  # noqa: PLC0415 - loads asyncio

        wait(anyio.sleep_forever())
    else:
        pause()
