"""Handlers that make a call survive failure: the message transaction, asking again, and keeping agents."""

from effectful_agents.handlers.durability.history import HistoryBuilder
from effectful_agents.handlers.durability.persistence import SQLitePersister
from effectful_agents.handlers.durability.retrying import TenacityRetryer
from effectful_agents.handlers.durability.transaction import transaction

__all__ = ["HistoryBuilder", "SQLitePersister", "TenacityRetryer", "transaction"]
