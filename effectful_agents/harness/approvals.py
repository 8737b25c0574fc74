"""The command about questions that runs wait with: to list, show and answer them."""

from __future__ import annotations

import argparse
import getpass
import json
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.encoding.questions import apart, printable, printable_text, told_argument
from effectful_agents.errors import AnswerError, ConfigurationError, StorageError, TokenError
from effectful_agents.handlers.policy import SqliteLedger
from effectful_agents.handlers.policy.answers import checked_answer
from effectful_agents.handlers.policy.external import each_once
from effectful_agents.handlers.policy.tokens import unverified_claims
from effectful_agents.harness.launcher import fail, one_line
from effectful_agents.harness.output import print_text
from effectful_agents.operations.approvals import PendingQuestion
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.world import now

__all__ = ["main"]

_PROGRAM = "effectful-agents"
_SHOWN = 4_000
"""Characters of an answer: the result of a tool may be long."""


def main(arguments: Sequence[str]) -> int:
    """List, show or answer what runs ask.

    Args:
        arguments: The database, a command and its words; without a command what waits is listed.

    Returns:
        The exit code: 1 where it failed, 2 where something has to be written otherwise.
    """
    given = _parser().parse_args(arguments)
    try:
        return _COMMANDS[given.command or "list"](_open(given.database), given)
    except ConfigurationError as error:
        return fail(one_line(error), code=2)
    except (StorageError, TokenError, AnswerError) as error:
        return fail(one_line(error), code=1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{_PROGRAM} approvals",
        description="List what runs ask people, and wait with; show one question, or answer it.",
        allow_abbrev=False,
    )
    parser.add_argument("database", metavar="DB", help="the SQLite database that keeps the questions")
    parser.add_argument("--all", action="store_true", help="list what was answered or has expired as well")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")

    def command(name: str, told: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=told, description=told, allow_abbrev=False)
        added.add_argument("question", metavar="ID", help="the question: as the list has it, or its token")
        if name != "show":
            added.add_argument("--by", metavar="NAME", default=None, help="who says so (the user of this process)")
        return added

    command("show", "show all of a question")
    command("approve", "have it done").add_argument("--reason", metavar="TEXT", default="", help="why, for the log")
    refuse = command("refuse", "have it not done")
    refuse.add_argument("reason", metavar="WHY", nargs="*", default=[], help="why not: the model reads it")
    amend = command("amend", "have it done with other arguments")
    amend.add_argument("arguments", metavar="JSON", help='those that change, as {"to": "ann"}')
    answer = command("answer", "tell the model what it wants to know, or give the result of a tool")
    answer.add_argument("text", metavar="TEXT", help='what it is told; a result is JSON, as {"n": 3}')
    return parser


# --- commands ---------------------------------------------------------------------------------------------------------


