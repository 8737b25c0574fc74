"""A desk with tools, each of which leaves a trace of every call outside of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.testing import ScriptedModel

DONE: list[tuple[Any, ...]] = []
"""What the tools have done, in order."""


@Tool.define
def read_mail(folder: str = "inbox") -> str:
    """Read the mail of a folder."""
    DONE.append(("read", folder))
    return "Lunch?"


@Tool.define
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    DONE.append(("send", to, text))
    return "sent"


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    DONE.append(("weather", city))
    return "sunny"


@Tool.define
def best(*texts: str) -> str:
    """The best of some texts. JSON cannot say how it is called."""
    DONE.append(("best", *texts))
    return max(texts)


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def report() -> str:
    """Report on the weather of today."""
    raise NotHandled


class Clerk(Agent):
    """Somebody with tools."""

    @Tool.define
    def file(self, paper: str) -> str:
        """File a paper."""
        DONE.append(("file", paper))
        return "filed"

    @Tool.define
    def shred(self, paper: str) -> str:
        """Shred a paper."""
        DONE.append(("shred", paper))
        return "gone"

    @Skill.define
    def serve(self, wish: str) -> str:
        """{wish}"""
        raise NotHandled


TOOLS = (read_mail, send_mail, weather, best)


def names(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", ())]


def results(request: Any) -> list[str]:
    """What the model was told of its tool calls."""
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def asked(router: Any, *replies: Any, call: Callable[[], Any] = lambda: ask("Hello"), **options: Any) -> ScriptedModel:
    """The model after a call in the standard stack with a router."""
    stack = harness(**{"system_prompt": "brief", "type_checker": "none", "tool_router": router, **options})
    with handler(stack), handler(ScriptedModel(*replies)) as model:
        call()
    assert not model.remaining
    return model
