"""Programs that the laws are tried on: what they do under a stack is written down, so that stacks can be compared."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import Layers
from effectful_agents.testing import ReplayModel, ScriptedModel, batch, calls, says
from tests.laws.registry import ABSENT, SAMPLES, Make, Surroundings


@dataclasses.dataclass(frozen=True)
class Place:
    """A place on a map."""

    name: str
    north: float = 0.0


@Tool.define
def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


@Tool.define
def break_down() -> None:
    """Break down."""
    raise LookupError("broken down")


@Skill.define
def ask(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def find(count: Annotated[int, pydantic.Field(ge=0)]) -> Place:
    """Find a place after {count} steps."""
    raise NotHandled


class Guide(Agent):
    """A guide."""

    @Skill.define
    def tell(self, text: str) -> str:
        """{text}"""
        raise NotHandled

    @Skill.define
    def look(self) -> Place:
        """Look around."""
        raise NotHandled


def _again(guide: Guide) -> list[str]:
    """Two objects that are the same agent, as in two processes."""
    other = Guide()
    guide.__agent_id__ = other.__agent_id__ = "guide"
    return [guide.tell("Hello"), other.tell("And?")]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, and what its model replies; without replies it has no scripted model at all."""

    run: Callable[[Guide], Any]
    replies: tuple[Any, ...] | None


PROGRAMS: dict[str, Program] = {
    "calls of tools": Program(
        lambda guide: ask("How long?"),
        (
            batch(calls("measure", id="a", text="abc"), calls("measure", id="b", text="")),
            calls("break_down"),
            "Three.",
        ),
    ),
    "code": Program(
        lambda guide: guide.tell("Hello"),
        (
            calls("exec_code", code="longer = text * 2\nprint(longer)"),
            calls("measure", call="measure(text)"),
            calls("write_and_run_body", implementation={"code": "def tell(self, text):\n    return text + '?'"}),
            "That was code.",
        ),
    ),
    "malformed replies": Program(
        lambda guide: find(1),
        (
            calls("nobody"),
            batch(calls("measure", text="x"), calls("measure", id="b", length=3)),
            says("Somewhere."),
            Place("Rome"),
        ),
    ),
    "replies that never fit": Program(lambda guide: find(1), tuple(says("Nowhere.") for _ in range(9))),
    "typed answers": Program(lambda guide: [find(0), find(2)], (Place("Oslo", 59.9), Place("Rome"))),
    "an argument that does not fit": Program(lambda guide: find(-1), (Place("Rome"),)),
    "an argument that is converted": Program(lambda guide: find("3"), (Place("Rome"),)),  # ty: ignore
    "an agent with two calls": Program(
        lambda guide: [guide.tell("Hello"), guide.look(), guide.tell("And?")],
        ("Hi.", calls("guide__tell", text="?"), calls("tell", text="inner"), "Inner.", Place("Here"), "That."),
    ),
    "an agent that comes again": Program(_again, ("Hi.", "That.")),
    "a call that fails": Program(
        lambda guide: [guide.tell("Hello"), guide.look()], ("Hi.", calls("measure", text="x"), RuntimeError("down"))
    ),
    "a request for a local model": Program(
        lambda guide: completion(model=ABSENT, messages=[{"role": "user", "content": "?"}]), (says("Scripted."),)
    ),
    "a request that nobody answers": Program(
        lambda guide: completion(model=ABSENT, messages=[{"role": "user", "content": "?"}]), None
    ),
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What can be seen of a program from outside.

    Attributes:
        value: What it returned, or the exception that came out.
        requests: What its model was sent.
        history: What its agent remembers.
        dumped: The system message in the file of a dumper.
        shown: Whether anything was written to the terminal.
    """

    value: str
    requests: str
    history: str
    dumped: str
    shown: bool

    def with_sections_in_any_order(self) -> tuple[Any, ...]:
        """The same with the lines of system messages sorted, each line once."""

        def any_order(text: str) -> list[str]:
            return sorted(set(text.split("\n")))

        def in_any_order(messages: Any) -> Any:
            return [
                {**message, "content": any_order(message["content"])} if message["role"] == "system" else message
                for message in messages
            ]

        requests = [{**one, "messages": in_any_order(one["messages"])} for one in json.loads(self.requests)]
        return self.value, requests, in_any_order(json.loads(self.history)), any_order(self.dumped), self.shown


def outcome(program: Program, stack: Sequence[type], samples: Mapping[type, Make] = SAMPLES) -> Outcome:
    """Run a program under a stack of samples, the outermost first."""
    with tempfile.TemporaryDirectory() as folder:
        around = Surroundings(Path(folder), program.replies or ())
        handlers = [samples[cls](around) for cls in stack if program.replies is not None or cls is not ScriptedModel]
        models = [one for one in handlers if isinstance(one, ScriptedModel | ReplayModel)]
        guide = Guide()
        with handler(Layers(*handlers)):
            try:
                value = repr(program.run(guide))
            except Exception as error:
                value = f"{type(error).__name__}: {error}"
        return Outcome(
            value=value,
            requests=json.dumps([request for model in models for request in model.requests]),
            history=json.dumps(guide.__history__),
            dumped=around.dump.read_text() if around.dump.exists() else "",
            shown=bool(around.terminal.getvalue()),
        )
