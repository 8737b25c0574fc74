"""Handlers of authority: who may do what, and who is asked."""

from effectful_agents.handlers.policy.policies import Policy, RiskPolicy

__all__ = ["Policy", "RiskPolicy"]
