"""Conversations in which everything happens at once: whatever is refused, mended or summarised, they stay valid."""

from __future__ import annotations

import random
from typing import Any

import pytest
from PIL import Image

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import ContextLengthError, DecodingError, LimitExceeded, NetworkError
from effectful_agents.handlers.legibility import HistoryCompactor
from effectful_agents.handlers.legibility.summary import is_summary
from effectful_agents.messages import Usage
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.legibility.compacting import wants_summary
from tests.messages.validity import faults

WORDS = "one two three four five "


class Bot(Agent):
    """A bot that can do a little of everything."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def count(self, what: str) -> int:
        """Count {what}."""
        raise NotHandled

    @Tool.define
    def look(self, times: int = 3) -> str:
        """Look at something."""
        return WORDS * times

    @Tool.define
    def fail(self) -> str:
        """Fail."""
        raise ValueError(WORDS)

    @Tool.define
    def think(self, about: str) -> str:
        """Ask oneself."""
        return self.ask(f"inside {about}")

    @Tool.define
    def picture(self, times: int = 1) -> list[Any]:
        """A picture, and words about it."""
        return [WORDS * times, Image.new("RGB", (1, 1))]


class Chance:
    """A model that replies by chance, and refuses what is too long for it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.asked: list[Any] = []
        self.real = chance.choice([None, 700, 1000, 2000])
        self.named = chance.random() < 0.5

    def __call__(self, request: Any) -> Any:
        self.asked.append(request)
        tokens = estimate_tokens(request["messages"])
        if self.real is not None and tokens + request.get("max_tokens", 0) > self.real:
            return ContextLengthError(
                "too long", **({"limit": self.real, "prompt_tokens": tokens} if self.named else {})
            )
        usage = Usage(input=tokens, output=5) if self.chance.random() < 0.5 else Usage()
        if wants_summary(request):
            return NetworkError("down") if self.chance.random() < 0.03 else says(f"All {WORDS}", usage=usage)
        kind = self.chance.random()
        if kind < 0.45:
            return {**batch(*(self._call() for _ in range(self.chance.randint(1, 3)))), "usage": {}}
        if "response_format" in request and kind < 0.95:
            return says('{"value": 3}', usage=usage)
        return says(WORDS * self.chance.randint(1, 40), usage=usage)

    def _call(self) -> Any:
        name = self.chance.choice(["look", "look", "fail", "picture", "think", "absent"])
        times = {"times": self.chance.randint(0, 30)}
        arguments = {"look": times, "picture": times, "think": {"about": "it"}}.get(name, {})
        return calls(name, id=self.chance.choice(["a", "b", str(self.chance.random())]), **arguments)


# In the last five a call inside a tool of its own agent is compacted, and identifiers were given twice.
@pytest.mark.parametrize("seed", [*range(12), 17, 54, 141, 244, 265])
def test_a_conversation_stays_valid_whatever_happens(seed):
    chance = random.Random(seed)
    bot, model = Bot(), Chance(chance)
    compactor = HistoryCompactor(limit=chance.choice([None, 500, 800, 1500, 10**6]))
    stack = Layers(harness(system_prompt="brief", turns=8), ScriptedModel(*[model] * 2000), compactor)
    with handler(stack):
        for number in range(chance.randint(2, 9)):
            before = list(bot.__history__)
            skill = bot.ask if chance.random() < 0.7 else bot.count
            try:
                skill(f"{number} " + WORDS * chance.randint(0, 20))
            except (LimitExceeded, ContextLengthError, NetworkError, DecodingError):
                assert bot.__history__ == before
    for messages in (bot.__history__, *(request["messages"] for request in model.asked)):
        assert faults(messages) == []
        assert sum(map(is_summary, messages)) <= 1
