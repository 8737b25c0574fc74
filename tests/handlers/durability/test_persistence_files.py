"""The files in which agents are kept: of other versions, damaged, or in places where there cannot be one."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import ConfigurationError, StorageError
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.handlers.durability.agent_table import SCHEMA
from effectful_agents.operations.history import load_state
from effectful_agents.storage.database import Database, Schema
from effectful_agents.testing import ScriptedModel
from tests.handlers.durability.keeping import STEPS, Bot, calls, restored, said, talk

VERSION_1 = Path(__file__).with_name("agents_version_1.sql")
"""A file that version 1 of the tables has written, as SQLite's `.dump` shows it. It stays as it is."""

LATER = Schema(
    "agents", [*SCHEMA.steps, ["ALTER TABLE agents ADD COLUMN lang TEXT", "UPDATE agents SET lang = 'en' WHERE 1"]]
)
"""The tables as a later version might have them."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


@pytest.fixture
def old(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1.read_text(encoding="utf-8"))
    return path


def test_a_file_of_version_1_is_read_and_written(old):
    assert SQLitePersister(old).agents() == ["ann", "b\ud800"]
    bot = Bot("ann")
    talk(old, bot.ask, "Still.")
    assert said(bot.__history__) == [None, "null", "Noted.", "You like tea.", "Still."]
    assert restored(old, Bot("ann")).notes == ["likes tea"]
    assert len(said(restored(old, Bot("b\ud800")).__history__)) == 1


def test_a_step_forward_keeps_every_agent(old):
    with Database(old, LATER).reading() as connection:
        assert connection.execute("SELECT class, version, lang FROM agents").fetchall() == [
            ("Bot", 2, "en"),
            ("Bot", 1, "en"),
        ]
        assert connection.execute("SELECT count(*) FROM agent_messages").fetchone() == (8,)
        assert connection.execute("SELECT version FROM effectful_agents").fetchone() == (len(LATER.steps),)


def test_a_file_of_a_later_version_is_refused_and_stays(old):
    Database(old, LATER).close()
    content = old.read_bytes()
    with pytest.raises(StorageError, match=r"agents\.db` have version 3, and this effectful-agents knows up to"):
        SQLitePersister(old)
    assert old.read_bytes() == content


def test_a_later_version_that_comes_while_an_agent_is_used_is_noticed(path):
    bot = Bot()
    with handler(harness(system_prompt="brief", persist_db=path)), handler(ScriptedModel("one", "two")):
        bot.ask("?")
        Database(path, LATER).close()
        with pytest.raises(StorageError, match="a newer one has written them"):
            bot.ask("?")
    assert said(bot.__history__) == ["one"]


def test_a_file_that_is_no_database_is_named(path):
    path.write_text("Not a database, though long enough to be taken for one. " * 20)
    with pytest.raises(StorageError, match=r"agents\.db` is damaged, or no SQLite database"):
        harness(persist_db=path)


def test_a_damaged_file_is_named(path):
    talk(path, Bot().ask, *["long " * 500] * 20)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[5 * 4096 :] = b"\xff" * (len(content) - 5 * 4096)
    path.write_bytes(content)
    bot = Bot()
    with pytest.raises(StorageError, match="is damaged"):
        talk(path, bot.ask, "more")
    assert said(bot.__history__) == []


def test_a_message_that_somebody_spoiled_is_told(path):
    talk(path, Bot().ask, "one")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE agent_messages SET message = '{' WHERE place = 1")
    with pytest.raises(StorageError, match=r"a message in the database .*agents\.db` is no JSON"):
        talk(path, Bot().ask, "two")

    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("""UPDATE agent_messages SET message = '{"rome":"user"}' WHERE place = 1""")
    with pytest.raises(StorageError, match=r"stands for a message in the database .*agents\.db` is none"):
        talk(path, Bot().ask, "two")


@pytest.mark.parametrize("value", ["CAST(x'80ff' AS TEXT)", "x'80ff'"])
@pytest.mark.parametrize(
    "column",
    [
        "agents.id",
        "agents.class",
        "agents.version",
        "agent_messages.message",
        "agent_fields.name",
        "agent_fields.value",
    ],
)
def test_bytes_that_are_no_text_are_told(path, column, value):
    talk(path, Bot().ask, "one")
    table, _, name = column.partition(".")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {name} = {value} WHERE rowid = 1")

    def read() -> None:
        with handler(SQLitePersister(path)) as persister:
            load_state(Bot())
            persister.agents()

    with pytest.raises(StorageError, match=r"agents\.db` is damaged"):
        read()


def test_a_model_is_not_asked_to_mend_a_file(path):
    """An inner call that cannot be saved ends the outer one, though a retry is installed."""
    talk(path, Bot("inner").ask, "one")
    inner = Bot("inner")

    def spoil() -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE effectful_agents SET version = 7")
        inner.ask("?")

    STEPS["spoil"] = spoil
    with handler(harness(persist_db=path, tool_calling="json")), handler(ScriptedModel(calls("run", step="spoil"))):
        with pytest.raises(StorageError, match="have version 7"):
            Bot("outer").ask("?")


def test_tables_of_somebody_else_are_not_touched(path):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE agents (mine)")
    with pytest.raises(StorageError, match="table agents already exists"):
        SQLitePersister(path)


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_what_is_no_file_is_refused_when_the_stack_is_made(name):
    with pytest.raises(ConfigurationError, match="names no file"):
        harness(persist_db=name)


def test_a_folder_is_refused_when_the_stack_is_made(tmp_path):
    with pytest.raises(StorageError, match=f"`{tmp_path}` cannot be written"):
        harness(persist_db=tmp_path)
    with pytest.raises(StorageError, match=r"/proc/agents/agents\.db` cannot be made"):
        harness(persist_db="/proc/agents/agents.db")
