"""Memory in runs that are resumed: what was recalled is recalled again, and nothing is written twice."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import NetworkError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer, SqliteCheckpointer
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, MemoryTools, RecallPrompter, SqliteMemoryStore
from effectful_agents.operations.memory import Memory, forget, recall, remember
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.durability.journaling import Crash, Crashing
from tests.handlers.memory.remembering import ANN, said, texts
from tests.processes import exit_code, forked


@Tool.define(idempotent=True)
def note(text: str) -> str:
    """Note something."""
    remember(text)
    return "noted"


@Skill.define
def work(text: str) -> str:
    """{text}"""
    raise NotHandled


@Skill.define(tools=False)
def facts(request: str, answer: str) -> list[str]:
    """Facts of: {request} {answer}"""
    raise NotHandled


@Skill.define(tools=False)
def recording(text: str) -> str:
    """{text}"""
    raise NotHandled


class Model:
    """Answers by what the conversation is at; a conversation that goes on is asked for what it lacks."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        asked, last = request["messages"][0]["content"], request["messages"][-1]
        if asked.startswith("Facts of:"):
            return ["Fact: " + asked.partition("Facts of: ")[2].partition(" ")[0]]
        if last["role"] == "tool":
            return "Done."
        return calls("note", text=f"Note on {asked.partition(' ')[0]}")


@contextlib.contextmanager
def stack(store: Any, checkpointer: Any, model: Any, *, inside: bool = True, **options: Any) -> Any:
    memory = [MemoryKeeper(store, ANN, **options), RecallPrompter()]
    journal = [Journal("monday", checkpointer)]
    layers = Layers(*journal, *memory) if inside else Layers(*memory, *journal)
    replies = ScriptedModel(*[model] * 99)
    with handler(harness(system_prompt="brief", eval_provider="none")), handler(replies), handler(layers):
        yield


def program() -> list[Any]:
    remember("From the program.")
    first = work("Tea is green.")
    second = work("Milk and tea.")
    return [first, second, texts(recall("program")), forget("nobody")]


WRITTEN = [
    "Asked: Milk and tea.\nAnswered: Done.",
    "Asked: Tea is green.\nAnswered: Done.",
    "From the program.",
    "Note on Milk",
    "Note on Tea",
]
EXTRACTED = ["Fact: Milk", "Fact: Tea", "From the program.", "Note on Milk", "Note on Tea"]
VALUE = ["Done.", "Done.", ["From the program."], 0]


@pytest.mark.parametrize("inside", [True, False], ids=["inside of the journal", "outside of it"])
@pytest.mark.parametrize("extractor", [None, facts], ids=["as it was", "extracted"])
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_wherever_it_crashes_nothing_is_lost_and_nothing_written_twice(
    inside: bool, extractor: Any, written: bool
) -> None:
    crashed = 0
    for at in range(200):
        store, checkpointer, model = InMemoryStore(), Crashing(at, written), Model()
        options: dict[str, Any] = {"inside": inside, "extractor": extractor}
        with contextlib.suppress(Crash), stack(store, checkpointer, model, **options):
            program()
        ended = checkpointer.appends <= at
        crashed += not ended
        checkpointer.at = None
        for _ in range(2):  # the second time it has come to its end
            with stack(store, checkpointer, model, **options):
                assert program() == VALUE
        assert sorted(texts(store.memories(ANN))) == (WRITTEN if extractor is None else EXTRACTED)
        if ended:
            break
    else:
        pytest.fail("it never came to its end")
    assert crashed > 8


