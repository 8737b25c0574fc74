"""Planets: a question about a table, which the model answers by running Python in a session.

python -m effectful_agents.harness llm_examples/data/planets.py "Which one is the densest?" --model gpt-5-mini

A local model is offered a session only where that is said: `--eval-provider builtin`. The figures are those of NASA's
Planetary Fact Sheet.
"""

import csv
import dataclasses
import sys
from pathlib import Path
from typing import Literal

from effectful_agents import NotHandled, Skill

type Name = Literal["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]


@dataclasses.dataclass
class Planet:
    """A row of the table."""

    name: str
    diameter_km: float
    mass_1e24_kg: float
    day_hours: float
    year_days: float
    distance_million_km: float


def table() -> list[Planet]:
    """The table beside this file."""
    with Path(__file__).with_name("planets.csv").open(encoding="utf-8") as file:
        return [Planet(name, *map(float, figures)) for name, *figures in list(csv.reader(file))[1:]]


@Skill.define
def planet(question: str, planets: list[Planet]) -> Name:
    """{question} Compute it from `planets`, a list of {planets[0]} and others."""
    raise NotHandled


if __name__ == "__main__":
    print(planet(sys.argv[1] if len(sys.argv) > 1 else "Which planet has the longest day?", table()))
