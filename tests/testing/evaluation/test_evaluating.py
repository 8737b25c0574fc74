"""Evaluating: what is called, with which handlers, in what order, and what happens when something fails."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import io
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio
from rich.console import Console

from effectful_agents import Agent, CallControl, NotHandled, Risk, Skill, Tool, acall, handler, harness, steps, stream
from effectful_agents.errors import Cancelled, OptionError, Suspended
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.observability.progress import ProgressDisplay
from effectful_agents.handlers.policy import HumanInteraction, MemoryLedger, RiskPolicy
from effectful_agents.messages import Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.world import now
from effectful_agents.runtime import StopScope
from effectful_agents.testing import Case, Evaluation, ScriptedModel, aevaluate, calls, evaluate, says
from effectful_agents.testing.evaluation import exact

WORDS = ["a", "b", "c", "d", "e"]


@Skill.define
def echo(text: str) -> str:
    """{text}"""
    raise NotHandled


@Skill.define
async def aecho(text: str) -> str:
    """{text}"""
    raise NotHandled


class Bot(Agent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    @Skill.define
    def send(self, text: str) -> str:
        """{text}"""
        raise NotHandled


def parrot(**request: Any) -> Any:
    """A model that answers with what it was asked, and with how many messages came before."""
    messages = request["messages"]
    return says(f"{messages[-1]['content'].split()[-1]}{len(messages)}")


@pytest.fixture
def model() -> Any:
    with handler({completion: parrot}), handler(harness(system_prompt="brief")):
        yield


def in_asyncio(skill: Any, *args: Any, **options: Any) -> Evaluation[Any]:
    return asyncio.run(_awaited(skill, *args, **options))


def in_trio(skill: Any, *args: Any, **options: Any) -> Evaluation[Any]:
    return trio.run(lambda: _awaited(skill, *args, **options))


def blocking_a_loop(skill: Any, *args: Any, **options: Any) -> Evaluation[Any]:
    async def program() -> Any:
        return evaluate(skill, *args, **options)

    return asyncio.run(program())


async def _awaited(skill: Any, *args: Any, **options: Any) -> Any:
    return await aevaluate(skill, *args, **options)


everywhere = pytest.mark.parametrize("evaluating", [evaluate, in_asyncio, in_trio, blocking_a_loop])


def outputs(evaluation: Evaluation[Any]) -> list[Any]:
    return [row.output for row in evaluation]


# What is called


@everywhere
@pytest.mark.parametrize("skill", [echo, aecho, Bot().send], ids=["def", "async def", "method"])
@pytest.mark.usefixtures("model")
def test_every_kind_of_skill_is_called_everywhere(evaluating: Any, skill: Any) -> None:
    first = len(evaluating(skill, ["x"]).rows[0].messages) - 1
    assert outputs(evaluating(skill, WORDS, concurrency=3)) == [f"{word}{first}" for word in WORDS]


@everywhere
@pytest.mark.usefixtures("model")
def test_functions_that_yield_or_stream_are_called_to_their_end(evaluating: Any) -> None:
    def pieces(text: str) -> Any:
        yield text
        yield echo(text)

    async def awaited_pieces(text: str) -> Any:
        yield text
        yield await aecho(text)

    assert outputs(evaluating(pieces, ["a", "b"])) == [["a", "a1"], ["b", "b1"]]
    assert outputs(evaluating(awaited_pieces, ["a", "b"])) == [["a", "a1"], ["b", "b1"]]
    assert outputs(evaluating(lambda text: stream(echo, text), ["a", "b"])) == ["a1", "b1"]
    assert outputs(evaluating(lambda text: steps(echo, text), ["a", "b"])) == ["a1", "b1"]


@pytest.mark.usefixtures("model")
def test_no_case_knows_of_another_one() -> None:
    bot = Bot()
    bot.send("before")
    history = len(bot.__history__)
    result = evaluate(bot.send, WORDS, repeat=2)
    assert {row.output[1:] for row in result} == {str(history + 1)}
    assert len(bot.__history__) == history


def test_an_agent_that_cannot_be_copied_says_what_to_write() -> None:
    class Locked(Bot):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with pytest.raises(OptionError, match=r"`lambda text: Bot\(\)\.send\(text\)`"):
        evaluate(Locked().send, ["a"])


@pytest.mark.usefixtures("model")
def test_a_skill_with_another_name_or_from_a_base_is_that_of_the_copy() -> None:
    class Named(Bot):
        @Skill.define(name="say_it")
        def say(self, text: str) -> str:
            """{text}"""
            raise NotHandled

    first = [f"{word}1" for word in WORDS]
    assert outputs(evaluate(Named().say, WORDS)) == outputs(evaluate(Named().send, WORDS)) == first


@pytest.mark.usefixtures("model")
def test_an_agent_that_changes_meanwhile_is_asked_as_it_was() -> None:
    class Counting(Bot):
        count = 0

        @Skill.define
        def next(self, text: str) -> str:
            """{text} {self.count}"""
            raise NotHandled

    agent = Counting()

    def change(output: str) -> bool:
        agent.count += 1
        return True

    assert {row.output[0] for row in evaluate(agent.next, WORDS, change, concurrency=1)} == {"0"}
    assert agent.count == 5


def test_what_is_kept_of_an_agent_is_read_and_not_written(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Kept(Agent):
        __agent_id__: str
        mood: str = "bad"

        @Skill.define
        def send(self, text: str) -> str:
            """{text}"""
            raise NotHandled

    with handler({completion: parrot}), handler(harness(system_prompt="brief", persist_db=tmp_path / "a.db")):
        Kept("ann").send("a")
        result = evaluate(Kept("ann").send, WORDS)
        assert {len(row.messages) for row in result} == {4}
        assert len(Kept("ann").__history__) == 2


class Asking(Agent):
    def __init__(self) -> None:
        self.seen: list[str] = []

    @Skill.define
    def send(self, text: str) -> str:
        """{text}"""
        raise NotHandled

    @Tool.define
    def look(self, text: str) -> str:
        """Look."""
        self.seen.append(text)
        return f"{text}{len(self.seen)}"

    def ask(self, text: str) -> str:
        return self.send(text)

    def __call__(self, text: str) -> str:
        return self.send(text)


def of(agent: Any, text: str) -> str:
    return agent.send(text)


@pytest.mark.parametrize(
    "called",
    [
        lambda agent: agent.ask,
        lambda agent: agent,
        lambda agent: functools.partial(agent.send),
        lambda agent: functools.partial(of, agent),
        lambda agent: functools.partial(stream, agent.send),
        lambda agent: functools.partial(functools.partial(agent.ask)),
    ],
    ids=["def", "object", "partial", "argument", "stream", "partials"],
)
@pytest.mark.usefixtures("model")
def test_an_agent_is_copied_wherever_it_stands_in_what_is_called(called: Any) -> None:
    agent = Asking()
    first = [f"{word}1" for word in WORDS]
    assert outputs(evaluate(called(agent), WORDS, concurrency=1)) == first
    assert outputs(evaluate(called(agent), WORDS)) == first
    assert list(agent.__history__) == []


def test_a_tool_of_an_agent_is_that_of_a_copy() -> None:
    agent = Asking()
    assert outputs(evaluate(agent.look, ["a", "b"], repeat=2)) == ["a1", "a1", "b1", "b1"]
    assert agent.seen == []


@pytest.mark.parametrize(
    "wrapped",
    [lambda agent: agent, lambda agent: [agent], lambda agent: agent.send],
    ids=["agent", "in a list", "method"],
)
@pytest.mark.usefixtures("model")
def test_an_agent_among_the_arguments_is_copied(wrapped: Any) -> None:
    agent = Asking()

    def ask(given: Any) -> str:
        given = given[0] if isinstance(given, list) else given
        return given("x") if callable(given) else ""

    assert outputs(evaluate(ask, [Case(wrapped(agent))], repeat=3, concurrency=1)) == ["x1"] * 3
    assert list(agent.__history__) == []


def test_what_is_kept_of_an_agent_among_the_arguments_is_read_and_not_written(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Kept(Agent):
        __agent_id__: str

        @Skill.define
        def send(self, text: str) -> str:
            """{text}"""
            raise NotHandled

    with handler({completion: parrot}), handler(harness(system_prompt="brief", persist_db=tmp_path / "a.db")):
        Kept("ann").send("a")
        result = evaluate(lambda given: given["who"].send("x"), [Case({"who": Kept("ann")})], repeat=2)
        assert outputs(result) == ["x3"] * 2
        assert len(Kept("ann").__history__) == 2


def test_an_agent_among_the_arguments_that_cannot_be_copied_is_refused() -> None:
    agent = Asking()
    agent.lock = threading.Lock()  # ty: ignore
    for called, cases in ((lambda given: given, [agent]), (functools.partial(of, agent), ["a"])):
        with pytest.raises(OptionError, match="cannot be copied"):
            evaluate(called, cases)


@everywhere
def test_arguments_are_those_of_the_case_in_each_trial_and_each_evaluation(evaluating: Any) -> None:
    def top_two(scores: list[int], *, more: list[int]) -> list[int]:
        scores.sort()
        more.append(1)
        return [scores.pop(), scores.pop(), len(more)]

    cases = [Case([3, 1, 2], more=[], expected=[3, 2, 1])]
    for _ in range(2):
        result = evaluating(top_two, cases, exact, repeat=2)
        assert [row.scores for row in result] == [{"exact": True}] * 2
    assert result.rows[0].case.args == ([3, 1, 2],)
    assert cases[0].args == ([3, 1, 2],)


def test_a_scorer_changes_nothing_for_the_next_one() -> None:
    def emptying(output: Any, expected: Any, given: Any, case: Any) -> int:
        found = len(output) + len(expected) + len(given) + len(case.args[0]) + len(case.metadata["m"])
        for each in (output, expected, given, case.metadata["m"]):
            each.clear()
        return found

    (row,) = evaluate(
        lambda given: [1],
        [Case([1, 2], expected=[1], metadata={"m": [1]})],
        {"a": emptying, "b": emptying},
    )
    assert row.scores == {"a": 7.0, "b": 7.0}
    assert (row.output, row.case.args, row.case.expected) == ([1], ([1, 2],), [1])


def test_what_cannot_be_copied_is_given_as_it_is() -> None:
    lock = threading.Lock()
    (row,) = evaluate(lambda held, words: (held is lock, words is WORDS), [Case(lock, WORDS)])
    assert row.output == (True, False)


@pytest.mark.usefixtures("model")
def test_a_function_makes_an_agent_for_each_case() -> None:
    assert outputs(evaluate(lambda text: Bot().send(text), ["a", "b"])) == outputs(evaluate(Bot().send, ["a", "b"]))


# Order and number


@pytest.mark.parametrize("evaluating", [evaluate, in_asyncio])
def test_rows_are_in_the_order_of_the_cases_whatever_ended_first(evaluating: Any) -> None:
    gates = {word: threading.Event() for word in "abcd"}
    gates["d"].set()

    async def last_first(word: str) -> str:
        while not gates[word].is_set():
            await asyncio.sleep(0)
        gates[chr(max(ord(word) - 1, ord("a")))].set()
        return word.upper()

    assert outputs(evaluating(last_first, list("abcd"), concurrency=4)) == list("ABCD")


@everywhere
def test_no_more_than_so_many_run_at_once(evaluating: Any) -> None:
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=20) if evaluating in (evaluate, blocking_a_loop) else None

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if both is not None:
            both.wait()
        with lock:
            running -= 1
        return number

    assert outputs(evaluating(call, range(6), concurrency=2)) == list(range(6))
    assert most == (2 if both is not None else 1)


def test_one_at_a_time_asks_in_order_and_in_this_thread() -> None:
    seen: list[Any] = []
    evaluate(lambda word: seen.append((word, threading.get_ident())), WORDS, concurrency=1)
    assert seen == [(word, threading.get_ident()) for word in WORDS]


def test_a_thousand_cases_take_no_more_threads_than_may_run_at_once() -> None:
    threads: set[str] = set()
    evaluate(lambda number: threads.add(threading.current_thread().name + str(threading.get_ident())), range(1000))
    assert 1 <= len(threads) <= 8


def test_trials_of_a_case_stand_beside_each_other() -> None:
    result = evaluate(lambda text: text, ["a", "b"], repeat=3)
    assert [(row.case.name, row.trial) for row in result] == [(name, trial) for name in "ab" for trial in (1, 2, 3)]


def test_trials_have_a_mean_and_a_spread() -> None:
    answers = iter([1.0, 3.0, 5.0, 5.0])
    result = evaluate(lambda text: next(answers), ["a", "b"], {"s": lambda output: output}, repeat=2, concurrency=1)
    summary = result.summary()["s"]
    assert (summary.mean, summary.cases) == (3.5, 2)
    assert summary.spread == pytest.approx(1.0)  # (1 - 2)² + (3 - 2)² over the two degrees of freedom of both cases
    assert summary.error == pytest.approx(1.5)


def test_no_cases_are_no_rows() -> None:
    result = evaluate(echo, [], exact)
    assert (len(result), result.summary(), result.failures, result.cost) == (0, {}, [], 0.0)
    assert str(result) == "echo: 0 cases"


@pytest.mark.parametrize(("option", "value"), [("repeat", 0), ("concurrency", 0), ("limit", -1), ("repeat", 1.5)])
def test_an_option_that_cannot_be_is_refused(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"`{option}` is {value}"):
        evaluate(echo, ["a"], **{option: value})


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(OptionError, match="this is str"):
        evaluate("echo", ["a"])  # ty: ignore


# Handlers


@everywhere
def test_handlers_around_hold_in_every_case(evaluating: Any) -> None:
    with handler({now: lambda: 7.0}):
        assert outputs(evaluating(lambda _: now(), WORDS)) == [7.0] * 5
    assert now() != 7.0


def test_a_stack_is_for_the_skill_and_not_for_scorers() -> None:
    with handler({now: lambda: 1.0}):
        result = evaluate(lambda _: now(), ["a"], {"s": lambda output: now()}, stack={now: lambda: 2.0})
    assert [(row.output, row.scores) for row in result] == [(2.0, {"s": 1.0})]


@everywhere
def test_a_function_makes_a_stack_for_each_call(evaluating: Any) -> None:
    made: list[Any] = []

    def stack() -> Any:
        made.append(ScriptedModel("one", "two"))
        return made[-1]

    with handler(harness(system_prompt="brief")):
        assert outputs(evaluating(echo, WORDS, stack=stack)) == ["one"] * 5
    assert [each.remaining for each in made] == [1] * 5


def test_usage_and_cost_are_those_of_all_requests_of_a_case() -> None:
    @Tool.define
    def look() -> str:
        """Look."""
        return "seen"

    @Skill.define
    def watch(text: str) -> int:
        """{text}"""
        raise NotHandled

    used = Usage(input=10, output=1)
    replies = [calls("look", usage=used), says("no number", usage=used), says("7", usage=used)]
    with handler(ScriptedModel(*replies)), handler(harness(system_prompt="brief")):
        with handler({cost_of: lambda model, usage: usage.input / 100}):
            (row,) = evaluate(watch, ["a"], {"judged": lambda output: cost_of("", used) > 0})
    assert (row.output, row.usage, row.cost) == (7, Usage(input=30, output=3), pytest.approx(0.3))
    assert row.scores == {"judged": True}


def test_what_a_failed_call_has_used_counts() -> None:
    with handler(ScriptedModel(says("x", usage=Usage(input=5, output=1)), KeyError)), handler(harness()):
        (row,) = evaluate(lambda text: echo(text) + echo(text), ["a"])
    assert row.usage.input == 5
    assert row.error is not None
    assert row.cost is None  # nobody knows the price
    assert evaluate(lambda text: text, ["a"]).cost == 0.0


def test_seconds_are_those_of_the_call() -> None:
    clock = iter([1.0, 3.5, 0.0, 9.0])
    with handler({now: lambda: next(clock)}):
        (row,) = evaluate(lambda text: text, ["a"], lambda output: True)
    assert row.seconds == 2.5


# Failures


def fails(text: str) -> str:
    if text == "b":
        raise ValueError("no b")
    return text


@everywhere
def test_a_skill_that_raises_is_written_down_and_the_rest_goes_on(evaluating: Any) -> None:
    result = evaluating(fails, WORDS, {"s": lambda output: True})
    (row,) = result.failures
    assert (row.case.name, row.output, row.scores, row.suspended) == ("b", None, {}, False)
    assert (row.error.kind, row.error.message) == ("ValueError", "no b")
    assert 'raise ValueError("no b")' in row.error.traceback
    assert result.summary()["s"].cases == 4


def test_a_scorer_that_raises_is_written_down_beside_the_others() -> None:
    def broken(output: str) -> bool:
        raise RuntimeError("broken")

    (row,) = evaluate(lambda text: text, ["a"], [broken, exact_a])
    assert row.scores == {"exact_a": True}
    (failure,) = row.failures
    assert (failure.scorer, str(failure), row.error) == ("broken", "broken: RuntimeError: broken", None)


def exact_a(output: str) -> bool:
    return output == "a"


class Odd(Exception):
    def __str__(self) -> str:
        raise TypeError


@pytest.mark.parametrize(
    "error",
    [ExceptionGroup("several", [ValueError("one")]), StopIteration(), RecursionError(), Odd(), ValueError("\ud800")],
    ids=["group", "stop", "recursion", "no text", "surrogate"],
)
@everywhere
def test_odd_errors_stay_at_their_case(evaluating: Any, error: Exception) -> None:
    def call(text: str) -> str:
        if text == "a":
            raise error
        return text

    result = evaluating(call, ["a", "b"])
    assert [row.error is None for row in result] == [False, True]
    assert type(error).__name__ in str(result)


@everywhere
def test_a_call_that_is_suspended_is_written_down_as_that(evaluating: Any) -> None:
    token = "-".join(["not", "shown"])

    def call(text: str) -> str:
        if text == "b":
            raise Suspended("`book` is to be approved", token=token)
        return text

    result = evaluating(call, WORDS)
    assert [row.case.name for row in result if row.suspended] == ["b"]
    assert "1 suspended" in str(result)
    assert token not in repr(result)


@everywhere
def test_a_case_that_cancels_itself_ends_alone(evaluating: Any) -> None:
    @Skill.define
    def ask(text: str) -> str:
        """{text}"""
        raise NotHandled

    def call(text: str) -> str:
        control = CallControl()
        with handler(control):
            if text == "b":
                control.cancel()
            return ask(text)

    with handler({completion: parrot}), handler(harness(system_prompt="brief")):
        result = evaluating(call, WORDS)
    assert [row.error.kind if row.error else None for row in result] == [None, "Cancelled", None, None, None]


def test_what_is_cancelled_inside_a_call_is_a_failure_of_it() -> None:
    async def call(text: str) -> str:
        if text == "b":
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            future.cancel()
            return await future
        return text

    for evaluating in (evaluate, in_asyncio):
        result = evaluating(call, WORDS)
        assert [row.error.kind if row.error else None for row in result] == [None, "CancelledError", None, None, None]


async def old_timeout(number: int) -> int:
    """Runs into a timeout as libraries made them before Python 3.11: it cancels the task that it runs in."""
    if number % 3 == 1:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_soon(task.cancel)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise TimeoutError("too slow") from None
    return number


def cancelled_and_went_on(number: int) -> int:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return number


async def cancelled(number: int) -> int:
    cancelled_and_went_on(number)
    await asyncio.sleep(0)
    return number


@pytest.mark.parametrize("concurrency", [1, 2, 8])
@pytest.mark.parametrize("evaluating", [evaluate, in_asyncio])
def test_a_call_that_cancels_its_own_task_has_a_row_and_the_rest_goes_on(evaluating: Any, concurrency: int) -> None:
    async def right(output: int) -> bool:
        await asyncio.sleep(0)
        return True

    result = evaluating(old_timeout, range(8), right, concurrency=concurrency)
    kinds = [row.error.kind if row.error else row.scores for row in result]
    assert kinds == ["TimeoutError" if number % 3 == 1 else {"right": True} for number in range(8)]
    result = evaluating(cancelled, range(8), right, concurrency=concurrency)
    assert [row.error.kind for row in result if row.error] == ["CancelledError"] * 8


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_call_that_is_cancelled_too_late_has_its_value_and_is_scored(concurrency: int) -> None:
    async def right(output: int) -> bool:
        await asyncio.sleep(0)
        return True

    result = in_asyncio(cancelled_and_went_on, range(8), right, concurrency=concurrency)
    assert [(row.output, row.scores) for row in result] == [(number, {"right": True}) for number in range(8)]


def test_an_evaluation_inside_of_a_call_is_not_ended_by_its_calls() -> None:
    async def inner(number: int) -> int:
        return len(await aevaluate(old_timeout, range(4), concurrency=2))

    assert outputs(in_asyncio(inner, range(3), concurrency=2)) == [4] * 3


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_case_is_left_out_whatever_is_cancelled(concurrency: int) -> None:
    async def call(number: int) -> int:
        if number == 1:
            for task in asyncio.all_tasks() - {program}:
                task.cancel()
        await asyncio.sleep(0)
        return number

    async def evaluated() -> Evaluation[int]:
        nonlocal program
        program = asyncio.current_task()
        return await aevaluate(call, range(8), concurrency=concurrency)

    program: Any = None
    result = asyncio.run(evaluated())
    assert [row.case.name for row in result] == [str(number) for number in range(8)]
    assert all(row.error is not None or row.output == int(row.case.name) for row in result)


def test_what_has_arguments_already_is_called_by_its_own_name() -> None:
    def shout(mark: str, text: str) -> str:
        return text + mark

    result = evaluate(functools.partial(functools.partial(shout), "!"), ["a"])
    assert (result.name, outputs(result)) == ("shout", ["a!"])


@everywhere
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_call_that_exits_is_a_failure_of_its_case(evaluating: Any, concurrency: int) -> None:
    def call(number: int) -> int:
        if number == 3:
            raise SystemExit(f"no such option: {number}")
        return number

    result = evaluating(call, range(6), {"s": lambda output: True}, concurrency=concurrency)
    (row,) = result.failures
    assert (len(result), row.case.name, str(row.error)) == (6, "3", "SystemExit: no such option: 3")


@everywhere
def test_what_ends_all_of_it_has_the_rows_that_are_complete(evaluating: Any) -> None:
    def call(number: int) -> int:
        if number == 3:
            raise KeyboardInterrupt
        return number

    with pytest.raises(KeyboardInterrupt) as caught:
        evaluating(call, range(6), exact_a, concurrency=1, name="n")
    kept = caught.value.evaluation  # ty: ignore
    assert (kept.name, outputs(kept)[:3]) == ("n", [0, 1, 2])


def test_a_suspension_is_told_by_its_class_and_not_by_its_name() -> None:
    def call(text: str) -> str:
        raise type("Suspended", (Exception,), {})("unpaid")

    (row,) = evaluate(call, ["a"])
    assert (row.suspended, str(row.error)) == (False, "Suspended: unpaid")


# Ending all of it


class Ends(BaseException):
    """What is no failure: of a test runner, say."""


@everywhere
@pytest.mark.parametrize("error", [KeyboardInterrupt, Ends])
def test_whoever_ends_the_program_ends_the_evaluation(evaluating: Any, error: type[BaseException]) -> None:
    begun: list[int] = []

    def call(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise error
        return number

    with pytest.raises(error):
        evaluating(call, range(1000), concurrency=2)
    assert len(begun) < 1000
    assert_no_threads()


@everywhere
def test_a_scope_around_that_is_stopped_ends_all_calls(evaluating: Any) -> None:
    asked: list[Any] = []

    def answer(**request: Any) -> Any:
        asked.append(request)
        scope.stop(Cancelled)
        return says("late")

    with handler({completion: answer}), handler(harness(system_prompt="brief")), StopScope() as scope:
        with pytest.raises(Cancelled):
            evaluating(echo, range(1000), concurrency=2)
    assert len(asked) <= 2
    assert_no_threads()


@everywhere
def test_a_control_around_cancels_the_calls_that_are_left_and_keeps_the_others(evaluating: Any) -> None:
    control = CallControl()

    def answer(**request: Any) -> Any:
        if request["messages"][-1]["content"].endswith("c"):
            control.cancel()
        return parrot(**request)

    with handler({completion: answer}), handler(harness(system_prompt="brief")), handler(control):
        result = evaluating(echo, WORDS, concurrency=1)
    assert [row.error.kind if row.error else row.output for row in result] == ["a1", "b1", *["Cancelled"] * 3]


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_cancelling_the_task_ends_all_calls(run: Any) -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def call(text: str) -> str:
        begun.append(text)
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(text)
        return text

    async def program() -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(functools.partial(aevaluate, call, WORDS, concurrency=3))
            while len(begun) < 3:
                await anyio.sleep(0)
            tasks.cancel_scope.cancel()

    run(program) if run is trio.run else run(program())
    assert sorted(ended) == sorted(begun) == ["a", "b", "c"]


def assert_no_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "effectful-agents-case":
            thread.join(timeout=20)
            assert not thread.is_alive()


# Runs


def test_an_evaluation_that_was_interrupted_goes_on_where_it_stopped() -> None:
    store, asked = MemoryCheckpointer(), []
    may_ask = 3

    def answer(**request: Any) -> Any:
        if len(asked) == may_ask:
            raise KeyboardInterrupt
        asked.append(request)
        return parrot(**request)

    def once() -> Evaluation[str]:
        with handler({completion: answer}), handler(harness(system_prompt="brief")), handler(Journal("m", store)):
            return evaluate(echo, WORDS, concurrency=1)

    with pytest.raises(KeyboardInterrupt):
        once()
    may_ask = 99
    first = once()
    assert (len(asked), outputs(first)) == (5, [f"{word}1" for word in WORDS])
    again = once()
    assert (len(asked), outputs(again), again.usage) == (5, outputs(first), first.usage)


@everywhere
def test_a_judge_is_asked_once_in_a_run(evaluating: Any) -> None:
    @Skill.define
    def judge(output: str) -> str:
        """{output}"""
        raise NotHandled

    async def right(output: str) -> bool:
        return (await acall(judge, output)).startswith(output)

    store, asked = MemoryCheckpointer(), []

    def answer(**request: Any) -> Any:
        asked.append(request)
        return parrot(**request)

    for _ in range(2):
        with handler({completion: answer}), handler(harness(system_prompt="brief")), handler(Journal("m", store)):
            result = evaluating(echo, WORDS, right, concurrency=3)
        assert [row.scores for row in result] == [{"right": True}] * 5
        assert len(asked) == 10


@everywhere
def test_a_case_that_waits_for_an_approval_goes_on_when_it_was_given(evaluating: Any) -> None:
    @Tool.define(risk=Risk.HARD_WRITE)
    def book(city: str) -> str:
        """Book a flight."""
        return "booked"

    @Skill.define
    def go(city: str) -> str:
        """{city}"""
        raise NotHandled

    asked: list[Any] = []

    def answer(**request: Any) -> Any:
        asked.append(request)
        text = request["messages"][-1]["content"]
        return calls("book", city=text) if text == "Rome" else says(text)

    store, ledger = MemoryCheckpointer(), MemoryLedger()
    people = HumanInteraction(bytes(32), binding="boss", consumption=ledger)

    def once() -> Evaluation[str]:
        with handler({completion: answer}), handler(harness(system_prompt="brief")), handler(Journal("m", store)):
            with handler(RiskPolicy()), handler(people):
                return evaluating(go, ["Oslo", "Rome", "Paris"])

    assert [row.suspended for row in once()] == [False, True, False]
    (question,) = ledger.questions()
    ledger.consume(question.token_id, Answer(approved=True), 0.0)
    assert outputs(once()) == ["Oslo", "booked", "Paris"]
    assert len(asked) == 4


@everywhere
def test_the_places_in_a_run_do_not_depend_on_what_ends_first(evaluating: Any) -> None:
    def places() -> list[str]:
        store = MemoryCheckpointer()
        with handler({completion: parrot}), handler(harness(system_prompt="brief")), handler(Journal("m", store)):
            evaluating(echo, WORDS, concurrency=3)
        return sorted(store.load("m").steps())

    assert places() == places()
    assert sum(step.endswith("-model") for step in places()) == 5


@pytest.mark.usefixtures("model")
def test_an_evaluation_can_be_awaited_as_any_call() -> None:
    async def program() -> Any:
        return await acall(evaluate, echo, WORDS)

    assert outputs(asyncio.run(program())) == [f"{word}1" for word in WORDS]


@dataclasses.dataclass
class Terminal:
    written: list[str]

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)

    def flush(self) -> None:
        pass


def test_a_bar_is_shown_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(fails, WORDS)
    assert capsys.readouterr() == ("", "")
    terminal = Terminal([])
    monkeypatch.setattr("sys.stderr", terminal)
    evaluate(fails, WORDS, progress=False)
    assert terminal.written == []
    evaluate(fails, WORDS, name="[red]name")
    assert "[red]name" in "".join(terminal.written)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("model")
def test_a_bar_shares_the_terminal_with_what_shows_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, shared = Terminal([]), io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    with handler(ProgressDisplay(Console(stderr=True, file=shared, force_terminal=True))):
        assert outputs(evaluate(echo, WORDS, name="the bar")) == [f"{word}1" for word in WORDS]
    assert terminal.written == []
    assert "the bar" in shared.getvalue()


def test_an_unhandled_skill_says_at_each_case_what_is_missing() -> None:
    result = evaluate(echo, WORDS)
    assert [row.error.kind for row in result if row.error] == ["MissingHandlerError"] * 5
