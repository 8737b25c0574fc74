"""What a call leaves is told from the rest by its place in the run: other words after a crash are no second memory."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper
from effectful_agents.operations.memory import consolidate_memory, remember
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.durability.journaling import Crash, Crashing
from tests.handlers.memory.remembering import ANN, texts
from tests.handlers.memory.test_runs import CrashingStore

WORDING = itertools.count(1)


def wordy(request: str, answer: str) -> list[str]:
    """An extractor that says it in other words each time, now in more and now in fewer memories."""
    version = next(WORDING)
    return [f"{request} {place}, version {version}" for place in range(1 + version % 3)]


@Tool.define(idempotent=True)
def note(text: str) -> str:
    """Note something."""
    remember(f"{text}, version {next(WORDING)}")
    return "noted"


@Skill.define
def work(text: str) -> str:
    """{text}"""
    raise NotHandled


def model(request: Any) -> Any:
    return "Done." if request["messages"][-1]["role"] == "tool" else calls("note", text="Note")


def run(store: Any, checkpointer: Any, extractor: Any = wordy, **options: Any) -> Any:
    stack = harness(system_prompt="brief", eval_provider="none")
    with handler(stack), handler(ScriptedModel(*[model] * 9)), handler(Journal("monday", checkpointer)):
        with handler(MemoryKeeper(store, ANN, extractor=extractor, **options)):
            return work("Tea.")


def check(store: Any) -> None:
    noted, *extracted = texts(store.memories(ANN))
    assert noted.startswith("Note, version ")
    # What one asking has given, all of it.
    (version,) = {text.rpartition(" ")[2] for text in extracted}
    assert [text.partition(",")[0] for text in extracted] == [f"Tea. {n}" for n in range(1 + int(version) % 3)]


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_wherever_the_journal_ends(written: bool) -> None:
    for at in range(99):
        store, checkpointer = InMemoryStore(), Crashing(at, written)
        with contextlib.suppress(Crash):
            run(store, checkpointer)
        ended, checkpointer.at = checkpointer.appends <= at, None
        for _ in range(2):
            assert run(store, checkpointer) == "Done."
        check(store)
        if ended:
            break
    assert at > 5


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_wherever_the_store_ends(written: bool) -> None:
    for at in range(1, 99):
        store, checkpointer = CrashingStore(at, written), MemoryCheckpointer()
        with contextlib.suppress(Crash):
            run(store, checkpointer)
        ended, store.at = store.changes < at, 0
        for _ in range(2):
            assert run(store, checkpointer) == "Done."
        check(store)
        if ended:
            break
    assert at > 2


def test_an_extractor_that_raised_is_asked_again() -> None:
    def once(request: str, answer: str) -> list[str]:
        if next(attempts) == 0:
            raise KeyError("out of order")
        return ["Mended."]

    attempts, store, checkpointer = itertools.count(), InMemoryStore(), MemoryCheckpointer()
    with pytest.raises(KeyError):
        run(store, checkpointer, once)
    assert texts(store.memories(ANN)) == []
    assert run(store, checkpointer, once) == "Done."
    assert [text.partition(",")[0] for text in texts(store.memories(ANN))] == ["Note", "Mended."]


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_many_become_few_once(written: bool) -> None:
    def program(store: Any, checkpointer: Any) -> list[str]:
        keeper = MemoryKeeper(store, ANN, consolidator=lambda old: [f"{len(old)} in version {next(WORDING)}"])
        with handler(Journal("monday", checkpointer)), handler(keeper):
            for text in ("One.", "Two.", "Three."):
                remember(text)
            return texts(consolidate_memory())

    for at in range(1, 99):
        store, checkpointer = CrashingStore(at, written), MemoryCheckpointer()
        with contextlib.suppress(Crash):
            program(store, checkpointer)
        ended, store.at = store.changes < at, 0
        for _ in range(2):
            assert program(store, checkpointer) == texts(store.memories(ANN))
        assert [text.partition(" in ")[0] for text in texts(store.memories(ANN))] == ["3"]
        if ended:
            break
