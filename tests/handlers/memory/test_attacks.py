"""Whoever tries to read another one's memory, to keep what was forgotten, or to leave half of something."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import StorageError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, MemoryTools, RecallPrompter, SqliteMemoryStore
from effectful_agents.operations.memory import Memory, MemoryScope, recall, remember
from effectful_agents.runtime import Layers, propagate
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.memory.remembering import ANN, texts

BOB = MemoryScope("acme", user="bob")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return InMemoryStore() if request.param == "memory" else SqliteMemoryStore(tmp_path / "m.db")


class Clerk(Agent):
    """Serves one user."""

    @Skill.define
    def serve(self, text: str) -> str:
        """{text}"""
        raise NotHandled


@Skill.define
def chat(text: str) -> str:
    """{text}"""
    raise NotHandled


def stack(store: Any, scope: MemoryScope, model: Any, *more: Any) -> Any:
    base = harness(system_prompt="brief", eval_provider="none")
    return handler(Layers(base, model, MemoryKeeper(store, scope), RecallPrompter(), MemoryTools(), *more))


# --- other scopes -----------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    ["", "acme", "*", "%", "_", '"', "'", "\x00", '["acme", "ann", "", ""]', "acme\x00ann", "' OR 1=1"]
)
SCOPES = st.builds(MemoryScope, PARTS.filter(bool), PARTS, PARTS, PARTS)


@settings(max_examples=25, deadline=None)
@given(st.lists(SCOPES, min_size=2, max_size=4, unique=True), st.sampled_from(["tea", '"', "scope:*", "* OR tea", "'"]))
def test_no_text_in_a_scope_opens_another_one(scopes: list[MemoryScope], query: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for store in (InMemoryStore(), SqliteMemoryStore(Path(folder) / "m.db")):
            check_scopes(store, scopes, query)


def check_scopes(store: Any, scopes: list[MemoryScope], query: str) -> None:
    for number, scope in enumerate(scopes):
        store.write(scope, [Memory("same", f"tea {number} {query}", scope)])
    for number, scope in enumerate(scopes):
        found = [*store.search(scope, query, 9), *store.recent(scope, 9), *store.memories(scope)]
        assert {memory.text for memory in found} == {f"tea {number} {query}"}


def test_the_model_reads_no_other_scope_by_its_tools(store: Any) -> None:
    """Nor does it delete there, though it knows the identifier."""
    with handler(MemoryKeeper(store, BOB)):
        secret = remember("Bob's tea is a secret.")
    wanted = ["tea", "Bob", '"acme", "bob"', BOB.key, f'scope : "{BOB.digest}" OR tea', "*", "' OR 1=1 --", secret.id]
    model = ScriptedModel(
        *(calls("recall", query=text) for text in wanted), calls("forget", ids=[secret.id]), "Nothing."
    )
    with stack(store, ANN, model):
        assert chat("What is Bob's tea?") == "Nothing."
    told = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert told == ["[]"] * len(wanted) + ["Forgotten: 0."]
    assert texts(store.memories(BOB)) == ["Bob's tea is a secret."]


def test_agents_of_one_name_at_the_same_time_keep_apart(store: Any) -> None:
    """The scope is the stack's. Neither names nor what runs beside it change that."""
    meeting = threading.Barrier(2)

    def serve(scope: MemoryScope) -> list[str]:
        seen = []

        def answer(request: Any) -> str:
            meeting.wait(30)  # both are in their calls
            seen.append(request["messages"][-1]["content"])
            return f"Hello, {scope.user}."

        with stack(store, scope, ScriptedModel(answer, answer)):
            for _ in range(2):
                Clerk().serve(f"I am {scope.user}, and like tea.")
        return seen

    with ThreadPoolExecutor() as pool:
        ann, bob = pool.map(serve, (ANN, BOB))
    assert "bob" not in str(ann)
    assert "ann" not in str(bob)
    assert "Hello, ann." in ann[1]


def test_a_memory_inside_of_another_one_sees_nothing_of_it(store: Any) -> None:
    """A delegate of its own scope: neither in its call nor in what it leaves, and the other way round."""
    found: list[str] = []

    @Tool.define
    def ask_bob(question: str) -> str:
        """Ask Bob."""
        remember("Ann's, of the tool.")
        with handler(MemoryKeeper(store, BOB)):
            answer = chat(question)
            found.extend(texts(recall(None)))
        return answer

    @Skill.define
    def lead(text: str) -> str:
        """{text}"""
        raise NotHandled

    model = ScriptedModel(calls("ask_bob", question="Which tea?"), "Bob's answer.", "Done.")
    with handler(MemoryKeeper(store, ANN)):
        remember("Ann's tea is green.")
    with stack(store, ANN, model):
        lead("Ask him about tea.")
    assert "Ann's" not in str(model.requests[1]["messages"])
    assert found == texts(store.memories(BOB)) == ["Asked: Which tea?\nAnswered: Bob's answer."]
    assert not any("Bob's" in text for text in texts(store.memories(ANN)))


