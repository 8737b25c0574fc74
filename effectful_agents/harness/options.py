"""The command lines: which words are for the stack, and which for the script or the skill."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

__all__ = [
    "Launch",
    "Look",
    "Question",
    "add_stack_options",
    "options_of",
    "parse",
    "parse_look",
    "parse_question",
    "parse_resumption",
    "stack_parser",
]

_EPILOG = """\
The first word that is no option is the script. Options of the stack may stand before and after it; every other word, in
its order, is for the script, and so is everything behind `--`, even where it looks like an option of the stack:

    %(prog)s script.py notes.txt --model gpt-5-mini --verbose
    %(prog)s --model gpt-5-mini script.py -- --model of-the-script --help

Without --model the model is the one that the environment variable EFFECTFUL_AGENTS_MODEL names, or else local/smollm2,
a small one that runs inside this process.
"""


_RESUME_EPILOG = """\
The first word that is no option is the run, as `effectful-agents runs` lists it, and the second the script. Give the
options, and the words for the script, that the run was begun with: other ones may ask for something else than what is
recorded. Every other word is for the script, and so is everything behind `--`. A script that names its run itself,
`harness(journal=…, run_id=…)`, is resumed by running it again, without this command.

    %(prog)s monday script.py notes.txt --database runs.db --model gpt-5-mini
    %(prog)s monday script.py --database runs.db -- --model of-the-script --help
"""


@dataclasses.dataclass(frozen=True)
class Launch:
    """What a command line asks for.

    Attributes:
        script: The script to run.
        arguments: The words that the script gets.
        options: The options that were given for `harness`.
        log: From which level on steps are logged; None: not at all.
    """

    script: str
    arguments: list[str]
    options: dict[str, Any]
    log: str | None = None


_PROMPT_EPILOG = """\
SKILL is a skill of the script, a method as `Class.method` or, where the class cannot be made without arguments, as
`instance.method`. NAME=JSON is an argument of the skill; what is no JSON is text. An argument that is left out is shown
as <NAME>. What stands under `if __name__ == "__main__":` in the script is not run, and no model is asked.

    %(prog)s llm_examples/limerick.py:limerick theme=beards
    %(prog)s script.py:Packer.pack limit=3 --model gpt-5-mini --json
"""


@dataclasses.dataclass(frozen=True)
class Question:
    """What the command `prompt` is asked.

    Attributes:
        script: The script.
        skill: The name of a skill in it; empty where none was given.
        arguments: The arguments of the skill, as they were written.
        options: The options that were given for `harness`.
        as_json: Whether to show the request as JSON.
    """

    script: str
    skill: str
    arguments: dict[str, str]
    options: dict[str, Any]
    as_json: bool


_MANIFEST_EPILOG = """\
Without SKILL the tools of all skills of the script are listed. A handler, or a stack, that the script makes is shown
with `--with`: it is put inside of the standard stack, and a stack that `harness(…)` made takes its place. What stands
under `if __name__ == "__main__":` in the script is not run, no model is asked, and no run is begun.

    %(prog)s llm_examples/vacation.py --model gpt-5-mini --eval-provider restricted
    %(prog)s script.py:ask --with stack --json
