"""Step by step: before a tool is called that does something, the user is asked.

python -m effectful_agents.harness llm_examples/confirm.py
"""

from typing import Literal, TypeGuard

from effectful_agents import NotHandled, Risk, Skill, Tool, steps
from effectful_agents.operations.steps import Phase, StepEvent, ToolStep

type City = Literal["Chicago", "New York", "Barcelona"]


@Tool.define(risk=Risk.HARD_WRITE)
def book(city: City) -> str:
    """Book a flight to a city."""
    print(f"A flight to {city} is booked.")
    return "booked"


@Skill.define
def travel(wish: str) -> City:
    """Use the tools to book a flight to the city of this wish: {wish}"""
    raise NotHandled


def matters(step: StepEvent) -> TypeGuard[ToolStep]:
    """Whether a step is a tool call that is about to change something."""
    return isinstance(step, ToolStep) and step.phase is Phase.ATTEMPTED and step.tool_call.tool.risk > Risk.READ


def confirmed(step: ToolStep) -> bool:
    """Ask the user about a tool call."""
    call = step.tool_call
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.bound_args.arguments.items())
    try:
        return input(f"{call.name}({arguments})? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


def main() -> None:
    """Follow the call; leaving the loop ends it, before the tool is called."""
    run = steps(travel, "I want to see the sea in Spain.")
    for step in run:
        if matters(step) and not confirmed(step):
            print("Nothing is booked.")
            return
    print(f"Have a good time in {run.value}!")


if __name__ == "__main__":
    main()
