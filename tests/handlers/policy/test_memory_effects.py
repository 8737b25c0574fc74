"""Memory and policies: nothing is read or written without the grant."""

from __future__ import annotations

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import Denied, StepDenied
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, RecallPrompter
from effectful_agents.handlers.policy import GrantEffects, Policy
from effectful_agents.operations.memory import MemoryScope, forget, recall, remember
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
