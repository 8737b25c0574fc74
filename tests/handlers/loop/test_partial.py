"""Values of an answer that are told while it is being written."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, fwd, handler, harness
from effectful_agents.errors import ResultDecodingError
from effectful_agents.handlers.durability import TenacityRetryer
from effectful_agents.handlers.loop import PartialAnswers
from effectful_agents.messages import Finish, PartialValue, StreamStart, TextDelta
from effectful_agents.operations.loop import call_assistant, completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import Layers, propagate, wait
from effectful_agents.testing import ScriptedModel, batch, calls, says


@dataclasses.dataclass
class Joke:
    """A joke."""

    question: str
    answer: str


@Skill.define
def joke(theme: str) -> Joke:
    """A joke about {theme}."""
    raise NotHandled


@Skill.define
def primes(count: int) -> list[int]:
    """The first {count} primes."""
    raise NotHandled


@Skill.define
def number() -> int:
    """A number."""
    raise NotHandled


@Skill.define
def explain(word: str) -> str:
    """Explain {word}."""
    raise NotHandled


@Tool.define
def look_up(word: str) -> str:
    """Look a word up."""
    return "found"


class Listener:
    """Hears what is told, and forwards it."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def __call__(self, event: Any) -> None:
        self.heard.append(event)
        fwd()

    @property
    def values(self) -> list[Any]:
        return [event.value for event in self.heard if isinstance(event, PartialValue)]


@pytest.fixture
def listener() -> Iterator[Listener]:
    it = Listener()
    with handler(harness()), handler({emit: it}):
        yield it


def test_values_are_told_as_they_are_written(listener: Listener):
    with handler(ScriptedModel("[2, 3, 5]", chunk_size=3)), handler(PartialAnswers()):
        assert primes(3) == [2, 3, 5]
    assert listener.values == [[2], [2, 3], [2, 3, 5]]


def test_each_value_comes_behind_the_piece_that_makes_it_and_the_last_before_the_end(listener: Listener):
    with handler(ScriptedModel(says("one"), chunk_size=2)), handler(PartialAnswers()):
        explain("a word")
    told = [event for event in listener.heard if isinstance(event, TextDelta | PartialValue | Finish)]
    assert told[:-1] == [TextDelta("on"), PartialValue("on"), TextDelta("e"), PartialValue("one")]
    assert isinstance(told[-1], Finish)


def test_a_value_that_only_the_whole_answer_has_is_told_before_the_end(listener: Listener):
    with handler(ScriptedModel(says("7"))), handler(PartialAnswers()):
        assert number() == 7
    told = [event for event in listener.heard if isinstance(event, PartialValue | Finish)]
    assert told[0] == PartialValue(7)
    assert isinstance(told[1], Finish)


def test_an_object_is_told_when_all_that_it_requires_is_there(listener: Listener):
    with handler(ScriptedModel(Joke("Who?", "Nobody."), chunk_size=4)), handler(PartialAnswers()):
        answer = joke("doors")
    assert {value.question for value in listener.values} == {"Who?"}
    assert all("Nobody.".startswith(value.answer) for value in listener.values)
    assert listener.values[-1] == answer


def test_without_the_handler_nothing_is_told(listener: Listener):
    with handler(ScriptedModel("[2]")):
        primes(1)
    assert listener.values == []


def test_the_call_is_the_same_with_and_without_it():
    def outcome(*handlers: Any) -> Any:
        model = ScriptedModel(calls("look_up", word="x"), "[2, 3]")
        with handler(harness()), handler(model), handler(Layers(*handlers)):
            return primes(2), model.requests

    assert outcome() == outcome(PartialAnswers())


@pytest.mark.parametrize("outside", [True, False])
def test_a_listener_may_stand_on_either_side(outside: bool):
    listener = Listener()
    both: list[Any] = [{emit: listener}, PartialAnswers()]
    outer, inner = both if outside else reversed(both)
    with handler(harness()), handler(ScriptedModel("[2]")), handler(outer), handler(inner):
        primes(1)
    assert listener.values[-1] == [2]


def test_of_two_only_one_tells(listener: Listener):
    with handler(ScriptedModel("[2, 3, 5]", chunk_size=3)), handler(PartialAnswers()), handler(PartialAnswers()):
        primes(3)
    assert listener.values == [[2], [2, 3], [2, 3, 5]]


# --- turns ------------------------------------------------------------------------------------------------------------


def test_a_turn_with_tool_calls_tells_at_most_the_text_before_them(listener: Listener):
    script = (batch(says("Let me see."), calls("look_up", word="x")), says("It is."))
    with handler(ScriptedModel(*script, chunk_size=20)), handler(PartialAnswers()):
        explain("x")
    assert listener.values == ["Let me see.", "It is."]


def test_text_beside_tool_calls_is_no_value_of_another_type(listener: Listener):
    with (
        handler(ScriptedModel(batch(says("Let me see."), calls("look_up", word="x")), "[2]")),
        handler(PartialAnswers()),
    ):
        primes(1)
    assert all(isinstance(value, list) for value in listener.values)


