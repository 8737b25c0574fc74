"""`RateLimit`: what goes out when, to whom it is fair, and what ends the waiting."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effectful_agents import NotHandled, ObjectInterpretation, Skill, fwd, handler, harness, implements
from effectful_agents.errors import Cancelled, LimitExceeded, NetworkError, OptionError, ProviderError
from effectful_agents.handlers.loop import CallControl, Deadline, acall
from effectful_agents.handlers.provision import Fallback, RateLimit
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.provision.retries import retried
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.operations.world import now, sleep
from effectful_agents.runtime import bridged, wait
from effectful_agents.testing import ScriptedModel, says
from tests.handlers.provision import virtual_time
from tests.handlers.provision.http.server import Server, whole

HI: list[Any] = [{"role": "user", "content": "hi"}]


class Clock:
    """A clock that only sleeping moves on.

    Attributes:
        time: What it shows.
        slept: How long each sleep was.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def handled(self) -> Any:
        return handler({now: lambda: self.time, sleep: self.sleep})


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with clock.handled():
        yield clock


class Service(ObjectInterpretation):
    """Answers, and notes when it was asked; a reply may be an error, or how many tokens it had."""

    def __init__(self, *replies: Any, seconds: float = 0) -> None:
        self.replies = list(replies)
        self.seconds = seconds
        self.times: list[float] = []
        self.names: list[str] = []
        self.running = 0
        self.most = 0

    @implements(send_request)
    def send_request(self, **request: Any) -> Any:
        self.times.append(now())
        self.names.append(request.get("model", ""))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.seconds:
                sleep(self.seconds)
            reply = self.replies.pop(0) if self.replies else None
            if isinstance(reply, BaseException):
                raise reply
        finally:
            self.running -= 1
        usage = None if reply is None else {"prompt_tokens": reply, "completion_tokens": 0}
        return {**says("Hello"), "usage": usage}


def ask(**request: Any) -> Any:
    return completion(messages=HI, **request)


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= one < start + 60 for one in times) for start in times)


def tokens_of(**sizes: int) -> Any:
    """Count the tokens of a request by its model."""
    return handler({count_tokens: lambda content, model=None: TokenCount(sizes[model or ""], estimated=False)})


# --- requests --------------------------------------------------------------------------------------------------------


def test_requests_go_out_at_once_until_the_minute_is_full(clock):
    service = Service()
    with handler(service), handler(RateLimit(requests_per_minute=3)):
        for _ in range(8):
            ask()
    assert service.times == [0, 0, 0, 60, 60, 60, 120, 120]
    assert clock.slept == [60, 60]


def test_the_minute_slides(clock):
    service = Service()
    with handler(service), handler(RateLimit(requests_per_minute=2)):
        for pause in (0, 50, 0, 0, 0):
            clock.time += pause
            ask()
    assert service.times == [0, 50, 60, 110, 120]


def test_a_clock_that_stands_still_or_runs_back_stops_nobody():
    slept: list[float] = []
    times = itertools.chain([1000.0, 5.0, 2000.0], itertools.repeat(3.0))
    with handler({now: lambda: next(times), sleep: slept.append}):
        with handler(ScriptedModel(*["Hello"] * 9)), handler(RateLimit(requests_per_minute=1)):
            for _ in range(9):
                ask()
    assert slept == [60.0] * 8


