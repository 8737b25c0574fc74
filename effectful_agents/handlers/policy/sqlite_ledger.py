"""A ledger in an SQLite file: several processes share it, and it outlives them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import StorageError
from effectful_agents.handlers.policy.ledgers import answered, asked
from effectful_agents.operations.approvals import PendingQuestion, QuestionState
from effectful_agents.operations.policy import Answer
from effectful_agents.storage import Damaged, Database, Schema, as_text, of_text

__all__ = ["SqliteLedger"]

_log = logging.getLogger(__name__)

_TABLES = Schema(
    "approvals",
    [
        [
            "CREATE TABLE approvals (place INTEGER PRIMARY KEY, token_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL,"
            " step_id TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, scope TEXT NOT NULL,"
            " asked REAL NOT NULL, expires REAL NOT NULL, question TEXT NOT NULL, answer TEXT, answered REAL NOT NULL)",
            "CREATE INDEX approvals_step ON approvals (run_id, step_id)",
            # What waits is looked for often, among all that was ever answered.
            "CREATE INDEX approvals_waiting ON approvals (expires) WHERE state = 'waiting'",
        ]
    ],
)

_ROW = "token_id, run_id, step_id, digest, state, scope, asked, expires, question, answer, answered"
_TEXTS = ("text", "kind", "name", "risk", "reason_code")
_OBJECTS = ("arguments", "parameters")


class SqliteLedger:
    """Keep questions and answers in an SQLite file on a disk of this machine, for several threads, tasks and processes.

    It may be the file that keeps the journals. What `consume` has returned is on the disk.

    Args:
        path: The file; it is made, with the folders above it, where there is none.

    A row that is damaged is left out by `questions`, which logs it; the run that it is of cannot go on.

    Raises:
        OptionError: `path` names no file.
        StorageError: It cannot be written, is damaged, no SQLite database, or was written by a later version of the
            package. Each of the methods raises it too; then nothing was written.

    >>> import tempfile
    >>> from effectful_agents.operations.approvals import PendingQuestion
    >>> question = PendingQuestion(token_id="t", run_id="r", step_id="s", digest="d", scope="ann", text="?", expires=9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = SqliteLedger(f"{folder}/runs.db")
    ...     _ = ledger.ask(question)
    ...     ledger.close()
    ...     SqliteLedger(f"{folder}/runs.db").find("t") == question
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, _TABLES, durable=True)

    @staticmethod
    def is_in(path: str | os.PathLike[str]) -> bool:
        """Whether an SQLite database has questions, answered or not; it stays as it is.

        Raises:
            StorageError: It is no SQLite database, or cannot be read.
        """
        try:
            with contextlib.closing(
                sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
            ) as connection:
                tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'approvals'"
                return connection.execute(tables).fetchone() is not None
        except sqlite3.Error as error:
            raise StorageError(f"`{path}` cannot be read as an SQLite database: {error}", path=str(path)) from error

    @property
    def path(self) -> str:
        """The file, with all folders."""
        return self._database.path

    def ask(self, question: PendingQuestion, *, instead_of: str = "") -> PendingQuestion:
        row = _row(question)
        with self._database.writing() as connection:
            of_step = _found(connection, "run_id = ? AND step_id = ?", row[1], row[2])
            kept, changes = asked(of_step, question, instead_of)
            for token_id, state in changes.items():
                connection.execute(
                    "UPDATE approvals SET state = ? WHERE token_id = ?", (state.value, as_text(token_id))
                )
            if kept is question:
                places = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO approvals ({_ROW}) VALUES ({places})", row)
        return kept

    def find(self, token_id: str) -> PendingQuestion | None:
        with self._database.reading() as connection:
            return next(iter(_found(connection, "token_id = ?", as_text(token_id))), None)

    def consume(self, token_id: str, answer: Answer, at: float) -> PendingQuestion:
        said = _text_of(dataclasses.asdict(answer))  # before the transaction: it may be no JSON
        with self._database.writing() as connection:
            before = next(iter(_found(connection, "token_id = ?", as_text(token_id))), None)
            question = answered(before, answer, at)
            connection.execute(
                "UPDATE approvals SET state = ?, answer = ?, answered = ? WHERE token_id = ?",
                (question.state.value, said, question.answered, as_text(token_id)),
            )
        return question

    def answer_for(self, run_id: str, step_id: str, digest: str) -> PendingQuestion | None:
        wanted = "run_id = ? AND step_id = ? AND digest = ? AND state = 'answered'"
        with self._database.reading() as connection:
            found = _found(connection, wanted, *map(as_text, (run_id, step_id, digest)))
        return next(iter(found), None)

    def questions(self, run_id: str | None = None, *, open_at: float | None = None) -> Sequence[PendingQuestion]:
        wanted: list[tuple[str, Any]] = []
        if run_id is not None:
            wanted.append(("run_id = ?", as_text(run_id)))
        if open_at is not None:
            wanted.append(("state = 'waiting' AND expires > ?", float(open_at)))
        where = " AND ".join(["1", *(one for one, _ in wanted)])
        with self._database.reading() as connection:
            rows = _rows(connection, where, *(value for _, value in wanted))
        return list(_readable(rows))

    def forget(self, run_id: str) -> None:
        with self._database.writing() as connection:
            connection.execute("DELETE FROM approvals WHERE run_id = ?", (as_text(run_id),))

    def close(self) -> None:
        """Close the file; it is opened again where the ledger is used once more."""
        self._database.close()


