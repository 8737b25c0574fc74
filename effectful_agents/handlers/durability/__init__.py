"""Handlers that make a call survive failure, and the process: histories, attempts, agents that are kept, and runs."""

from effectful_agents.handlers.durability.forking import forked_records
from effectful_agents.handlers.durability.history import HistoryBuilder
from effectful_agents.handlers.durability.journal import Journal
from effectful_agents.handlers.durability.memory_checkpointer import MemoryCheckpointer
from effectful_agents.handlers.durability.persistence import SQLitePersister
from effectful_agents.handlers.durability.retrying import TenacityRetryer
from effectful_agents.handlers.durability.runs import settle, unsettled
from effectful_agents.handlers.durability.sqlite_checkpointer import SqliteCheckpointer
from effectful_agents.handlers.durability.summary import RunSummary
from effectful_agents.handlers.durability.transaction import transaction

__all__ = [
    "HistoryBuilder",
    "Journal",
    "MemoryCheckpointer",
    "RunSummary",
    "SQLitePersister",
    "SqliteCheckpointer",
    "TenacityRetryer",
    "forked_records",
    "settle",
    "transaction",
    "unsettled",
]