@given(
    requests=st.integers(1, 4),
    gaps=st.lists(st.sampled_from([0.0, 0.5, 7.0, 19.9, 60.0]), min_size=1, max_size=25),
    seconds=st.sampled_from([0.0, 1.0, 45.0]),
    concurrent=st.sampled_from([None, 1, 2]),
)
def test_no_minute_has_more_and_nobody_overtakes(requests, gaps, seconds, concurrent):
    service = Service(seconds=seconds)
    limit = RateLimit(requests_per_minute=requests, concurrent=concurrent)

    async def program() -> None:
        async with asyncio.TaskGroup() as tasks:
            for number, gap in enumerate(gaps):
                await asyncio.sleep(gap)
                tasks.create_task(bridged(ask, seed=number))
                await asyncio.sleep(0)

    order: list[int] = []

    def note(**request: Any) -> Any:
        order.append(request["seed"])
        return fwd()

    with handler(service), handler({completion: note}), handler(limit):
        virtual_time.run(program())
    assert most_in_a_minute(service.times) <= requests
    assert order == list(range(len(gaps)))
    assert service.most <= (concurrent or len(gaps))
    if concurrent is None:  # and nobody waits longer than the limit demands
        arrivals = list(itertools.accumulate(gaps))
        expected: list[float] = []
        for place, arrival in enumerate(arrivals):
            before = [expected[place - 1]] if place else []
            free = [expected[place - requests] + 60] if place >= requests else []
            expected.append(max(arrival, *before, *free, 0))
        assert service.times == pytest.approx(expected)


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens_are_counted_before_a_request(clock):
    service = Service()
    with tokens_of(a=40), handler(service), handler(RateLimit(tokens_per_minute=100)):
        for _ in range(5):
            ask(model="a")
    assert service.times == [0, 0, 60, 60, 120]


def test_what_the_reply_reports_takes_the_place_of_the_count(clock):
    service = Service(10, 10, 95, 10)
    with tokens_of(a=40), handler(service), handler(RateLimit(tokens_per_minute=100)):
        for _ in range(4):
            ask(model="a")
    # 10 + 10 + 40 leave room; when the third reports 95, they do not.
    assert service.times == [0, 0, 0, 60]


def test_tools_the_form_of_the_answer_and_room_for_the_reply_count_too(clock):
    def moments(**request: Any) -> list[float]:
        service = Service()
        start = clock.time
        with handler(service), handler(RateLimit(tokens_per_minute=100)):
            for _ in range(2):
                ask(**request)
        return [one - start for one in service.times]

    tool = {"type": "function", "function": {"name": "f", "description": "words " * 60, "parameters": {}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"description": "words " * 60}}}
    assert moments() == [0, 0]
    assert moments(tools=[tool]) == [0, 60]
    assert moments(response_format=form) == [0, 60]
    assert moments(max_tokens=90) == [0, 60]
    assert moments(max_completion_tokens=90) == [0, 60]


def test_a_request_larger_than_the_minute_goes_alone(clock):
    service = Service()
    sizes = iter([30, 500, 600, 30])
    with handler({count_tokens: lambda *_: TokenCount(next(sizes), estimated=False)}), handler(service):
        with handler(RateLimit(tokens_per_minute=100)):
            for _ in range(4):
                ask()
    assert service.times == [0, 60, 120, 180]


@given(
    sizes=st.lists(st.integers(0, 250), min_size=1, max_size=20),
    budget=st.integers(50, 200),
    gap=st.sampled_from([0.0, 13.0]),
)
def test_no_minute_has_more_tokens_but_for_one_large_request(sizes, budget, gap):
    service = Service(seconds=1)
    counted = iter(sizes)

    async def program() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in sizes:
                tasks.create_task(bridged(ask))
                await asyncio.sleep(gap)

    with handler({count_tokens: lambda *_: TokenCount(next(counted), estimated=False)}), handler(service):
        with handler(RateLimit(tokens_per_minute=budget)):
            virtual_time.run(program())
    assert len(service.times) == len(sizes)
    for start in service.times:
        inside = [size for size, one in zip(sizes, service.times, strict=True) if start <= one < start + 60]
        assert sum(inside) <= budget or len([size for size in inside if size]) == 1


