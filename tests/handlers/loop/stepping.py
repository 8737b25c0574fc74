"""What tests of calls that are followed share: tools, skills, and how a call is followed."""

from __future__ import annotations

from typing import Any

import anyio

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, handler, harness, steps
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel

done: list[str] = []


@Tool.define
def add(a: int, b: int) -> int:
    """Add two numbers."""
    done.append(f"{a}+{b}")
    return a + b


@Tool.define(idempotent=True)
def look() -> str:
    """Look around."""
    return f"it is {now()}"


@Tool.define
async def nap(name: str) -> str:
    """Sleep a little."""
    await anyio.sleep(0)
    done.append(name)
    return name


@Tool.define(concurrent=True)
def beside(name: str) -> str:
    """Work beside others."""
    return f"{name}: {inner(name)}"


@Tool.define
async def ask_inside(name: str) -> str:
    """Ask from inside."""
    async with anyio.create_task_group():
        return await acall(inner, name)


@Tool.define
def broken() -> str:
    """Break."""
    raise LookupError("gone")


@Skill.define
def inner(question: str) -> str:
    """{question}"""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    async def ask_async(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def told(step: Any) -> str:
    return f"{step.step_id} {step.phase}"


def followed(script: list[Any], skill: Any = None) -> Any:
    with handler(harness()), handler(ScriptedModel(*script)):
        return steps(skill or Bot().ask, "?")


@Tool.define
def delete(path: str) -> str:
    """Delete a file."""
    done.append(path)
    return "deleted"
