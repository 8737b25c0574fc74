"""The command line of the launcher: which words are for the stack, and which for the script."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["Launch", "parse"]

_EPILOG = """\
The first word that is no option is the script. Options of the stack may stand before and after it; every other word, in
its order, is for the script, and so is everything behind `--`, even where it looks like an option of the stack:

    %(prog)s script.py notes.txt --model gpt-5-mini --verbose
    %(prog)s --model gpt-5-mini script.py -- --model of-the-script --help

Without --model the model is the one that the environment variable EFFECTFUL_AGENTS_MODEL names, or else local/smollm2,
a small one that runs inside this process.
"""


@dataclasses.dataclass(frozen=True)
class Launch:
    """What a command line asks for.

    Attributes:
        script: The script to run.
        arguments: The words that the script gets.
        options: The options that were given for `harness`.
    """

    script: str
    arguments: list[str]
    options: dict[str, Any]


def parse(arguments: Sequence[str], program: str) -> Launch:
    """Sort the words of a command line.

    Raises:
        SystemExit: The help was asked for, or an option of the stack has no or a wrong value.
    """
    words, behind = _split(list(arguments))
    # Not an option of the parser, which would see it in `-host` too and keep that from the script.
    words = ["--help" if word == "-h" else word for word in words]
    parser = _parser(program)
    given, rest = parser.parse_known_args(words)
    options = {name: value for name, value in vars(given).items() if name not in ("script", "set")}
    for name, value in getattr(given, "set", []):
        options[name] = value
    return Launch(given.script, [*rest, *behind], options)


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Run a Python script in the standard stack of handlers of effectful-agents.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,  # so that only what was given reaches `harness`, with its own defaults
    )
    parser.add_argument("script", metavar="SCRIPT", help="the script")
    parser.add_argument("--help", action="help", help="show this text (-h too)")
    add = parser.add_argument_group("options of the stack").add_argument
    add("--model", help="the model: local/smollm2, local/PATH.gguf, or any name that LiteLLM knows")
    add(
        "--num-retries", type=int, metavar="N", help="attempts for replies that cannot be decoded, and for requests (5)"
    )
    add("--turns", type=int, metavar="N", help="turns that a call may take (50)")
    add("--system-prompt", choices=["full", "brief"], help="how much the model is told (brief for local models)")
    add("--dump-system-prompt", metavar="FILE", help="write the system message to this Markdown file")
    add("--tool-collection", choices=["none", "explicit", "auto"], help="which tools are offered (explicit)")
    add("--tool-calling", choices=["auto", "code", "json"], help="how tools are called (json)")
    add("--eval-provider", choices=["builtin", "restricted", "none"], help="what runs code of the model (none)")
    add("--type-checker", choices=["mypy", "ty", "none"], help="what checks code of the model (none)")
    add("--no-check-contracts", dest="check_contracts", action="store_false", help="do not check arguments of skills")
    add("--persist-db", metavar="FILE", help="an SQLite database that keeps agents")
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
    return parser


def _setting(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{word!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
