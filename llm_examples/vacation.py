"""A vacation: the model calls the tools that the skill sees where it is written.

python -m effectful_agents.harness llm_examples/vacation.py
"""

from typing import Literal

from effectful_agents import NotHandled, Skill, Tool

type City = Literal["Chicago", "New York", "Barcelona"]


@Tool.define
def cities() -> list[City]:
    """The cities that can be visited."""
    return ["Chicago", "New York", "Barcelona"]


@Tool.define
def weather(city: City) -> str:
    """The weather in a city."""
    return {"Chicago": "cold", "New York": "wet", "Barcelona": "sunny"}[city]


@Skill.define
def vacation() -> City:
    """Use the tools to find a city that has good weather."""
    raise NotHandled


if __name__ == "__main__":
    print(vacation())
