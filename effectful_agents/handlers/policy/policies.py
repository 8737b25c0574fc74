"""Policies: handlers that say whether effects may happen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.options import is_async
from effectful_agents.operations.amending import check_amended
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect, as_decision, decide, strictest
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Risk

__all__ = ["Policy", "RiskPolicy"]

_log = logging.getLogger(__name__)

type Judge = Callable[[ProposedEffect], Decision | Disposition | None]


class Policy(ObjectInterpretation[Any, Any]):
    """Have a function decide about effects: every request, tool call, delegation and import, before it happens.

    All policies that are installed are asked, wherever they stand, and the strictest answer counts. One that raises
    denies the step. Derive a class from this, with a method `judge`, for a policy with options.

    Args:
        judge: Gets the effect, and returns a `Decision`, a `Disposition`, or None where it has nothing to say. A
            decision with `arguments` amends those of the call, with values of the tool's types; all policies are then
            asked about the amended call. True and False are none of these, and deny.
        name: What refusals and the decision log call it; by default the name of the function or class.

    Raises:
        OptionError: `judge` is no function, or an `async def`.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def delete(path: str) -> str:
    ...     '''Delete a file.'''
    ...     return "deleted"
    >>> @Skill.define
    ... def tidy() -> str:
    ...     '''Tidy up.'''
    ...     raise NotHandled
    >>> def temporary_only(effect):
    ...     if effect.calls(delete) and not effect.arguments["path"].startswith("/tmp/"):
    ...         return Decision(Disposition.DENY_STEP, message="Only temporary files may be deleted.")
    >>> model = ScriptedModel(calls("delete", path="/etc/passwd"), "I left it.")
    >>> with handler(harness()), handler(Policy(temporary_only)), handler(model):
    ...     tidy()
    'I left it.'
    >>> model.requests[1]["messages"][-1]["content"]
    'This call was not done: Only temporary files may be deleted. (rule: temporary_only)'
    """

    def __init__(self, judge: Judge | None = None, name: str | None = None) -> None:
        if judge is not None:
            if not callable(judge):
                raise OptionError(f"`judge` is {judge!r}; it is a plain function that gets a `ProposedEffect`.")
            self.judge = judge
        if is_async(self.judge):
            raise OptionError(
                f"`judge` is {self.judge!r}, which is no plain function: nobody would await it; use `def`."
            )
        self.name = name or getattr(judge, "__name__", type(self).__name__)

    def judge(self, effect: ProposedEffect, /) -> Decision | Disposition | None:
        """What this policy says about an effect; None: nothing."""
        raise NotImplementedError(f"`{type(self).__name__}` is a policy without a method `judge`.")

    @implements(decide)
    def decide(self, effect: ProposedEffect) -> Decision:
        mine = self._judged(effect)
        return strictest(mine, fwd(effect.with_arguments(mine.arguments)))

    def _judged(self, effect: ProposedEffect) -> Decision:
        try:
            decision = as_decision(self.judge(effect))
            check_amended(effect, decision.arguments or {}, f"the policy `{self.name}`")
        except Exception:
            about = effect.name or effect.kind
            _log.exception("the policy `%s` failed when it was asked about `%s`; so it denies", self.name, about)
            decision = Decision(Disposition.DENY_STEP, "policy_error", "A rule failed on it; the log says how.")
        return decision.by(self.name)

    def manifest(self) -> Mapping[str, object]:
        return {"policies": [self.name]}


class RiskPolicy(Policy):
    """Decide about tool calls and delegations by their risk.

    To deny what is too risky without asking anybody, give both the same risk.

    Args:
        allow: The highest risk that needs nobody's approval.
        approve: The highest risk that a person may approve; what is riskier is denied.

    Raises:
        OptionError: `approve` is below `allow`.

    >>> RiskPolicy(allow=Risk.READ, approve=Risk.HARD_WRITE).judge(
    ...     ProposedEffect(kind="tool_call", name="send", risk=Risk.SOFT_WRITE)).disposition
    <Disposition.REQUIRE_APPROVAL: 1>
    """

    def __init__(self, *, allow: Risk = Risk.SOFT_WRITE, approve: Risk = Risk.DESTRUCTIVE) -> None:
        super().__init__(name="risk")
        try:
            self.allow, self.approve = Risk(allow), Risk(approve)
        except ValueError as error:
            raise OptionError(f"`allow` and `approve` are risks, such as `Risk.READ`: {error}") from error
        if self.approve < self.allow:
            raise OptionError(f"`approve` ({self.approve.name}) is below `allow` ({self.allow.name}).")

    def judge(self, effect: ProposedEffect, /) -> Decision | None:
        if effect.risk <= self.allow:
            return None
        risk = effect.risk.name.lower()
        words = risk.replace("_", " ")
        if effect.risk <= self.approve:
            return Decision(Disposition.REQUIRE_APPROVAL, risk, f"`{effect.name}` is declared {words}. May it be done?")
        return Decision(Disposition.DENY_STEP, risk, f"`{effect.name}` is declared {words}, and that is not allowed.")

    def manifest(self) -> Mapping[str, object]:
        return {"policies": [self.name], "risk": {"allow": self.allow.name, "approve": self.approve.name}}
