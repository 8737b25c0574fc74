"""The battery of the profile "routed tools": docs/profiles/routed-tools.md."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler
from effectful_agents.errors import ToolCallDecodingError
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.policy import CompositionManifest, composition_manifest
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.routing import ToolRouter, keyword_router
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.profiles.ways import WAYS

DONE: list[tuple[str, int]] = []


@Tool.define
def order_status(number: int) -> str:
    """How far an order is."""
    DONE.append(("status", number))
    return "on its way"


@Tool.define
def refund(number: int) -> str:
    """Pay back what an order cost."""
    DONE.append(("refund", number))
    return "paid back"


@Skill.define
def serve(text: str) -> str:
    """{text}"""
    raise NotHandled


TOOLS = (order_status, refund)
KEYWORDS: dict[str, Any] = {"where": [order_status], "money back": [refund]}


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def profile(keywords: Any = KEYWORDS) -> Layers:
    """The profile; None leaves the routing out."""
    routing = () if keywords is None else (ToolRouter(keyword_router(keywords, registered=TOOLS)),)
    return Layers(
        AgentLoop(turns=4, system_prompt="brief"),
        *routing,
        LexicalToolExtractor(),
        LiteLLMConfigurer("gpt-5-mini"),
        HistoryBuilder(),
        TenacityRetryer(),
    )


def attested(stack: Layers) -> CompositionManifest:
    manifest = composition_manifest(serve, stack=stack)
    assert [row["tool"] for row in manifest.tools] == ["order_status", "refund"]
    assert manifest.enforcement == "nothing decides"  # routing is no authorization
    assert manifest.grants == ()
    return manifest


def spied(stack: Layers, *texts: str) -> list[list[str]]:
    """The palettes that a provider is offered for these texts."""
    with handler(ScriptedModel(*["?"] * len(texts))) as model, handler(stack):
        for text in texts:
            serve(text)
    return [[tool["function"]["name"] for tool in request.get("tools", ())] for request in model.requests]


CUES = ("WHERE is order 7?", "I want my money back for order 7.")
PALETTES = [["order_status"], ["refund"]]


# 1 and 2. Put together directly; the manifest comes first


def test_the_manifest_has_the_stage_and_the_tools_that_there_are():
    manifest = attested(profile())
    assert manifest.stages == ("tools.routing",)
    [row] = [row for row in manifest.handlers if row["handler"] == "ToolRouter"]
    assert row["states"]["routing"]["registered"] == ["order_status", "refund"]
    assert manifest.digest == attested(profile()).digest


def test_another_table_and_no_routing_are_other_digests():
    others = [attested(profile(table)).digest for table in (KEYWORDS, {"where": [refund]}, None)]
    assert len({*others}) == 3
    assert attested(profile(None)).stages == ()


# 3. The stage is seen where the provider is asked, and the effect from outside


def test_two_cues_give_two_palettes():
    attested(profile())
    assert spied(profile(), *CUES) == PALETTES


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_of_the_palette_is_called(way):
    attested(profile())
    with handler(ScriptedModel(calls("refund", number=7), "Done.")) as model, handler(profile()):
        assert WAYS[way](serve, CUES[1]) == "Done."
    assert DONE == [("refund", 7)]
    assert model.requests[1]["messages"][-1]["content"] == "paid back"


# 4. Negative controls


@pytest.mark.parametrize("way", WAYS)
def test_with_another_cue_it_is_not(way):
    attested(profile())
    with handler(ScriptedModel(*[calls("refund", number=7)] * 4)), handler(profile()):
        with pytest.raises(ToolCallDecodingError, match=r"no tool `refund`. The tools are: `order_status`"):
            WAYS[way](serve, CUES[0])
    assert DONE == []


def test_without_routing_the_palettes_are_not_what_they_were():
    """The check of the stage is one that can fail: that a handler of that name is installed would prove nothing."""
    everything = ["order_status", "refund"]
    assert spied(profile(None), *CUES) == [everything, everything] != PALETTES
    assert spied(profile({"where": [refund], "money back": [order_status]}), *CUES) == PALETTES[::-1]


def test_a_tool_is_not_authorized_by_being_offered_nor_the_program_held_back():
    """What routing is not: the program, and whoever it lets in, calls what it likes."""
    with handler(ScriptedModel()), handler(profile()):
        assert refund(3) == "paid back"
    assert DONE == [("refund", 3)]
