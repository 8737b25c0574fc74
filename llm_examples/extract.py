"""A summary of a text file as a typed value: the model's answer is constrained to the form of a dataclass.

python -m effectful_agents.harness llm_examples/extract.py README.md
"""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Annotated

from annotated_types import Len
from rich.console import Console
from rich.table import Table

from effectful_agents import NotHandled, Skill

# A small model takes a minute for longer texts, and does worse.
READ_AT_MOST = 1500

type Topic = Annotated[str, Len(2, 24)]


@dataclasses.dataclass
class Summary:
    """What a text is about."""

    title: Annotated[str, Len(2, 60)]
    topics: Annotated[list[Topic], Len(1, 3)]
    summary: Annotated[str, Len(40, 140)]


@Skill.define
def summarize(text: str) -> Summary:
    """{text}

    That was a text. Give its title, up to three topics of it, and a summary in one sentence.
    """
    raise NotHandled


def plain(markdown: str) -> str:
    """The text without Markdown links and images: of a link its words stay."""
    without_images = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", markdown)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", without_images)


def show(summary: Summary) -> None:
    """Print a summary as a table."""
    table = Table(show_header=False)
    table.add_row("title", summary.title)
    table.add_row("topics", "\n".join(summary.topics))
    table.add_row("summary", summary.summary)
    Console(markup=False, emoji=False).print(table)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: extract.py FILE")
    try:
        text = plain(Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")).strip()
    except OSError as error:
        sys.exit(f"cannot read {sys.argv[1]}: {error.strerror}")
    if not text:
        sys.exit(f"there is no text in {sys.argv[1]}")
    if len(text) > READ_AT_MOST:
        print(f"Reading the first {READ_AT_MOST:,} of {len(text):,} characters, without links and images.")
    show(summarize(text[:READ_AT_MOST]))
