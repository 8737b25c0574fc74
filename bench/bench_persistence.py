"""A call of an agent that is kept: what saving adds to it, with a short and with a long history behind it."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, handler
from effectful_agents.handlers.durability import HistoryBuilder, SQLitePersister
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.history import load_state, save_state
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP = 100, 10


@dataclasses.dataclass
class Bot(Agent):
    """Answers."""

    __agent_id__: str = "bot"
    notes: list[str] = dataclasses.field(default_factory=lambda: ["a note"] * 10)

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def filled(messages: int) -> Bot:
    bot = Bot()
    pair = [{"role": "user", "content": "What is it? " * 20}, {"role": "assistant", "content": "It is that. " * 20}]
    bot.__history__ = [dict(message) for _ in range(messages // 2) for message in pair]  # ty: ignore
    return bot


@pytest.mark.parametrize("messages", [10, 2000])
@pytest.mark.parametrize("kept", [False, True], ids=["not kept", "kept"])
def test_call(benchmark: Any, per_model_call: Any, tmp_path: Path, kept: bool, messages: int) -> None:
    bot, what = filled(messages), f"a call with {messages:4} messages behind it, {'kept' if kept else 'not kept'}"
    layers = [AgentLoop(), HistoryBuilder(), *([SQLitePersister(tmp_path / "agents.db")] if kept else [])]
    benchmark.group = "a call of an agent"
    with handler(ScriptedModel(*["Answer."] * (ROUNDS + WARMUP + 2))), handler(Layers(*layers)):
        bot.ask("?")  # saves all of it
        benchmark.pedantic(bot.ask, args=("?",), rounds=ROUNDS, warmup_rounds=WARMUP)
    per_model_call(what, 1)


@pytest.mark.parametrize("messages", [10, 2000])
def test_restoring(benchmark: Any, report: Any, tmp_path: Path, messages: int) -> None:
    benchmark.group = "restoring an agent"
    with handler(SQLitePersister(tmp_path / "agents.db")):
        save_state(filled(messages))
        benchmark.pedantic(load_state, setup=lambda: ((Bot(),), {}), rounds=ROUNDS, warmup_rounds=WARMUP)
    stats = benchmark.stats
    if stats is not None:  # not with --benchmark-disable
        report(f"restoring an agent with {messages:4} messages", f"{stats.stats.median * 1e6:8.1f} µs")
