"""The tables in which agents are kept, and nothing but them: rows in, rows out, within somebody's transaction."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from effectful_agents.errors import EncodingError
from effectful_agents.messages import Message
from effectful_agents.storage.database import Schema
from effectful_agents.storage.stored import Damaged, as_text, of_text

__all__ = [
    "SCHEMA",
    "Row",
    "add_mark",
    "adopt",
    "agent_ids",
    "find",
    "forget",
    "has_mark",
    "insert",
    "read",
    "write_fields",
    "write_messages",
]

# A message has a number that no other one ever has, in whatever agent, and a place in its conversation. By the number
# a process knows again what it has read; a compaction moves messages to other places.
SCHEMA = Schema(
    "agents",
    [
        [
            """
            CREATE TABLE agents (
                key INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                class TEXT NOT NULL,
                version INTEGER NOT NULL
            )
            """,
            """
            CREATE TABLE agent_messages (
                number INTEGER PRIMARY KEY AUTOINCREMENT,
                agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
                place INTEGER NOT NULL,
                message TEXT NOT NULL,
                UNIQUE (agent, place)
            )
            """,
            """
            CREATE TABLE agent_fields (
                agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
                name TEXT NOT NULL,
                value TEXT NOT NULL,
                PRIMARY KEY (agent, name)
            )
            """,
        ],
        [
            # What tells the saves of an agent apart, where somebody has to know whether one of them was made.
            """
            CREATE TABLE agent_marks (
                agent INTEGER NOT NULL REFERENCES agents ON DELETE CASCADE,
                mark TEXT NOT NULL,
                PRIMARY KEY (agent, mark)
            ) WITHOUT ROWID
            """,
        ],
    ],
)


@dataclasses.dataclass(frozen=True)
class Row:
    """An agent that is kept.

    Attributes:
        key: Its number, which no other agent ever has, not even one that later gets the same identifier.
        class_name: The class of which it is.
        version: How often it was saved.
    """

    key: int
    class_name: str
    version: int


def find(connection: sqlite3.Connection, agent_id: str) -> Row | None:
    """The agent with an identifier."""
    found = connection.execute("SELECT key, class, version FROM agents WHERE id = ?", (as_text(agent_id),)).fetchone()
    if found is None:
        return None
    if not isinstance(found[2], int):
        raise Damaged(f"the agent `{agent_id}` has {found[2]!r} as its version")
    return Row(found[0], of_text(found[1]), found[2])


def agent_ids(connection: sqlite3.Connection) -> list[str]:
    """The identifiers of all agents, in the order in which they were first saved."""
    return [of_text(id) for (id,) in connection.execute("SELECT id FROM agents ORDER BY key")]


def read(connection: sqlite3.Connection, key: int) -> tuple[dict[int, str], dict[str, str]]:
    """The messages of an agent by their numbers, in order, and its fields by their names; both as JSON text."""
    messages = connection.execute("SELECT number, message FROM agent_messages WHERE agent = ? ORDER BY place", (key,))
    fields = connection.execute("SELECT name, value FROM agent_fields WHERE agent = ?", (key,))
    return {number: of_text(text) for number, text in messages}, {of_text(name): of_text(text) for name, text in fields}


def has_mark(connection: sqlite3.Connection, key: int, mark: str) -> bool:
    """Whether an agent was saved with a mark."""
    chosen = "SELECT 1 FROM agent_marks WHERE agent = ? AND mark = ?"
    return connection.execute(chosen, (key, as_text(mark))).fetchone() is not None


def add_mark(connection: sqlite3.Connection, key: int, mark: str) -> None:
    """Note that an agent is saved with a mark."""
    connection.execute("INSERT INTO agent_marks VALUES (?, ?)", (key, as_text(mark)))


def insert(connection: sqlite3.Connection, agent_id: str, class_name: str) -> Row:
    """A new agent, which was never saved."""
    sql = "INSERT INTO agents (id, class, version) VALUES (?, ?, 0)"
    inserted = connection.execute(sql, (as_text(agent_id), as_text(class_name)))
    return Row(inserted.lastrowid or 0, class_name, 0)


def write_messages(
    connection: sqlite3.Connection,
    key: int,
    kept: list[int],
    wanted: Sequence[Message],
    numbers: list[int | None],
) -> list[int]:
    """Make the conversation of an agent another one; what both begin with is not touched.

    Args:
        connection: In a transaction that writes.
        key: The agent.
        kept: The numbers of the messages that it has now, in order.
        wanted: Those that it is to have.
        numbers: Their numbers, None for each that is new.

    Returns:
        The numbers of all of them.

    Raises:
        EncodingError: One of them cannot be written.
    """
    same = len(kept)
    if numbers[:same] != kept:  # something else than a call that was added
        pairs = zip(kept, numbers, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        connection.execute("DELETE FROM agent_messages WHERE agent = ? AND place >= ?", (key, same))
    written = list(kept[:same])
    for place in range(same, len(wanted)):
        row = (numbers[place], key, place, _message_text(wanted[place]))
        inserted = connection.execute("INSERT INTO agent_messages VALUES (?, ?, ?, ?)", row)
        written.append(inserted.lastrowid or 0)
    return written


def write_fields(connection: sqlite3.Connection, key: int, fields: Mapping[str, str]) -> None:
    """Keep these fields of an agent, as JSON text; others that it has stay."""
    connection.executemany(
        "REPLACE INTO agent_fields VALUES (?, ?, ?)", [(key, name, text) for name, text in fields.items()]
    )


def count_saved(connection: sqlite3.Connection, key: int) -> int:
    """Count that an agent was saved once more.

    Returns:
        Its version from now on.
    """
    connection.execute("UPDATE agents SET version = version + 1 WHERE key = ?", (key,))
    (version,) = connection.execute("SELECT version FROM agents WHERE key = ?", (key,)).fetchone()
    return version


def adopt(connection: sqlite3.Connection, key: int, class_name: str) -> None:
    """Make an agent one of another class."""
    connection.execute("UPDATE agents SET class = ? WHERE key = ?", (as_text(class_name), key))


def forget(connection: sqlite3.Connection, key: int, fields: Iterable[str] | None) -> None:
    """Delete an agent with all that is kept of it; or some of its fields, which counts as a save."""
    if fields is None:
        connection.execute("DELETE FROM agents WHERE key = ?", (key,))
        return
    connection.executemany("DELETE FROM agent_fields WHERE agent = ? AND name = ?", [(key, name) for name in fields])
    count_saved(connection, key)


def _message_text(message: Message) -> str:
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        if isinstance(as_text(text), bytes):  # half a surrogate pair, which a tool may have put into its result
            text = json.dumps(message, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise EncodingError(
            f"a message of the role `{message['role']}` cannot be kept; it is no JSON: {error}"
        ) from error
    return text