@given(
    requests=st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 30.0]),
            st.sampled_from([50, 100]),
            st.integers(0, 90),
            st.sampled_from([1.0, 59.0, 60.0, 75.0]),
        ),
        min_size=1,
        max_size=12,
    ),
    concurrent=st.sampled_from([None, 2]),
)
@example(requests=[(0, 50, 10, 75), (30, 50, 50, 1), (1, 100, 100, 1), (39, 50, 50, 1)], concurrent=None)
def test_whatever_was_counted_and_reported_a_minute_later_all_of_it_is_free_again(requests, concurrent):
    """Replies may come when their minute is over, and may be anything."""
    times: list[float] = []

    def answer(**request: Any) -> Any:
        times.append(now())
        sleep(request.get("top_p", 0.0))
        return {**says("Hello"), "usage": {"prompt_tokens": request["seed"], "completion_tokens": 0}}

    async def program() -> float:
        async with asyncio.TaskGroup() as tasks:
            for gap, estimated, reported, seconds in requests:
                await asyncio.sleep(gap)
                tasks.create_task(bridged(ask_for, estimated, seed=reported, top_p=seconds))
        await asyncio.sleep(60)
        times.clear()
        for _ in range(3):
            await bridged(ask_for, 50, seed=50)
        return now()

    def ask_for(tokens: int, **request: Any) -> Any:
        return completion(messages=[{"role": "user", "content": f"{tokens}"}], **request)

    def counted(content: Any, model: str | None = None) -> TokenCount:
        return TokenCount(int(content[0]["content"]), estimated=False)

    with handler({count_tokens: counted, completion: answer}):
        with handler(RateLimit(tokens_per_minute=100, concurrent=concurrent)):
            virtual_time.run(program())
    start = times[0]
    assert [one - start for one in times] == pytest.approx([0, 0, 60])


# --- models ----------------------------------------------------------------------------------------------------------


def test_each_model_has_a_limit_of_its_own(clock):
    service = Service()
    with handler(service), handler(RateLimit(requests_per_minute=1)), handler(LiteLLMConfigurer("a")), handler(service):
        ask()
        ask(model="b")
        ask()
    assert list(zip(service.names, service.times, strict=True)) == [("a", 0), ("b", 0), ("a", 60)]


def test_a_limit_may_be_for_some_models_only(clock):
    service = Service()
    limits = RateLimit("a", requests_per_minute=1), RateLimit("b", "c", requests_per_minute=2)
    with handler(service), handler(limits[0]), handler(limits[1]):
        for name in "aabbbcd":
            ask(model=name)
    assert service.times == [0, 60, 60, 60, 120, 120, 120]


def test_the_attempts_of_a_fallback_count_for_the_models_that_are_asked(clock):
    service = Service(NetworkError("x"), None, None)
    with handler(service), handler(RateLimit(requests_per_minute=1)), handler(Fallback("a", "b", rest_seconds=0)):
        ask()
        ask()
    assert list(zip(service.names, service.times, strict=True)) == [("a", 0), ("b", 0), ("a", 60)]


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_request_that_is_made_again_counts_again(clock, server: Server):
    server.will(whole({"error": {"message": "down"}}, 503), whole({"error": {"message": "down"}}, 503), says("hi"))
    with handler(server.model(num_retries=2)), handler(RateLimit(requests_per_minute=2)):
        ask()
    assert len(server.bodies) == 3
    assert 60 <= clock.time < 61


def test_a_pause_that_the_service_asks_for_holds_for_everybody():
    service = Service(ProviderError("slow down", status=429, retry_after=20))

    def repeated(**request: Any) -> Any:
        return retried(fwd, 1)

    async def program() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(bridged(ask))
            await asyncio.sleep(1)
            for _ in range(3):
                tasks.create_task(bridged(ask))

    with handler(service), handler({send_request: repeated}), handler(RateLimit(requests_per_minute=100)):
        virtual_time.run(program())
    assert service.times == [0, 20, 20, 20, 20]


def test_a_pause_of_more_than_a_minute_fails_whoever_would_wait(clock):
    """Who was told so, whoever is waiting, and whoever comes."""
    service = Service(ProviderError("come back tomorrow", status=429, retry_after=3600))
    with handler(service), handler(RateLimit(requests_per_minute=100)):
        for _ in range(3):
            with pytest.raises(ProviderError) as raised:
                ask(model="a")
            assert (raised.value.status, raised.value.retryable) == (429, True)
            clock.time += 100
        assert raised.value.retry_after == 3400
        assert "the service of `a` has asked for a pause, of which 3400 seconds are left" in str(raised.value)
        assert len(service.times) == 1
        clock.time += 3300
        ask(model="a")
    assert len(service.times) == 2
    assert clock.slept == []


def test_those_who_wait_learn_of_a_long_pause_at_once():
    service = Service(ProviderError("tomorrow", status=429, retry_after=3600), seconds=5)

    async def program() -> list[Any]:
        return await asyncio.gather(*(bridged(ask) for _ in range(4)), return_exceptions=True)

    with handler(service), handler(RateLimit(requests_per_minute=1)):
        failures = virtual_time.run(program())
    assert [type(one) for one in failures] == [ProviderError] * 4
    assert service.times == [0.0]


