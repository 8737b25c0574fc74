"""Random programs under a keeper, beside lists with what they should have left; and many of them at once."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import NetworkError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, RecallPrompter, SqliteMemoryStore
from effectful_agents.operations.memory import flush_memory, remember
from effectful_agents.runtime import Layers, propagate
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.memory.remembering import ANN, texts


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a skill: what it does by tools, one after the other, and whether it fails in the end."""

    does: tuple[Any, ...]
    fails: bool


@Tool.define(idempotent=True)
def note(text: str) -> str:
    """Note something."""
    return remember(text).text


@Tool.define(idempotent=True)
def publish() -> int:
    """Publish what was noted."""
    return flush_memory()


@Skill.define(recursive=True)
def work(text: str) -> str:
    """{text}"""
    raise NotHandled


NOTES = st.sampled_from(["tea", "milk", "sugar"])
ACTIONS = st.deferred(lambda: NOTES | st.just("publish") | INNER)
INNER = st.builds(Call, st.lists(ACTIONS, max_size=2).map(tuple), st.booleans())
CALLS = st.builds(Call, st.lists(ACTIONS, max_size=4).map(tuple), st.booleans())


def replies(call: Call) -> Iterator[Any]:
    """What the model replies in a call and in those inside it; a call inside that fails is told to the outer one."""
    for action in call.does:
        match action:
            case Call():
                yield calls("work", text="inner")
                yield from replies(action)
            case "publish":
                yield calls("publish")
            case _:
                yield calls("note", text=action)
    yield NetworkError("down") if call.fails else "Done."


def left(call: Call) -> list[str]:
    """What a call of the program leaves: all that was noted, or what was published before it failed."""
    published, pending = list[str](), list[str]()

    def go(call: Call) -> None:
        for action in call.does:
            if isinstance(action, Call):
                go(action)
            elif action == "publish":
                published.extend(pending)
                pending.clear()
            else:
                pending.append(action)

    go(call)
    return published if call.fails else [*published, *pending, "Asked: outer\nAnswered: Done."]


def run(program: list[Call], store: Any, *inside: Any) -> None:
    script = [reply for call in program for reply in replies(call)]
    stack = harness(system_prompt="brief", eval_provider="none")
    with handler(stack), handler(ScriptedModel(*script)) as model, handler(Layers(*inside, MemoryKeeper(store, ANN))):
        with handler(RecallPrompter()):
            for _ in program:
                with contextlib.suppress(NetworkError):
                    work("outer")
    assert model.remaining == 0


@given(st.lists(CALLS, max_size=4))
@settings(max_examples=30)
def test_a_program_leaves_what_its_calls_leave(program: list[Call]) -> None:
    store = InMemoryStore()
    run(program, store)
    assert texts(store.memories(ANN)) == [text for call in program for text in left(call)]


@given(st.lists(CALLS, max_size=3))
@settings(max_examples=15)
def test_in_a_run_it_leaves_the_same(program: list[Call]) -> None:
    store = InMemoryStore()
    run(program, store, Journal("monday", MemoryCheckpointer()))
    assert texts(store.memories(ANN)) == [text for call in program for text in left(call)]


def answered(request: Any) -> Any:
    return (
        "Done." if request["messages"][-1]["role"] == "tool" else calls("note", text=request["messages"][-1]["content"])
    )


def test_calls_in_threads_at_once_leave_what_each_left(tmp_path: Path) -> None:
    store, errors = SqliteMemoryStore(tmp_path / "memory.db"), list[BaseException]()

    def calling(number: int) -> None:
        try:
            for turn in range(4):
                work(f"{number}.{turn}")
        except BaseException as error:
            errors.append(error)

    with handler(harness(system_prompt="brief", eval_provider="none")), handler(ScriptedModel(*[answered] * 99)):
        with handler(MemoryKeeper(store, ANN)):
            threads = [threading.Thread(target=propagate(calling), args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert not errors
    expected = [f"{number}.{turn}" for number in range(4) for turn in range(4)]
    kept = texts(store.memories(ANN))
    assert sorted(kept) == sorted([*expected, *(f"Asked: {one}\nAnswered: Done." for one in expected)])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_calls_in_tasks_at_once_leave_what_each_left(tmp_path: Path, backend: str) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")

    async def all_at_once() -> None:
        with handler(harness(system_prompt="brief", eval_provider="none")), handler(ScriptedModel(*[answered] * 99)):
            with handler(MemoryKeeper(store, ANN)):
                async with anyio.create_task_group() as group:
                    for number in range(10):
                        group.start_soon(acall, work, str(number))

    anyio.run(all_at_once, backend=backend)
    assert len(store.memories(ANN)) == 20
