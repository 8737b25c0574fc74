"""Stores and ledgers of the program's own classes are closed to restricted code, as those of the package are."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler, harness
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.memory import InMemoryStore
from effectful_agents.handlers.policy import MemoryLedger
from effectful_agents.operations.memory import Memory, MemoryScope
from effectful_agents.testing import ScriptedModel, calls


class MyStore:
    """A store with the methods of `MemoryStore`, which derives from nothing."""

    def __init__(self) -> None:
        self._inner = InMemoryStore()

    def write(self, scope: Any, memories: Any, *, batch: str = "") -> None:
        self._inner.write(scope, memories, batch=batch)

    def flush(self, scope: Any, batch: str) -> int:
        return self._inner.flush(scope, batch)

    def search(self, scope: Any, query: str, limit: int, kind: str | None = None) -> Any:
        return self._inner.search(scope, query, limit, kind)

    def recent(self, scope: Any, limit: int, kind: str | None = None) -> Any:
        return self._inner.recent(scope, limit, kind)

    def memories(self, scope: Any, limit: int | None = None) -> Any:
        return self._inner.memories(scope, limit)

    def replace(self, scope: Any, ids: Any, memories: Any) -> bool:
        return self._inner.replace(scope, ids, memories)

    def forget(self, scope: Any, ids: Any = (), *, before: float | None = None, everything: bool = False) -> int:
        return self._inner.forget(scope, ids, before=before, everything=everything)


class MyLedger:
    """A ledger with the methods of `ConsumptionLedger`."""

    def __init__(self) -> None:
        self._inner = MemoryLedger()

    def ask(self, question: Any, *, instead_of: str = "") -> Any:
        return self._inner.ask(question, instead_of=instead_of)

    def find(self, token_id: str) -> Any:
        return self._inner.find(token_id)

    def consume(self, token_id: str, answer: Any, at: float) -> Any:
        return self._inner.consume(token_id, answer, at)

    def answer_for(self, run_id: str, step_id: str, digest: str) -> Any:
        return self._inner.answer_for(run_id, step_id, digest)

    def questions(self, run_id: str | None = None, *, open_at: float | None = None) -> Any:
        return self._inner.questions(run_id, open_at=open_at)

    def forget(self, run_id: str) -> None:
        self._inner.forget(run_id)


class MyRuns:
    """A checkpointer with the methods of `Checkpointer`."""

    def __init__(self) -> None:
        self._inner = MemoryCheckpointer()

    def append(self, *records: Any) -> None:
        self._inner.append(*records)

    def load(self, run_id: str) -> Any:
        return self._inner.load(run_id)


class Notebook:
    """A class of the program's that is none of these."""

    def __init__(self) -> None:
        self.pages = ["one"]

    def append(self, page: str) -> None:
        self.pages.append(page)

    def load(self, number: int) -> str:
        return self.pages[number]


bob = MemoryScope("acme", user="bob")
store, ledger, runs, notebook = MyStore(), MyLedger(), MyRuns(), Notebook()
store.write(bob, [Memory("1", "Bob's secret", bob)])


@Skill.define
def work(order: str) -> str:
    """{order}"""
    raise NotHandled


def told(code: str) -> str:
    model = ScriptedModel(calls("exec_code", code=code), "done")
    with handler(harness(eval_provider="restricted", type_checker="none", system_prompt="brief")), handler(model):
        work("go")
    return str(model.requests[-1]["messages"][-1]["content"])


@pytest.mark.parametrize(
    "code",
    [
        "print(store.recent(bob, 9))",
        "store.forget(bob, everything=True)",
        "recent = getattr(store, 'recent')\nprint(recent(bob, 9))",
        "print(MyStore.recent(store, bob, 9))",
        "match store:\n    case MyStore(_inner=inner):\n        print(inner)",
        "class Mine(MyStore):\n    pass\nprint(Mine.recent(store, bob, 9))",
        "print(ledger.questions())",
        "ledger.consume('x', None, 0.0)",
        "print(runs.load('main'))",
        "from operator import methodcaller\nprint(methodcaller('recent', bob, 9)(store))",
    ],
)
def test_code_reaches_none_of_them(code):
    said = told(code)
    assert "secret" not in said
    assert "not available" in said or "cannot" in said
    assert [memory.text for memory in store.recent(bob, 9)] == ["Bob's secret"]


def test_what_is_none_of_them_stays_open():
    assert "two" in told("notebook.append('two')\nprint(notebook.load(1))")