def test_a_fallback_does_not_wait_for_a_model_that_asked_for_a_pause(clock):
    service = Service(ProviderError("slow down", status=429, retry_after=30))
    with handler(service), handler(RateLimit(requests_per_minute=100)), handler(Fallback("a", "b")):
        ask()
        ask()
    assert service.names == ["a", "b", "b"]
    assert clock.slept == []


# --- at the same time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrent", [1, 3])
def test_no_more_are_under_way_than_may_be(concurrent):
    service = Service(*[NetworkError("x"), None] * 5, seconds=1)

    async def program() -> None:
        await asyncio.gather(*(bridged(ask) for _ in range(12)), return_exceptions=True)

    with handler(service), handler(RateLimit(concurrent=concurrent)):
        virtual_time.run(program())
    assert service.most == concurrent
    assert service.times == [place // concurrent for place in range(12)]


def test_a_request_in_the_middle_of_another_does_not_wait_for_it(clock):
    """A handler further out asks a second model about the answer of the first."""

    def judged(**request: Any) -> Any:
        reply = fwd()
        if "seed" not in request:
            ask(seed=1)
        return reply

    service = Service()
    limits = RateLimit(concurrent=1, requests_per_minute=2), RateLimit(concurrent=1, requests_per_minute=2)

    def repeated(**request: Any) -> Any:
        return retried(fwd, 0)

    with handler(service), handler({send_request: repeated}), handler(limits[0]), handler({completion: judged}):
        with handler(limits[1]):
            ask()
            ask()
    assert service.times == [0, 0, 60, 60]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_waits_on_both_event_loops(backend):
    running: list[int] = []
    most: list[int] = []

    def answer(**request: Any) -> Any:
        running.append(1)
        most.append(len(running))
        sleep(0)
        running.pop()
        return says("Hello")

    async def program() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(bridged, ask)

    with handler({completion: answer}), handler(RateLimit(concurrent=2)):
        anyio.run(program, backend=backend)
    assert len(most) == 20
    assert max(most) == 2


def test_a_pause_before_a_repetition_leaves_the_place_to_others(server: Server):
    server.will(whole({"error": {"message": "down"}}, 503), says("hi"))
    order: list[str] = []

    async def program() -> None:
        async def one(name: str) -> None:
            await bridged(ask, user=name)
            order.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(one("first"))
            await asyncio.sleep(0)
            tasks.create_task(one("second"))

    def pause(seconds: float) -> None:
        if not order:
            wait(_until(lambda: order))
        fwd(0)

    with handler(server.model(num_retries=1)), handler({sleep: pause}), handler(RateLimit(concurrent=1)):
        asyncio.run(program())
    assert order == ["second", "first"]


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_thousand_calls_at_once():
    @Skill.define
    async def count(number: int) -> int:
        """Say {number}."""
        raise NotHandled

    replies = [lambda request: int(request["messages"][-1]["content"].split()[-1].rstrip("."))] * 1000
    model = ScriptedModel(*replies)
    times: list[float] = []

    def note(**request: Any) -> Any:
        times.append(now())
        return fwd()

    async def program() -> list[int]:
        with (
            handler(model),
            handler({completion: note}),
            handler(harness(requests_per_minute=60, system_prompt="brief")),
        ):
            return await asyncio.gather(*(acall(count, number) for number in range(1000)))

    assert virtual_time.run(program()) == list(range(1000))
    assert times == [place // 60 * 60 for place in range(1000)]


def test_threads_share_it():
    moments: list[float] = []
    lock = threading.Lock()

    class Slept(ObjectInterpretation):
        """Every thread has the same clock, which the one who sleeps moves on."""

        time = 0.0

        @implements(now)
        def now(self) -> float:
            return self.time

        @implements(sleep)
        def sleep(self, seconds: float) -> None:
            with lock:
                self.time += seconds

    def note(**request: Any) -> Any:
        with lock:
            moments.append(now())
        return says("Hello")

    limit, clock = RateLimit(requests_per_minute=10, concurrent=3), Slept()

    def work() -> None:
        with handler(clock), handler({completion: note}), handler(limit):
            for _ in range(5):
                ask()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(moments) == 40
    assert most_in_a_minute(moments) <= 10
    assert clock.time == 180


def test_event_loops_and_plain_threads_share_it():
    limit = RateLimit(concurrent=1)
    inside, most = 0, 0

    def answer(**request: Any) -> Any:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        sleep(0)
        inside -= 1
        return says("Hello")

    def plain() -> None:
        with handler({completion: answer}), handler(limit):
            for _ in range(30):
                ask()

    async def many() -> None:
        with handler({completion: answer}), handler(limit):
            await asyncio.gather(*(bridged(ask) for _ in range(30)))

    threads = [threading.Thread(target=one) for one in (plain, plain, *[lambda: asyncio.run(many())] * 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 1


# --- ending ----------------------------------------------------------------------------------------------------------


def test_who_is_cancelled_while_waiting_gives_its_place_back():
    service = Service()

    async def program() -> None:
        tasks = []
        for name in "abcd":
            tasks.append(asyncio.create_task(bridged(ask, user=name)))
            await asyncio.sleep(0)
        await asyncio.sleep(10)
        tasks[1].cancel()  # the first of those who wait
        tasks[2].cancel()  # and one behind it
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [False, True, True, False]
        await bridged(ask)

    with handler(service), handler(RateLimit(requests_per_minute=1)):
        virtual_time.run(program())
    assert service.times == [0, 60, 120]


def test_who_is_cancelled_while_asking_gives_its_place_back():
    service = Service(seconds=1000)

    async def program() -> None:
        task = asyncio.create_task(bridged(ask))
        await asyncio.sleep(1)
        behind = asyncio.create_task(bridged(ask))
        await asyncio.sleep(1)
        task.cancel()
        await behind

    with handler(service), handler(RateLimit(concurrent=1)):
        virtual_time.run(program())
    assert service.times == [0, 2]


@Skill.define
def greet() -> str:
    """Greet."""
    raise NotHandled


def test_a_deadline_ends_the_waiting():
    limit = RateLimit(requests_per_minute=1)
    with handler(harness()), handler(ScriptedModel("Hello", "Hello")), handler(limit):
        assert greet() == "Hello"
        with handler(Deadline(0.05)), pytest.raises(LimitExceeded, match="deadline"):
            greet()


@pytest.mark.parametrize("place", [0, 1])
def test_a_thread_that_waits_can_be_cancelled(place):
    """The one that watches the clock, and the one behind it."""
    limit, controls, ended = RateLimit(requests_per_minute=1), [CallControl(), CallControl()], []
    asleep = threading.Event()

    def watched(seconds: float) -> None:
        asleep.set()
        fwd()

    def call(control: CallControl) -> None:
        with handler(harness()), handler(ScriptedModel("Hello", "Hello")), handler({sleep: watched}):
            with handler(limit), handler(control):
                try:
                    ended.append(greet())
                except Cancelled as error:
                    ended.append(str(error))

    call(CallControl())
    threads = [threading.Thread(target=call, args=(control,)) for control in controls]
    threads[0].start()
    assert asleep.wait(10)
    threads[1].start()
    controls[place].cancel("enough")
    threads[place].join(10)
    assert ended == ["Hello", "enough"]
    controls[1 - place].cancel("enough")
    threads[1 - place].join(10)
    assert ended == ["Hello", "enough", "enough"]


# --- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "limits", "said"),
    [
        ((), {}, "limits nothing"),
        ((), {"requests_per_minute": 0}, "`requests_per_minute` is 0"),
        ((), {"requests_per_minute": 1.5}, "`requests_per_minute` is 1.5"),
        ((), {"tokens_per_minute": -1}, "`tokens_per_minute` is -1"),
        ((), {"tokens_per_minute": "9"}, "`tokens_per_minute` is '9'"),
        ((), {"concurrent": True}, "`concurrent` is True"),
        ((3,), {"concurrent": 1}, "`3` is no name"),
        (("",), {"concurrent": 1}, "no name"),
    ],
)
def test_what_it_cannot_be_is_told(models, limits, said):
    with pytest.raises(OptionError, match=said):
        RateLimit(*models, **limits)
