"""Any sequence of calls, failures, calls inside calls and restarts leaves in the file what a simple model says."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.errors import ToolCallExecutionError
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.operations.history import CompactionScope, compact_, get_history
from effectful_agents.operations.loop import completion
from effectful_agents.testing import calls, says
from tests.handlers.durability.keeping import restored, said, stack
from tests.messages.validity import faults

IDS = ["a", "b", None]
"""Two agents that are kept, and one that is not."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of an agent, and what happens in it.

    Attributes:
        agent: Its place in `IDS`.
        inside: The calls that its tool makes; an exception out of one of them is caught.
        end: How it ends: well, by an exception of its tool or of its model.
        compact: Whether the earlier calls are dropped from the conversation.
    """

    agent: int
    inside: tuple[Call, ...] = ()
    end: str = "well"
    compact: bool = False


agents = st.sampled_from([0, 0, 0, 1, 2])
ends = st.sampled_from(["well", "well", "tool", "model"])
leaves = st.builds(Call, agents, st.just(()), ends, st.booleans())
inner = st.lists(leaves, max_size=2).map(tuple)
nested = st.builds(Call, agents, st.lists(leaves | st.builds(Call, agents, inner, ends), max_size=2).map(tuple), ends)
# What happens, and in which of two processes: a call, or None for a restart.
programs = st.lists(st.tuples(st.integers(0, 1), leaves | nested | st.none()), min_size=2, max_size=8)


@dataclasses.dataclass
class Member(Agent):
    """Does as it is told."""

    __agent_id__: str | None
    done: list[str] = dataclasses.field(default_factory=list)

    @Skill.define
    def ask(self, label: str) -> str:
        """{label}"""
        raise NotHandled

    @Tool.define
    def act(self, label: str) -> None:
        """Do what a label stands for."""
        RUNNING[label](self)


RUNNING: dict[str, Any] = {}
FAILURES = (LookupError, ToolCallExecutionError)


class World:
    """The agents of two processes, for real."""

    def __init__(self) -> None:
        self.labels = map(str, range(10_000))
        self.processes = [self.started(), self.started()]
        self.problems: list[str] = []

    def started(self) -> list[Member]:
        return [Member(id) for id in IDS]

    def call(self, call: Call, members: list[Member]) -> None:
        label = next(self.labels)

        def act(member: Member) -> None:
            member.done.append(label)
            if call.compact:
                history: Any = get_history()
                compact_(history, history[-1]["tool_calls"][0]["id"], CompactionScope.CONVERSATION)
            for inner in call.inside:
                with contextlib.suppress(*FAILURES):
                    self.call(inner, members)
            if call.end == "tool":
                raise LookupError(label)

        def reply(**request: Any) -> Any:
            last = request["messages"][-1]
            self.problems += faults(request["messages"])
            if last["role"] == "user":
                return calls("act", label=label)
            if call.end == "model":
                raise LookupError(label)
            return says(label)

        RUNNING[label] = act
        with handler({completion: reply}):
            members[call.agent].ask("?")


@dataclasses.dataclass
class State:
    """What an agent is in memory, or in the file; and what of the file a process has seen."""

    answers: list[str] = dataclasses.field(default_factory=list)
    done: list[str] = dataclasses.field(default_factory=list)
    version: int = 0
    seen: list[str] | None = None


class Model:
    """The same in few words."""

    def __init__(self) -> None:
        self.file: dict[str, State] = {}
        self.labels = map(str, range(10_000))
        self.processes = [self.started(), self.started()]

    def started(self) -> list[State]:
        return [State() for _ in IDS]

    def call(self, call: Call, states: list[State], around: Mapping[int, list[str]]) -> None:
        """A call; `around` has for each agent that is being called what will follow its messages."""
        label, id, state = next(self.labels), IDS[call.agent], states[call.agent]
        outermost, later = call.agent not in around, list[str]()
        if outermost and id is not None:
            self.load(id, state)
        before = [] if call.compact else list(state.answers)
        state.done.append(label)
        for inner in call.inside:
            with contextlib.suppress(LookupError):
                self.call(inner, states, {**around, call.agent: later})
        if call.end != "well":
            raise LookupError
        if not outermost:
            around[call.agent].extend([label, *later])
            return
        state.answers = [*before, label, *later]
        if id is not None:
            state.version, state.seen = state.version + 1, list(state.done)
            self.file[id] = State(list(state.answers), list(state.done), state.version)

    def load(self, id: str, state: State) -> None:
        kept = self.file.get(id, State())
        if state.version != kept.version or state.seen is None:
            state.answers = list(kept.answers)
            if kept.version and state.seen in (None, state.done):
                state.done[:] = kept.done
            state.version, state.seen = kept.version, state.seen if state.seen is not None else list(state.done)
            if state.done == kept.done:
                state.seen = list(kept.done)


@pytest.mark.parametrize("examples", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_the_file_has_what_the_model_says(examples):
    # What stops a merge is a fault of the change, not of the day.
    chosen = settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    chosen(given(programs)(check))()


def check(program: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, world, model = f"{folder}/agents.db", World(), Model()
        with handler(stack(path)):
            for process, call in program:
                if call is None:
                    world.processes[process], model.processes[process] = world.started(), model.started()
                    continue
                with contextlib.suppress(*FAILURES):
                    world.call(call, world.processes[process])
                with contextlib.suppress(LookupError):
                    model.call(call, model.processes[process], {})
        assert world.problems == []
        assert set(SQLitePersister(path).agents()) == set(model.file)
        for id, expected in model.file.items():
            agent = restored(path, Member(id))
            assert faults(agent.__history__) == []
            assert (answers(agent.__history__), agent.done) == (expected.answers, expected.done)
        for members, states in zip(world.processes, model.processes, strict=True):
            for member, state in zip(members, states, strict=True):
                assert (answers(member.__history__), member.done) == (state.answers, state.done)


def answers(history: Any) -> list[str]:
    return [text for text in said(history) if text not in (None, "null")]
