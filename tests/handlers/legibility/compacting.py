"""Agents and models for tests of the compactor."""

from __future__ import annotations

from typing import Any

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import ContextLengthError
from effectful_agents.handlers.legibility import HistoryCompactor
from effectful_agents.handlers.legibility.summary import is_summary
from effectful_agents.messages import Usage
from effectful_agents.operations.counting import estimate_tokens
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, says

UNKNOWN = Usage()
"""Of a model that reports no tokens, so that they are counted."""
WORDS = "one two three four five six seven eight nine ten "


@Tool.define
def lookup(key: str, words: int = 10) -> str:
    """Look something up."""
    return f"<{key}> " + WORDS * (words // 10)


class Bot(Agent):
    """A bot."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def roles(messages: Any) -> list[str]:
    return ["summary" if is_summary(message) else message["role"] for message in messages]


def wants_summary(request: Any) -> bool:
    return request["messages"][0]["content"].startswith("You shorten conversations")


class Model(ScriptedModel):
    """A model that reports no usage; what it is asked for a summary stands beside its other requests."""

    def __init__(self, *replies: Any, summary: Any = "It was about numbers.") -> None:
        self.summaries: list[Any] = []
        self._replies_left = list(replies)
        self._summary = summary
        super().__init__(*[self._reply] * 10_000)

    def _reply(self, request: Any) -> Any:
        if wants_summary(request):
            self.summaries.append(self.requests.pop())
            return says(self._summary, usage=UNKNOWN) if isinstance(self._summary, str) else self._summary
        reply = self._replies_left.pop(0)
        return says(reply, usage=UNKNOWN) if isinstance(reply, str) else reply


def silent(reply: Any) -> Any:
    return {**reply, "usage": {}}


def stack(model: Any, *more: Any, **options: Any) -> Any:
    return handler(Layers(harness(system_prompt="brief"), model, HistoryCompactor(**options), *more))


class Nested(Agent):
    """An agent that asks itself."""

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    def think(self, about: str) -> str:
        """Think about something."""
        return self.ask(f"Think about {about}")


class Narrow(Model):
    """A model that refuses what is longer than `real` tokens; `named` is what its errors say of that."""

    def __init__(self, real: int, *replies: Any, named: bool = True) -> None:
        super().__init__(*replies)
        self.real = real
        self.named = named
        self.refused: list[Any] = []

    def _reply(self, request: Any) -> Any:
        tokens = estimate_tokens(request["messages"])
        if tokens + request.get("max_tokens", 0) > self.real:
            self.refused.append(self.requests.pop())
            given = {"prompt_tokens": tokens, "limit": self.real} if self.named else {}
            return ContextLengthError("too long", **given)
        return super()._reply(request)
