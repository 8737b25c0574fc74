"""What a skill is offered, an agent with all kinds of methods, many tools; not in the scope of a test's module."""

from __future__ import annotations

from typing import Any

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel


def names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def offered(skill: Any, *arguments: Any) -> list[str]:
    """The tools of the first request of a call."""
    with handler(harness(system_prompt="brief")), handler(ScriptedModel("ok")) as model:
        skill(*arguments)
    return names(model.requests[0])


def fleet(count: int) -> list[Tool]:
    """Tools that differ in nothing but their names."""

    def make(name: str) -> Tool:
        @Tool.define(name=name)
        def harbour(city: str, berths: int = 3) -> str:
            """The harbours of a city, and what a berth costs in each."""
            return f"{name} of {city}"

        return harbour

    return [make(f"harbour_{number}") for number in range(count)]


class Bot(Agent):
    """A bot."""

    @Skill.define
    def ask(self) -> str:
        """Ask."""
        raise NotHandled

    @Skill.define
    def other(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    def count(self, number: int) -> int:
        """Count."""
        return number + 1

    @Tool.define
    def _secret(self) -> str:
        """Kept back."""
        return "secret"
