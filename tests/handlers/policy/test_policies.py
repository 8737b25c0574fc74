"""`Policy`: what a function that decides may return."""

from __future__ import annotations

import pytest

from effectful_agents import Tool, handler
from effectful_agents.errors import OptionError, StepDenied
from effectful_agents.handlers.policy import Policy

done: list[str] = []


@Tool.define
def send(to: str) -> str:
    """Send a mail."""
    done.append(to)
    return "sent"


@pytest.mark.parametrize("said", [True, False, "yes", 7, []])
def test_what_is_no_decision_denies(said):
    done.clear()
    with handler(Policy(lambda effect: said)), pytest.raises(StepDenied, match="the log says how"):
        send("eve")
    assert done == []


def test_a_function_that_nobody_would_await_is_refused():
    async def judge(effect: object) -> None: ...

    with pytest.raises(OptionError, match="`judge`"):
        Policy(judge)