class CrashingStore(InMemoryStore):
    """A store of memories whose process ends at one of its changes."""

    def __init__(self, at: int, written: bool) -> None:
        super().__init__()
        self.at, self.written, self.changes = at, written, 0

    def _changed(self, change: Any) -> Any:
        self.changes += 1
        if self.changes != self.at:
            return change()
        if self.written:
            change()
        raise Crash

    def write(self, *args: Any, **kwargs: Any) -> None:
        self._changed(lambda: InMemoryStore.write(self, *args, **kwargs))

    def flush(self, *args: Any) -> int:
        return self._changed(lambda: InMemoryStore.flush(self, *args))

    def replace(self, *args: Any) -> bool:
        return self._changed(lambda: InMemoryStore.replace(self, *args))


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_wherever_the_store_crashes_nothing_is_lost_and_nothing_written_twice(written: bool) -> None:
    for at in range(1, 99):
        store, checkpointer, model = CrashingStore(at, written), MemoryCheckpointer(), Model()
        with contextlib.suppress(Crash), stack(store, checkpointer, model):
            program()
        ended, store.at = store.changes < at, 0
        with stack(store, checkpointer, model):
            assert program() == VALUE
        assert sorted(texts(store.memories(ANN))) == WRITTEN
        if ended:
            break
    assert at > 6


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_memories_are_consolidated_once(written: bool) -> None:
    for at in range(1, 99):
        store, checkpointer = CrashingStore(at, written), MemoryCheckpointer()
        options: dict[str, Any] = {"consolidator": lambda texts: ["+".join(map(str, texts))], "consolidate_after": 4}
        with contextlib.suppress(Crash), stack(store, checkpointer, Model(), **options):
            program()
        ended, store.at = store.changes < at, 0
        with stack(store, checkpointer, Model(), **options):
            program()
        (one,) = store.memories(ANN)
        assert all(one.text.count(text) == 1 for text in WRITTEN)
        if ended:
            break


def test_a_run_that_is_resumed_recalls_what_it_recalled_first() -> None:
    store, checkpointer = InMemoryStore(), MemoryCheckpointer()
    store.write(ANN, [Memory("old", "Green tea.", ANN, metadata={"n": [1, None]}, tags=("a",))])
    first = ScriptedModel(calls("note", text="x"), NetworkError("down"))
    options: dict[str, Any] = {"system_prompt": "brief", "eval_provider": "none"}
    memory = [MemoryKeeper(store, ANN), RecallPrompter()]
    for model in (first, ScriptedModel("Done.")):
        journal = Journal("monday", checkpointer)
        with handler(harness(**options)), handler(model), handler(Layers(journal, *memory)):
            with contextlib.suppress(NetworkError):
                assert work("Tea?") == "Done."
        store.forget(ANN, ["old"])
        store.write(ANN, [Memory("new", "Black tea.", ANN)])
    assert "Green tea." in said(first.requests[0])
    assert said(model.requests[0]) == said(first.requests[0])
    assert model.remaining == 0


def test_what_a_failed_call_wrote_is_unseen_until_the_run_succeeds() -> None:
    store, checkpointer = InMemoryStore(), MemoryCheckpointer()
    with pytest.raises(NetworkError), stack(store, checkpointer, _once(calls("note", text="Tea."), NetworkError("x"))):
        work("Note it.")
    assert list(store.memories(ANN)) == []
    with stack(store, checkpointer, lambda request: "Done."):
        work("Note it.")
    assert texts(store.memories(ANN)) == ["Tea.", "Asked: Note it.\nAnswered: Done."]


def test_what_was_forgotten_since_is_not_written_again() -> None:
    def both() -> None:
        work("A secret.")
        work("Something else.")

    store, checkpointer = InMemoryStore(), MemoryCheckpointer()
    with pytest.raises(NetworkError), stack(store, checkpointer, _once("One.", NetworkError("x"))):
        both()
    assert store.forget(ANN, everything=True) == 1
    with stack(store, checkpointer, lambda request: "Two."):
        both()
    assert texts(store.memories(ANN)) == ["Asked: Something else.\nAnswered: Two."]


def test_two_runs_write_the_same_words_twice() -> None:
    store = InMemoryStore()
    for checkpointer, name in ((MemoryCheckpointer(), "one"), (MemoryCheckpointer(), "other")):
        with handler(harness(eval_provider="none")), handler(ScriptedModel("Done.")):
            with handler(Journal(name, checkpointer)), handler(MemoryKeeper(store, ANN)):
                work("Tea.")
    assert texts(store.memories(ANN)) == ["Asked: Tea.\nAnswered: Done."] * 2


