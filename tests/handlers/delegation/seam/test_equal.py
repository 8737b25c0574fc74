"""A program whose operations are performed elsewhere is the same program: requests, replies and pieces are equal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import trio

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.loop import run, stream
from effectful_agents.messages import ReasoningDelta, TextDelta
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.delegation.seam.serving import served

SCRIPT = (calls("weather", city="Oslo"), "Cold in Oslo — “rather”\u2028yes")


@Tool.define
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: The city; “quoted”, with \u2028 and ü.
    """
    return {"city": city, "degrees": -3.5 * days}


@Skill.define
def ask(question: str) -> str:
    """Answer {question}."""
    raise NotHandled


@Skill.define
def count(question: str) -> int:
    """Count {question}."""
    raise NotHandled


def sync(skill: Any, question: str) -> Any:
    return skill(question)


def on_asyncio(skill: Any, question: str) -> Any:
    return asyncio.run(acall(skill, question))


def on_trio(skill: Any, question: str) -> Any:
    return trio.run(acall, skill, question)


def requests(model: ScriptedModel) -> str:
    return json.dumps(model.requests)


@pytest.mark.parametrize("way", [sync, on_asyncio, on_trio])
def test_requests_and_values_are_those_of_a_local_model(way):
    local, remote = ScriptedModel(*SCRIPT, 42), ScriptedModel(*SCRIPT, 42)
    with handler(local), handler(harness()):
        expected = [way(ask, "the weather"), way(count, "sheep")]
    with served(remote) as gateway, handler(harness()), handler(gateway.remote()):
        got = [way(ask, "the weather"), way(count, "sheep")]
    assert got == expected
    assert requests(remote) == requests(local)


def pieces(skill: Any) -> list[Any]:
    with stream(skill, "the weather") as call:
        return list(call)


def test_pieces_are_those_of_a_local_model():
    replies = (says("Two words, in pieces."),)
    thought: Any = says("Done.")
    thought["choices"][0]["message"]["reasoning_content"] = "Let me think about it."
    local, remote = ScriptedModel(*SCRIPT, *replies, thought), ScriptedModel(*SCRIPT, *replies, thought)
    with handler(local), handler(harness()):
        expected = [pieces(ask) for _ in range(3)]
    with served(remote) as gateway, handler(harness()), handler(gateway.remote()):
        got = [pieces(ask) for _ in range(3)]
    assert got == expected
    assert sum(isinstance(one, TextDelta) for one in got[1]) > 1
    assert any(isinstance(one, ReasoningDelta) for one in got[2])


def test_a_tool_crosses_once():
    model = ScriptedModel(calls("weather", city="Oslo"), calls("weather", city="Rome"), "Done.")
    bodies: list[bytes] = []
    with served(model) as gateway:
        remote = gateway.remote()
        _noting(remote._gateway, bodies)
        with handler(harness(eval_provider="none", system_prompt="brief")), handler(remote):
            ask("the weather")
    hellos = [body for body in bodies if body.startswith(b'{"versions"')]
    asked = [body for body in bodies if b'"request"' in body]
    assert [b"The weather in a city" in body for body in hellos] == [False, True]
    assert len(asked) == 3
    assert not any(b"The weather in a city" in body for body in asked)
    assert all(b'{"ref":"weather@' in body for body in asked)


def _noting(gateway: Any, bodies: list[bytes]) -> None:
    """Have a gateway note the bodies that it sends."""
    asked = gateway._asked

    def note(what: str, body: Any, *rest: Any) -> Any:
        bodies.append(json.dumps(body, separators=(",", ":")).encode())
        return asked(what, body, *rest)

    gateway._asked = note


def test_a_run_is_replayed_from_its_journal_without_the_gateway():
    runs = MemoryCheckpointer()

    def program(remote: Any) -> Any:
        with handler(Layers(harness(journal=runs, run_id="monday"), remote)):
            return ask("the weather")

    model = ScriptedModel(*SCRIPT)
    with served(model) as gateway:
        first = program(gateway.remote(offer_tools=False))
        gateway.stop()
        assert program(gateway.remote(offer_tools=False)) == first
    assert len(model.requests) == 2


def test_usage_returns():
    reply = says("Hello")
    with served(ScriptedModel(reply)) as gateway, handler(harness()), handler(gateway.remote()):
        result = run(ask, "it")
    assert (result.usage.input, result.usage.output) == (100, 20)