# --- forgetting while others write ------------------------------------------------------------------------------------


def test_what_was_forgotten_stays_so_though_others_write_it_again(tmp_path: Path) -> None:
    """Two that have the file open each for itself, as two processes have."""
    one, other = (SqliteMemoryStore(tmp_path / "m.db") for _ in range(2))
    known = [Memory(str(number), f"Tea {number}.", ANN) for number in range(40)]
    one.write(ANN, known)

    def write() -> None:
        for number in range(40):
            other.write(ANN, [known[number], Memory(f"new {number}", f"Milk {number}.", ANN)])

    def forget_all() -> None:
        for number in range(40):
            one.forget(ANN, [str(number)])

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(write), pool.submit(forget_all)]:
            done.result()
    other.write(ANN, known)
    assert sorted(texts(one.memories(ANN))) == sorted(f"Milk {number}." for number in range(40))
    assert not other.search(ANN, "tea", 99)


def test_a_call_does_not_bring_back_what_is_forgotten_beside_it(store: Any) -> None:
    """Somebody forgets everything while a call is answered: what it had recalled is gone, what it writes stays."""

    def answer(request: Any) -> str:
        assert "Tea is green." in request["messages"][-1]["content"]
        assert store.forget(ANN, everything=True) == 1
        return "Noted."

    with handler(MemoryKeeper(store, ANN)):
        remember("Tea is green.")
    with stack(store, ANN, ScriptedModel(answer)):
        chat("Milk or tea?")
    assert texts(store.memories(ANN)) == ["Asked: Milk or tea?\nAnswered: Noted."]


# --- a store that fails -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(path: Path) -> Any:
    """Somebody else who writes, and does not come to an end."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@pytest.mark.parametrize("in_run", [False, True], ids=["alone", "in a run"])
@pytest.mark.parametrize("when", ["before", "in the middle"])
def test_where_the_file_is_locked_the_call_fails_and_nothing_is_half_written(
    tmp_path: Path, when: str, in_run: bool
) -> None:
    path, checkpointer = tmp_path / "m.db", MemoryCheckpointer()
    store = SqliteMemoryStore(path, patience=0.01)
    journal = [Journal("monday", checkpointer)] if in_run else []
    held = contextlib.ExitStack()

    def answer(request: Any) -> str:
        if when == "in the middle":
            held.enter_context(locked(path))
        return "Done."

    def program() -> str:
        if when == "before":
            held.enter_context(locked(path))
        with held:
            return chat("Tea?")

    model = ScriptedModel(calls("remember", text="Tea is green."), answer)
    with pytest.raises(StorageError), stack(store, ANN, model, *journal):
        program()
    assert texts(store.memories(ANN)) == []
    # It is not locked any more: the call is made again, or the run is resumed.
    model = ScriptedModel(*[calls("remember", text="Tea is green."), "Done."][2 - _left(when, in_run) :])
    with stack(store, ANN, model, *([Journal("monday", checkpointer)] if in_run else [])):
        assert chat("Tea?") == "Done."
    assert texts(store.memories(ANN)) == ["Tea is green.", "Asked: Tea?\nAnswered: Done."]


def _left(when: str, in_run: bool) -> int:
    """Replies that the model still has to give."""
    return 0 if in_run and when == "in the middle" else 1 if in_run else 2


def test_a_thread_that_goes_on_after_its_call_writes_for_the_same_user(store: Any) -> None:
    """Also where the stack is another one's by then."""
    begun = threading.Event()
    threads: list[threading.Thread] = []

    @Tool.define
    def later() -> str:
        """Remember something later."""

        def run() -> None:
            begun.wait(30)
            remember("Ann's, late.")

        threads.append(threading.Thread(target=propagate(run)))
        threads[0].start()
        return "in a while"

    @Skill.define
    def lead(text: str) -> str:
        """{text}"""
        raise NotHandled

    with stack(store, ANN, ScriptedModel(calls("later"), "Done.")):
        lead("Go.")
    with stack(store, BOB, ScriptedModel("Hello.")):
        begun.set()
        threads[0].join()
        chat("Hello.")
    assert "Ann's, late." in texts(store.memories(ANN))
    assert texts(store.memories(BOB)) == ["Asked: Hello.\nAnswered: Hello."]
