"""An agent that is kept, and what the tests do with it; other processes import it too."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.handlers.durability import HistoryBuilder, SQLitePersister
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.operations.history import load_state
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls

__all__ = ["STEPS", "Bot", "calls", "json", "printed", "process", "restored", "roles", "said", "stack", "sys", "talk"]

ROOT = Path(__file__).parents[3]


@dataclasses.dataclass
class Bot(Agent):
    """Answers."""

    __agent_id__: str | None = "bot"
    notes: list[str] = dataclasses.field(default_factory=list)
    mood: str = "calm"

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def consult(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    def note(self, text: str) -> None:
        """Note a text."""
        self.notes.append(text)

    @Tool.define
    def run(self, step: str) -> str:
        """Do a step of the test."""
        return str(STEPS[step]())


STEPS: dict[str, Callable[[], Any]] = {}
"""What the tool `run` does, by the names that the model gives."""


def stack(path: Any, **options: Any) -> Layers:
    """What a call needs, and a persister."""
    loop = AgentLoop(system_prompt="full", **options)
    return Layers(loop, LexicalToolExtractor(), HistoryBuilder(), SQLitePersister(path))


def talk(path: Any, skill: Any, *replies: Any) -> ScriptedModel:
    """Call a skill as often as it takes to use up the replies."""
    with handler(ScriptedModel(*replies)) as model, handler(stack(path)):
        while model.remaining:
            skill(f"question {len(model.requests)}")
    return model


def said(messages: Any) -> list[Any]:
    """What a conversation holds, but for its system message and what the user said."""
    return [message["content"] for message in messages if message["role"] in ("assistant", "tool")]


def roles(messages: Any) -> list[str]:
    return [message["role"] for message in messages]


def restored(path: Any, bot: Any = None) -> Any:
    """The agent as the next process would have it."""
    bot = Bot() if bot is None else bot
    with handler(SQLitePersister(path)):
        load_state(bot)
    return bot


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process, which has what is here."""
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.handlers.durability.keeping import *\n{code}", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def printed(started: subprocess.Popen[str]) -> Any:
    """What a process wrote, as JSON."""
    out, err = started.communicate()
    assert not err
    return json.loads(out)
