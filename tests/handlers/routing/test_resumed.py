"""A palette in a run that is resumed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.errors import ReplayDivergence
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.routing import RoutingContext, ToolRouter, keyword_router
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.routing.desk import DONE, ask, names

WORDS = {"hello": ["weather"]}


@Skill.define
def choose(text: str) -> list[str]:
    """Which tools does this need? {text}"""
    raise NotHandled


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def lived(router: ToolRouter, store: MemoryCheckpointer, *replies: Any) -> ScriptedModel:
    stack = harness(system_prompt="brief", eval_provider="none", tool_router=router)
    with handler(stack), handler(ScriptedModel(*replies)) as model, handler(Journal("run", store)):
        ask("hello")
    return model


@pytest.mark.parametrize("per", ["call", "turn"])
def test_what_a_function_gave_is_recorded(per):
    """A function of the time, say, is not asked again for a turn that was taken."""
    palettes = itertools.cycle([["weather", "read_mail"], ["weather"], ["weather", "send_mail"]])
    seen: list[int] = []

    def route(context: RoutingContext) -> list[str]:
        seen.append(context.turn)
        return next(palettes)

    router, store = ToolRouter(route, per=per), MemoryCheckpointer()
    with pytest.raises(RuntimeError):
        lived(router, store, calls("weather", city="Oslo"), RuntimeError("down"))
    before = len(seen)
    model = lived(router, store, "Sunny.")
    assert len(seen) == before
    assert names(model.requests[0]) == (["read_mail", "weather"] if per == "call" else ["weather"])
    assert DONE == [("weather", "Oslo")]


def test_what_a_skill_chose_is_recorded():
    router, store = ToolRouter(choose), MemoryCheckpointer()
    with pytest.raises(RuntimeError):
        lived(router, store, ["weather"], calls("weather", city="Oslo"), RuntimeError("down"))
    model = lived(router, store, "Sunny.")
    assert names(model.requests[0]) == ["weather"]
    assert DONE == [("weather", "Oslo")]


def test_words_are_looked_for_again_and_nothing_is_recorded():
    store = MemoryCheckpointer()
    lived(ToolRouter(keyword_router(WORDS)), store, "Sunny.")
    assert {record.kind for record in store.load("run").records} & {"record"} == set()


def test_another_table_is_another_request():
    store = MemoryCheckpointer()
    with pytest.raises(RuntimeError):
        lived(ToolRouter(keyword_router(WORDS)), store, calls("weather", city="Oslo"), RuntimeError("down"))
    with pytest.raises(ReplayDivergence):
        lived(ToolRouter(keyword_router({"hello": ["read_mail"]})), store, "Sunny.")
