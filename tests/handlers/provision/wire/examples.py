"""The six examples, and what a model answers in them."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any, NamedTuple

from effectful_agents.testing import batch, calls, says

FOLDER = Path(__file__).parents[4] / "llm_examples"
READ = "All about lions."


class Example(NamedTuple):
    """What is said in one run of an example."""

    replies: list[Any]
    words: tuple[str, ...] = ()


def _value(value: Any) -> Any:
    return says(json.dumps({"value": value}))


_SUMMARY = {
    "title": "On lions",
    "topics": ["lions", "hunting"],
    "summary": "Lions hunt together, and they sleep for most of the day.",
}

EXAMPLES = {
    "joke": Example([says(json.dumps({"whos_there": "Liz", "punchline": "Liz hard to say."}))]),
    "limerick": Example([says("There was\nan old man")]),
    "primes": Example([_value(63), _value(70), _value(61)]),
    "vacation": Example(
        [
            calls("cities"),
            batch(*[calls("weather", city=city, id=f"w{city[0]}") for city in ("Chicago", "New York", "Barcelona")]),
            _value("Barcelona"),
        ]
    ),
    "extract": Example([says(json.dumps(_SUMMARY))], ("text.md",)),
    "chatbot": Example([says("Fine, thank you."), says("In France.")]),
}


def run(name: str, folder: Path, examples: Path = FOLDER) -> str:
    """Run an example as its user does; it gives what was printed.

    Args:
        name: Its name.
        folder: Where there is room for the text that it reads.
        examples: Where it stands.
    """
    words = [str(folder / word) for word in EXAMPLES[name].words]
    for word in words:
        Path(word).write_text(READ, encoding="utf-8")
    before, sys.argv = sys.argv, [name, *words]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(examples / f"{name}.py"), run_name="__main__")
    finally:
        sys.argv = before
    return printed.getvalue()
