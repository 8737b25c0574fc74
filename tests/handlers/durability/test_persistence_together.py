"""Kept agents with which several objects, threads, tasks and processes go on at the same time, or are killed."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import signal
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trio
import trio.testing

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, fwd, handler
from effectful_agents.errors import StorageError
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.handlers.legibility import HistoryCompactor
from effectful_agents.operations.history import CompactionScope, compact_, get_history, save_state
from effectful_agents.operations.loop import completion
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.durability.keeping import STEPS, Bot, printed, process, restored, said, stack, talk
from tests.messages.validity import faults


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


CONVERSE = """
# Each call: a tool call, then an answer that names it.
path, me, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
bot = Bot()
for number in range(times):
    talk(path, bot.ask, calls("note", text=f"{me}{number}"), f"{me}{number}")
print(json.dumps(said(bot.__history__)))
"""


def whole_calls(history: Any) -> list[str]:
    """The answers of a conversation in which each call has one tool call and one answer, all in its place."""
    assert faults(history) == []
    found = said(history)
    assert found[0::3] == [None] * (len(found) // 3)
    assert set(found[1::3]) <= {"null"}
    return found[2::3]


# Two objects


def test_two_objects_go_on_in_turns(path):
    one, other = Bot(), Bot()
    talk(path, one.ask, "a")
    talk(path, other.ask, "b")
    talk(path, one.ask, "c")
    assert said(one.__history__) == ["a", "b", "c"]


def meanwhile(path: Any, mine: Any, theirs: Any, *, mine_does: Any = (), theirs_does: Any = ()) -> None:
    """A call during which another object makes and ends one of its own; each uses the same identifier."""

    def other() -> None:
        # As from another process: it knows nothing of the call that it is in.
        contextvars.Context().run(talk, path, theirs.ask, *theirs_does, calls("note", id="x", text="t"), "theirs")

    STEPS["meanwhile"] = other
    talk(path, mine.ask, calls("run", id="x", step="meanwhile"), *mine_does, "mine")


def test_both_calls_are_kept_whole_one_behind_the_other(path):
    mine, theirs = Bot(), Bot()
    talk(path, mine.ask, "first")
    meanwhile(path, mine, theirs)
    assert said(mine.__history__) == ["first", None, "null", "theirs", None, "None", "mine"]
    assert faults(mine.__history__) == []
    again = restored(path)
    assert said(again.__history__) == said(mine.__history__)
    talk(path, theirs.ask, "next")
    assert said(theirs.__history__) == [*said(mine.__history__), "next"]
    assert faults(restored(path).__history__) == []


def test_the_same_where_the_agent_is_new(path):
    mine, theirs = Bot(), Bot()
    meanwhile(path, mine, theirs)
    assert said(restored(path).__history__) == [None, "null", "theirs", None, "None", "mine"]
    assert restored(path).notes == ["t"]


def test_of_the_fields_each_keeps_what_only_it_has_changed(path):
    mine, theirs = Bot(), Bot()
    talk(path, mine.ask, "first")
    STEPS["mood"] = lambda: setattr(mine, "mood", "gay")
    meanwhile(path, mine, theirs, mine_does=[calls("run", id="y", step="mood")])
    assert (restored(path).notes, restored(path).mood) == (["t"], "gay")
    talk(path, mine.ask, "next")
    talk(path, theirs.ask, "next")
    assert (mine.notes, mine.mood) == (theirs.notes, theirs.mood) == (["t"], "gay")


def test_of_a_field_that_both_have_changed_the_last_call_to_end_decides(path):
    mine, theirs = Bot(), Bot()
    talk(path, mine.ask, "first")
    meanwhile(path, mine, theirs, mine_does=[calls("note", id="y", text="m")])
    talk(path, theirs.ask, "next")
    assert restored(path).notes == mine.notes == theirs.notes == ["m"]


def compacting() -> Any:
    """A step that drops the earlier calls from the running conversation."""

    def compact() -> None:
        history = get_history()
        (call,) = history[-1]["tool_calls"]  # ty: ignore
        compact_(history, call["id"], CompactionScope.CONVERSATION)

    STEPS["compact"] = compact
    return calls("run", id="c", step="compact")


def test_a_compaction_is_kept(path):
    bot = Bot()
    talk(path, bot.ask, "one", "two")
    talk(path, bot.ask, compacting(), "three", "four")
    assert said(bot.__history__) == said(restored(path).__history__) == [None, "None", "three", "four"]


def test_summaries_are_kept(path):
    bot = Bot()

    def reply(request: Any) -> str:
        return "Summary." if "ummar" in str(request["messages"][-1]["content"]) else "long answer " * 30

    with handler(ScriptedModel(*[reply] * 20)), handler(stack(path)), handler(HistoryCompactor(limit=1500)):
        for number in range(6):
            bot.ask(f"question {number}")
            assert restored(path).__history__ == bot.__history__[1:]
    assert len(bot.__history__) < 8
    assert faults(bot.__history__) == []


def test_a_compaction_while_somebody_else_goes_on_drops_nothing_of_theirs(path):
    mine, theirs = Bot(), Bot()
    talk(path, mine.ask, "one", "two")
    meanwhile(path, mine, theirs, mine_does=[compacting()])
    found = said(restored(path).__history__)
    assert found == said(mine.__history__) == [None, "None", "mine", None, "null", "theirs"]
    assert faults(restored(path).__history__) == []


def test_going_on_while_somebody_else_compacts(path):
    mine, theirs = Bot(), Bot()
    talk(path, mine.ask, "one", "two")
    meanwhile(path, mine, theirs, theirs_does=[compacting()])
    assert said(restored(path).__history__) == [None, "None", None, "null", "theirs", None, "None", "mine"]
    assert faults(restored(path).__history__) == []


def test_forgetting_during_a_call_leaves_what_the_call_adds(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    STEPS["forget"] = lambda: SQLitePersister(path).forget("bot")
    talk(path, bot.ask, calls("run", step="forget"), "two")
    assert said(bot.__history__) == said(restored(path).__history__) == [None, "True", "two"]


# Processes


def test_processes_that_go_on_with_one_agent_keep_every_call_whole(path):
    others = [process(CONVERSE, path, name, 6) for name in "ab"]
    bot = Bot()
    for number in range(6):
        talk(path, bot.ask, calls("note", text=f"c{number}"), f"c{number}")
    for other in others:
        assert set(printed(other)) >= {None, "null"}
    answers = whole_calls(restored(path).__history__)
    for name in "abc":
        assert [answer for answer in answers if answer[0] == name] == [f"{name}{number}" for number in range(6)]
    assert set(restored(path).notes) <= set(answers)


def test_a_process_that_is_killed_in_a_call_leaves_what_was_before(path):
    talk(path, Bot().ask, calls("note", text="before"), "before")
    killed = process(
        """
