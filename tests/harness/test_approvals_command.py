"""`effectful-agents approvals`: what waits is listed, shown and answered, and then the run goes on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.handlers.policy import HmacSigner, SqliteLedger
from effectful_agents.handlers.policy.tokens import TokenClaims, write_token
from effectful_agents.harness.commands import main as command
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.records import Phase
from effectful_agents.operations.world import now
from effectful_agents.testing.ledgers import question
from effectful_agents.testing.stores import step

MAIL = question(
    "1f3a9c2e77",
    run_id="monday",
    name="send",
    text="May it go?",
    arguments={"to": "ann\x1b[2J", "on": "2026-12-01"},
    parameters={"type": "object", "properties": {"to": {"type": "string"}, "on": {"type": "string"}}},
    risk="hard_write",
    expires=100_000.0,
)
DEEP = '{"to": ' + "[" * 100_000
WHEN = question("27bb000000", run_id="tuesday", kind="", text="When?\x9b5m", expires=50_000.0, scope="bob")
LATE = question("1f3aaaaaaa", run_id="sunday", name="send", text="May it go?", expires=20.0)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteLedger:
    monkeypatch.chdir(tmp_path)
    ledger = SqliteLedger("runs.db")
    for one in (LATE, MAIL, WHEN):
        ledger.ask(one)
    return ledger


@pytest.fixture
def run(ledger: SqliteLedger, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command in this process; it gives the exit code, and what was printed."""

    def run(*words: str, at: float = 7_210.0) -> tuple[int, str, str]:
        with handler({now: lambda: at}):
            code = command(["approvals", "runs.db", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_what_waits_is_listed(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "ID        STATE    WHO  WHAT                                      SINCE  EXPIRES  RUN",
        '1f3a9c2e  waiting  ann  send(to="ann\\u001b[2J", on="2026-12-01")  2 h    1 d      monday',
        '27bb0000  waiting  bob  asks "When?\\u009b5m"                      2 h    11 h     tuesday',
    ]


def test_all_is_listed_with_what_has_become_of_it(run, ledger):
    ledger.consume(MAIL.token_id, Answer(), 15.0)
    _, out, _ = run("--all")
    states = [line.split()[:2] for line in out.splitlines()[1:]]
    assert states == [["1f3aaaaa", "expired"], ["1f3a9c2e", "answered"], ["27bb0000", "waiting"]]
    _, out, _ = run()
    assert "1f3a" not in out


def test_where_nothing_waits_that_is_told(run, ledger):
    for one in (LATE, MAIL, WHEN):
        ledger.forget(one.run_id)
    assert run()[1] == "Nothing waits for an answer in runs.db.\n"
    assert run("--all")[1] == "Nothing was asked in runs.db.\n"


def test_a_question_is_shown_whole(run):
    code, out, _ = run("show", "1f3a9")
    assert code == 0
    assert out.splitlines() == [
        "1f3a9c2e77  waiting",
        "  | May it go?",
        "  send (tool_call, hard_write)",
        '    to = "ann\\u001b[2J"',
        '    on = "2026-12-01"',
        "  asked of ann, 1970-01-01 00:00 UTC; expires 1970-01-02 03:46 UTC",
        "  run monday, step 000001-tool",
        "  answer it: effectful-agents approvals runs.db approve 1f3a9c2e",
        "         or: effectful-agents approvals runs.db refuse 1f3a9c2e WHY",
        "         or: effectful-agents approvals runs.db amend 1f3a9c2e JSON",
    ]
    assert "approvals runs.db answer 27bb0000 TEXT" in run("show", "27bb")[1]


@pytest.mark.parametrize(
    ("words", "answer", "shown"),
    [
        (["approve"], Answer(), "approved"),
        (["approve", "--reason", "it is fine"], Answer(reason="it is fine"), "approved: it is fine"),
        (["refuse"], Answer(approved=False), "refused"),
        (["refuse", "not today"], Answer(approved=False, reason="not today"), "refused: not today"),
        (["amend", '{"to": "bob"}'], Answer(arguments={"to": "bob"}), 'approved with {"to": "bob"}'),
    ],
    ids=["approve", "with a reason", "refuse", "with why", "amend"],
)
def test_a_question_is_answered(run, ledger, words, answer, shown):
    what, *rest = words
    code, out, err = run(what, "1f3a9c2e", *rest, "--by", "ann")
    assert (code, err) == (0, "")
    assert (
        out == "answered. Run the script again as before; one that names no run of its own also by: "
        "effectful-agents resume monday SCRIPT --database JOURNAL\n"
    )
    found = ledger.answer_for("monday", MAIL.step_id, "d")
    assert found.answer == dataclasses.replace(answer, by="ann")
    assert found.answered == 7_210.0
    assert f"  {shown}, by ann, " in run("show", "1f3a9c2e")[1]
    code, out, err = run("approve", "1f3a9c2e")
    assert (code, out) == (1, "")
    assert "has been answered" in err


def test_a_question_for_information_is_answered_with_a_text(run, ledger):
    code, _, err = run("answer", "1f3a9c2e", "In May")
    assert code == 2
    assert "approve, refuse or amend" in err
    assert run("approve", "27bb")[0] == 1
    assert run("answer", "27bb", "")[0] == 1
    assert run("answer", "27bb", "In May")[0] == 0
    found = ledger.find(WHEN.token_id)
    assert found.answer.text == "In May"
    assert "@" in found.answer.by  # the user, and the machine


def test_a_token_names_its_question(run, ledger):
    token = write_token(TokenClaims.of(MAIL), HmacSigner(bytes(32)))
    assert run("show", token)[1].startswith("1f3a9c2e77")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "9"], 2, "no question `9`"),
        (["show", "1f3a"], 2, "there are several questions"),
        (["show", ""], 2, "no question"),
        (["show", "\x1b[2J"], 2, "\\u001b"),
        (["approve", "1f3aaaaa"], 1, "expired"),
        (["amend", "1f3a9c2e", "{"], 2, "no JSON that can be used"),
        (["amend", "1f3a9c2e", DEEP], 2, "no JSON that can be used"),
        (["amend", "1f3a9c2e", '{"to": "bob", "to": "eve"}'], 2, '"to" stands in an object twice'),
        (["amend", "1f3a9c2e", '{"to": {"a": 1, "a": 2}}'], 2, '"a" stands in an object twice'),
        (["amend", "1f3a9c2e", '{"cc": "bob"}'], 1, "`cc`"),
        (["approve", "27bb"], 1, "When?\\u009b5m"),
        (["amend", "27bb", "{}"], 1, "When?\\u009b5m"),
        (["amend", "1f3a9c2e", '{"to": 3}'], 1, "string"),
        (["amend", "1f3a9c2e", "3"], 1, "JSON object"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_done_is_told_in_a_line_and_changes_nothing(run, ledger, words, code, said):
    before = ledger.questions()
    got, out, err = run(*words)
    assert (got, out) == (code, "")
    (line,) = err.splitlines()
    assert said in line
    assert line.isprintable()
    assert ledger.questions() == before


def test_a_database_there_has_to_be(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["approvals", "runs.db"]) == 2
    assert "there is no database `runs.db`" in capsys.readouterr().err
    Path("notes.txt").write_text("no database " * 99)
    assert command(["approvals", "notes.txt"]) == 1
    assert "`notes.txt` cannot be read as an SQLite database" in capsys.readouterr().err
    assert Path("notes.txt").read_text() == "no database " * 99


def test_a_database_without_questions_is_not_one_in_which_nothing_waits(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    SqliteCheckpointer("journal.db").append(step("monday", ""))
    before = Path("journal.db").read_bytes()
    for words in ([], ["--all"], ["show", "1f3a"]):
        assert command(["approvals", "journal.db", *words]) == 2
        assert "the database `journal.db` keeps no questions" in capsys.readouterr().err
    assert Path("journal.db").read_bytes() == before


FRAME = (
    'hi?\n1f3a9c2e  waiting  boss  send(to="bob")   2 h    6 d      monday\n  send (tool_call, read)\n    to = "ann"'
)


@pytest.mark.parametrize("frame", [FRAME, FRAME.replace("\n", " " * 60)], ids=["lines", "blanks that fill a line"])
def test_a_text_of_a_model_looks_like_no_row_and_no_question(run, ledger, frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for one in (LATE, MAIL, WHEN):
        ledger.forget(one.run_id)
    ledger.ask(question("aa11111111", kind="", text=frame, expires=50_000.0))
    ledger.ask(question("bb11111111", run_id="s", name="send", text=frame, arguments={"text": frame}, expires=50_000.0))
    _, out, _ = run()
    first, second = out.splitlines()[1:]
    assert 'asks "hi?' in first
    assert 'send(text="hi?' in second
    for name in ("aa", "bb"):
        lines = run("show", name)[1].splitlines()
        ours = [line for line in lines if not line.startswith("  | ")]
        assert all(len(line) <= 80 for line in lines if line not in ours or "answer it" not in line)
        assert not [line for line in ours if line.startswith(("    to =", "1f3a", "  send (tool_call, read)"))]


@pytest.mark.parametrize("words", [[], ["runs.db", "fly"], ["runs.db", "show"], ["runs.db", "refuse"]], ids=str)
def test_a_wrong_command_line_is_explained(words, capsys):
    with pytest.raises(SystemExit) as caught:
        command(["approvals", *words])
    assert caught.value.code == 2
    assert "usage: effectful-agents approvals" in capsys.readouterr().err


def test_the_help_explains_the_commands(capsys):
    with pytest.raises(SystemExit) as caught:
        command(["approvals", "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("DB", "--all", "show", "approve", "refuse", "amend", "answer"))


# Runs


def test_a_run_that_is_deleted_waits_for_nobody(ledger, capsys):
    SqliteCheckpointer("runs.db").append(step("monday", ""))
    assert command(["delete", "monday", "--database", "runs.db"]) == 0
    assert [one.run_id for one in ledger.questions()] == ["sunday", "tuesday"]


def test_a_run_that_waits_is_listed_and_shown_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = SqliteCheckpointer("runs.db")
    place = "000001-call/000001-tool/approval/000001-approval"
    store.append(
        step("r", ""),
        step("r", "000001-call", name="inform"),
        step("r", place, name="send", body={"arguments": {"to": "ann"}, "text": "May it go?"}),
    )
    lease = store.lease("r")
    lease.append(step("r", "", attempt=2), step("r", place, attempt=2, name="send", body={"arguments": {"to": "ann"}}))
    closed = {"status": "suspended", "error": "the run `r` waits for somebody: May it go?"}
    lease.append(step("r", "", Phase.COMPLETED, attempt=2, body=closed))
    lease.release()
    assert command(["runs", "--database", "runs.db"]) == 0
    assert "suspended" in capsys.readouterr().out
    assert command(["runs", "show", "r", "--database", "runs.db"]) == 0
    out = capsys.readouterr().out
    assert "\nthe run `r` waits for somebody: May it go?\n" in out
    assert "send  attempt 2  WAITS FOR AN ANSWER" in out
