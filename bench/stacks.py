"""The stacks that are measured, and a skill with as many tools as wanted."""

from __future__ import annotations

import dataclasses
from typing import Any

from effectful_agents import NotHandled, Skill, Tool, harness
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.runtime import Layers


@dataclasses.dataclass
class Report:
    """A typed answer."""

    city: str
    degrees: float
    windy: bool = False


def loop_history_retry(*, turns: int = 50) -> Any:
    """What a call needs: the loop, its tools, the history, and asking again."""
    return Layers(AgentLoop(turns=turns), LexicalToolExtractor(), HistoryBuilder(), TenacityRetryer())


def whole(*, turns: int = 50) -> Any:
    """The standard stack."""
    return harness(model="scripted", turns=turns)


STACKS = {"loop, history, retry": loop_history_retry, "whole stack": whole}


def skill_with_tools(count: int) -> Any:
    """A skill that sees so many tools, the first of which is called `tool_0`."""
    names: dict[str, Any] = {"Report": Report, "Skill": Skill, "Tool": Tool, "NotHandled": NotHandled}
    names["__name__"] = f"bench_tools_{count}"
    exec("\n".join([*map(_tool, range(count)), _SKILL]), names)
    return names["weather"]


def _tool(number: int) -> str:
    return f"""
@Tool.define
def tool_{number}(city: str, days: int = {number}) -> str:
    '''Forecast number {number}.'''
    return city
"""


_SKILL = """
@Skill.define
def weather(city: str) -> Report:
    '''The weather in {city}.'''
    raise NotHandled
"""