@pytest.mark.parametrize("inside", [True, False], ids=["inside of the journal", "outside of it"])
def test_a_fork_writes_only_what_it_does_not_share(inside: bool) -> None:
    store, checkpointer = InMemoryStore(), MemoryCheckpointer()

    def run(run_id: str, second: str) -> None:
        layers = [Journal(run_id, checkpointer), MemoryKeeper(store, ANN)]
        with handler(harness(system_prompt="brief", eval_provider="none")), handler(ScriptedModel(*[Model()] * 9)):
            with handler(Layers(*layers if inside else reversed(layers))):
                work("Tea.")
                work(second)

    run("monday", "Milk.")
    before = texts(store.memories(ANN))
    assert len(before) == 4
    checkpointer.fork("monday", "tuesday")
    run("tuesday", "Milk.")
    assert texts(store.memories(ANN)) == before
    checkpointer.fork("monday", "wednesday", "000002-call")
    run("wednesday", "Water.")
    assert texts(store.memories(ANN))[4:] == ["Note on Water.", "Asked: Water.\nAnswered: Done."]


def test_the_same_words_in_one_run_are_two_memories() -> None:
    store = InMemoryStore()
    with stack(store, MemoryCheckpointer(), lambda request: "Done."):
        for _ in range(2):
            work("Tea.")
            remember("Tea.")
    assert len(store.memories(ANN)) == 4


def test_a_run_and_its_memory_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "all.db"
    for reply in (NetworkError("down"), "Done."):
        store, checkpointer = SqliteMemoryStore(file), SqliteCheckpointer(file)
        with contextlib.suppress(NetworkError), stack(store, checkpointer, _once(reply)):
            work("Tea?")
        store.close()
    assert texts(SqliteMemoryStore(file).memories(ANN)) == ["Asked: Tea?\nAnswered: Done."]


class KillingStore(SqliteMemoryStore):
    """A store whose process is killed at its first flush."""

    def __init__(self, path: Path, point: str) -> None:
        super().__init__(path)
        self.point = point

    def flush(self, *args: Any) -> int:
        if self.point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        count = super().flush(*args)
        if self.point == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return count


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_process_that_is_killed_at_its_flush(tmp_path: Path, point: str) -> None:
    file, wording = tmp_path / "all.db", itertools.count(1)

    def ask_twice(point: str) -> list[str]:
        def in_other_words(request: str, answer: str) -> str:
            return f"{answer} for {request} in wording {os.getpid()}-{next(wording)}"

        with stack(
            KillingStore(file, point),
            SqliteCheckpointer(file),
            lambda request: request["messages"][0]["content"][:3],
            extractor=in_other_words,
        ):
            return [recording("Tea?"), recording("Milk?")]

    assert exit_code(forked(lambda: ask_twice(point))) == -signal.SIGKILL
    store = SqliteMemoryStore(file)
    assert len(store.memories(ANN)) == (point == "after")
    for _ in range(2):
        assert ask_twice("nowhere") == ["Tea", "Mil"]
        kept = [text.partition(" in ")[0] for text in texts(store.memories(ANN))]
        assert kept == ["Tea for Tea?", "Mil for Milk?"]


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_what_the_model_remembers_itself_is_written_once(written: bool) -> None:
    def model(request: Any) -> Any:
        done = sum(message["role"] == "tool" for message in request["messages"])
        return [calls("remember", text="Tea is green."), calls("recall", query="tea"), "Done."][done]

    options: dict[str, Any] = {"system_prompt": "brief", "eval_provider": "none"}
    for at in range(99):
        store, checkpointer = InMemoryStore(), Crashing(at, written)
        layers = [Journal("monday", checkpointer), MemoryKeeper(store, ANN), MemoryTools()]
        ended = False
        for _ in range(2):
            with contextlib.suppress(Crash), handler(harness(**options)), handler(ScriptedModel(*[model] * 9)):
                with handler(Layers(*layers)):
                    assert recording("Remember.") == "Done."
            if checkpointer.at is not None:
                ended, checkpointer.at = checkpointer.appends <= at, None
        assert sorted(texts(store.memories(ANN))) == ["Asked: Remember.\nAnswered: Done.", "Tea is green."]
        if ended:
            break
    assert at > 5


def _once(*replies: Any) -> Any:
    """A model that gives these replies in turn, and raises those that are errors."""
    left = list(replies)

    def reply(_: Any) -> Any:
        given = left.pop(0)
        if isinstance(given, BaseException):
            raise given
        return given

    return reply
