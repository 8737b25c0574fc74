"""Handlers that remember from one call to later ones; where the memories are kept; and what shows them to the model."""

from effectful_agents.handlers.memory.in_memory import InMemoryStore
from effectful_agents.handlers.memory.keeper import MemoryKeeper
from effectful_agents.handlers.memory.prompter import RecallPrompter
from effectful_agents.handlers.memory.sqlite import SqliteMemoryStore
from effectful_agents.handlers.memory.tools import MemoryTools
from effectful_agents.handlers.memory.window import WorkingWindow

__all__ = ["InMemoryStore", "MemoryKeeper", "MemoryTools", "RecallPrompter", "SqliteMemoryStore", "WorkingWindow"]
