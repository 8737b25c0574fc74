"""One client at the gateway: what it asks for, performed and counted."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import Denied
from effectful_agents.handlers.delegation import Gateway
from effectful_agents.handlers.delegation.seam import wire
from effectful_agents.handlers.delegation.seam.gateway import BadRequest
from effectful_agents.harness.serving.gateway.clients import Client
from effectful_agents.harness.serving.gateway.spending import Ledger, Meter
from effectful_agents.messages import StreamEvent, Usage
from effectful_agents.operations.call_context import CallContext
from effectful_agents.operations.elsewhere import DescribedCall
from effectful_agents.operations.loop import model_in_use
from effectful_agents.operations.policy import Decision, Disposition
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.usage import RequestUsage, tell_usage
from effectful_agents.runtime import Interpretation, fwd, handler

__all__ = ["Seat"]

_log = logging.getLogger(__name__)
_CHARACTERS = 4
"""Of a token, about, where nobody has counted."""


class Seat:
    """A client and its gateway.

    Args:
        client: The client.
        gateway: Performs for it.
        stack: The handlers of the gateway, which may know prices.
        ledger: Where spending is kept.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        client: Client,
        gateway: Gateway,
        stack: Interpretation,
        ledger: Ledger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.meter = Meter(client, ledger, clock)
        self._gateway = gateway
        self._stack = stack

    def perform(
        self, what: str, body: Mapping[str, Any], context: CallContext, tell: Callable[[StreamEvent], None]
    ) -> tuple[dict[str, Any], int]:
        """Perform what a request asks for.

        Args:
            what: The last part of its address.
            body: What it says.
            context: The trace that it belongs to.
            tell: Gets the reply of a model in pieces, if that is asked for.

        Returns:
            The reply as JSON, and the tokens that it took.

        Raises:
            BadRequest: The body is not what it has to be.
            Exception: Whatever the gateway raises.
        """
        spent = _Spent(self)
        perform = self._read(what, body, context, tell)
        with handler({tell_usage: spent.count}):
            return perform(), spent.tokens

    def _read(
        self, what: str, body: Mapping[str, Any], context: CallContext, tell: Callable[[StreamEvent], None]
    ) -> Callable[[], dict[str, Any]]:
        """What a body asks for, to be performed. Nothing that goes wrong later is taken for its mistake."""
        try:
            match what:
                case "hello":
                    hello = wire.read_hello(body)
                    return lambda: wire.write_welcome(self._gateway.hello(hello, context))
                case "decide":
                    effect = wire.read_effect(body)
                    return lambda: wire.write_decision(self._gateway.decide(effect, context))
                case "tool":
                    call = wire.read_call(body)
                    return lambda: self._called(call, context)
        except ValueError as error:
            raise BadRequest(f"the request cannot be read: {error}") from error
        request, permit = body.get("request"), body.get("permit", "")
        if not isinstance(request, dict) or not isinstance(permit, str):
            raise BadRequest("the body of a completion has a `request`.")
        return lambda: self._asked(request, context, tell if body.get("stream") is True else None, permit)

    def _called(self, call: DescribedCall, context: CallContext) -> dict[str, Any]:
        self.meter.admit_completion()  # a skill asks models
        return wire.write_outcome(self._gateway.call_tool(call, context))

    def _asked(
        self,
        request: Mapping[str, Any],
        context: CallContext,
        tell: Callable[[StreamEvent], None] | None,
        permit: str,
    ) -> dict[str, Any]:
        self.meter.admit_completion()
        self._check_price(request)
        reply: Any = self._gateway.completion(request, context, tell=tell, permit=permit)
        return reply

    def _check_price(self, request: Mapping[str, Any]) -> None:
        """Refuse a model of which nobody knows what it costs, where money is counted."""
        if self.client.budget_usd is None:
            return
        with handler(self._stack):
            model = request.get("model") or model_in_use() or ""
            price = cost_of(model, Usage(input=1, output=1)) if isinstance(model, str) else None
        if price is None:
            message = "This program has a budget in money, and the price of this model is not known."
            raise Denied(Decision(Disposition.TERMINATE_RUN, "no_price", message, rule="budget"))

    def cost(self, used: RequestUsage, usage: Usage) -> float:
        """What a request cost, in US dollars; 0 where nobody knows."""
        with handler(self._stack):
            cost = cost_of(used.model, usage)
        return cost if cost is not None and 0 <= cost < math.inf else 0.0


class _Spent:
    """Counts what one request of a client has used: one request to a model, or many, where a skill is called."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self.tokens = 0

    def count(self, used: RequestUsage) -> None:
        usage = used.usage
        if usage.total is None:
            # A service that failed has taken nothing. Who goes away in the middle of a reply has used something.
            failed = isinstance(used.error, Exception)
            about = 0 if failed else len(json.dumps(used.request, default=str)) // _CHARACTERS
            usage = Usage(input=about, output=0, estimated=True)
        tokens = usage.total or 0
        self.tokens += tokens
        try:
            self._seat.meter.spend(tokens, self._seat.cost(used, usage))
        except Exception:  # it was used all the same, and the reply is there
            _log.exception("what the client `%s` used could not be written down", self._seat.client.name)
        fwd()
