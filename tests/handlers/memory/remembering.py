"""What tests of the memory share: a skill, its stack, and a look at what its model was sent."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, RecallPrompter
from effectful_agents.operations.memory import (
    Memory,
    MemoryScope,
    consolidate_memory,
    flush_memory,
    forget,
    recall,
    remember,
)
from effectful_agents.operations.world import fresh_id, now
from effectful_agents.runtime import Layers, Operation, fwd
from effectful_agents.testing import ScriptedModel

ANN = MemoryScope("acme", user="ann")
BOB = MemoryScope("acme", user="bob")

EFFECTS: dict[Operation[..., Any], str] = {
    recall: "recall",
    remember: "remember",
    forget: "forget",
    flush_memory: "flush",
    consolidate_memory: "consolidate",
}


@Skill.define
def chat(text: str) -> str:
    """{text}"""
    raise NotHandled


@contextlib.contextmanager
def remembering(
    *replies: Any, keeper: MemoryKeeper | None = None, shown: bool = True, **options: Any
) -> Generator[Any]:
    """A stack with a memory, and a clock that counts; gives the model."""
    keeper = keeper or MemoryKeeper(InMemoryStore(), ANN, **options)
    ids, times = itertools.count(1), itertools.count(1000)
    world = {fresh_id: lambda: f"id {next(ids)}", now: lambda: float(next(times))}
    inside = [keeper, *([RecallPrompter()] if shown else [])]
    stack = harness(system_prompt="brief", eval_provider="none")
    with handler(stack), handler(ScriptedModel(*replies)) as model, handler(world), handler(Layers(*inside)):
        yield model


def performed(calls: list[Any]) -> dict[Any, Callable[..., Any]]:
    """A handler that notes which effects are performed, with their arguments."""

    def noting(name: str) -> Callable[..., Any]:
        def note(*args: Any, **kwargs: Any) -> Any:
            calls.append((name, *args, *sorted(kwargs.items())))
            return fwd()

        return note

    return {operation: noting(name) for operation, name in EFFECTS.items()}


def refusing(operation: Any, error: BaseException) -> dict[Any, Callable[..., Any]]:
    """A policy that refuses an effect."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return {operation: refuse}


def said(request: Any) -> str:
    """The last user message of a request."""
    return next(message["content"] for message in reversed(request["messages"]) if message["role"] == "user")


def texts(memories: Sequence[Memory]) -> list[str]:
    return [memory.text for memory in memories]
