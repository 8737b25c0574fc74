"""Saves that have a mark are made once, in a run whose process ended anywhere, whoever used the agent meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler
from effectful_agents.handlers.durability import SQLitePersister
from effectful_agents.operations.history import CompactionScope, compact_, get_history, load_state, save_state
from effectful_agents.operations.loop import completion
from effectful_agents.testing import calls, says
from tests.handlers.durability.journaling import Crash, Crashing, plays, running
from tests.handlers.durability.test_persistence_files import VERSION_1


@dataclasses.dataclass
class Clerk(Agent):
    __agent_id__: str = "clerk"
    count: int = 0
    others: int = 0

    @Skill.define
    def ask(self, question: str) -> str:
        """Answer {question}."""
        raise NotHandled

    @Tool.define(rerun=True)
    def forget(self) -> str:
        """Forget what was said before."""
        (call,) = get_history()[-1]["tool_calls"]  # ty: ignore
        compact_(get_history(), call["id"], CompactionScope.CONVERSATION)
        return "forgot"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


MODEL = (("", ["yes"] * 30),)


def go_on(store, path, program, model=MODEL):
    with running(store, plays(*model)[0], persist_db=path):
        return program(Clerk())


def asked(*questions):
    """A program that asks its clerk, and counts in a field what was answered."""

    def program(clerk):
        for question in questions:
            clerk.ask(question)
            clerk.count += 1
        return said(clerk), clerk.count

    return program


def said(clerk):
    """The questions of a conversation, each followed by an answer."""
    messages = [message for message in clerk.__history__ if message["role"] != "system"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2)
    return [message["content"].partition("Answer ")[2].partition(".")[0] for message in messages[::2]]


def somebody(path, question, store=None):
    """Another program uses the agent."""
    with running(store or Crashing(), plays(*MODEL)[0], "other", persist_db=path):
        clerk = Clerk()
        clerk.ask(question)
        clerk.others += 10
        clerk.ask(f"{question} again")


def kept(path):
    with handler(SQLitePersister(path)):
        clerk = Clerk()
        return said(clerk), clerk.count, clerk.others


def appends(path, program):
    store = Crashing()
    go_on(store, path, program)
    return store.appends


def test_the_same_exchange_twice_is_kept_twice(tmp_path):
    program = asked("hi", "hi", "hi", "bye")
    expected = ["hi", "hi", "hi", "bye"]
    for at in range(appends(tmp_path / "whole.db", program)):
        for written in (False, True):
            path = tmp_path / f"{at}{written}.db"
            store = Crashing(at, written)
            with pytest.raises(Crash):
                go_on(store, path, program)
            store.at = None
            assert go_on(store, path, program) == (expected, 4)
            assert kept(path) == (expected, 3, 0)


def test_what_somebody_else_saves_between_makes_no_save_happen_again(tmp_path):
    """The process ends anywhere, another program uses the agent, and the run goes on; then all of it once more."""
    program = asked("one", "two", "three")
    ends = range(appends(tmp_path / "whole.db", program))
    for at in ends:
        for written in (False, True):
            path = tmp_path / f"{at}{written}.db"
            store = Crashing(at, written)
            with pytest.raises(Crash):
                go_on(store, path, program)
            somebody(path, "other")
            store.at, store.appends = 3, 0
            with contextlib.suppress(Crash):
                go_on(store, path, program)
            somebody(path, "later")
            store.at = None
            there, count = go_on(store, path, program)
            found, _, others = kept(path)
            # The run had the agent as it was when it was loaded last, so that it may not have what came after.
            assert there == found[: len(there)] or there == [each for each in found if "later" not in each]
            assert sorted(found) == sorted(["one", "two", "three", *["other", "other again", "later", "later again"]])
            assert [each for each in found if each in ("one", "two", "three")] == ["one", "two", "three"]
            assert (count, others) == (3, 20)


def test_what_others_saved_during_a_call_is_there_again_when_the_run_is_resumed(path):
    def program(clerk):
        clerk.ask("one")
        if not went_on:
            went_on.append(Clerk())
            with running(Crashing(), plays(*MODEL)[0], "other", persist_db=path):
                went_on[0].ask("other")
        clerk.ask("two")
        if len(went_on) == 1:
            went_on.append(Clerk())
            raise Crash
        clerk.ask("three")
        return said(clerk)

    went_on: list[Clerk] = []
    store = Crashing()
    with pytest.raises(Crash):
        go_on(store, path, program)
    assert go_on(store, path, program) == ["one", "other", "two", "three"]


def test_a_save_that_meets_those_of_others_gives_the_same_when_it_is_resumed(path):
    """Somebody saves the agent while a call of it runs; the saved call is behind theirs, in the resumed run too."""
    ended = []

    def program(clerk):
        for question in ("one", "two", "three"):
            clerk.ask(question)
        if not ended:
            ended.append(True)
            raise Crash
        return said(clerk), clerk.ask("four")

    def answer(**request):
        if not meanwhile and "two" in str(request["messages"][-1]):
            meanwhile.append(True)
            with handler(SQLitePersister(path)):
                other = Clerk()
                load_state(other)
                other.__history__ += [{"role": "user", "content": "Answer x."}, {"role": "assistant", "content": "y"}]
                save_state(other)
        return plain(**request)

    meanwhile: list[bool] = []
    plain = plays(*MODEL)[0][completion]
    store = Crashing()
    for raised in (True, False):
        with running(store, {completion: answer}, persist_db=path):
            if raised:
                with pytest.raises(Crash):
                    program(Clerk())
            else:
                assert program(Clerk()) == (["one", "x", "two", "three"], "yes")
    assert kept(path)[0] == ["one", "x", "two", "three", "four"]


def test_what_the_program_changed_is_not_taken_from_the_database_again(path):
    """The run ended between two calls, so that the journal has the first one as saved."""

    def program(clerk):
        clerk.ask("one")
        clerk.count += 1
        if not ended:
            ended.append(True)
            raise ValueError
        clerk.ask("two")
        return clerk.count, clerk.others

    ended: list[bool] = []
    store = Crashing()
    with pytest.raises(ValueError, match=r"^$"):
        go_on(store, path, program)
    somebody(path, "other")
    assert go_on(store, path, program) == (1, 10)
    assert kept(path) == (["one", "other", "other again", "two"], 1, 10)


def test_a_program_sees_the_fields_that_it_saw_when_it_was_resumed_before(tmp_path):
    """What others have changed comes with a save that is not made again, and is written down with it."""

    def program(clerk):
        clerk.ask("one")
        seen.append(clerk.others)
        if len(seen) == 1:
            raise ValueError
        clerk.ask("two")

    taken = 0
    for at in range(appends(tmp_path / "whole.db", asked("one", "two"))):
        path, store, seen = tmp_path / f"{at}.db", Crashing(at), list[int]()
        with contextlib.suppress(Crash):
            go_on(store, path, asked("one", "two"))
        somebody(path, "other")
        store.at = None
        with contextlib.suppress(ValueError):
            go_on(store, path, program)
        somebody(path, "later")
        go_on(store, path, program)
        assert seen[0] == seen[-1]
        taken += seen[0]
    assert taken


def test_another_run_of_the_same_name_saves_too(path):
    for _ in range(2):
        assert go_on(Crashing(), path, asked("hi"))[1] > 0
    assert kept(path)[0] == ["hi", "hi"]


def test_a_conversation_that_was_compacted_is_compacted_in_the_resumed_run(tmp_path):
    def program(clerk):
        for question in ("one", "two", "three"):
            clerk.ask(question)
        return answers(clerk)

    def answers(clerk):
        return [message["content"] for message in clerk.__history__ if message["role"] == "assistant"]

    def answer(**request):
        last = request["messages"][-1]
        return calls("forget") if last["role"] == "user" and "two" in last["content"] else says(last["role"])

    store = Crashing()
    with running(store, {completion: answer}, persist_db=tmp_path / "whole.db"):
        assert program(Clerk()) == [None, "tool", "user"]
    for at in range(store.appends):
        for other in (False, True):
            store, path = Crashing(at), tmp_path / f"{at}{other}.db"
            with pytest.raises(Crash), running(store, {completion: answer}, persist_db=path):
                program(Clerk())
            if other:
                somebody(path, "other")
            store.at = None
            with running(store, {completion: answer}, persist_db=path):
                program(Clerk())
            with handler(SQLitePersister(path)):
                found = answers(Clerk())
            assert [each for each in found if each != "yes"][-3:] == [None, "tool", "user"]
            assert found.count(None) == found.count("tool") == 1
            assert other or len(found) == 3


def add(clerk, question):
    clerk.__history__ += [{"role": "user", "content": f"Answer {question}."}, {"role": "assistant", "content": "-"}]


def test_a_save_with_a_mark_that_is_there_gives_what_is_kept(path):
    one, other = Clerk(), Clerk()
    with handler(SQLitePersister(path)):
        add(one, "one")
        save_state(one, "a")
        load_state(other)
        add(other, "other")
        other.others = 5
        save_state(other, "b")
        add(one, "dropped")
        one.count = 7
        save_state(one, "a")
        assert (said(one), one.count, one.others) == (["one", "other"], 0, 5)
        add(one, "more")
        one.count = 8
        save_state(one, "c")
        assert said(one) == ["one", "other", "more"]
        load_state(other)
        other.others = 6
        save_state(other)
        load_state(one)
        assert (one.count, one.others) == (8, 6)
    assert kept(path) == (["one", "other", "more"], 8, 6)


def test_a_mark_is_noted_where_nothing_else_has_changed(path):
    clerk = Clerk()
    with handler(SQLitePersister(path)):
        add(clerk, "one")
        save_state(clerk, "a")
        save_state(clerk, "b")
        add(clerk, "dropped")
        save_state(clerk, "b")
    assert said(clerk) == ["one"]


def test_marks_belong_to_one_agent_and_go_with_it(path):
    ann, bob = Clerk("ann"), Clerk("bob\ud800")
    with handler(SQLitePersister(path)) as persister:
        for clerk in (ann, bob):
            add(clerk, "one")
            save_state(clerk, "a\ud800")
        assert persister.agents() == ["ann", "bob\ud800"]
        persister.forget("ann")
        again = Clerk("ann")
        add(again, "two")
        save_state(again, "a\ud800")
        assert said(again) == ["two"]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM agent_marks").fetchone() == (2,)


def test_a_save_that_fails_leaves_no_mark(path):
    clerk = Clerk()
    with handler(SQLitePersister(path)):
        add(clerk, "one")
        clerk.__history__.append({"role": "user", "content": object()})
        with pytest.raises(Exception, match="no JSON"):
            save_state(clerk, "a")
        clerk.__history__.pop()
        save_state(clerk, "a")
    assert kept(path)[0] == ["one"]


def test_agents_of_a_file_of_version_1_get_marks(path):
    @dataclasses.dataclass
    class Bot(Agent):
        __agent_id__: str = "ann"
        notes: list[str] = dataclasses.field(default_factory=list)

        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1.read_text(encoding="utf-8"))
    with handler(SQLitePersister(path)):
        bot = Bot()
        before = len(bot.__history__)
        for _ in range(2):
            add(bot, "more")
            save_state(bot, "a")
        assert (len(bot.__history__), bot.notes) == (before + 2, ["likes tea"])
