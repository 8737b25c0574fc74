"""The command `economy`: what the prompts of a run consisted of, what broke their prefix, and what it cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from effectful_agents.errors import ConfigurationError, JournalError
from effectful_agents.handlers.durability import SqliteCheckpointer
from effectful_agents.handlers.durability.runs import find_run
from effectful_agents.handlers.observability import ContextEconomy, economy
from effectful_agents.harness.launcher import fail, one_line
from effectful_agents.harness.output import print_text

__all__ = ["main"]

_PROGRAM = "effectful-agents"


def main(arguments: Sequence[str]) -> int:
    """Show the economy of a run: as tables on a terminal, and otherwise as text.

    Args:
        arguments: The database, the run and options.

    Returns:
        The exit code: 1 where the journal cannot be read, 2 where something has to be written otherwise.
    """
    given = _parser().parse_args(arguments)
    try:
        found = _read(given.database, given.run)
        if given.svg is not None:
            _draw(found, given.svg)
    except ConfigurationError as error:
        return fail(one_line(error), code=2)
    except JournalError as error:
        return fail(one_line(error), code=1)
    if given.as_json:
        print_text(found.to_json(indent=2))
    elif given.svg is None:
        _show(found)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{_PROGRAM} economy",
        description="Show what the prompts of a run consisted of, turn by turn, what broke their prefix, and what it "
        "cost.",
        allow_abbrev=False,
    )
    parser.add_argument("database", metavar="DB", help="the SQLite database that keeps the run")
    parser.add_argument("run", metavar="RUN", help="the run, as `runs` lists it")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON and nothing else")
    parser.add_argument(
        "--svg", metavar="FILE", help="draw it into this file, and print nothing unless --json is given"
    )
    return parser


def _read(database: str, run_id: str) -> ContextEconomy:
    if not Path(database).is_file():
        raise ConfigurationError(
            f"there is no database `{database}`. Runs are kept in one with `{_PROGRAM} run SCRIPT --journal "
            f"{database}`, or `harness(journal=…)`."
        )
    state = find_run(SqliteCheckpointer(database), run_id)
    found = economy(state)
    if not found.turns:
        raise JournalError(f"the run `{run_id}` has asked no model, so there is nothing to tell of its prompts.")
    return found


def _draw(found: ContextEconomy, file: str) -> None:
    try:
        Path(file).write_text(found.to_svg(), encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"the picture cannot be written to {file!r} (`--svg`): {why}.") from error


def _show(found: ContextEconomy) -> None:
    if sys.stdout is None or not sys.stdout.isatty():
        print_text(found.text())
        return
    from rich.console import Console  # noqa: PLC0415 - a terminal is there, and else it need not be loaded

    Console().print(found.table())
