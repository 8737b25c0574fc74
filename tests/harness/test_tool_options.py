"""`tool_collection` and `tool_calling` of `harness`, from the request to the result of the tool, on two backends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import EncodingError
from effectful_agents.handlers.legibility import ImplicitToolExtractor, LexicalToolExtractor
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.provision.http.server import Server

type Ask = Callable[..., tuple[list[str], list[str]]]


class Machine:
    """Something that no JSON stands for."""


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def distance(there: str, km: int = 1) -> str:
    """How far a place is."""
    return f"{km} km to {there}"


def undocumented(there: str) -> str:
    return there


def unannotated(there):
    """How far a place is."""


def _private(there: str) -> str:
    """How far a place is."""
    return there


@Tool.define
def first[T](items: list[T]) -> T:
    """The first of several things."""
    return items[0]


@Tool.define
def total(*numbers: int, **named: int) -> int:
    """The sum of numbers."""
    return sum(numbers) + sum(named.values())


@Tool.define
def start(machine: Machine) -> str:
    """Start a machine."""
    return "started"


def stop(machine: Machine) -> str:
    """Stop a machine."""
    return "stopped"


class Guide(Agent):
    """Somebody who knows the way."""

    @Tool.define
    def hotel(self, city: str) -> str:
        """A hotel in a city."""
        return f"Ritz {city}"

    def bus(self, city: str) -> str:
        """A bus to a city."""
        return f"bus 1 to {city}"

    @Skill.define
    def suggest(self, wish: str) -> str:
        """Suggest something for {wish}."""
        raise NotHandled


guide = Guide()


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture(params=["scripted", "http"])
def asked(request: pytest.FixtureRequest, server: Server) -> Ask:
    """A function that asks a model which calls tools: the tools of the first request, and the results in the last."""

    def ask_it(*replies: Any, skill: Any = ask, more: Any = None, **options: Any) -> tuple[list[str], list[str]]:
        options = {"system_prompt": "brief", "num_retries": 0} | options
        if request.param == "scripted":
            scripted = ScriptedModel(*replies, says("ok"))
            with handler(harness(**options)), handler(more or {}), handler(scripted):
                assert skill("?") == "ok"
            bodies: list[Any] = scripted.requests
        else:
            server.clear()
            server.will(*replies, says("ok"))
            with handler(harness(**options)), handler(more or {}), handler(server.model()):
                assert skill("?") == "ok"
            bodies = server.bodies
        assert "tools" not in bodies[0] or bodies[0]["tools"], "no empty list"
        names = [tool["function"]["name"] for tool in bodies[0].get("tools", ())]
        return names, [one["content"] for one in bodies[-1]["messages"] if one["role"] == "tool"]

    return ask_it


DECLARED = ["first", "guide__hotel", "guide__suggest", "total", "weather"]


def test_explicit_offers_what_is_declared_and_carries_it_out(asked: Ask) -> None:
    names, results = asked(batch(calls("weather", city="Oslo"), calls("guide__hotel", id="b", city="Rome")))
    assert names == DECLARED
    assert results == ["sunny in Oslo", "Ritz Rome"]


def test_auto_offers_documented_functions_and_methods_too_and_carries_them_out(asked: Ask) -> None:
    turn = batch(calls("distance", there="Oslo", km=5), calls("guide__bus", id="b", city="Rome"))
    names, results = asked(turn, tool_collection="auto")
    assert {*DECLARED, "distance", "guide__bus"} <= set(names)
    assert not {"undocumented", "unannotated", "_private", "stop", "start"} & set(names)
    assert results == ["5 km to Oslo", "bus 1 to Rome"]


def test_none_offers_nothing_at_all(asked: Ask) -> None:
    assert asked(tool_collection="none") == ([], [])


@pytest.mark.parametrize(("collection", "method"), [("explicit", "hotel"), ("auto", "bus")])
def test_a_method_is_offered_its_siblings(collection: str, method: str, asked: Ask) -> None:
    agent = Guide()
    names, results = asked(calls(method, city="Rome"), skill=agent.suggest, tool_collection=collection)
    assert method in names
    assert "suggest" not in names
    assert results[0].endswith("Rome")


@pytest.mark.parametrize("calling", [None, "json"])
@pytest.mark.parametrize("collection", ["explicit", "auto"])
def test_json_takes_generic_and_variadic_tools_as_far_as_a_schema_goes(
    calling: Any, collection: str, asked: Ask
) -> None:
    turn = batch(
        calls("first", items=[{"a": [1]}, 2]),
        calls("total", id="b", numbers=[1, 2], extra=3),
        calls("weather", id="c", city="Rome"),
    )
    names, results = asked(turn, tool_calling=calling, tool_collection=collection)
    assert {"first", "total"} <= set(names)
    assert results == ['{"a":[1]}', "6", "sunny in Rome"]


@pytest.mark.parametrize("collection", ["explicit", "auto"])
def test_json_leaves_out_what_has_no_schema_and_says_so(
    collection: str, asked: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    @Tool.define
    def launch(machine: Machine) -> str:
        """Launch a machine."""
        return "launched"

    def halt(machine: Machine) -> str:
        """Halt a machine."""
        return "halted"

    @Skill.define
    def ask_here(question: str) -> str:
        """{question}"""
        raise NotHandled

    names, _ = asked(skill=ask_here, tool_calling="json", tool_collection=collection)
    assert not {"launch", "halt", "start", "stop"} & set(names)
    # Functions that nobody declared are left out in silence.
    warned = "".join(record.getMessage() for record in caplog.records)
    assert [name for name in ("launch", "halt", "stop") if f"`{name}`" in warned] == ["launch"]


@pytest.mark.parametrize("extractor", [LexicalToolExtractor, ImplicitToolExtractor])
def test_json_only_is_what_leaves_it_out(extractor: Any, asked: Ask) -> None:
    names, _ = asked(more=extractor(json_only=True), tool_collection="none")
    assert "start" not in names
    with pytest.raises(EncodingError, match=r"^(start|stop)\(machine: Machine\)"):
        asked(more=extractor(json_only=False), tool_collection="none")


@pytest.mark.parametrize("when", [True, False, 0])
def test_deferral_goes_over_the_wire_too(when: Any, asked: Ask) -> None:
    use = calls("use_tool", name="weather", arguments={"city": "Oslo"})
    turn = use if when == 0 and when is not False else calls("weather", city="Oslo")
    names, results = asked(turn, defer_tools=when)
    assert names == (["search_tools", "use_tool"] if turn is use else DECLARED)
    assert results == ["sunny in Oslo"]


def test_both_backends_are_sent_the_same_tools(server: Server) -> None:
    scripted = ScriptedModel("ok")
    with handler(harness(system_prompt="brief")), handler(scripted):
        ask("?")
    server.clear()
    server.will(says("ok"))
    with handler(harness(system_prompt="brief")), handler(server.model()):
        ask("?")
    assert json.dumps(server.bodies[0]["tools"]) == json.dumps(scripted.requests[0]["tools"])
