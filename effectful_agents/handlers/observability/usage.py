"""Counting what requests to models use: `with usage() as used:`."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

from effectful_agents.messages import Response, Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.usage import RequestUsage, counted, tell_usage
from effectful_agents.runtime import ObjectInterpretation, fwd, handler, implements, interpretation

__all__ = ["UsageMeter", "usage"]


def usage() -> contextlib.AbstractContextManager[UsageMeter]:
    """Count what the requests of a block use: tokens, dollars, and how many there are.

    It counts wherever it stands, outside of a harness or inside, in a tool or around a program, and changes nothing
    about the requests. What it gives is a `UsageMeter`, which may be read in the block and after it.

    >>> from effectful_agents import NotHandled, Skill, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def capital(country: str) -> str:
    ...     '''The capital of {country}.'''
    ...     raise NotHandled
    >>> with usage() as used, handler(ScriptedModel("Paris")), handler(harness(model="gpt-5-mini")):
    ...     capital("France")
    'Paris'
    >>> used.requests, used.input, used.output, used.cost
    (1, 100, 20, 6.5e-05)
    """
    return handler(UsageMeter())


@dataclasses.dataclass(slots=True)
class _Tally:
    """What one model has used.

    Attributes:
        priced: Tokens of which a handler has said what they cost.
        cost: US dollars that these cost; None where a price is not known.
        unpriced: The others; None where there are none.
        unmeasured: The requests among these of which nobody counted the tokens.
    """

    priced: Usage = Usage()  # noqa: RUF009 - a value that never changes
    cost: float | None = 0.0
    unpriced: Usage | None = None
    unmeasured: int = 0

    @property
    def usage(self) -> Usage:
        return self.priced if self.unpriced is None else self.priced + self.unpriced


class UsageMeter(ObjectInterpretation[Any, Any]):
    """Add up what requests to models use.

    Handles `tell_usage` and `completion`, forwards both, and may stand anywhere in a stack. It counts every request of
    the block, once: each turn, an attempt that has to be made again because its reply does not fit, those of nested
    calls and of handlers (a summary, a second look), those of tasks and of threads that have the handlers (see
    `propagate`). The tokens are those that the replies report; a request that failed has none. A request that a program
    makes itself with `completion` is counted where it passes: inside of what answers it.

    What a `Journal` gives again is not made again, and stands apart in `replayed`. Calls, and tools, that are answered
    whole from it make no request at all. A reply that another handler gives, from a cache or a cassette, counts as it
    says.

    It may be shared by threads and tasks. Without a handler that knows other prices, `cost` is worked out when it is
    asked for; reading the table for the first time takes some 25 ms.

    Attributes:
        requests: Requests that have ended, those included that failed.
        failed: How many of them ended without a reply.

    >>> from effectful_agents.operations.loop import completion
    >>> from effectful_agents.testing import ScriptedModel
    >>> meter = UsageMeter()
    >>> with handler(ScriptedModel("Hi", "Ho")), handler(meter):
    ...     for _ in range(2):
    ...         reply = completion(model="gpt-5-mini", messages=[{"role": "user", "content": "Hello"}])
    >>> meter
    <UsageMeter: 2 requests, 200 tokens in, 40 out, $0.0001>
    """

    def __init__(self) -> None:
        self.requests = 0
        self.failed = 0
        self._replayed = Usage()
        self._models: dict[str, _Tally] = {}
        self._skills: dict[str, Usage] = {}
        self._lock = threading.Lock()

    @implements(tell_usage)
    def tell_usage(self, used: RequestUsage) -> None:
        self._add(used)
        fwd()

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        return counted(request, self._add)

    def _add(self, used: RequestUsage) -> None:
        # Prices that a handler has are those of this place: it may be gone when somebody asks for the sum.
        is_priced = cost_of in interpretation() and not used.replayed
        cost = cost_of(used.model, used.usage) if is_priced else None
        with self._lock:
            if used.replayed:
                self._replayed += used.usage
                return
            self.requests += 1
            if used.error is not None:
                self.failed += 1
                if used.usage == Usage():
                    return
            if used.skill is not None:
                name, before = used.skill.__name__, self._skills.get(used.skill.__name__)
                self._skills[name] = used.usage if before is None else before + used.usage
            tally = self._models.get(used.model)
            if tally is None:
                tally = self._models[used.model] = _Tally()
            if is_priced:
                tally.priced += used.usage
                tally.cost = None if cost is None or tally.cost is None else tally.cost + cost
            else:
                tally.unpriced = used.usage if tally.unpriced is None else tally.unpriced + used.usage
                tally.unmeasured += used.usage.total is None

    # --- what it came to ----------------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage:
        """All tokens together."""
        with self._lock:
            return sum((tally.usage for tally in self._models.values()), Usage())

    @property
    def input(self) -> int | None:
        """Tokens of the prompts, those served from a cache included; None where nobody counted any."""
        return self.usage.input

    @property
    def output(self) -> int | None:
        """Tokens of the replies, reasoning included."""
        return self.usage.output

    @property
    def reasoning(self) -> int | None:
        """Tokens of reasoning."""
        return self.usage.reasoning

    @property
    def cache_read(self) -> int | None:
        """Tokens of the prompts that were served from a cache."""
        return self.usage.cache_read

    @property
    def cache_write(self) -> int | None:
        """Tokens of the prompts that were written to a cache."""
        return self.usage.cache_write

    @property
    def estimated(self) -> bool:
        """Whether a count was derived instead of reported."""
        return self.usage.estimated

    @property
    def total(self) -> int | None:
        """Tokens of prompts and replies together."""
        return self.usage.total

    @property
    def by_model(self) -> Mapping[str, Usage]:
        """The tokens by the model that replied, named with its provider where that is known."""
        with self._lock:
            return {model: tally.usage for model, tally in self._models.items()}

    @property
    def by_skill(self) -> Mapping[str, Usage]:
        """The tokens by the name of the skill in whose call they were used; those of a nested call are its own."""
        with self._lock:
            return dict(self._skills)

    @property
    def replayed(self) -> Usage:
        """What requests had used that a journal has answered; nothing was spent on them now."""
        return self._replayed

    @property
    def cost(self) -> float | None:
        """US dollars, by `operations.prices.cost_of`.

        None where the price of a model is not known, or a reply did not report its tokens. A request that failed counts
        as nothing, though a service may charge for it.
        """
        with self._lock:
            tallies = [(model, dataclasses.replace(tally)) for model, tally in self._models.items()]
        costs = [_cost(model, tally) for model, tally in tallies]
        known = [cost for cost in costs if cost is not None]
        return sum(known, 0.0) if len(known) == len(costs) else None

    def __repr__(self) -> str:
        used, cost = self.usage, self.cost
        requests = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        counts = [f"{_shown(used.input)} tokens in", f"{_shown(used.output)} out"]
        return f"<UsageMeter: {', '.join([requests, *counts, *([] if cost is None else [f'${cost:,.4f}'])])}>"


def _cost(model: str, tally: _Tally) -> float | None:
    if tally.unpriced is None or tally.cost is None:
        return tally.cost
    if tally.unmeasured and cost_of(model, Usage()) is None:  # what costs nothing need not be counted
        return None
    cost = cost_of(model, tally.unpriced)
    return None if cost is None else tally.cost + cost


def _shown(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
