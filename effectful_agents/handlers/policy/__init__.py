"""Handlers of authority: who may do what, and who is asked."""

from effectful_agents.handlers.policy.governance import Governance
from effectful_agents.handlers.policy.grants import GrantEffects
from effectful_agents.handlers.policy.limits import Limits
from effectful_agents.handlers.policy.log import DecisionLog
from effectful_agents.handlers.policy.policies import Policy, RiskPolicy

__all__ = ["DecisionLog", "Governance", "GrantEffects", "Limits", "Policy", "RiskPolicy"]