import os, signal
STEPS["kill"] = lambda: os.kill(os.getpid(), signal.SIGKILL)
talk(sys.argv[1], Bot().ask, calls("note", text="lost"), calls("run", id="2", step="kill"), "lost")
""",
        path,
    )
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    bot = Bot()
    talk(path, bot.ask, "after")
    assert said(bot.__history__) == [None, "null", "before", "after"]
    assert bot.notes == ["before"]


KILLED_WHILE_SAVING = """
# One child for each statement of a save: it is killed when it comes to that statement.
import itertools, os, pathlib, signal, sqlite3
path = pathlib.Path(sys.argv[1])
connect, left = sqlite3.connect, None
def traced(statement):
    global left
    if left is not None:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
def connected(*args, **kwargs):
    connection = connect(*args, **kwargs)
    connection.set_trace_callback(traced)
    return connection
def begin():
    global left
    left = number
STEPS["begin"] = begin
found = []
for number in itertools.count():
    for one in path.parent.iterdir():
        one.unlink()
    talk(path, Bot().ask, "before")
    child = os.fork()
    if not child:
        sqlite3.connect = connected
        talk(path, Bot().ask, calls("note", text="new"), calls("run", id="2", step="begin"), "after")
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    bot = restored(path)
    found.append([said(bot.__history__)[-1], bot.notes])
    if not ended:
        break
