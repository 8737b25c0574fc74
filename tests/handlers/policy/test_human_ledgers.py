"""Ledgers: what each promises, in whatever order it is asked, and what only the one on disk can get wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import override

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents.errors import OptionError, StorageError, TokenError, TokenUsed
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.handlers.policy import MemoryLedger, SqliteLedger
from effectful_agents.operations.approvals import QuestionState
from effectful_agents.operations.policy import Answer
from effectful_agents.testing.ledgers import LedgerContract, question
from effectful_agents.testing.stores import step


class TestMemoryLedger(LedgerContract):
    keeps = False

    @override
    def open_ledger(self, folder: Path) -> MemoryLedger:
        return MemoryLedger()


class TestSqliteLedger(LedgerContract):
    @override
    def open_ledger(self, folder: Path) -> SqliteLedger:
        return SqliteLedger(folder / "runs.db")


class TestSqliteLedgerBesideJournals(LedgerContract):
    """In the file of the journals."""

    @override
    def open_ledger(self, folder: Path) -> SqliteLedger:
        SqliteCheckpointer(folder / "runs.db").append(step("r", "000001-tool"))
        return SqliteLedger(folder / "runs.db")


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("de"), st.sampled_from(["", "last"])),
        st.tuples(st.just("consume"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("wait"), st.just(0), st.just("")),
    ),
    max_size=25,
)


@given(operations=OPERATIONS)
@settings(max_examples=150, deadline=None)
def test_whatever_is_done_a_question_has_one_answer_at_a_time(operations):
    """Of one step: one question waits at most, no token is used twice, and an answer stays until it is rejected."""
    ledger, at, tokens, used = MemoryLedger(), 10.0, list[str](), dict[str, bool]()
    answers: dict[str, Answer] = {}  # by digest
    for number, (what, which, how) in enumerate(operations):
        at += 1
        if what == "wait":
            at += 10
        elif what == "ask":
            before = ledger.answer_for("r", "000001-tool", which)
            instead = before.token_id if before is not None and how else ""
            kept = ledger.ask(question(f"{number}", digest=which, asked=at, expires=at + 10), instead_of=instead)
            tokens.append(kept.token_id)
            if instead:
                answers.pop(which)
            assert kept.answer == answers.get(which)
            assert kept.answer is not None or kept.is_open(at)
        elif tokens:
            token = tokens[which % len(tokens)]
            answered, refused = None, None
            try:
                answered = ledger.consume(token, Answer(approved=how), at)
            except TokenError as error:
                refused = error
            assert isinstance(refused, TokenUsed) == (token in used)
            if answered is None:
                continue
            used[token] = how
            assert answered.digest not in answers
            answers[answered.digest] = Answer(approved=how)
        waiting = [one for one in ledger.questions() if one.state is QuestionState.WAITING]
        assert len(waiting) <= 1
        for digest in "de":
            found = ledger.answer_for("r", "000001-tool", digest)
            assert (found.answer if found else None) == answers.get(digest)


CONSUMING = """
import json, sys, time
from pathlib import Path
from effectful_agents.errors import TokenUsed
from effectful_agents.handlers.policy import SqliteLedger
from effectful_agents.operations.policy import Answer
path, name = sys.argv[1:]
ledger = SqliteLedger(path)
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(40):
    try:
        ledger.consume(f"t{number}", Answer(by=name), 15.0)
        won.append(number)
    except TokenUsed:
        pass
print(json.dumps(won), flush=True)
"""


@pytest.mark.slow
def test_of_several_processes_each_question_is_answered_by_one(tmp_path):
    path = tmp_path / "runs.db"
    ledger = SqliteLedger(path)
    for number in range(40):
        ledger.ask(question(f"t{number}", run_id=f"r{number}"))
    command = [sys.executable, "-c", CONSUMING, str(path)]
    processes = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "abc"
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        won = {
            name: json.loads(process.stdout.read() if process.stdout else "")
            for name, process in zip("abc", processes, strict=True)
        }
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(number for numbers in won.values() for number in numbers) == list(range(40))
    for name, numbers in won.items():
        for number in numbers:
            found = ledger.find(f"t{number}")
            assert found is not None
            assert found.answer == Answer(by=name)


def test_what_is_no_json_is_not_kept(tmp_path):
    ledger = SqliteLedger(tmp_path / "runs.db")
    ledger.ask(question("t"))
    with pytest.raises(TypeError):
        ledger.consume("t", Answer(arguments={"to": object()}), 15.0)
    assert ledger.find("t") == question("t")


DEEP = "[" * 100_000
DAMAGES = {
    "question = '[1]'": "",
    'question = \'{"text": "?", "name": 5}\'': "`name`",
    'question = \'{"text": "?", "arguments": []}\'': "`arguments`",
    f"question = '{DEEP}'": "",
    "state = 'thinking'": "",
    "digest = x'ff'": "UTF-8",
    "answer = NULL": "without an answer",
    "state = 'waiting'": "with an answer",
    "answer = '[]'": "",
    'answer = \'{"approved": "no"}\'': "`approved`",
    "answer = '{\"reason\": 5}'": "`reason`",
    "answer = '{\"arguments\": [1]}'": "`arguments`",
    "answer = '{\"colour\": 1}'": "",
    f"answer = '{DEEP}'": "",
}


@pytest.mark.parametrize(("damage", "said"), DAMAGES.items(), ids=[key[:40] for key in DAMAGES])
def test_a_damaged_row_is_told_and_keeps_nobody_from_the_others(damage, said, tmp_path, caplog):
    ledger = SqliteLedger(tmp_path / "runs.db")
    ledger.ask(question("t"))
    ledger.consume("t", Answer(), 15.0)
    other = ledger.ask(question("other", run_id="s"))
    with ledger._database.writing() as connection:
        connection.execute(f"UPDATE approvals SET {damage} WHERE token_id = 't'")
    with pytest.raises(StorageError, match=f"damaged.*{said}"):
        ledger.find("t")
    assert ledger.questions() == [other]
    assert "the run 'r' is left out" in caplog.text


def test_a_file_has_questions_or_not(tmp_path):
    journal, ledger, text = tmp_path / "journal.db", tmp_path / "questions.db", tmp_path / "notes.txt"
    SqliteCheckpointer(journal).append(step("r", "000001-tool"))
    assert not SqliteLedger.is_in(journal)
    assert not SqliteLedger.is_in(journal)  # and has none for having been looked at
    SqliteLedger(ledger)
    assert SqliteLedger.is_in(ledger)
    text.write_text("Milk. " * 1000)
    for path in (text, tmp_path / "nothing.db"):
        with pytest.raises(StorageError, match=path.name):
            SqliteLedger.is_in(path)


def test_a_file_it_has_to_be():
    with pytest.raises(OptionError, match=":memory:"):
        SqliteLedger(":memory:")
