"""The message transaction: all or nothing, whoever else is writing."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import HistoryError, MissingHandlerError, Suspended
from effectful_agents.handlers.durability import transaction
from effectful_agents.operations.history import CompactionScope, agents_called, append_message, compact_, get_history
from effectful_agents.runtime import interpretation, propagate
from effectful_agents.testing import ScriptedModel, calls
from effectful_agents.types import History
from tests.messages.validity import faults


def user(text: str = "u") -> Any:
    return {"role": "user", "content": text}


def says(text: str = "a") -> Any:
    return {"role": "assistant", "content": text}


def system(text: str = "s") -> Any:
    return {"role": "system", "content": text}


def asks(*ids: str) -> Any:
    wanted = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": wanted}


def result(id: str) -> Any:
    return {"role": "tool", "tool_call_id": id, "content": "r"}


def told(messages: list[Any]) -> list[Any]:
    return [message["content"] for message in messages]


# What is written back


def test_messages_join_the_history_when_the_block_ends():
    kept = [system(), user()]
    with transaction(kept):
        append_message(says("new"))
        assert len(kept) == 2
        assert told(get_history()) == ["s", "u", "new"]
    assert told(kept) == ["s", "u", "new"]


def test_a_history_that_starts_empty_gets_all_of_it():
    kept: list[Any] = []
    with transaction(kept):
        for message in (system(), user(), says()):
            append_message(message)
    assert told(kept) == ["s", "u", "a"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), Suspended(), GeneratorExit()])
def test_nothing_is_written_when_the_block_raises(error):
    kept = [user()]
    before = list(kept)

    def program() -> None:
        with transaction(kept):
            append_message(says())
            get_history().clear()
            raise error

    with pytest.raises(type(error)) as raised:
        program()
    assert raised.value is error
    assert len(kept) == 1
    assert kept[0] is before[0]


def test_nothing_is_written_where_that_was_asked_for():
    kept = [user()]
    with transaction(kept, write_back=False) as buffer:
        append_message(says())
    assert told(kept) == ["u"]
    assert told(buffer) == ["u", "a"]


def test_a_block_without_a_history_has_an_empty_one():
    with transaction() as buffer:
        append_message(user())
    assert told(buffer) == ["u"]


def test_outside_of_a_block_there_is_no_history():
    with pytest.raises(MissingHandlerError, match="HistoryBuilder"):
        get_history()
    with pytest.raises(MissingHandlerError, match="HistoryBuilder"):
        append_message(user())
    assert agents_called() == frozenset()


def test_the_history_is_the_list_itself_and_is_gone_with_the_block():
    before = interpretation()
    with transaction([user()]) as buffer:
        assert get_history() is buffer
    assert interpretation() is before


def test_messages_are_kept_as_the_objects_that_they_are():
    kept = [user()]
    first, added = kept[0], says()
    with transaction(kept):
        append_message(added)
    assert kept[0] is first
    assert kept[1] is added


# Rewritten buffers


def test_a_history_that_was_rewritten_takes_the_place_of_what_it_started_from():
    kept = [system(), user("one"), says("1"), user("two"), says("2")]
    with transaction(kept) as buffer:
        del buffer[1:3]
        append_message(user("three"))
    assert told(kept) == ["s", "two", "2", "three"]


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (CompactionScope.NONE, ["s", "one", "1", "two", None, "r", None, "r"]),
        (CompactionScope.TURN, ["s", "one", "1", "two", None, "r"]),
        (CompactionScope.CONVERSATION, ["s", "two", None, "r"]),
    ],
)
def test_a_compaction_reaches_the_history(scope, left):
    kept = [system(), user("one"), says("1")]
    with transaction(kept) as buffer:
        for message in (user("two"), asks("a"), result("a"), asks("b"), result("b")):
            append_message(message)
        compact_(buffer, "b", scope)
    assert told(kept) == left
    assert faults(kept) == []


def test_a_compaction_of_a_block_that_raises_leaves_no_trace():
    kept = [system(), user("one"), says("1")]

    def program() -> None:
        with transaction(kept) as buffer:
            for message in (user("two"), asks("b"), result("b")):
                append_message(message)
            compact_(buffer, "b", CompactionScope.CONVERSATION)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program()
    assert told(kept) == ["s", "one", "1"]


def test_a_compaction_for_a_call_that_is_not_there_drops_nothing():
    history = [system(), user(), asks("a"), result("a")]
    compact_(history, "other", CompactionScope.CONVERSATION)
    assert len(history) == 4
    headless = [asks("a"), result("a")]
    compact_(headless, "a", CompactionScope.CONVERSATION)
    assert len(headless) == 2


@pytest.mark.parametrize("known", [True, False])
def test_a_compaction_keeps_the_request_of_a_call_that_was_steered(known):
    kept = [system(), user("one"), says("1")]
    told_in_the_call = user("two"), asks("a"), result("a"), user("faster"), asks("b"), result("b")
    for scope, left in (
        (CompactionScope.TURN, ["s", "one", "1", "two", "faster", None, "r"]),
        (CompactionScope.CONVERSATION, ["s", "two", "faster", None, "r"]),
    ):
        with transaction(kept, write_back=False) as buffer:
            for message in told_in_the_call:
                append_message(message)
            history = buffer if known else list(buffer)
            compact_(history, "b", scope)
        assert told(history) == left
        assert faults(history) == []


def test_a_request_is_known_where_an_answer_was_refused_and_where_a_tool_call_ended_the_call_before():
    kept = [system(), user("one"), asks("a"), result("a")]
    with transaction(kept) as buffer:
        for message in (user("two"), says("no"), user("again"), asks("b"), result("b")):
            append_message(message)
        compact_(buffer, "b", CompactionScope.CONVERSATION)
    assert told(kept) == ["s", "two", "again", None, "r"]


# Others who write meanwhile


def test_what_others_added_meanwhile_stays():
    kept = [system(), user("one"), says("1")]
    with transaction(kept):
        append_message(user("two"))
        with transaction(kept):
            append_message(user("meanwhile"))
    assert told(kept) == ["s", "one", "1", "meanwhile", "two"]


def test_what_others_added_stays_when_a_rewritten_history_is_written_back():
    kept = [system(), user("one"), says("1")]
    with transaction(kept) as buffer:
        append_message(user("two"))
        del buffer[1:3]
        with transaction(kept):
            append_message(user("meanwhile"))
    assert told(kept) == ["s", "two", "meanwhile"]


def test_what_others_added_stays_when_they_rewrote_the_history():
    kept = [system(), user("one"), says("1"), user("two"), says("2")]
    with transaction(kept):
        append_message(user("three"))
        with transaction(kept) as other:
            del other[1:3]
            append_message(user("meanwhile"))
    assert "meanwhile" in told(kept)
    assert "three" in told(kept)
    assert told(kept)[0] == "s"


def turn(id: str) -> list[Any]:
    return [asks(id), result(id)]


@contextlib.contextmanager
def _compacting(kept, note, *, left=0):
    """A call that puts a note in the place of all that was there, but for the last messages."""
    with transaction(kept) as buffer:
        buffer[1 : len(buffer) - left] = [user(note)]
        append_message(user(f"of {note}"))
        yield


@pytest.mark.parametrize("left", [0, 2])
def test_two_that_compact_the_same_messages_leave_one_summary(left):
    kept = History([system(), user("one"), says("1"), user("two"), says("2")])
    with _compacting(kept, "slow", left=left), _compacting(kept, "fast", left=2):
        pass
    assert told(kept) == ["s", "slow", *["two", "2"][:left], "of slow", "of fast"]


def test_a_summary_of_what_the_other_does_not_know_stays():
    kept = History([system(), user("one"), says("1")])
    with _compacting(kept, "slow"):
        with transaction(kept):
            append_message(user("new"))
            append_message(says("n"))
        with _compacting(kept, "fast"):
            pass
    assert told(kept) == ["s", "slow", "of slow", "fast", "of fast"]


def test_a_summary_that_tells_of_its_own_call_too_stays():
    kept = History([system(), user("one"), says("1")])
    with _compacting(kept, "slow"), transaction(kept) as buffer:
        for message in (user("two"), asks("a"), result("a"), says("2")):
            append_message(message)
        buffer[1:6] = [user("fast"), user("two")]
    assert told(kept) == ["s", "slow", "of slow", "fast", "two", "2"]


def test_identifiers_stay_unique_when_others_used_the_same_meanwhile():
    kept = [system(), user("one"), says("1")]
    with transaction(kept) as buffer:
        buffer.extend(turn("x"))
        with transaction(kept) as other:
            other.extend(turn("x"))
    assert len(kept) == 7
    assert faults(kept) == []


def test_identifiers_stay_unique_when_a_rewritten_history_meets_what_others_added():
    kept = [system(), user("one"), says("1")]
    with transaction(kept) as buffer:
        buffer.extend(turn("x"))
        del buffer[1:3]
        with transaction(kept) as other:
            other.extend(turn("x"))
    assert len(kept) == 5
    assert faults(kept) == []


def test_identifiers_stay_unique_when_others_left_the_history_as_long_as_it_was():
    kept = [system(), user("one"), says("1")]
    with transaction(kept) as buffer:
        buffer.extend(turn("x"))
        with transaction(kept) as other:
            del other[1:3]
            other.extend(turn("x"))
    assert faults(kept) == []


def test_one_system_message_is_left_when_two_change_it_at_once():
    kept = [system("old"), user("one"), says("1")]
    with transaction(kept) as buffer:
        buffer[0] = system("mine")
        append_message(user("two"))
        with transaction(kept) as other:
            other[0] = system("theirs")
            append_message(user("meanwhile"))
    assert {"two", "meanwhile"} <= set(told(kept))
    assert faults(kept) == []


def test_two_that_begin_at_once_write_one_system_message():
    kept: list[Any] = []
    with transaction(kept):
        append_message(system("outer"))
        append_message(user("one"))
        with transaction(kept):
            append_message(system("inner"))
            append_message(user("two"))
    assert told(kept) == ["inner", "two", "one"]


def test_a_system_message_that_was_put_in_front_stays_in_front():
    kept = [user("one"), says("1")]
    with transaction(kept) as buffer:
        buffer.insert(0, system())
        append_message(user("two"))
    assert told(kept) == ["s", "one", "1", "two"]


steps = st.lists(st.sampled_from(["system", "user", "turn", "cut", "other"]), max_size=8)


@given(st.integers(0, 3), steps, st.booleans())
def test_whatever_happens_the_history_stays_valid(turns, steps, fails):
    """Several things at once: messages, turns with calls, cuts of whole calls, and others who write."""
    kept: list[Any] = [system()] if turns else []
    for turn in range(turns):
        kept += [user(f"old{turn}"), asks(f"old{turn}"), result(f"old{turn}"), says()]
    before = list(kept)
    others = 0
    try:
        with transaction(kept) as buffer:
            if not buffer:
                append_message(system())
            for number, step in enumerate(steps):
                if step == "user":
                    append_message(user(f"n{number}"))
                elif step == "turn":
                    append_message(asks(f"n{number}"))
                    append_message(result(f"n{number}"))
                elif step == "cut" and len(buffer) > 5 and buffer[1]["content"] == "old0":
                    del buffer[1:5]
                elif step == "other":
                    others += 1
                    kept.extend([*([] if kept else [system()]), user(f"other{number}")])
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        assert kept[: len(before)] == before
    assert faults(kept) == []
    assert len([text for text in told(kept) if str(text).startswith("other")]) == others
    assert len([text for text in told(kept) if str(text).startswith("n")]) == (0 if fails else steps.count("user"))


def test_first_calls_of_an_agent_in_two_threads_write_one_system_message():
    together = threading.Barrier(2, timeout=30)

    @Tool.define
    def meet() -> str:
        """Wait for the other call."""
        together.wait()
        return "met"

    class Bot(Agent):
        @Skill.define
        def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    bot = Bot()

    def reply(request: Any) -> Any:
        return "done" if request["messages"][-1]["role"] == "tool" else calls("meet")

    answers: list[str] = []
    with handler(harness()), handler(ScriptedModel(*[reply] * 4)):
        threads = [
            threading.Thread(target=propagate(lambda text=text: answers.append(bot.ask(text))))
            for text in ("one", "two")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["done", "done"]
    roles = [message["role"] for message in bot.__history__]
    assert roles == ["system", *["user", "assistant", "tool", "assistant"] * 2]
    # Both named their calls alike, for neither knew of the other.
    assert faults(bot.__history__) == []


# What may stand where


OPEN = [user(), asks("a", "b")]


@pytest.mark.parametrize(
    ("history", "message", "problem"),
    [
        ([], result("a"), "no such call"),
        ([user()], result("a"), "no such call"),
        ([*OPEN], result("c"), "no such call"),
        ([*OPEN], result("b"), "`a` comes before it"),
        ([*OPEN, result("a")], result("a"), "no such call"),
        ([*OPEN, result("a"), result("b")], result("b"), "no such call"),
        ([*OPEN], user(), "`a` has no result yet"),
        ([*OPEN, result("a")], says(), "`b` has no result yet"),
        ([*OPEN], system(), "`a` has no result yet"),
        ([user()], system(), "always the first"),
        ([system()], system(), "always the first"),
        ([*OPEN, result("a"), result("b")], asks("a"), "`a`"),
        ([user()], asks("c", "c"), "`c`"),
    ],
)
def test_what_no_provider_accepts_is_refused_and_leaves_the_history_alone(history, message, problem):
    with transaction(history, write_back=False) as buffer:
        with pytest.raises(HistoryError, match=problem):
            append_message(message)
        assert buffer == history


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], system()),
        ([], user()),
        ([], asks("a")),
        ([system()], user()),
        ([user()], user()),
        ([says()], says()),
        ([*OPEN], result("a")),
        ([*OPEN, result("a")], result("b")),
        ([*OPEN, result("a"), result("b")], asks("c")),
    ],
)
def test_what_a_provider_accepts_is_added(history, message):
    with transaction(history, write_back=False) as buffer:
        append_message(message)
        assert buffer == [*history, message]


messages: Any = st.one_of(
    st.builds(system),
    st.builds(user),
    st.builds(lambda ids: asks(*ids), st.lists(st.sampled_from("abc"), max_size=3, unique=True).filter(bool)),
    st.builds(result, st.sampled_from("abcd")),
    st.just("close"),
)


@given(st.lists(messages, max_size=12))
def test_what_was_accepted_is_valid_once_its_calls_are_closed(attempted):
    with transaction() as buffer:
        for message in [*attempted, "close"]:
            try:
                if message == "close":
                    for open_call in buffer.open_calls():
                        append_message(result(open_call))
                else:
                    append_message(message)
            except HistoryError:
                # A provider would have refused it, too, or waited for results of calls that are open.
                assert faults([*buffer, message])
    assert faults(buffer) == []
