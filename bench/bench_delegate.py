"""What a delegate adds to a call of its skill: in the time of a run, under a policy, and in bytes of each request."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.stacks import whole
from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.policy import RiskPolicy
from effectful_agents.operations.effects import risk_of
from effectful_agents.testing import ScriptedModel, calls
from effectful_agents.types import Risk

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP = 500, 50


def look_up(number: int) -> Any:
    def look(self: Any, word: str, language: str = "en") -> str:
        return f"{word} is a word"

    look.__doc__ = f"Look a word up in dictionary {number}, which has many words of a certain kind."
    return Tool.define(look, name=f"look_up_{number}")


class Researcher(Agent):
    """Finds out facts."""

    @Skill.define
    def research(self, question: str) -> str:
        """Find out: {question}"""
        raise NotHandled


for _number in range(20):
    setattr(Researcher, f"look_up_{_number}", look_up(_number))
    getattr(Researcher, f"look_up_{_number}").__set_name__(Researcher, f"look_up_{_number}")


def by_skill() -> tuple[Skill[..., str], str, str]:
    researcher = Researcher()

    @Skill.define
    def work(topic: str) -> str:
        """Work on {topic}."""
        raise NotHandled

    assert researcher is not None
    return work, "researcher__research", "question"


def by_delegate() -> tuple[Skill[..., str], str, str]:
    ask = Delegate(Researcher(), name="ask")

    @Skill.define
    def work(topic: str) -> str:
        """Work on {topic}."""
        raise NotHandled

    assert ask is not None
    return work, "ask", "brief"


WAYS = {"the skill as a tool": by_skill, "a delegate": by_delegate}


def _model(tool: str, parameter: str) -> ScriptedModel:
    return ScriptedModel(*[calls(tool, **{parameter: "How high?"}), "4806 m.", "It has 4806 m."])


@Skill.define(tools=False)
def _answer(question: str) -> str:
    """Answer: {question}"""
    raise NotHandled


_to_answer = Delegate(_answer)


@pytest.mark.parametrize("decided", [False, True], ids=["", "a policy"])
@pytest.mark.parametrize("call", [_answer, _to_answer], ids=["called directly", "through a delegate"])
def test_call(benchmark: Any, per_model_call: Any, call: Any, decided: bool) -> None:
    benchmark.group = "a skill of one model call"
    with handler(ScriptedModel(*["4806 m."] * (ROUNDS + WARMUP + 1))), handler(whole()):
        with handler(RiskPolicy(allow=Risk.DESTRUCTIVE) if decided else {}):
            benchmark.pedantic(call, args=("How high?",), rounds=ROUNDS, warmup_rounds=WARMUP)
    way = "through a delegate" if call is _to_answer else "called directly"
    per_model_call(f"a skill of one model call, {way}{', a policy' if decided else ''}", 1)


@pytest.mark.parametrize("tools", [20])
def test_risk(benchmark: Any, report: Callable[[str, str], None], tools: int) -> None:
    ask = Delegate(Researcher())
    benchmark.pedantic(risk_of, args=(ask,), rounds=ROUNDS, warmup_rounds=WARMUP)
    if benchmark.stats is not None:  # not with --benchmark-disable
        report(f"the risk behind a delegate with {tools} tools", f"{benchmark.stats.stats.median * 1e6:8.1f} µs")


@pytest.mark.parametrize("way", WAYS)
def test_bytes_of_tools(report: Any, way: str) -> None:
    """What the tools take in each request of the one who delegates: an agent in view brings all of its own."""
    work, tool, parameter = WAYS[way]()
    with handler(_model(tool, parameter)) as model, handler(whole()):
        work("it")
    offered = model.requests[0]["tools"]
    report(f"tools of the one who delegates, {way}", f"{len(json.dumps(offered)):8,} bytes, {len(offered)} tools")
