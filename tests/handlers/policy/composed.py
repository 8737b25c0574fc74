"""What manifests of the tests describe; run as a program, it prints the digest of a stack."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from effectful_agents import Agent, NotHandled, ObjectInterpretation, Skill, Tool, fwd, handler, harness, implements
from effectful_agents.handlers.loop import Deadline
from effectful_agents.handlers.policy import composition_manifest
from effectful_agents.handlers.routing import ToolRouter, keyword_router
from effectful_agents.operations.loop import call_tool
from effectful_agents.types import Risk


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


@Tool.define(risk=Risk.HARD_WRITE, effect="keyed")
def send_mail(to: str, text: str) -> None:
    """Send a mail."""


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define(tools=False)
def bare(text: str) -> str:
    """Say it in other words: {text}"""
    raise NotHandled


class Clerk(Agent):
    """Somebody with tools."""

    @Tool.define(idempotent=True)
    def file(self, paper: str) -> str:
        """File a paper."""
        return "filed"

    @Skill.define
    def serve(self, wish: str) -> str:
        """{wish}"""
        raise NotHandled


class Stating(ObjectInterpretation[Any, Any]):
    """Says of itself what it was given."""

    def __init__(self, states: Any) -> None:
        self.states = states

    @implements(call_tool)
    def call_tool(self, tool_call: Any) -> Any:
        return fwd()

    def manifest(self) -> Mapping[str, object]:
        return self.states


def note(tool_call: Any) -> Any:
    """A function that is installed as a handler."""
    return fwd()


def of(*skills: Any, **options: Any) -> Any:
    """The manifest of the standard stack."""
    with handler(harness(**{"eval_provider": "none", **options})):
        return composition_manifest(*skills)


def digest_in(folder: str) -> str:
    """The digest of a stack that keeps its files in a folder."""
    tools = {send_mail, weather}
    router = ToolRouter(keyword_router({"mail": tools, "sun": tools}, registered=tools))
    stack = harness(tool_router=router, model="gpt-5-mini", persist_db=f"{folder}/a.db", journal=f"{folder}/b.db")
    with handler(stack), handler({call_tool: note, ask: lambda *_: fwd()}), handler(Deadline(9)):
        return composition_manifest(ask, bare, Clerk().serve).digest


if __name__ == "__main__":
    # Under the name by which the tests import it.
    print(importlib.import_module("tests.handlers.policy.composed").digest_in(sys.argv[1]))
