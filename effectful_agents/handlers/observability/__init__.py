"""Handlers that show what happens, and change nothing; and what can be said of a run from its journal."""

from effectful_agents.handlers.observability.context_economy import ContextEconomy, TurnEconomy, economy
from effectful_agents.handlers.observability.dump import SystemPromptDumper
from effectful_agents.handlers.observability.usage import UsageMeter, usage

__all__ = ["ContextEconomy", "SystemPromptDumper", "TurnEconomy", "UsageMeter", "economy", "usage"]
