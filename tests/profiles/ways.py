"""The ways to make a call that a profile promises, each with what it gives besides the value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from effectful_agents import acall, run, steps, stream
from effectful_agents.messages import Finish
from effectful_agents.operations.steps import FinalStep, ModelStep, Phase, ToolStep


def by_run(skill: Any, *arguments: Any) -> Any:
    result = run(skill, *arguments)
    assert [message["role"] for message in result.messages][-1] == "assistant"
    return result.value


def by_awaiting(skill: Any, *arguments: Any) -> Any:
    return asyncio.run(acall(skill, *arguments))


def by_steps(skill: Any, *arguments: Any) -> Any:
    following = steps(skill, *arguments)
    seen = list(following)
    # Each step is told before it happens and after, and the last is the end, with the value.
    for kind in (ModelStep, ToolStep):
        phases = [event.phase for event in seen if type(event) is kind]
        assert phases.count(Phase.ATTEMPTED) == phases.count(Phase.COMPLETED)
    assert isinstance(seen[-1], FinalStep)
    assert seen[-1].value == following.value
    return following.value


def by_stream(skill: Any, *arguments: Any) -> Any:
    pieces = stream(skill, *arguments)
    seen = list(pieces)
    assert isinstance(seen[-1], Finish)
    return pieces.value


WAYS: dict[str, Callable[..., Any]] = {
    "call": lambda skill, *arguments: skill(*arguments),
    "run": by_run,
    "acall": by_awaiting,
    "steps": by_steps,
    "stream": by_stream,
}
