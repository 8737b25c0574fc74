"""SQLite files that several parts of the package keep something in: agents, runs, memories.

It stands below the handlers, whose families import none of each other.
"""

from effectful_agents.storage.database import Database, Schema
from effectful_agents.storage.stored import Damaged, as_text, of_text

__all__ = ["Damaged", "Database", "Schema", "as_text", "of_text"]
