"""`effectful-agents economy`: what is shown of the prompts of a run, and what is said where there is nothing."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.harness.commands import main as command
from effectful_agents.operations.records import Phase
from effectful_agents.testing.stores import step

CONSOLE = Path(sys.executable).with_name("effectful-agents")
FIRST, SECOND = "000001-call/000001-model", "000001-call/000002-model"


def reply(text: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 250}}
    message = {"role": "assistant", "content": text}
    return {"response": {"model": "gpt-5-mini", "choices": [{"message": message}], "usage": usage}}


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    store = SqliteCheckpointer("runs.db", synchronous="normal")
    store.append(
        step("trip", ""),
        step("trip", FIRST, name="trip", body={"messages": [{"role": "user", "content": "Go to \x1b[31m Oslo"}]}),
        step("trip", FIRST, Phase.COMPLETED, name="trip", body=reply("Where?")),
        step("trip", SECOND, name="trip\x1b[31m", body={"base": FIRST, "keep": 1, "messages": []}),
        step("idle", ""),
    )
    store.close()
    return "runs.db"


@pytest.fixture
def run(database: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command in this process: the exit code, and what it printed to either."""

    def run(*words: str) -> tuple[int, str, str]:
        try:
            code = command(["economy", *words])
        except SystemExit as exit_:
            code = int(str(exit_.code))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_it_is_text_where_there_is_no_terminal(run: Any) -> None:
    code, out, err = run("runs.db", "trip")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("trip  1 turn  1,000 tokens in  200 out  25% from a cache  $")
    assert lines[1] == "1 turn has no reply and is in no sum: nobody knows what was paid."
    assert lines[-1].split()[:3] == ["gpt-5-mini", "1", "1,000"]
    assert "\x1b" not in out


def test_on_a_terminal_it_is_tables(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run("runs.db", "trip")
    assert code == 0
    assert "Prompts by part" in out
    assert "\x1b[31m" not in out


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_identifiers_of_steps_can_be_copied(run: Any, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", f"{columns}")
    _, out, _ = run("runs.db", "trip")
    assert FIRST in out
    assert SECOND in out
    assert ("Steps of the turns" in out) == (columns < 200)


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")


@pytest.mark.parametrize(
    "words", [("economy", "runs.db", "trip"), ("runs", "--database", "runs.db")], ids=["economy", "runs"]
)
@pytest.mark.parametrize(
    ("to", "said"),
    [
        pytest.param("> /dev/full", "error: standard output cannot be written: No space left on device.\n", marks=FULL),
        (">&-", "error: standard output is closed.\n"),
        ("| true", ""),
    ],
    ids=["full", "closed", "unread"],
)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_what_cannot_be_printed_is_one_line(
    database: str, tmp_path: Path, words: tuple[str, ...], to: str, said: str
) -> None:
    line = f"{shlex.join([str(CONSOLE), *words])} {to}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", said)


def test_standard_output_may_be_closed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run("runs.db", "trip") == (1, "", "error: standard output is closed.\n")


@FULL
def test_the_disk_may_be_full(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, _, err = run("runs.db", "trip", "--json")
    assert (code, err) == (1, "error: standard output cannot be written: No space left on device.\n")


def test_it_can_be_json(run: Any) -> None:
    code, out, err = run("runs.db", "trip", "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert [turn["outcome"] for turn in data["turns"]] == ["refused", "unknown"]
    assert data["whole"]["usage"]["input"] == 1000


def test_it_can_be_a_picture(run: Any) -> None:
    assert run("runs.db", "trip", "--svg", "trip.svg") == (0, "", "")
    assert ET.parse("trip.svg").getroot().tag.endswith("svg")


def test_a_picture_and_json_are_made_at_once(run: Any) -> None:
    code, out, _ = run("runs.db", "trip", "--svg", "trip.svg", "--json")
    assert code == 0
    assert json.loads(out)["run_id"] == "trip"
    assert Path("trip.svg").is_file()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("runs.db", "tripp"), 1, "error: there is no run `tripp` in `"),
        (("runs.db", "idle"), 1, "error: the run `idle` has asked no model"),
        (("none.db", "trip"), 2, "error: there is no database `none.db`."),
        (("runs.db", "trip", "--svg", "no/where.svg"), 2, "error: the picture cannot be written to 'no/where.svg'"),
        (("runs.db",), 2, "effectful-agents economy: error: the following arguments are required: RUN"),
    ],
    ids=["run", "idle", "database", "picture", "words"],
)
def test_what_is_wrong_is_one_line(run: Any, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (code, "")
    assert err.splitlines()[-1].startswith(said)


def test_a_file_that_is_no_database_is_told(run: Any) -> None:
    Path("notes.txt").write_text("no database, and long enough to look like one\n" * 50)
    code, _, err = run("notes.txt", "trip")
    assert code == 1
    assert "no SQLite database" in err


def test_a_damaged_record_is_told(run: Any) -> None:
    with sqlite3.connect("runs.db") as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = next(name for name in tables if "record" in name)
        connection.execute(f"UPDATE {table} SET body = replace(body, 'Oslo', 'Rome')")
    connection.close()
    code, out, err = run("runs.db", "trip")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "runs.db" in err


@pytest.mark.slow
def test_it_is_a_command_of_the_console(database: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [CONSOLE, "economy", database, "trip"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("trip  1 turn")