def test_an_attempt_to_mend_a_reply_begins_anew(listener: Listener):
    script = ("[2, 3, x]", "[2, 3]")
    with handler(ScriptedModel(*script, chunk_size=3)), handler(PartialAnswers()):
        assert primes(2) == [2, 3]
    assert listener.values == [[2], [2, 3], [2], [2, 3]]


def test_a_retryer_inside_of_it_begins_anew_too():
    listener = Listener()
    with handler(harness(num_retries=0)), handler({emit: listener}), handler(PartialAnswers()):
        with handler(TenacityRetryer()), handler(ScriptedModel("[2, x]", "[3]", chunk_size=3)):
            assert primes(1) == [3]
    assert listener.values == [[2], [3]]


def test_a_stream_that_begins_anew_in_one_request(listener: Listener):
    def broken(**request: Any) -> Any:
        emit(StreamStart("m"))
        emit(TextDelta("[2, 3,"))
        return fwd()

    with handler(ScriptedModel("[5]", chunk_size=9)), handler({completion: broken}), handler(PartialAnswers()):
        primes(1)
    assert listener.values == [[2, 3], [5]]


def test_an_answer_that_cannot_be_decoded_has_no_last_value():
    listener = Listener()
    with handler(harness(num_retries=0)), handler({emit: listener}), handler(PartialAnswers()):
        with handler(ScriptedModel("[2, x]", chunk_size=3)), pytest.raises(ResultDecodingError):
            primes(1)
    assert listener.values == [[2]]


# --- nested and at once -----------------------------------------------------------------------------------------------


class Reader(Agent):
    """Reads."""

    @Skill.define
    def read(self, text: str) -> list[int]:
        """Read {text}."""
        raise NotHandled


def test_a_call_inside_a_request_is_not_mistaken_for_it(listener: Listener):
    """A handler of `completion` that asks another skill before it sends the request."""
    asking = False

    def ask_first(**request: Any) -> Any:
        nonlocal asking
        if not asking:
            asking = True
            emit(TextDelta("[1,"))
            explain("x")
            emit(TextDelta("2,"))
        return fwd()

    with handler(ScriptedModel(says("word"), "[7]", chunk_size=9)), handler({completion: ask_first}):
        with handler(PartialAnswers()):
            assert primes(1) == [7]
    assert listener.values == [[1], "word", [1, 2], [7]]


def test_a_skill_as_a_tool_has_values_of_its_own(listener: Listener):
    script = (calls("explain", word="x"), says("word"), "[7]")
    with handler(ScriptedModel(*script, chunk_size=9)), handler(PartialAnswers()):
        assert primes(1) == [7]
    assert listener.values == ["word", [7]]


def answer_to(request: Any) -> str:
    """`[7, 7, 7]` for a question about 7 primes."""
    asked = re.search(r"first (\d+) primes", request["messages"][-1]["content"])
    assert asked
    return str([int(asked[1])] * 3)


def all_of_one(values: list[Any]) -> bool:
    return all(len(set(value)) <= 1 for value in values)


def test_calls_in_threads_do_not_mix():
    count = 8
    together = threading.Barrier(count)
    told: dict[int, list[Any]] = {one: [] for one in range(count)}

    def ask(one: int) -> Any:
        def listen(event: Any) -> None:
            if isinstance(event, TextDelta):
                together.wait(10)
            if isinstance(event, PartialValue):
                told[one].append(event.value)
            fwd()

        with handler({emit: listen}):
            return primes(one)

    with handler(harness()), handler(ScriptedModel(*[answer_to] * count, chunk_size=3)):
        with handler(PartialAnswers()), concurrent.futures.ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(propagate(ask), range(count)))
    assert answers == [[one] * 3 for one in range(count)]
    assert told == {one: [[one], [one] * 2, [one] * 3] for one in range(count)}


def test_tasks_do_not_mix():
    told: list[Any] = []

    def listen(event: Any) -> None:
        if isinstance(event, PartialValue):
            told.append(event.value)

    async def main() -> list[Any]:
        with handler(harness()), handler(ScriptedModel(*[answer_to] * 8, chunk_size=3)):
            with handler({emit: listen}), handler(PartialAnswers()), handler({completion: pausing}):
                return await asyncio.gather(*(acall(primes, one) for one in range(8)))

    def pausing(**request: Any) -> Any:
        with handler({emit: pause}):
            return fwd()

    def pause(event: Any) -> None:
        wait(asyncio.sleep(0))
        fwd()

    assert asyncio.run(main()) == [[one] * 3 for one in range(8)]
    assert len(told) == 8 * 3
    assert all_of_one(told)


def test_a_type_that_cannot_be_described_is_for_others_to_refuse():
    message: Any = {"role": "assistant", "content": "?"}

    def answer(*args: Any) -> Any:
        emit(TextDelta("[1,"))
        return message, [], None

    with handler({call_assistant: answer}), handler(PartialAnswers()):
        assert call_assistant([], threading.Barrier, {}) == (message, [], None)


def test_nothing_is_kept_when_a_call_fails(listener: Listener):
    def fail(**request: Any) -> Any:
        raise LookupError

    with handler(PartialAnswers()):
        with handler({completion: fail}), pytest.raises(LookupError):
            primes(1)
        emit(TextDelta("[1,"))
    assert listener.values == []
