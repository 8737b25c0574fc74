"""Random programs, which tests run under a journal: what they call, what they come to, and what they do outside."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, Tool, acall
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.operations.journal import record
from effectful_agents.operations.loop import completion
from effectful_agents.testing import batch, calls, says
from tests.handlers.durability.journaling import Crash

# --- what programs are made of ----------------------------------------------------------------------------------------

# What code calls: a tool that may not happen twice, one that may, one that raises after it happened.
_TOOLS = st.sampled_from(["pay", "look", "broken"])

# What a model calls in one turn.
_CALLS = st.recursive(
    st.one_of(
        st.sampled_from(["pay", "look", "broken", "post", "note", "count", "ask_expert", "advise"]),
        st.tuples(st.just("code"), st.lists(st.sampled_from(["pay", "look", "advise"]), min_size=1, max_size=3)),
    ),
    lambda inner: st.tuples(st.just("work"), st.lists(st.lists(inner, min_size=1, max_size=2), max_size=2)),
    max_leaves=3,
)

# The turns before the answer. One of several calls has none with code, which is alone in its turn.
_TURNS = st.lists(st.lists(_CALLS, min_size=1, max_size=3), max_size=3)

# What a program does.
STATEMENTS = st.recursive(
    st.one_of(
        st.tuples(st.just("tool"), _TOOLS),
        st.tuples(st.just("record"), st.none()),
        st.tuples(st.sampled_from(["work", "clerk", "malformed"]), _TURNS),
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("catch"), inner),
        st.tuples(st.just("twice"), inner),
        st.tuples(st.just("together"), st.lists(_TURNS, min_size=2, max_size=3)),
    ),
    max_leaves=4,
)

PROGRAMS = st.lists(STATEMENTS, min_size=1, max_size=4)


@dataclasses.dataclass
class World:
    """What programs do outside: each kind of effect with what it was done to."""

    certain: list[str] = dataclasses.field(default_factory=list)
    """What may not happen twice."""
    repeatable: list[str] = dataclasses.field(default_factory=list)
    asked: int = 0
    """Requests to the model."""


class Program:
    """A program, its tools, and the model that it talks to.

    Args:
        statements: What it does.
        world: What its tools change.
    """

    def __init__(self, statements: Sequence[Any], world: World) -> None:
        self.statements = statements
        self.world = world
        self.scripts: dict[str, list[Any]] = {}
        self._jobs = itertools.count(1)
        self._marks = itertools.count(1)
        self._values = itertools.count(1)

    def model(self) -> Any:
        """Handles `completion`: answers by the job that the last user message names, and the turns since."""

        def answer(**request: Any) -> Any:
            self.world.asked += 1
            said = [(place, str(message["content"])) for place, message in enumerate(request["messages"])]
            place, text = [
                (place, text) for place, text in said if "job-" in text and request["messages"][place]["role"] == "user"
            ][-1]
            job = "job-" + text.partition("job-")[2].split()[0]
            turns = sum(message["role"] == "assistant" for message in request["messages"][place:])
            return self.scripts[job][turns]

        return {completion: answer}

    def _job(self, turns: Sequence[Sequence[Any]], answer: Sequence[Any] = ("done",), by: str = "") -> str:
        """A job of the model's: its replies are written down, and then its name is told."""
        job = f"job-{next(self._jobs)}"
        script: list[Any] = []
        for turn in turns:
            if any(isinstance(call, tuple) and call[0] == "code" for call in turn):
                turn = turn[:1]
            made = [self._call(call, f"c{number}", by) for number, call in enumerate(turn)]
            script.append(batch(*made) if len(made) > 1 else made[0])
        self.scripts[job] = [*script, *map(says, answer)]
        return job

    def _mark(self) -> str:
        return f"mark-{next(self._marks)}"

    def _call(self, call: Any, id: str, by: str) -> Any:
        match call:
            case "work", turns:
                other = "help_out" if by == "work" else "work"  # no skill is a tool of its own
                return calls(other, id=id, job=self._job(turns, by=other))
            case "code", names:
                lines = [f"print({name}({self._argument(name)!r}))" for name in names]
                return calls("exec_code", id=id, code="\n".join(["kept = []", *lines]))
            case "advise":
                return calls("advise", id=id, job=self._argument("advise"))
            case name:
                return calls(name, id=id, what=self._argument(name))

    def _argument(self, name: str) -> str:
        return self._job([]) if name in ("advise", "ask_expert") else self._mark()

    def __call__(self) -> Any:
        """Run it; what it comes to, what its objects are then, and what it raises."""
        world = self.world

        @Tool.define
        def pay(what: str) -> str:
            """Pay."""
            world.certain.append(what)
            return f"paid {what}"

        @Tool.define(idempotent=True)
        def look(what: str) -> str:
            """Look."""
            world.repeatable.append(what)
            return f"saw {what}"

        @Tool.define
        def broken(what: str) -> str:
            """Break."""
            world.certain.append(what)
            raise RuntimeError(f"broke {what}")

        @Tool.define(concurrent=True)
        def post(what: str) -> str:
            """Post."""
            world.certain.append(what)
            return f"posted {what}"

        counted: list[str] = []

        @Tool.define(rerun=True)
        def count(what: str) -> str:
            """Count."""
            counted.append(what)
            return f"{len(counted)} counted"

        @Skill.define(tools=False)
        def advise(job: str) -> str:
            """Advise on {job} dear helper."""
            raise NotHandled

        @dataclasses.dataclass
        class Expert:
            @Skill.define(tools=False)
            def explain(self, job: str) -> str:
                """Explain {job} dear expert."""
                raise NotHandled

        expert = Expert()

        @Tool.define
        def ask_expert(what: str) -> str:
            """Ask an expert."""
            return expert.explain(what)

        @dataclasses.dataclass
        class Clerk:
            notes: list[str] = dataclasses.field(default_factory=list)

            @Tool.define
            def note(self, what: str) -> str:
                """Note."""
                self.notes.append(what)
                return f"{len(self.notes)} notes"

            @Skill.define
            def serve(self, job: str) -> str:
                """Serve in {job} dear clerk."""
                raise NotHandled

        clerk = Clerk()
        note = clerk.note

        @Skill.define
        def work(job: str) -> str:
            """Work on {job} dear worker."""
            raise NotHandled

        @Skill.define
        def help_out(job: str) -> str:
            """Help out with {job} dear helper."""
            raise NotHandled

        @Skill.define
        def number(job: str) -> int:
            """Work on {job} for a number."""
            raise NotHandled

        tools = {"pay": pay, "look": look, "broken": broken}

        async def together(jobs: Sequence[str]) -> list[str]:
            return list(await asyncio.gather(*(acall(work, job) for job in jobs)))

        def do(statement: Any) -> Any:
            match statement:
                case "tool", name:
                    return tools[name](self._mark())
                case "record", _:
                    return record(lambda: f"value {next(self._values)}").partition(" ")[0]
                case "work", turns:
                    return work(self._job(turns, by="work"))
                case "clerk", turns:
                    return clerk.serve(self._job(turns))
                case "malformed", turns:
                    return number(self._job(turns, ["no number", '{"value": 7}']))
                case "twice", inner:
                    return [do(inner), do(inner)]
                case "together", several:
                    return asyncio.run(together([self._job(turns, by="work") for turns in several]))
                case "catch", inner:
                    try:
                        return do(inner)
                    except RuntimeError as error:
                        return f"caught {error}"

        values, raised = [], ""
        try:
            for statement in self.statements:
                values.append(do(statement))
        except RuntimeError as error:
            raised = str(error)
        finally:
            del note
        histories = [[message["role"] for message in each.__history__] for each in (clerk, expert)]
        return values, raised, clerk.notes, counted, histories


# --- processes that end -----------------------------------------------------------------------------------------------


class Mortal(MemoryCheckpointer):
    """A store whose process ends while it appends: afterwards nothing more of that process is written.

    Attributes:
        at: How many appends succeed before; None for all.
        written: Whether the one at which it ends is still written.
    """

    at: int | None = None
    written = False
    appends = 0

    def lease(self, run_id: str, *, seconds: float = 30.0) -> Any:
        lease = super().lease(run_id, seconds=seconds)
        append = lease.append

        def mortal(*records: Any) -> None:
            self.appends += 1
            if self.at is None or self.appends <= self.at:
                append(*records)
                return
            if self.appends == self.at + 1 and self.written:
                append(*records)
            raise Crash

        lease.append = mortal  # ty: ignore[invalid-assignment]
        return lease


def lives(store: Mortal, at: int | None, written: bool, run: Callable[[], Any]) -> Any:
    """Run something in a process that ends at an append; None if it did."""
    store.at, store.written, store.appends = at, written, 0
    with contextlib.suppress(Crash):
        return run()
    return None


def counted(world: World) -> tuple[Counter[str], Counter[str]]:
    """What happened, and how often."""
    return Counter(world.certain), Counter(world.repeatable)
