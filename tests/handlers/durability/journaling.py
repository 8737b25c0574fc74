"""What tests of the journal share: a store that crashes, a model that counts, and a program of many kinds of steps."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator
from typing import Any

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.operations.loop import completion
from effectful_agents.testing import batch, calls, says


class Crash(BaseException):
    """The process ends here."""


class Crashing(MemoryCheckpointer):
    """A store whose process ends while it appends.

    Args:
        at: How many appends succeed before; None for all.
        written: Whether the one at which it ends was still written.
    """

    def __init__(self, at: int | None = None, written: bool = False) -> None:
        super().__init__()
        self.at = at
        self.written = written
        self.appends = 0

    def lease(self, run_id: str, *, seconds: float = 30.0) -> Any:
        return _Crashing(super().lease(run_id, seconds=seconds), self)

    def crash(self) -> bool:
        self.appends += 1
        return self.at is not None and self.appends > self.at


class _Crashing:
    def __init__(self, lease: Any, store: Crashing) -> None:
        self.renew, self.release, self._lease, self._store = lease.renew, lease.release, lease, store

    def append(self, *records: Any) -> None:
        crashes = self._store.crash()
        if not crashes or self._store.written:
            self._lease.append(*records)
        if crashes:
            raise Crash


def plays(*replies: Any) -> tuple[Any, list[Any]]:
    """A model that answers by what the conversation is at, so that it can be asked again; and what it was asked."""
    asked: list[Any] = []

    def answer(**request: Any) -> Any:
        asked.append(request)
        turns = sum(message["role"] == "assistant" for message in request["messages"])
        said = [message["content"] for message in request["messages"] if message["role"] == "user"][-1]
        script = next(each for key, each in replies if key in said)
        reply = script[turns]
        return says(reply) if isinstance(reply, str) else reply

    return {completion: answer}, asked


@dataclasses.dataclass
class World:
    """What a program changes outside of itself."""

    paid: list[int] = dataclasses.field(default_factory=list)
    looked: list[str] = dataclasses.field(default_factory=list)


def a_program(world: World) -> Callable[[], Any]:
    """A program with every kind of step; it returns what it came to, its own objects included."""

    @Tool.define
    def pay(amount: int) -> int:
        """Pay an amount."""
        world.paid.append(amount)
        return amount * 100

    @Tool.define(idempotent=True)
    def look(where: str) -> str:
        """Look somewhere."""
        world.looked.append(where)
        return f"nothing in {where}"

    @Tool.define(concurrent=True)
    def post(letter: str) -> str:
        """Post a letter."""
        world.looked.append(letter)
        return f"posted {letter}"

    @Skill.define(tools=False)
    def advise(topic: str) -> str:
        """Give advice on {topic}, dear helper."""
        raise NotHandled

    @Skill.define
    def work(goal: str) -> str:
        """Work on {goal}, dear worker."""
        raise NotHandled

    @dataclasses.dataclass
    class Clerk:
        notes: list[str] = dataclasses.field(default_factory=list)

        @Tool.define
        def note(self, text: str) -> str:
            """Note something."""
            self.notes.append(text)
            return f"{len(self.notes)} notes"

        @Skill.define
        def ask(self, question: str) -> str:
            """Answer the question: {question}"""
            raise NotHandled

    def program() -> Any:
        clerk = Clerk()
        first = work("peace")
        second = clerk.ask("one?")
        third = clerk.ask("two?")
        return first, second, third, clerk.notes, [message["role"] for message in clerk.__history__]

    return program


MODEL = (
    ("dear helper", ["be kind"]),
    (
        "dear worker",
        [
            calls("pay", amount=3),
            calls("advise", topic="war"),
            calls("look", where="the east"),
            batch(calls("post", letter="a", id="a"), calls("post", letter="b", id="b")),
            calls("exec_code", code="from math import sqrt\nspent = pay(7)\nprint(spent, advise('peace'))"),
            "worked",
        ],
    ),
    ("Answer the question", [calls("note", text="first"), "yes", calls("note", text="second"), "no"]),
)

RESULT = (
    "worked",
    "yes",
    "no",
    ["first", "second"],
    ["user", "assistant", "tool", "assistant"] * 2,
)


@contextlib.contextmanager
def running(store: Any, plays: Any, run_id: str = "run", **options: Any) -> Generator[Journal]:
    """A block in which a program is a run."""
    # Brief: the full system message tells of all local variables of the test.
    options = {"system_prompt": "brief", "eval_provider": "builtin", "type_checker": "none", **options}
    with handler(harness(**options)), handler(plays), handler(Journal(run_id, store)) as journal:
        yield journal
