"""What a skill is offered, and an agent with all kinds of methods; neither is in the scope of a test's module."""

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