def _list(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    at = now()
    questions = ledger.questions(open_at=None if given.all else at)
    print_text("\n".join(_table(questions, given, at)))
    return 0


def _show(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    question = _found(ledger, given)
    print_text("\n".join(_whole(question, given.database, now())))
    return 0


def _approve(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    return _answered(ledger, given, Answer(reason=given.reason))


def _refuse(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    return _answered(ledger, given, Answer(approved=False, reason=" ".join(given.reason)))


def _amend(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    try:
        arguments = json.loads(given.arguments, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the arguments are no JSON that can be used: {error}") from error
    return _answered(ledger, given, Answer(arguments=arguments))


def _answer(ledger: SqliteLedger, given: argparse.Namespace) -> int:
    question = _found(ledger, given)
    if not question.wants_text and question.returns is None:
        raise ConfigurationError(f"this is to be approved or not: {question.text} Use approve, refuse or amend.")
    return _answered(ledger, given, Answer(text=given.text))


_COMMANDS: dict[str, Callable[[SqliteLedger, argparse.Namespace], int]] = {
    "list": _list,
    "show": _show,
    "approve": _approve,
    "refuse": _refuse,
    "amend": _amend,
    "answer": _answer,
}


def _answered(ledger: SqliteLedger, given: argparse.Namespace, answer: Answer) -> int:
    question = _found(ledger, given)
    said = Answer(
        approved=answer.approved,
        reason=answer.reason,
        arguments=answer.arguments,
        text=answer.text,
        by=_who() if given.by is None else given.by,
    )
    if question.is_open(now()):
        said = checked_answer(question, said)
    ledger.consume(question.token_id, said, now())
    resume = shlex.join([_PROGRAM, "resume", question.run_id, "SCRIPT", "--database", "JOURNAL"])
    print_text(f"answered. Run the script again as before; one that names no run of its own also by: {resume}")
    return 0


# --- questions --------------------------------------------------------------------------------------------------------


def _open(path: str) -> SqliteLedger:
    if not Path(path).is_file():
        raise ConfigurationError(
            f"there is no database `{path}`. Questions are kept in one by `HumanInteraction(…, consumption={path!r})`."
        )
    if not SqliteLedger.is_in(path):
        raise ConfigurationError(
            f"the database `{path}` keeps no questions. They are in the one that the program names: "
            f"`HumanInteraction(…, consumption=…)`."
        )
    return SqliteLedger(path)


def _found(ledger: SqliteLedger, given: argparse.Namespace) -> PendingQuestion:
    claims = unverified_claims(given.question)  # who can read the database needs no signature
    wanted = given.question if claims is None else claims.token_id
    fitting = [one for one in ledger.questions() if wanted and one.token_id.startswith(wanted)]
    exact = [one for one in fitting if one.token_id == wanted]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    told = "are several questions" if fitting else "is no question"
    raise ConfigurationError(
        f"there {told} `{printable_text(given.question[:40])}` in `{given.database}`. `{_PROGRAM} approvals "
        f"{given.database}` lists them."
    )


def _table(questions: Sequence[PendingQuestion], given: argparse.Namespace, at: float) -> Iterator[str]:
    if not questions:
        yield f"Nothing {'was asked' if given.all else 'waits for an answer'} in {given.database}."
        return
    known = [one.token_id for one in questions]
    rows = [["ID", "STATE", "WHO", "WHAT", "SINCE", "EXPIRES", "RUN"]]
    for one in questions:
        expires = _span(one.expires - at) if one.expires > at else "-"
        facts = [_short_id(one.token_id, known), _state(one, at), one.scope, _short(_what(one))]
        rows.append([*map(printable_text, facts), _span(at - one.asked), expires, printable_text(one.run_id)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _whole(question: PendingQuestion, database: str, at: float) -> Iterator[str]:
    width = shutil.get_terminal_size().columns
    yield printable_text(f"{question.token_id}  {_state(question, at)}")
    yield apart(question.text, width)
    if not question.wants_text:
        yield apart(f"{question.name} ({question.kind}, {question.risk})", width, first="  ")
        for name, value in question.arguments.items():
            yield apart(told_argument(name, value), width, first="    ")
    yield printable_text(f"  asked of {question.scope}, {_moment(question.asked)}; expires {_moment(question.expires)}")
    yield printable_text(f"  run {question.run_id}, step {question.step_id}")
    if question.answer is not None:
        said = f"{_said(question.answer)}, by {question.answer.by or 'somebody'}, {_moment(question.answered)}"
        yield apart(said, width, first="  ")
    elif question.is_open(at):
        if question.returns is not None:
            yield apart(f"its result is JSON as {printable(question.returns)}", width, first="  ")
        begin, id = shlex.join([_PROGRAM, "approvals", database]), question.token_id[:8]
        ways = [f"approve {id}", f"refuse {id} WHY", f"amend {id} JSON"]
        if question.wants_text or question.returns is not None:
            ways = [f"answer {id} TEXT"] if question.wants_text else [f"answer {id} JSON", f"refuse {id} WHY"]
        yield from (
            f"  {'answer it:' if not number else '       or:'} {begin} {way}" for number, way in enumerate(ways)
        )


def _what(question: PendingQuestion) -> str:
    if question.wants_text:
        return f"asks {printable(question.text)}"
    return f"{question.name}({', '.join(f'{name}={printable(value)}' for name, value in question.arguments.items())})"


def _said(answer: Answer) -> str:
    if not answer.approved:
        return f"refused{f': {answer.reason}' if answer.reason else ''}"
    if answer.text:
        return f"answered: {answer.text[:_SHOWN]}{'…' if len(answer.text) > _SHOWN else ''}"
    amended = "" if answer.arguments is None else f" with {printable(answer.arguments)}"
    return f"approved{amended}{f': {answer.reason}' if answer.reason else ''}"


def _state(question: PendingQuestion, at: float) -> str:
    expired = question.state.value == "waiting" and at >= question.expires
    return "expired" if expired else question.state.value


def _short_id(token_id: str, known: Sequence[str]) -> str:
    """As much of an identifier as tells it apart, at least eight characters."""
    for length in range(8, len(token_id)):
        if sum(one.startswith(token_id[:length]) for one in known) == 1:
            return token_id[:length]
    return token_id


def _short(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


def _who() -> str:
    try:
        user: Any = getpass.getuser()
    except (OSError, KeyError, ImportError):  # in a container, a user may have no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
