"""What the models of a run were shown, turn by turn, what it cost, and why."""

from effectful_agents.handlers.observability.context_economy.reading import economy
from effectful_agents.handlers.observability.context_economy.turns import (
    PrefixBreak,
    Section,
    ToolEconomy,
    TurnEconomy,
    TurnOutcome,
)
from effectful_agents.handlers.observability.context_economy.whole import ContextEconomy, ModelEconomy, RetryEconomy

__all__ = [
    "ContextEconomy",
    "ModelEconomy",
    "PrefixBreak",
    "RetryEconomy",
    "Section",
    "ToolEconomy",
    "TurnEconomy",
    "TurnOutcome",
    "economy",
]
