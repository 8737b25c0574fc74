"""A knock-knock joke: the return type is a dataclass, and the value is an instance of it.

python -m effectful_agents.harness llm_examples/joke.py [THEME]
"""

import dataclasses
import sys
from typing import Annotated

from annotated_types import Len

from effectful_agents import NotHandled, Skill

type Line = Annotated[str, Len(1, 80)]


@dataclasses.dataclass
class KnockKnockJoke:
    """The two lines of a knock-knock joke that change from joke to joke."""

    whos_there: Line
    punchline: Line


@Skill.define
def write_joke(theme: str) -> KnockKnockJoke:
    """Make up a knock-knock joke about {theme}."""
    raise NotHandled


def tell(joke: KnockKnockJoke) -> None:
    """Print a joke with the lines that every such joke has."""
    print("Knock, knock.\nWho's there?")
    print(f"{joke.whos_there}.\n{joke.whos_there} who?\n{joke.punchline}")


if __name__ == "__main__":
    tell(write_joke(sys.argv[1] if len(sys.argv) > 1 else "lizards"))
