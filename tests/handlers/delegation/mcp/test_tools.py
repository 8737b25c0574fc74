"""Tools of MCP servers, in calls and by hand."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import trio

from effectful_agents import NotHandled, Risk, Skill, acall, handler, harness
from effectful_agents.errors import ConfigurationError, OptionError, PeerError, ToolCallDecodingError
from effectful_agents.handlers.delegation.mcp import MCPTools, mcp_risk
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import RiskPolicy
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.testing import ScriptedModel, calls


@Skill.define
def ask(question: str) -> str:
    """Answer: {question}"""
    raise NotHandled


def reached(address: str, **options: Any) -> MCPTools:
    return MCPTools.http(address, prefix="box", **options)


STACK: Any = harness(system_prompt="brief", eval_provider="none")


def answered(box: MCPTools, *replies: Any, skill: Any = ask) -> ScriptedModel:
    model = ScriptedModel(*replies)
    with handler(STACK), handler(model), handler(box):
        skill("What is the weather?")
    return model


def shown(model: ScriptedModel) -> list[dict]:
    return [tool["function"] for tool in model.requests[0]["tools"]]


@pytest.fixture
def shared(box: MCPTools):
    """The shared server, which outlives the blocks of a test."""
    with handler(box):
        yield box


def test_a_model_is_offered_the_tools_and_told_what_they_return(shared):
    model = answered(shared, calls("box_forecast", city="Oslo"), "Fine.")
    offered = {tool["name"]: tool for tool in shown(model)}
    assert offered["box_forecast"]["description"] == "The forecast for a city."
    assert offered["box_forecast"]["parameters"]["required"] == ["city"]
    assert '"degrees":21.5' in model.requests[1]["messages"][-1]["content"].replace(" ", "")


def test_arguments_are_held_to_the_schema_of_the_server(shared):
    model = ScriptedModel(*[calls("box_forecast", city=3)] * 5)
    with handler(STACK), handler(model), handler(shared), pytest.raises(ToolCallDecodingError, match="city"):
        ask("?")


def test_what_a_tool_says_of_its_failure_is_told_to_the_model(shared):
    model = answered(shared, calls("box_fail"), "It failed.")
    assert "Error executing tool fail" in model.requests[1]["messages"][-1]["content"]


def test_pictures_and_structured_values_are_typed(shared):
    picture = shared.tool("picture")()
    assert [part["type"] for part in picture] == ["text", "image_url"]
    assert picture[1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert shared.tool("forecast")(city="Oslo", days=2) == {"city": "Oslo", "degrees": 22.5}
    assert shared.tool("note")(text="x") == "noted: x"
    assert isinstance(shared.tool("pid")(), int)
    model = answered(shared, calls("box_picture"), "Blue.")
    assert model.requests[1]["messages"][-1]["content"][1]["type"] == "image_url"


def test_risk_comes_from_the_annotations_and_policies_decide(shared):
    risks = {tool.__name__: (tool.risk, tool.effect) for tool in shared.tools}
    assert risks["box_forecast"] == (Risk.READ, "idempotent")
    assert risks["box_picture"] == (Risk.SOFT_WRITE, "idempotent")
    assert risks["box_note"] == (Risk.DESTRUCTIVE, "once")
    with handler(RiskPolicy(allow=Risk.READ, approve=Risk.READ)):
        model = answered(shared, calls("box_note", text="x"), "I may not.")
    assert "not done" in model.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("hints", "risk"),
    [
        ({}, Risk.DESTRUCTIVE),
        ({"read_only_hint": True}, Risk.READ),
        ({"read_only_hint": True, "destructive_hint": True}, Risk.READ),
        ({"destructive_hint": False}, Risk.HARD_WRITE),
        ({"destructive_hint": False, "open_world_hint": False}, Risk.SOFT_WRITE),
        ({"idempotent_hint": True}, Risk.DESTRUCTIVE),
    ],
)
def test_hints_that_are_silent_count_as_the_worst(hints, risk):
    from mcp_types import ToolAnnotations

    assert mcp_risk(ToolAnnotations(**hints)) == risk


def test_only_some_tools_and_a_risk_of_ones_own(address):
    with handler(reached(address, only=["note", "forecast"], risk=lambda annotations: Risk.READ)) as box:
        assert [(tool.__name__, tool.risk) for tool in box.tools] == [
            ("box_forecast", Risk.READ),
            ("box_note", Risk.READ),
        ]
        with pytest.raises(PeerError, match="no tool `pid`"):
            box.tool("pid")


def test_a_tool_that_is_there_later_is_offered_at_the_next_turn(shared):
    model = answered(shared, calls("box_grow"), calls("box_grown"), "Now.")
    assert "box_grown" not in {tool["name"] for tool in shown(model)}
    assert model.requests[2]["messages"][-1]["content"] == "grown"


def test_a_server_that_dies_is_an_error_of_the_tool_and_comes_back(shared):
    before = shared.tool("pid")()
    model = answered(shared, calls("box_die"), calls("box_note", text="x"), "It is back.")
    assert "Connection closed" in model.requests[1]["messages"][-1]["content"]
    assert model.requests[2]["messages"][-1]["content"] == "noted: x"
    assert shared.tool("pid")() != before


def test_a_call_that_takes_too_long_is_an_error_and_the_server_stays(shared, monkeypatch):
    pid = shared.tool("pid")()
    monkeypatch.setattr(shared, "_timeout", 0.2)
    with pytest.raises(PeerError, match=r"longer than 0\.2 s"):
        shared.tool("slow")(seconds=30)
    monkeypatch.undo()
    assert shared.tool("pid")() == pid


def test_a_result_that_is_too_large_is_refused(shared):
    with pytest.raises(PeerError, match="max_bytes"):
        shared.tool("huge")()
    with pytest.raises(PeerError, match="max_bytes"):
        shared.read_resource("notes://huge")


def test_resources_and_prompts(shared):
    assert [one.uri for one in shared.resources()] == ["notes://all", "notes://{name}"]
    assert shared.resources()[1].is_template
    assert shared.read_resource("notes://all") == [{"type": "text", "text": "one\ntwo"}]
    assert shared.prompts()[0].arguments == ("name",)
    assert shared.prompt("greeting", name="Ann")[0]["content"] == "Say hello to Ann."
    with pytest.raises(PeerError):
        shared.read_resource("notes:///nothing/here")
    with pytest.raises(PeerError):
        shared.prompt("nobody")


def test_a_model_may_read_resources(address):
    with handler(reached(address, offer_resources=True, only=[])) as box:
        model = answered(box, calls("box_list_resources"), calls("box_read_resource", uri="notes://ann"), "Read.")
        assert {tool["name"] for tool in shown(model)} == {"box_list_resources", "box_read_resource"}
        assert "notes://all" in model.requests[1]["messages"][-1]["content"]
        assert "note ann" in str(model.requests[2]["messages"][-1]["content"])


def test_progress_is_told(address):
    heard = []
    with handler(reached(address, on_progress=lambda *told: heard.append(told))) as box:
        assert box.tool("counted")(steps=2) == "counted"
    assert heard == [("counted", 1, 2, "step 1"), ("counted", 2, 2, "step 2")]


def test_the_trace_is_handed_on(shared):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with handler({current_call_context: lambda: CallContext(parent)}):
        assert shared.tool("trace")() == parent


def test_from_asyncio_trio_and_threads(shared):
    async def note() -> Any:
        model = ScriptedModel(calls("box_note", text="x"), "ok")
        with handler(STACK), handler(model), handler(shared):
            await acall(ask, "?")
        return model.requests[1]["messages"][-1]["content"]

    assert asyncio.run(note()) == "noted: x"
    assert trio.run(note) == "noted: x"
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(shared.tool("note")(text="y"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["noted: y"] * 4


def test_a_block_in_asynchronous_code_begins_and_ends_the_connection(address):
    async def note() -> Any:
        model = ScriptedModel(calls("box_pid"), "ok")
        with handler(STACK), handler(model), handler(reached(address)):
            return await acall(ask, "?")

    assert asyncio.run(note()) == "ok"
    assert trio.run(note) == "ok"


def test_a_call_that_is_cancelled_ends_at_once(address):
    begun = threading.Event()
    box = reached(address, on_progress=lambda *told: begun.set())

    async def cancelled() -> None:
        with handler(STACK), handler(ScriptedModel(calls("box_slow", seconds=60), "late")), handler(box):
            task = asyncio.ensure_future(acall(ask, "?"))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(asyncio.wait_for(cancelled(), 40))
    with handler(box):
        assert box.tool("note")(text="z") == "noted: z"


def test_a_resumed_run_does_not_ask_the_server_again(address):
    kept = MemoryCheckpointer()

    def program(*replies: Any) -> tuple[Any, Any]:
        stack = harness(system_prompt="brief", eval_provider="none", journal=kept, run_id="r")
        model = ScriptedModel(*replies)
        with handler(stack), handler(model), handler(reached(address)):
            return ask("Which process?"), model.requests

    with pytest.raises(ConfigurationError):
        program(calls("box_pid"))  # it has no further reply, as if it ended here
    value, requests = program("That one.")
    assert value == "That one."
    # Another process, which was not asked.
    assert len(requests) == 1


def test_over_http(address):
    with handler(MCPTools.http(address, prefix="far")) as far:
        assert far.tool("forecast")(city="Oslo")["city"] == "Oslo"
        model = answered(far, calls("far_note", text="x"), "ok")
        assert model.requests[1]["messages"][-1]["content"] == "noted: x"


def test_a_session_of_the_program(address):
    from mcp import Client

    async def main() -> Any:
        async with Client(address) as client:
            with handler(STACK), handler(ScriptedModel(calls("own_note", text="x"), "ok")):
                with handler(MCPTools(client, prefix="own")):
                    return await acall(ask, "?")

    assert asyncio.run(main()) == "ok"


@pytest.mark.parametrize(
    "make",
    [
        lambda: MCPTools(object()),  # ty: ignore[invalid-argument-type]
        lambda: MCPTools.http("ftp://x"),
        lambda: MCPTools.stdio("x", timeout=-1),
        lambda: MCPTools.stdio("x", connect_timeout=0),
    ],
)
def test_options_that_cannot_be_are_refused(make):
    with pytest.raises(OptionError):
        make()