"""


@dataclasses.dataclass(frozen=True)
class Look:
    """What the command `manifest` is to describe.

    Attributes:
        script: The script.
        skill: The name of a skill in it; empty for all of them.
        handlers: Names of handlers in it that are installed besides.
        options: The options that were given for `harness`.
        as_json: Whether to print it as JSON.
    """

    script: str
    skill: str
    handlers: list[str]
    options: dict[str, Any]
    as_json: bool


def parse(arguments: Sequence[str], program: str) -> Launch:
    """Sort the words of a command line.

    Raises:
        SystemExit: The help was asked for, or an option of the stack has no or a wrong value.
    """
    words, behind = _split(list(arguments))
    # Not an option of the parser, which would see it in `-host` too and keep that from the script.
    words = ["--help" if word == "-h" else word for word in words]
    parser = stack_parser(
        program, "Run a Python script in the standard stack of handlers of effectful-agents.", _EPILOG
    )
    parser.add_argument("script", metavar="SCRIPT", help="the script")
    _add_log(parser)
    add_stack_options(parser)
    given, rest = parser.parse_known_args(words)
    values = vars(given)
    log = values.pop("log", None)
    return Launch(values.pop("script"), [*rest, *behind], options_of(values), log)


def parse_resumption(arguments: Sequence[str], program: str) -> Launch:
    """Sort the words of a command line of `resume`: as those of the launcher, with a run before the script.

    Raises:
        SystemExit: The help was asked for, or a word is missing or wrong.
    """
    words, behind = _split(list(arguments))
    words = ["--help" if word == "-h" else word for word in words]
    parser = stack_parser(
        program, "Run a script as the run that it was before: it goes on where it stopped.", _RESUME_EPILOG
    )
    parser.usage = "%(prog)s ID SCRIPT --database PATH [options]"
    parser.add_argument("run", metavar="ID", help="the run")
    parser.add_argument("script", metavar="SCRIPT", help="the script")
    parser.add_argument("--database", metavar="PATH", required=True, help="the SQLite database that keeps the run")
    _add_log(parser)
    add_stack_options(parser, names_run=False)
    given, rest = parser.parse_known_args(words)
    values = vars(given)
    if "journal" in values:
        parser.error("the run is kept in --database, so there is no --journal")
    if "run_id" in values:
        parser.error("the run is the first word, so there is no --run-id")
    run = {"journal": values.pop("database"), "run_id": values.pop("run")}
    log = values.pop("log", None)
    return Launch(values.pop("script"), [*rest, *behind], options_of({**values, **run}), log)


def parse_question(arguments: Sequence[str], program: str) -> Question:
    """Read a command line of `prompt`.

    Raises:
        SystemExit: The help was asked for, or a word is none that could stand here.
    """
    parser = stack_parser(program, "Show what a skill sends to a model, and how many tokens that is.", _PROMPT_EPILOG)
    parser.usage = "%(prog)s SCRIPT:SKILL [NAME=JSON ...] [options]"
    parser.add_argument("target", metavar="SCRIPT:SKILL", help="the script, and a skill in it")
    parser.add_argument("given", metavar="NAME=JSON", type=_pair, nargs="*", help="an argument of the skill")
    parser.add_argument("--json", dest="as_json", action="store_true", default=False, help="print the request as JSON")
    add_stack_options(parser)
    values = vars(parser.parse_intermixed_args(["--help" if word == "-h" else word for word in arguments]))
    script, skill = _target(values.pop("target"))
    pairs, as_json = values.pop("given", ()), values.pop("as_json")
    given = dict(pairs)
    twice = next((name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place])), None)
    if twice is not None:
        parser.error(f"the argument `{twice}` is given twice")
    return Question(script, skill, given, options_of(values), as_json)


def parse_look(arguments: Sequence[str], program: str) -> Look:
    """Read a command line of `manifest`.

    Raises:
        SystemExit: The help was asked for, or a word is none that could stand here.
    """
    parser = stack_parser(
        program, "Say how the stack of a script is put together, and who decides in it.", _MANIFEST_EPILOG
    )
    parser.usage = "%(prog)s SCRIPT[:SKILL] [options]"
    parser.add_argument("target", metavar="SCRIPT[:SKILL]", help="the script, and a skill in it")
    parser.add_argument("--json", dest="as_json", action="store_true", default=False, help="print it as JSON")
    parser.add_argument(
        "--with", dest="handlers", metavar="NAME", action="append", default=[], help="a handler that the script makes"
    )
    add_stack_options(parser)
    values = vars(parser.parse_args(["--help" if word == "-h" else word for word in arguments]))
    script, skill = _target(values.pop("target"))
    handlers, as_json = values.pop("handlers"), values.pop("as_json")
    return Look(script, skill, handlers, options_of(values), as_json)


def _target(word: str) -> tuple[str, str]:
    script, colon, skill = word.rpartition(":")
    # A colon may stand in a path too: `C:\script.py`.
    return (script, skill) if colon and all(map(str.isidentifier, skill.split("."))) else (word.removesuffix(":"), "")


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    """The options of the stack, those of `--set` among the others."""
    settings = given.pop("set", [])
    return {**given, **dict(settings)}


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def stack_parser(program: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """A parser that has nothing but the help so far; what is not given is not among its values."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,  # so that only what was given reaches `harness`, with its own defaults
    )
    parser.add_argument("--help", action="help", help="show this text (-h too)")
    return parser


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log",
        choices=["debug", "info", "warning"],
        help="write a line for each step to standard error: all (debug), what was done (info), what failed (warning)",
    )


