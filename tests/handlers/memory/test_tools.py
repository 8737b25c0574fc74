"""A model that remembers, recalls and forgets by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, handler, harness
from effectful_agents.errors import Denied, MissingHandlerError
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, MemoryTools
from effectful_agents.handlers.memory import tools as memory_tools
from effectful_agents.handlers.policy import composition_manifest
from effectful_agents.operations import memory
from effectful_agents.operations.memory import Memory
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.memory.remembering import ANN, BOB, chat, refusing, remembering, texts


@Skill.define
def facts(request: str, answer: str) -> list[str]:
    """Facts of {request} {answer}"""
    raise NotHandled


def test_the_model_remembers_and_a_later_call_recalls() -> None:
    store = InMemoryStore()
    replies = (
        calls("remember", text="Ann likes sencha."),
        "Noted.",
        calls("recall", query="What does Ann like?"),
        "Tea.",
    )
    with remembering(*replies, keeper=MemoryKeeper(store, ANN)) as model, handler(MemoryTools()):
        chat("I like sencha.")
        chat("What do I like?")
    found = json.loads(model.requests[3]["messages"][-1]["content"])
    assert found[0]["text"] == "Ann likes sencha."
    assert store.memories(ANN)[0].id == found[0]["id"]


def test_the_model_forgets_what_it_has_found() -> None:
    store = InMemoryStore()
    store.write(ANN, [Memory("m1", "Tea is green.", ANN)])
    store.write(BOB, [Memory("m2", "Tea is black.", BOB)])

    def forget_it(request: Any) -> Any:
        found = json.loads(request["messages"][-1]["content"])
        return calls("forget", ids=[*(one["id"] for one in found), "m2"])

    with remembering(calls("recall", query="tea"), forget_it, "Gone.", keeper=MemoryKeeper(store, ANN)) as model:
        with handler(MemoryTools()):
            chat("Forget the tea.")
    assert model.requests[2]["messages"][-1]["content"] == "Forgotten: 1."
    assert texts(store.memories(ANN)) == ["Asked: Forget the tea.\nAnswered: Gone."]
    assert texts(store.memories(BOB)) == ["Tea is black."]


def test_hasty_arguments_do_no_harm() -> None:
    store = InMemoryStore()
    store.write(ANN, [Memory("m1", "Tea is green.", ANN)])
    turn = batch(
        calls("forget", id="a", ids=[]),
        calls("recall", id="b", query="", limit=-3),
        calls("remember", id="c", text=" "),
    )
    with remembering(turn, "Oh.", keeper=MemoryKeeper(store, ANN)) as model, handler(MemoryTools()):
        chat("Do something.")
    nothing, empty, refused = (message["content"] for message in model.requests[1]["messages"][-3:])
    assert (nothing, json.loads(empty)) == ("Forgotten: 0.", [])
    assert "nothing to remember" in refused
    assert "Tea is green." in texts(store.memories(ANN))


def test_no_more_than_fifty_are_recalled() -> None:
    store = InMemoryStore()
    store.write(ANN, [Memory(str(number), "Tea.", ANN) for number in range(60)])
    with remembering(calls("recall", query="tea", limit=10**9), "Oh.", keeper=MemoryKeeper(store, ANN)) as model:
        with handler(MemoryTools()):
            chat("Everything!")
    assert len(json.loads(model.requests[1]["messages"][-1]["content"])) == 50


def test_what_they_can_do_is_declared() -> None:
    assert [tool.risk for tool in (memory_tools.recall, memory_tools.remember, memory_tools.forget)] == [
        Risk.READ,
        Risk.SOFT_WRITE,
        Risk.DESTRUCTIVE,
    ]
    with handler(MemoryTools()):
        manifest = composition_manifest(facts)
    assert {row["tool"]: row["risk"] for row in manifest.tools} == {
        "forget": "DESTRUCTIVE",
        "recall": "READ",
        "remember": "SOFT_WRITE",
    }
    assert manifest.handlers[-1]["states"] == {"effects": ["memory_read", "memory_write"]}
    assert manifest.grants == ()  # it needs them, and grants nothing


def test_a_policy_sees_the_effect_behind_the_tool() -> None:
    store = InMemoryStore()
    denied = Denied("not granted")
    with remembering(calls("forget", ids=["m1"]), keeper=MemoryKeeper(store, ANN)):
        store.write(ANN, [Memory("m1", "Milk is white.", ANN)])
        with handler(MemoryTools()), handler(refusing(memory.forget, denied)), pytest.raises(Denied):
            chat("Forget it.")
    assert texts(store.memories(ANN)) == ["Milk is white."]


def test_who_makes_memories_of_a_call_is_not_offered_them() -> None:
    replies = ("Noted.", ["Ann likes tea."])
    with remembering(*replies, extractor=facts) as model, handler(MemoryTools()):
        chat("I like tea.")
    first, second = ([tool["function"]["name"] for tool in one.get("tools", ())] for one in model.requests)
    assert {"remember", "recall", "forget"} <= set(first)
    assert not {"remember", "recall", "forget"} & set(second)


def test_who_makes_memories_of_a_call_is_not_told_of_them() -> None:
    keeper = MemoryKeeper(InMemoryStore(), ANN, extractor=facts)
    with handler(harness()), handler(ScriptedModel("Noted.", [])) as model, handler(keeper), handler(MemoryTools()):
        chat("I like tea.")
    sentence = f"You have a memory that {'out' + 'lasts'} this"  # the source of this module is shown as well
    told = [sentence in request["messages"][0]["content"] for request in model.requests]
    assert told == [True, False]


def test_without_a_keeper_the_call_ends_with_what_to_install() -> None:
    with handler(harness(eval_provider="none")), handler(ScriptedModel(calls("recall", query="tea"))):
        with handler(MemoryTools()), pytest.raises(MissingHandlerError, match="MemoryKeeper"):
            chat("Tea?")
