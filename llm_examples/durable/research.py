"""Research that survives `kill -9`: ten steps, none of which is paid or done twice.

python -m effectful_agents.harness llm_examples/durable/research.py --journal runs.db --run-id monday [REPORT]

End the process at any moment, in any way, and start it again by the same command: it goes on where it stopped. A run
with another name begins anew; `effectful-agents runs --database runs.db` lists them.
"""

import dataclasses
import datetime
import sys
from pathlib import Path
from typing import Annotated

from annotated_types import Len

from effectful_agents import NotHandled, Skill, Tool, record

LIBRARY = {
    "water": "Water covers 71 percent of the Earth. Only 3 percent of it is fresh, and most of that is ice.",
    "wind": "Wind is air that moves from high pressure to low. Turbines turn it into a tenth of Europe's power.",
    "sun": "In an hour the Sun sends the Earth more energy than all people use in a year.",
}

REPORT = Path(sys.argv[1] if len(sys.argv) > 1 else "report.md")


@Tool.define(idempotent=True)
def read(title: str) -> str:
    """A text of the library. To read it once more does no harm."""
    return LIBRARY[title]


@dataclasses.dataclass
class Summary:
    """What a text says, in one short sentence."""

    sentence: Annotated[str, Len(1, 140)]


@Skill.define(tools=False)
def summarize(text: str) -> Summary:
    """Say in one short sentence what is most important in this text: {text}"""
    raise NotHandled


@Tool.define
def publish(line: str) -> str:
    """Add a line to the report. Done twice, it would stand there twice: so a journal does not repeat it by itself."""
    with REPORT.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return line


if __name__ == "__main__":
    today = record(lambda: datetime.date.today().isoformat(), str)  # the same when the run goes on tomorrow
    for title in LIBRARY:
        print(publish(f"- {today}, {title}: {summarize(read(title)).sentence}"), flush=True)
