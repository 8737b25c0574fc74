"""Handlers that make a call survive failure: the message transaction, and asking again."""

from effectful_agents.handlers.durability.history import HistoryBuilder
from effectful_agents.handlers.durability.retrying import TenacityRetryer
from effectful_agents.handlers.durability.transaction import transaction

__all__ = ["HistoryBuilder", "TenacityRetryer", "transaction"]