def add_stack_options(parser: argparse.ArgumentParser, *, names_run: bool = True) -> None:
    """Add the options of the stack; without `names_run` those that name a run are not shown, and read to be refused."""
    add = parser.add_argument_group("options of the stack").add_argument
    add("--model", help="the model: local/smollm2, local/PATH.gguf, or any name that LiteLLM knows")
    add(
        "--num-retries", type=int, metavar="N", help="attempts for replies that cannot be decoded, and for requests (5)"
    )
    add("--fallback", metavar="MODEL", action="append", help="a model that is asked when the one before it fails")
    add("--requests-per-minute", type=int, metavar="N", help="requests that go out to a model in any 60 seconds")
    add("--tokens-per-minute", type=int, metavar="N", help="the same for tokens, of prompts and replies")
    add("--turns", type=int, metavar="N", help="turns that a call may take (50)")
    add("--system-prompt", choices=["full", "brief"], help="how much the model is told (brief for local models)")
    add("--dump-system-prompt", metavar="FILE", help="write the system message, with its tokens, to this file")
    add("--tool-collection", choices=["none", "explicit", "auto"], help="which tools are offered (explicit)")
    add(
        "--defer-tools",
        type=_deferral,
        metavar="WHEN",
        help="whether many tools are searched and not shown: yes (where it pays), no, or above WHEN tokens (yes)",
    )
    add(
        "--tool-calling",
        choices=["auto", "code", "json"],
        help="how tools are called (auto; json where no code is run)",
    )
    add(
        "--eval-provider",
        choices=["builtin", "restricted", "none"],
        help="what runs code of the model (builtin: as plain Python, which may do anything; none for local models)",
    )
    add("--type-checker", choices=["mypy", "ty", "none"], help="what checks code of the model before it runs (ty)")
    add("--no-check-contracts", dest="check_contracts", action="store_false", help="do not check arguments of skills")
    add("--strict-tools", action="store_true", help="send the tools in strict form, where they have one")
    add("--strict-decoding", action="store_true", help="forgive nothing in what the model writes")
    journal = "make the program a run that can be resumed; an SQLite database keeps it"
    add("--journal", metavar="FILE", help=journal if names_run else argparse.SUPPRESS)
    run_id = "the run: an earlier one goes on where it stopped (a new one)"
    add("--run-id", metavar="NAME", help=run_id if names_run else argparse.SUPPRESS)
    add("--persist-db", metavar="FILE", help="an SQLite database that keeps agents with an __agent_id__")
    add("--render", action="store_true", help="show the conversation as it grows")
    add("--langfuse", action="store_true", help="record calls with Langfuse")
    add = parser.add_argument_group("settings of every request").add_argument
    add("--temperature", type=float, metavar="X", help="0 for the most likely words")
    add("--max-tokens", type=int, metavar="N", help="tokens that a reply may have")
    add("--seed", type=int, metavar="N", help="start of the random numbers, where the model takes one")
    add("--tool-choice", metavar="CHOICE", help="auto, none, or required")
    add("--base-url", metavar="URL", help="where the model's service is")
    add(
        "--set",
        type=_setting,
        action="append",
        metavar="NAME=VALUE",
        help="any other setting; VALUE is JSON, or else text",
    )


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=VALUE")
    return name, value


def _setting(word: str) -> tuple[str, Any]:
    name, value = _pair(word)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _deferral(word: str) -> bool | int:
    if word in ("yes", "no"):
        return word == "yes"
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is not yes, no, or a number of tokens")
    return int(word)
