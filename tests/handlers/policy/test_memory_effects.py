"""Memory and policies: nothing is read or written without the grant."""

from __future__ import annotations

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import Denied, StepDenied
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, RecallPrompter
from effectful_agents.handlers.policy import GrantEffects, Policy
from effectful_agents.operations.memory import Memory, MemoryScope, forget, recall, remember
from effectful_agents.operations.policy import Decision, Disposition, EffectKind
from effectful_agents.testing import ScriptedModel
from tests.handlers.policy.routes import assistant

SCOPE = MemoryScope("acme")
STACK = {"eval_provider": "none", "type_checker": "none"}
ALL = ("model_call", "tool_call", "memory_read", "memory_write", "memory_flush")


@pytest.mark.parametrize("missing", ["memory_read", "memory_write", "memory_flush"])
@pytest.mark.parametrize("inside", [True, False])
def test_each_effect_needs_its_grant_wherever_the_keeper_stands(missing, inside):
    store = InMemoryStore()
    keeper, grants = MemoryKeeper(store, SCOPE), GrantEffects(*(effect for effect in ALL if effect != missing))
    layers = (keeper, grants) if inside else (grants, keeper)
    with handler(harness(**STACK)), handler(ScriptedModel("hi")), handler(layers[0]), handler(layers[1]):
        with pytest.raises(Denied, match=missing):
            assistant("?")
    assert not store.memories(SCOPE)


def test_with_all_of_them_it_remembers():
    store = InMemoryStore()
    with handler(harness(**STACK)), handler(ScriptedModel("hi")), handler(MemoryKeeper(store, SCOPE)):
        with handler(RecallPrompter()), handler(GrantEffects(*ALL)):
            assistant("?")
    assert len(store.memories(SCOPE)) == 1


def test_the_program_asks_as_well_and_what_is_remembered_can_be_amended():
    def judge(effect):
        if effect.name == "forget":
            return Disposition.DENY_STEP
        if effect.kind is EffectKind.MEMORY_WRITE:
            return Decision(arguments={**effect.arguments, "text": effect.arguments["text"].replace("secret", "…")})
        return None

    with handler(MemoryKeeper(InMemoryStore(), SCOPE)), handler(Policy(judge)):
        remember("the secret word")
        assert [memory.text for memory in recall("word")] == ["the … word"]
        with pytest.raises(StepDenied):
            forget(everything=True)
        assert recall("word")


def test_all_arguments_are_there_for_a_policy():
    seen = {}

    def judge(effect):
        seen[effect.name] = dict(effect.arguments)

    with handler(MemoryKeeper(InMemoryStore(), SCOPE)), handler(Policy(judge)):
        remember("a")
        recall()
        forget(everything=True)
    assert seen["forget"] == {"ids": (), "before": None, "everything": True}
    assert seen["recall"] == {"query": None, "limit": None, "kind": None}
    assert seen["remember"] == {"text": "a", "kind": "note", "tags": (), "metadata": None}


@pytest.mark.parametrize(
    ("name", "amended", "perform"),
    [
        ("remember", {"text": 5}, lambda: remember("a")),
        ("remember", {"tags": [1]}, lambda: remember("a")),
        ("remember", {"colour": "red"}, lambda: remember("a")),
        ("recall", {"limit": "many"}, lambda: recall("a")),
        ("forget", {"ids": "abc"}, lambda: forget("1")),
        ("forget", {"before": "noon"}, lambda: forget("1")),
        ("forget", {"everything": "yes"}, lambda: forget("1")),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
def test_what_is_amended_to_another_type_is_denied_by_name(name, amended, perform, caplog):
    def odd(effect):
        return Decision(arguments=amended) if effect.name == name else None

    store = InMemoryStore()
    store.write(SCOPE, [Memory("1", "kept", SCOPE)])
    with handler(MemoryKeeper(store, SCOPE)), handler(Policy(odd)):
        with pytest.raises(StepDenied, match="rule: odd"):
            perform()
    assert [memory.text for memory in store.memories(SCOPE)] == ["kept"]
    assert "the policy `odd`" in caplog.text


def test_what_is_amended_to_its_type_is_done():
    def narrow(effect):
        return Decision(arguments={"ids": ("1",), "everything": False}) if effect.name == "forget" else None

    store = InMemoryStore()
    store.write(SCOPE, [Memory("1", "a", SCOPE), Memory("2", "b", SCOPE)])
    with handler(MemoryKeeper(store, SCOPE)), handler(Policy(narrow)):
        assert forget(everything=True) == 1
    assert [memory.text for memory in store.memories(SCOPE)] == ["b"]
