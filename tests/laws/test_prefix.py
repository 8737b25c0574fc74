"""The law of the prefix: each request of a conversation begins as the one before it, whatever handlers there are.

A provider's cache then has all but what is new. A handler that has to change it says so in its docstring.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.observability import economy
from effectful_agents.operations.loop import call_assistant
from effectful_agents.operations.steps import StepEvent, emit
from effectful_agents.runtime import Layers, ObjectInterpretation, fwd, implements
from effectful_agents.testing import calls
from tests.laws.programs import Guide
from tests.laws.registry import NEEDED, SAMPLES, Surroundings

PLACES = {cls: place for place, cls in enumerate(SAMPLES)}
REPLIES = (
    calls("measure", text="a"),
    calls("measure", text="bb"),
    "Three.",
    calls("measure", text="c"),
    *["Four."] * 5,
)


def says_so(cls: type) -> bool:
    """Whether a handler says of itself that the beginning of requests may change."""
    said = " ".join((cls.__doc__ or "").split())
    return "prefix" in said or "the beginning of the requests" in said


def breaks_of(stack: Any) -> list[str]:
    """What breaks the prefix of a conversation of two calls, but for replies that were refused."""
    events: list[StepEvent] = []

    def hear(event: Any) -> None:
        if isinstance(event, StepEvent):
            events.append(event)
        fwd()

    guide = Guide()
    with handler(stack), handler({emit: hear}), contextlib.suppress(AgentsError):
        guide.tell("How long are these?")
        guide.tell("And this?")
    seen = economy(events)
    assert seen.turns
    return [str(broken) for _, broken in seen.breaks if broken.by != "TenacityRetryer"]


def stack_of(around: Surroundings, *classes: type) -> Layers:
    return Layers(*(SAMPLES[one](around) for one in sorted({*NEEDED, *classes}, key=PLACES.__getitem__)))


@pytest.mark.parametrize("cls", SAMPLES, ids=lambda cls: cls.__name__)
def test_a_conversation_keeps_its_prefix(cls: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    assert not breaks_of(stack_of(Surroundings(tmp_path, REPLIES), cls)) or says_so(cls)


def test_a_handler_that_does_not_is_found(tmp_path: Path) -> None:
    class Clock(ObjectInterpretation[Any, Any]):
        """Tell the model what time it is."""

        time = 0

        @implements(call_assistant)
        def call_assistant(self, messages: Any, *rest: Any) -> Any:
            Clock.time += 1
            system, *others = messages
            return fwd([{**system, "content": f"It is {Clock.time}."}, *others], *rest)

    found = breaks_of(Layers(stack_of(Surroundings(tmp_path, REPLIES)), Clock()))
    assert len(found) == 4
    assert "It is 1." in found[0]
