"""What a provider may still have of a prompt, from whichever prompt came before; and what a fork shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, handler, harness
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.observability import economy
from effectful_agents.handlers.observability.context_economy.kept import SentPrompts
from effectful_agents.handlers.observability.context_economy.prompts import Counter, Definition, Prompt, Said
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.observability.test_economy import Guide, journalled, reported, trip


def test_a_prompt_that_goes_on_from_an_earlier_one_has_that_in_the_cache() -> None:
    """Each of two skills has tools of its own, so their calls differ at once; each goes on from its own last one."""

    class Pair(Agent):
        """You know two things."""

        @Skill.define
        def one(self, word: str) -> str:
            """One of {word}."""
            raise NotHandled

        @Skill.define
        def two(self, word: str) -> str:
            """Two of {word}."""
            raise NotHandled

    pair = Pair()
    turns = journalled(lambda: [skill(word) for word in "abc" for skill in (pair.one, pair.two)], *["Yes."] * 6).turns
    for place in range(2, 6):
        turn, before = turns[place], turns[place - 1]
        assert turn.agreed == turns[place - 2].tokens
        assert turn.broken is not None
        assert turn.broken.lost == max(0, before.tokens - turn.agreed) < before.tokens / 3


def test_a_model_has_only_what_it_was_sent_itself() -> None:
    replies = [reported(calls("weather", city="Oslo"), 100, model=model) for model in ("a", "b", "a", "b")]
    turns = journalled(lambda: trip("May"), *replies, "3").turns
    assert [turn.agreed for turn in turns[:4]] == [0, 0, turns[0].tokens, turns[1].tokens]
    assert [turn.broken is not None for turn in turns[:4]] == [False, True, True, True]


def test_it_takes_time_in_proportion_to_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in messages that are looked at, of skills that alternate and of tools that never come again."""
    looked = 0
    before = Said.__dict__["before"]

    def look(said: Said) -> Any:
        nonlocal looked
        looked += 1
        return before.__get__(said)

    def conversation(turns: int, tools: Callable[[int], int]) -> int:
        nonlocal looked
        count, sent, end = Counter(None), SentPrompts(), Said()
        looked = 0
        for turn in range(turns):
            end = end.then({"role": "user", "content": str(turn)}, count)
            name = f"tool-{tools(turn)}"
            with monkeypatch.context() as patch:
                patch.setattr(Said, "before", property(look, before.__set__))
                sent.take(Prompt(end, [Definition.of(name, name, count)]), "m")
        return looked

    short, long = (conversation(turns, lambda turn: turn % 2) for turns in (100, 200))
    assert 200 <= short < long <= 2 * short + 20
    assert conversation(200, lambda turn: turn) == 0


def test_a_fork_tells_of_the_turns_that_it_shares() -> None:
    store, guide = MemoryCheckpointer(), Guide()
    replies = [reported(word, 100, 0, model="gpt-5-mini") for word in ("North.", "Now.")]
    stack = harness(system_prompt="brief", eval_provider="none", model="gpt-5-mini")
    with handler(stack), handler(ScriptedModel(*replies)), handler(Journal("run", store)):
        guide.ask("Where?")
        guide.ask("When?")
    first, second = economy(store.load("run")).turns
    store.fork("run", "whole")
    store.fork("run", "begun", second.step_id)
    assert economy(store.load("whole")).turns == (first, second)
    assert economy(store.load("begun")).turns == (first,)
