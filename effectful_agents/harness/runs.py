"""The commands about runs: to list, show, settle, resume, fork, export and delete them."""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from effectful_agents.errors import ConfigurationError, JournalError
from effectful_agents.handlers.durability import SqliteCheckpointer, settle
from effectful_agents.handlers.durability.runs import find_run, journal_lines
from effectful_agents.handlers.policy import SqliteLedger
from effectful_agents.harness import launcher
from effectful_agents.harness.launcher import fail, one_line
from effectful_agents.harness.options import parse_resumption
from effectful_agents.harness.output import print_text
from effectful_agents.harness.run_report import list_of_runs, steps_of_run
from effectful_agents.operations.world import now

__all__ = ["main"]

_PROGRAM = "effectful-agents"


def main(arguments: Sequence[str], *, alone: bool = False) -> int:
    """Run a command about runs.

    Args:
        arguments: The command and its words; without a command the runs are listed. `--database` may stand before it.
        alone: Whether the command was written without `runs` before it, for its help.

    Returns:
        The exit code: 1 where it failed, 2 where something has to be written otherwise.
    """
    first = arguments[0] if arguments else ""
    place = 2 if first == "--database" else int(first.startswith("--database="))
    word = arguments[place] if len(arguments) > place else ""
    command = word if word in _COMMANDS else ""
    rest = [*arguments[:place], *arguments[place + bool(command) :]]
    program = " ".join(filter(None, [_PROGRAM, "" if alone else "runs", command]))
    try:
        return _COMMANDS[command](rest, program)
    except ConfigurationError as error:
        return fail(one_line(error), code=2)
    except JournalError as error:
        return fail(one_line(error), code=1)


def _list(arguments: Sequence[str], program: str) -> int:
    parser = _parser(program, "List the runs of a database, the latest first; or show or settle one.")
    parser.usage = "%(prog)s [show ID | settle ID STEP ANSWER] --database PATH"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    given = parser.parse_args(arguments)
    print_text(list_of_runs(_store(given).runs(), given.database, now()))
    return 0


def _show(arguments: Sequence[str], program: str) -> int:
    parser = _parser(program, "Show the steps of a run: what was asked, and what came of it.", run=True)
    given = parser.parse_args(arguments)
    store = _store(given)
    state = find_run(store, given.run)
    info = next(info for info in store.runs() if info.run_id == given.run)
    print_text(steps_of_run(info, state, given.database))
    return 0


def _settle(arguments: Sequence[str], program: str) -> int:
    parser = _parser(program, "Say what came of a step of which nobody knows, so that its run can go on.", run=True)
    parser.add_argument("step", metavar="STEP", help="the step, as `runs show` has it")
    answer = parser.add_mutually_exclusive_group(required=True)
    answer.add_argument(
        "--done", metavar="VALUE", type=_value, default=_NO_VALUE, help="it happened: its result, as JSON, or else text"
    )
    answer.add_argument("--redo", action="store_true", help="it did not happen: make it when the run is resumed")
    answer.add_argument("--fail", metavar="TEXT", nargs="?", const="it failed", help="it failed, for this reason")
    given = parser.parse_args(arguments)
    settled: dict[str, Any] = {} if given.done is _NO_VALUE else {"done": given.done}
    settle(_store(given), given.run, given.step, redo=given.redo, fail=given.fail, **settled)
    print_text(f"settled; go on with: {_command('resume', given.run, 'SCRIPT', '--database', given.database)}")
    return 0


def _resume(arguments: Sequence[str], program: str) -> int:
    launch = parse_resumption(arguments, program)
    # A name that is written wrongly is not to begin another run.
    find_run(_open(launch.options["journal"]), launch.options["run_id"])
    return launcher.run(launch)


def _fork(arguments: Sequence[str], program: str) -> int:
    parser = _parser(
        program, "Make a run of the beginning of another one; what they share is not done or paid again.", run=True
    )
    parser.add_argument("--at", metavar="STEP", help="the first step that is made anew; without it, all is shared")
    parser.add_argument(
        "--as", dest="new", metavar="NEW", help="the name of the new run (ID-2, or the next that is free)"
    )
    given = parser.parse_args(arguments)
    store = _store(given)
    new = given.new or _free(given.run, {info.run_id for info in store.runs()})
    find_run(store, given.run)
    store.fork(given.run, new, given.at)
    print_text(f"made the run {new}; go on with: {_command('resume', new, 'SCRIPT', '--database', given.database)}")
    return 0


def _export(arguments: Sequence[str], program: str) -> int:
    given = _parser(program, "Print the journal of a run, each record as a line of JSON.", run=True).parse_args(
        arguments
    )
    for line in journal_lines(find_run(_store(given), given.run)):
        print_text(line)
    return 0


def _delete(arguments: Sequence[str], program: str) -> int:
    given = _parser(program, "Forget a run and its journal.", run=True).parse_args(arguments)
    store = _store(given)
    if given.run not in {info.run_id for info in store.runs()}:  # the journal of one that is damaged cannot be loaded
        find_run(store, given.run)
    store.delete(given.run)
    SqliteLedger(given.database).forget(given.run)  # where the questions are kept in the same file
    print_text(f"deleted the run {given.run}")
    return 0


_COMMANDS: dict[str, Callable[[Sequence[str], str], int]] = {
    "": _list,
    "show": _show,
    "settle": _settle,
    "resume": _resume,
    "fork": _fork,
    "export": _export,
    "delete": _delete,
}

_NO_VALUE = object()

_EPILOG = f"""\
commands:
  show ID                 show the steps of a run: what was asked, and what came of it
  settle ID STEP ANSWER   say what came of a step of which nobody knows, so that its run can go on

ANSWER is one of these:
  --done VALUE            it happened; VALUE is its result, as JSON of what the tool is declared to return
  --redo                  it did not happen: make it when the run is resumed
  --fail [TEXT]           it failed, for this reason, and is not made again

Commands of their own resume, fork, export and delete a run: `{_PROGRAM} resume --help`, and so on.
"""


def _parser(program: str, description: str, *, run: bool = False) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description, allow_abbrev=False)
    if run:
        parser.add_argument("run", metavar="ID", help="the run")
    parser.add_argument("--database", metavar="PATH", required=True, help="the SQLite database that keeps the runs")
    return parser


def _store(given: argparse.Namespace) -> SqliteCheckpointer:
    return _open(given.database)


def _open(path: str) -> SqliteCheckpointer:
    if not Path(path).is_file():
        raise ConfigurationError(
            f"there is no database `{path}`. Runs are kept in one with `{_PROGRAM} run SCRIPT --journal {path}`, or "
            "`harness(journal=…)`."
        )
    return SqliteCheckpointer(path)


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _free(run_id: str, taken: set[str]) -> str:
    return next(name for number in itertools.count(2) if (name := f"{run_id}-{number}") not in taken)


def _command(*words: str) -> str:
    return shlex.join([_PROGRAM, *words])