print(json.dumps(found))
"""


def test_a_process_that_is_killed_while_it_saves_leaves_all_or_nothing(path):
    found = printed(process(KILLED_WHILE_SAVING, path))
    before, after = ["before", []], ["after", ["new"]]
    assert found[0] == before
    assert found[-1] == after
    assert all(one in (before, after) for one in found)
    assert found == sorted(found, key=[before, after].index)
    assert found.count(before) > 5


# Threads and tasks


def test_threads_that_call_one_object(path):
    bot = Bot()
    with handler(ScriptedModel(*[f"answer {number}" for number in range(40)])), handler(stack(path)):
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(contextvars.copy_context().run, bot.ask, "?") for _ in range(40)]
            answers = [one.result() for one in waiting]
    assert sorted(said(bot.__history__)) == sorted(answers)
    assert said(restored(path).__history__) == said(bot.__history__)
    assert faults(bot.__history__) == []


def test_threads_that_call_objects_of_their_own(path):
    def converse(name: int) -> None:
        bot = Bot()
        for number in range(5):
            talk(path, bot.ask, calls("note", text="x"), f"{name} {number}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(converse, range(6)))
    answers = whole_calls(restored(path).__history__)
    assert sorted(answers) == sorted(f"{name} {number}" for name in range(6) for number in range(5))
    for name in range(6):
        assert [one for one in answers if one[0] == str(name)] == [f"{name} {number}" for number in range(5)]


@dataclasses.dataclass
class Waiting(Agent):
    """Its tool waits until it is told to go on."""

    __agent_id__: str = "waiting"
    heard: list[str] = dataclasses.field(default_factory=list)

    @Skill.define
    async def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Tool.define
    async def listen(self, word: str) -> None:
        """Wait for something."""
        self.heard.append(word)
        await EVENTS[word].wait()


EVENTS: dict[str, Any] = {}


def answering(**request: Any) -> Any:
    """Listen to the word that was asked for, then say it."""
    last = request["messages"][-1]
    if last["role"] == "user":
        word = last["content"].split()[-1]
        return calls("listen", word=word)
    (call,) = request["messages"][-2]["tool_calls"]
    return says(call["function"]["arguments"])


def test_tasks_of_one_loop(path):
    EVENTS.update(a=asyncio.Event(), b=asyncio.Event(), c=asyncio.Event())
    agent = Waiting()

    async def main() -> None:
        with handler(stack(path)):
            tasks = [asyncio.create_task(agent.ask(word)) for word in "abc"]
            while len(agent.heard) < 3:
                await asyncio.sleep(0)
            EVENTS["c"].set()
            await tasks[2]
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            assert [text for text in said(restored(path, Waiting()).__history__) if text] == ["null", '{"word": "c"}']
            EVENTS["a"].set()
            await tasks[0]

    with handler({completion: answering}):
        asyncio.run(main())
    assert faults(agent.__history__) == []
    found = [text for text in said(restored(path, Waiting()).__history__) if text not in (None, "null")]
    assert found == ['{"word": "c"}', '{"word": "a"}']


def test_in_trio_a_call_that_is_cancelled_saves_nothing(path):
    agent = Waiting()

    async def main() -> None:
        EVENTS["a"] = trio.Event()
        with handler(stack(path)), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(agent.ask, "a")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        EVENTS["b"] = trio.Event()
        EVENTS["b"].set()
        with handler(stack(path)):
            await agent.ask("b")

    with handler({completion: answering}):
        trio.run(main)
    assert [text for text in said(restored(path, Waiting()).__history__) if text not in (None, "null")] == [
        '{"word": "b"}'
    ]


def test_a_task_that_a_tool_leaves_behind_saves_for_itself(path):
    left = []

    @Tool.define
    async def leave() -> None:
        """Leave a task behind."""
        left.append(asyncio.create_task(wait()))

    async def wait() -> None:
        await ended.wait()
        await acall(bot.consult, "?")

    @dataclasses.dataclass
    class Leaving(Bot):
        @Skill.define
        def go(self) -> str:
            """Leave."""
            raise NotHandled

    async def main() -> None:
        with handler(ScriptedModel(calls("leave"), "outer", "behind")), handler(stack(path)):
            await acall(bot.go)
            ended.set()
            await left[0]

    ended, bot = asyncio.Event(), Leaving()
    asyncio.run(main())
    assert said(restored(path, Leaving()).__history__) == [None, "null", "outer", "behind"]


def test_calls_of_another_agent_in_one_turn_at_the_same_time(path):
    helper = Bot("helper")

    @Tool.define
    async def first() -> str:
        """Ask."""
        return await acall(helper.ask, "1")

    @Tool.define
    async def second() -> str:
        """Ask."""
        return await acall(helper.ask, "2")

    @dataclasses.dataclass
    class Asking(Agent):
        __agent_id__: str = "asking"

        @Skill.define
        def ask(self) -> str:
            """Ask both."""
            raise NotHandled

    model = ScriptedModel(batch(calls("first", id="1"), calls("second", id="2")), "h1", "h2", "both")
    with handler(model), handler(stack(path)):
        asyncio.run(acall(Asking().ask))
    assert said(restored(path, Bot("helper")).__history__) == ["h1", "h2"]
    assert said(restored(path, Asking()).__history__) == [None, "h1", "h2", "both"]


# Saving that does not come about


def test_a_file_that_is_taken_for_too_long_takes_back_the_call(path):
    bot = Bot()
    talk(path, bot.ask, "one")
    hurried = SQLitePersister(path, patience=0)
    with handler(ScriptedModel("two", "three")), handler(stack(path)), handler(hurried):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="was in use for too long"):
                bot.ask("?")
        assert said(bot.__history__) == ["one"]
        bot.ask("?")
    assert said(restored(path).__history__) == said(bot.__history__) == ["one", "three"]


def test_a_compaction_that_cannot_be_saved_is_taken_back(path):
    bot = Bot()
    talk(path, bot.ask, "one", "two")

    def failing(agent: Any) -> None:
        raise StorageError("full", path="x")

    with handler(stack(path)), handler({save_state: failing}), handler(ScriptedModel(compacting(), "three")):
        with pytest.raises(StorageError):
            bot.ask("?")
    assert said(bot.__history__) == ["one", "two"]


def test_a_call_that_cannot_be_saved_leaves_those_that_wait_beside_it(path):
    """Two calls are done and about to be saved; the save of one fails while the other waits with its messages."""
    bot, waiting, failed = Bot(), threading.Event(), threading.Event()
    main = threading.current_thread()

    def save(agent: Any) -> Any:
        if threading.current_thread() is main:
            waiting.wait()
            raise StorageError("full", path="x")
        waiting.set()
        failed.wait()
        return fwd()

    with handler(ScriptedModel("kept", "lost")), handler(stack(path)), handler({save_state: save}):
        other = threading.Thread(target=contextvars.copy_context().run, args=(bot.ask, "other"))
        other.start()
        waiting.wait()
        with pytest.raises(StorageError):
            bot.ask("main")
        failed.set()
        other.join()
    assert said(bot.__history__) == said(restored(path).__history__) == ["kept"]


@pytest.mark.parametrize("done", [False, True])
def test_after_an_exception_in_a_commit_it_is_found_out_what_was_saved(path, monkeypatch, done):
    """The next call neither loses messages nor has them twice, whether the commit had been carried out or not."""
    armed = []

    class Connection(sqlite3.Connection):
        def commit(self) -> None:
            if not armed or done:
                super().commit()
            if armed:
                raise armed.pop()

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Connection))
    bot = Bot()
    talk(path, bot.ask, "one")
    STEPS["arm"] = lambda: armed.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        talk(path, bot.ask, calls("note", text="tea"), calls("run", id="2", step="arm"), "two")
    assert said(bot.__history__) == ["one"]
    talk(path, bot.ask, "three")
    expected = ["one", *([None, "null", None, "None", "two"] if done else []), "three"]
    assert said(bot.__history__) == said(restored(path).__history__) == expected
    assert restored(path).notes == (["tea"] if done else [])
