"""What a stack, an agent or a skill may do at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.policies import Policy
from effectful_agents.operations.grants import granted_kinds, not_granted
from effectful_agents.operations.policy import Decision, EffectKind, ProposedEffect
from effectful_agents.types import Agent, Skill
from effectful_agents.types.overriding import stands_for

__all__ = ["GrantEffects"]


class GrantEffects(Policy):
    """Let effects of these kinds happen, and no others, whoever asks for them.

    Of several that are installed each has to grant an effect: calls inside a block with fewer grants, and skills that
    were given fewer, can only lose authority. A tool call, delegation or import that is not granted is denied, which
    the model is told; a request, and what has to do with memory, ends the call with `Denied`.

    Args:
        effects: Kinds of effects, as `EffectKind` has them. Without any: `model_call` and `tool_call`.
        of: A skill, an agent or a class of agents: it holds for what happens in their calls, those nested in them
            included. A method of an agent also stands for one that overrides it in a class derived from it. None: for
            everything.

    Raises:
        OptionError: There is no such kind, or `of` is something else.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel("Paris.")), handler(GrantEffects("tool_call")):
    ...     ask("What is the capital of France?")
    Traceback (most recent call last):
    effectful_agents.errors.Denied: `model_call` is not granted; `GrantEffects("model_call", …)` would. (rule: grants)
    """

    def __init__(self, *effects: EffectKind | str, of: Skill[..., Any] | Agent | type[Agent] | None = None) -> None:
        super().__init__(name="grants")
        self.effects = granted_kinds(effects) or frozenset({EffectKind.MODEL_CALL, EffectKind.TOOL_CALL})
        if of is not None and not _may_have_grants(of):
            raise OptionError(f"`of` is {of!r}; it is a skill, an agent or a class of agents.")
        self.of = of

    def judge(self, effect: ProposedEffect, /) -> Decision | None:
        if effect.kind in self.effects or not self._concerns(effect):
            return None
        return not_granted(effect, f'`GrantEffects("{effect.kind}", …)` would')

    def _concerns(self, effect: ProposedEffect) -> bool:
        return self.of is None or any(_is_of(caller, self.of) for caller in effect.callers)

    def manifest(self) -> Mapping[str, object]:
        whose = {} if self.of is None else {"of": getattr(self.of, "__name__", type(self.of).__name__)}
        return {"policies": [self.name], "grants": sorted(kind.value for kind in self.effects), **whose}


def _may_have_grants(of: Any) -> bool:
    return isinstance(of, Skill | Agent) or (isinstance(of, type) and issubclass(of, Agent))


def _is_of(caller: Skill[..., Any], of: Any) -> bool:
    if isinstance(of, Skill):
        return stands_for(caller, (of,))
    agent = caller.receiver
    return isinstance(agent, of) if isinstance(of, type) else agent is of