def _found(connection: sqlite3.Connection, where: str, *values: Any) -> list[PendingQuestion]:
    return [_question(row) for row in _rows(connection, where, *values)]


def _rows(connection: sqlite3.Connection, where: str, *values: Any) -> list[Sequence[Any]]:
    return connection.execute(f"SELECT {_ROW} FROM approvals WHERE {where} ORDER BY place", values).fetchall()


def _readable(rows: Iterable[Sequence[Any]]) -> Iterator[PendingQuestion]:
    """The questions in these rows; one that is damaged keeps nobody from answering the others."""
    for row in rows:
        try:
            yield _question(row)
        except Damaged as error:
            _log.error("a question of the run %r is left out of the list: %s", row[1], error)


def _row(question: PendingQuestion) -> tuple[Any, ...]:
    told = {name: getattr(question, name) for name in _TEXTS}
    told |= {name: dict(getattr(question, name)) for name in _OBJECTS}
    if question.returns is not None:
        told["returns"] = dict(question.returns)
    return (
        *map(as_text, (question.token_id, question.run_id, question.step_id, question.digest)),
        question.state.value,
        as_text(question.scope),
        float(question.asked),
        float(question.expires),
        _text_of(told),
        None if question.answer is None else _text_of(dataclasses.asdict(question.answer)),
        float(question.answered),
    )


def _question(row: Sequence[Any]) -> PendingQuestion:
    token_id, run_id, step_id, digest, state, scope, at, expires, told, answer, when = row
    try:
        question = PendingQuestion(
            token_id=of_text(token_id),
            run_id=of_text(run_id),
            step_id=of_text(step_id),
            digest=of_text(digest),
            scope=of_text(scope),
            asked=float(at),
            expires=float(expires),
            state=QuestionState(state),
            answer=None if answer is None else _checked(Answer(**json.loads(answer)), _ANSWER),
            answered=float(when),
            **json.loads(told),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise Damaged(f"a question that is kept cannot be read: {error}") from error
    if (question.answer is None) == (question.state in _WITH_ANSWER):
        raise Damaged(
            f"a question is kept as {question.state} {'without' if question.answer is None else 'with'} an answer"
        )
    return _checked(question, _QUESTION)


_WITH_ANSWER = (QuestionState.ANSWERED, QuestionState.REJECTED)
_QUESTION: Mapping[str, Any] = dict.fromkeys(_TEXTS, str) | dict.fromkeys(_OBJECTS, dict) | {"returns": dict | None}
_ANSWER: Mapping[str, Any] = {
    **dict.fromkeys(("approved", "from_nobody"), bool),
    **dict.fromkeys(("reason", "text", "by"), str),
    "arguments": dict | None,
}


def _checked[R](kept: R, kinds: Mapping[str, Any]) -> R:
    """What was read, if its fields are of these kinds."""
    for name, kind in kinds.items():
        if not isinstance(getattr(kept, name), kind):
            raise Damaged(f"`{name}` of a {type(kept).__name__} that is kept is {type(getattr(kept, name)).__name__}")
    return kept


def _text_of(data: Any) -> str:
    """JSON of ASCII characters, in which lone surrogates survive any encoding."""
    return json.dumps(data, separators=(",", ":"))
