"""How much calls may take: turns, tool calls, tokens, money, time, calls inside calls."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal

from effectful_agents.errors import ConfigurationError, DecodingError, LimitExceeded, OptionError
from effectful_agents.handlers.policy.spending import used_by
from effectful_agents.messages import Usage, UserMessage
from effectful_agents.operations.journal import perform_step
from effectful_agents.operations.loop import call_agent, steer
from effectful_agents.operations.policy import (
    Decision,
    DecisionRecord,
    Disposition,
    EffectKind,
    ProposedEffect,
    callers,
    decide,
    tell_decided,
)
from effectful_agents.operations.prices import cost_of, model_of
from effectful_agents.operations.steps import ModelStep, StepEvent
from effectful_agents.operations.usage import RequestUsage, tell_usage
from effectful_agents.operations.world import now
from effectful_agents.runtime import (
    ObjectInterpretation,
    SignalScope,
    StopScope,
    entered_scopes,
    fwd,
    implements,
    shielded,
)
from effectful_agents.types import Skill

__all__ = ["Limits"]

_FINISH = "This is your last turn: answer now, with what you have, and call no more tools."


class Limits(ObjectInterpretation[Any, Any]):
    """End a call, or everything in the block, that takes more than it may.

    A call of the program's and all calls nested in it share what is allowed. When a limit is reached the call ends with
    `LimitExceeded`, though code of the model should catch it, before what would exceed it happens, and its history
    stays as it was. Tokens and money are known when a reply has come, and so the next request does not happen; where
    the service reports no tokens, or numbers that cannot be, they are estimated (see `estimate_tokens`). What a handler
    asks with a `completion` of its own, as a second look does, is no turn: it counts, and the next turn is refused.
    What a run did before it was resumed counts, but for such requests. Tokens and cost of it count where this stands
    inside of the `Journal`.

    Args:
        turns: Requests to models.
        tool_calls: Calls of tools and skills, by the model or by code. One that was denied counts as well.
        tokens: Tokens of prompts and replies together.
        cost: US dollars, by the prices of `operations.prices.cost_of`.
        seconds: Time.
        nesting: How many calls of skills a call may be nested in; 0 for none.
        per: What these hold for: each "call" that the program makes, or the "run", all that happens in the block.
        finish: What the model is told before the last of the `turns`; empty: nothing.

    Raises:
        OptionError: A limit is no number, or below what it can be.
        LimitExceeded: From a call. `limit` says which.
        ConfigurationError: From a call: `cost` is limited, and the price of the model is not known, or is no amount.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def look() -> str:
    ...     '''Look again.'''
    ...     return "nothing yet"
    >>> @Skill.define
    ... def wait_for(event: str) -> str:
    ...     '''Wait for {event}.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel(*[calls("look")] * 9)), handler(Limits(tool_calls=3)):
    ...     wait_for("spring")
    Traceback (most recent call last):
    effectful_agents.errors.LimitExceeded: the limit `tool_calls` of 3 was reached.
    """

    def __init__(
        self,
        *,
        turns: int | None = None,
        tool_calls: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        seconds: float | None = None,
        nesting: int | None = None,
        per: Literal["call", "run"] = "call",
        finish: str = _FINISH,
    ) -> None:
        for name, value in {"turns": turns, "tokens": tokens}.items():
            _check(name, value, int, 1)
        _check("tool_calls", tool_calls, int, 0)
        _check("nesting", nesting, int, 0)
        _check("cost", cost, int | float, 0)
        _check("seconds", seconds, int | float, math.ulp(0.0))
        if per not in ("call", "run"):
            raise OptionError(f"`per` is {per!r}; it can be 'call' or 'run'.")
        self.turns = turns
        self.tool_calls = tool_calls
        self.tokens = tokens
        self.cost = cost
        self.seconds = seconds
        self.nesting = nesting
        self.per = per
        self.finish = finish

    # --- what is counted together -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def while_installed(self) -> Generator[None]:
        if self.per == "call" or self._spent is not None:
            yield
            return
        with _Spent(self, "the block"):
            yield

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if self.nesting is not None and len(callers()) > self.nesting:
            advice = f"`{skill.__name__}` was to be called inside of that many calls."
            raise self._ending(_exceeded("nesting", self.nesting, advice))
        if self._spent is not None:
            return fwd()
        with _Spent(self, f"`{skill.__name__}`") as spent:
            try:
                value = fwd()
            except Exception:
                spent.check()  # a request that was given no longer than the time left says so in its own way
                raise
            spent.finish()
            spent.check()  # code of the model may have gone on after a limit was reached
            return value

    @property
    def _spent(self) -> _Spent | None:
        return self._spent_of(entered_scopes())

    def _spent_of(self, scopes: Sequence[StopScope]) -> _Spent | None:
        return next((scope for scope in scopes if isinstance(scope, _Spent) and scope.owner is self), None)

    # --- what is counted ----------------------------------------------------------------------------------------------

    @implements(decide)
    def decide(self, effect: ProposedEffect) -> Decision:
        spent, name = self._spent, _COUNTED.get(effect.kind)
        if name == "tool_calls" and effect.tool is None and not effect.replayed:  # code that runs
            return fwd()
        if spent is not None and name is not None and not effect.again:
            error = self._too_much(spent) if name == "turns" else None
            error = error or spent.count(name, getattr(self, name))
            if error is not None:
                # Told here: who asked ends with the error, and has no decision to tell.
                decision = Decision(Disposition.TERMINATE_RUN, f"limit_{error.limit}", str(error), rule="limits")
                self._ending(error)
                tell_decided(DecisionRecord(effect=effect, decision=decision, callers=effect.callers, at=_now()))
                raise error
        return fwd()

    def _too_much(self, spent: _Spent) -> LimitExceeded | None:
        if self.tokens is not None and spent.tokens >= self.tokens:
            return _exceeded("tokens", self.tokens)
        if self.cost is not None and spent.cost >= self.cost:
            return _exceeded("cost", self.cost)
        return None

    def _ending[E: Exception](self, error: E) -> E:
        """Have what shares the limit end with an error, though something inside should eat it."""
        for scope in entered_scopes():
            # Of a whole block only the call ends in which it was: the program may have something to clean up.
            if scope is self._spent:
                if self.per == "call":
                    scope.stop(lambda: error)
                break
            if self.per == "run" and isinstance(scope, SignalScope) and self._spent is not None:
                scope.stop(lambda: error)
        return error

    @implements(perform_step)
    def perform_step(self, step: StepEvent, body: Callable[[], StepEvent]) -> Any:
        try:
            completed = fwd()
        except DecodingError as error:
            if isinstance(step, ModelStep) and error.response is not None:  # refused, and paid for
                self._spend(step.request, error.response, self._spent)
            raise
        if isinstance(completed, ModelStep):
            self._spend(completed.request, completed.response, self._spent)
        return completed

    @implements(tell_usage)
    def tell_usage(self, used: RequestUsage) -> None:
        fwd()
        if used.aside and used.response is not None:  # it is no step, and a part of none
            self._spend(used.request, used.response, self._spent_of(used.scopes))

    def _spend(self, request: Mapping[str, Any], response: Any, spent: _Spent | None) -> None:
        if spent is not None and (self.tokens, self.cost) != (None, None):
            usage = used_by(request, response)
            spent.add(usage, self._cost(model_of(request, response), usage))

    def _cost(self, model: str, usage: Usage) -> float:
        if self.cost is None:
            return 0.0
        cost = cost_of(model, usage)
        if isinstance(cost, int | float) and 0 <= cost < math.inf:
            return cost
        what = "is not known" if cost is None else f"is given as {cost!r}, which is no amount"
        error = ConfigurationError(
            f"`cost` is limited, and the price of `{model or 'the model'}` {what}. Limit `tokens`, or say it with "
            "`handler({cost_of: function})`, of `effectful_agents.operations.prices`."
        )
        error.ends_call = True
        raise self._ending(error)

    @implements(steer)
    def steer(self) -> Sequence[UserMessage]:
        others: Sequence[UserMessage] = fwd()
        spent = self._spent
        if spent is None or self.turns is None or not self.finish or spent.counted["turns"] != self.turns - 1:
            return others
        if self.turns == 1:  # there was no turn before it in which the model could have gone on for long
            return others
        return [*others, {"role": "user", "content": self.finish}]

    def manifest(self) -> Mapping[str, object]:
        names = ("turns", "tool_calls", "tokens", "cost", "seconds", "nesting")
        limits = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"limits": limits, "per": self.per}


_COUNTED: Mapping[EffectKind, Literal["turns", "tool_calls"]] = {
    EffectKind.MODEL_CALL: "turns",
    EffectKind.TOOL_CALL: "tool_calls",
    EffectKind.DELEGATE: "tool_calls",
}


class _Spent(StopScope):
    """A part of the program, and what it has taken of what is allowed; several threads may take of it at once."""

    __slots__ = ("_counting", "cost", "counted", "tokens")

    def __init__(self, owner: Limits, what: str) -> None:
        def too_late() -> LimitExceeded:
            return _exceeded("seconds", owner.seconds or 0, f"{what} had so many seconds.")

        super().__init__(owner, seconds=owner.seconds, too_late=too_late)
        self.tokens = 0
        self.cost = 0.0
        self.counted = {"turns": 0, "tool_calls": 0}
        self._counting = threading.Lock()

    def count(self, name: str, limit: int | None) -> LimitExceeded | None:
        """Take one more, or say why not."""
        with self._counting:
            if limit is not None and self.counted[name] >= limit:
                return _exceeded(name, limit)
            self.counted[name] += 1
        return None

    def add(self, usage: Usage, cost: float) -> None:
        with self._counting:
            self.tokens += (usage.input or 0) + (usage.output or 0)
            self.cost += cost


def _now() -> float:
    with shielded():  # what is to end has been stopped already
        return now()


def _exceeded(limit: str, value: float, advice: str = "") -> LimitExceeded:
    error = LimitExceeded(limit, value, advice=advice)
    error.ends_call = True
    return error


def _check(name: str, value: Any, kind: Any, least: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < math.inf:
        above = "above 0" if 0 < least < 1 else f"at least {least}"
        raise OptionError(f"`{name}` is {value!r}; it is a number, {above}, or None for no limit.")
