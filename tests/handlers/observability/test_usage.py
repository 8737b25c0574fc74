"""`with usage()`: what is counted, wherever it stands."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import effectful_agents
from effectful_agents import NotHandled, Skill, Tool, acall, fwd, handler, harness, propagate, run, steps, stream, usage
from effectful_agents.errors import Cancelled, NetworkError, ResultDecodingError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.loop import CallControl
from effectful_agents.handlers.observability import UsageMeter
from effectful_agents.handlers.policy import Limits
from effectful_agents.handlers.provision import Fallback
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import TextDelta, ToolChoice, Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.steps import emit
from effectful_agents.operations.usage import tell_usage
from effectful_agents.runtime import ObjectInterpretation, implements, interpretation
from effectful_agents.testing import DEFAULT_USAGE, ScriptedModel, batch, calls, says

HI: Any = [{"role": "user", "content": "hi"}]


@Tool.define
def look() -> str:
    """Look out of the window."""
    return "rain"


@Skill.define
def count(thing: str) -> int:
    """How many {thing} are there?"""
    raise NotHandled


@Skill.define
def report(place: str) -> str:
    """Report from {place}."""
    raise NotHandled


def stack(**options: Any) -> Any:
    return handler(harness(model="gpt-5-mini", eval_provider="none", **options))


def same(number: int) -> Usage:
    return sum([DEFAULT_USAGE] * number, Usage())


# --- what is counted --------------------------------------------------------------------------------------------------


ORDERS: dict[str, Callable[[Any, Any, Any], list[Any]]] = {
    "innermost": lambda model, stack, meter: [model, stack, meter],
    "in the middle": lambda model, stack, meter: [model, meter, stack],
    "outermost": lambda model, stack, meter: [meter, model, stack],
    "outside of a model inside": lambda model, stack, meter: [meter, stack, model],
    "between a model inside and its stack": lambda model, stack, meter: [stack, meter, model],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_place_in_the_stack_makes_no_difference(order: Any):
    model = ScriptedModel(calls("look"), batch(calls("count", id="a", thing="cats"), calls("look", id="b")), 3, "Rain.")
    with contextlib.ExitStack() as entered:
        meter = usage()
        for one in order(handler(model), stack(), meter):
            value = entered.enter_context(one)
            used = value if one is meter else None
            if used is not None:
                counted = used
        report("Oslo")
    assert counted.requests == 4
    assert counted.usage == same(4)
    assert counted.by_skill == {"report": same(3), "count": same(1)}
    assert counted.by_model == {"gpt-5-mini": same(4)}


def test_an_attempt_that_does_not_fit_counts():
    with handler(ScriptedModel("many", "more", 7)), stack(), usage() as used:
        result = run(count, "cats")
    assert result.value == 7
    assert (used.requests, used.failed, used.usage) == (3, 0, same(3))
    assert result.usage == used.usage


def test_a_call_that_fails_has_used_what_it_used():
    with handler(ScriptedModel(*["many"] * 2)), stack(num_retries=2), usage() as used:
        with pytest.raises(ResultDecodingError):
            count("cats")
    assert used.usage == same(2)


def test_a_reply_that_the_provider_refuses_for_its_request_was_paid_for_all_the_same():
    """It never comes to the loop: whoever received it raises."""
    replies = iter([says("No."), calls("look"), says("Rain.")])
    enforcing = LiteLLMConfigurer(tool_choice=ToolChoice("required"))

    def choose(**request: Any) -> Any:
        return fwd(**{**request, "tool_choice": "auto"}) if request["messages"][-1]["role"] == "tool" else fwd()

    with handler({completion: lambda **_: next(replies)}), stack(), handler(enforcing), handler({completion: choose}):
        with usage() as used:
            result = run(report, "Oslo")
    assert result.value == "Rain."
    assert (used.requests, used.failed) == (3, 1)
    assert used.usage == result.usage == same(3)


def test_a_request_that_fails_is_counted_and_has_no_tokens():
    with handler(ScriptedModel(NetworkError("down"))), stack(), usage() as used:
        with pytest.raises(NetworkError):
            report("Oslo")
    assert (used.requests, used.failed, used.usage, used.cost) == (1, 1, Usage(), 0.0)


def test_a_model_that_is_passed_over_is_one_request_with_the_one_that_answers():
    down, up = ScriptedModel(NetworkError("down")), ScriptedModel("Rain.")
    with usage() as used, stack(), handler(Fallback(down, up)):
        report("Oslo")
    assert used.requests == 1
    assert used.usage == same(1)


def test_requests_that_a_program_makes_itself_count_where_they_pass():
    with handler(ScriptedModel("a", "b")), usage() as outer, handler(LiteLLMConfigurer("gpt-5-mini")), usage() as inner:
        completion(messages=HI)
        completion(messages=HI, model="gpt-5")
    assert inner.usage == outer.usage == same(2)
    assert set(outer.by_model) == {"gpt-5-mini", "gpt-5"}


def test_requests_of_a_program_that_fail_are_counted():
    with handler(ScriptedModel(NetworkError("down"))), usage() as used, contextlib.suppress(NetworkError):
        completion(messages=HI)
    assert (used.requests, used.failed) == (1, 1)


def test_a_request_in_a_handler_of_requests_is_a_part_of_them():
    """As a second opinion that is asked of the same model, by forwarding twice."""

    def twice(**request: Any) -> Any:
        fwd()
        return fwd()

    with handler(ScriptedModel("a", "b")), stack(), handler({completion: twice}), usage() as used:
        report("Oslo")
    assert used.requests == 1


class SecondLook(ObjectInterpretation[Any, Any]):
    """Asks about each reply, with a request of its own."""

    def __init__(self, looks: int = 1) -> None:
        self._looks = looks
        self._is_looking = False

    @implements(completion)
    def completion(self, **request: Any) -> Any:
        reply = fwd()
        if not self._is_looking:
            self._is_looking = True
            for _ in range(self._looks):
                completion(messages=HI, model="gpt-5-mini")
            self._is_looking = False
        return reply


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("looks", [1, 2])
def test_what_a_handler_asks_itself_counts_once_wherever_that_stands(place: int, looks: int):
    order: list[Any] = [ScriptedModel(*["a"] * 9), harness(model="gpt-5-mini"), UsageMeter()]
    order.insert(max(place, 1), SecondLook(looks))
    order.append(UsageMeter())
    with contextlib.ExitStack() as entered:
        for one in order:
            entered.enter_context(handler(one))
        result = run(report, "Oslo")
        run(report, "Rome")
    meters = [one for one in order if isinstance(one, UsageMeter)]
    assert [meter.requests for meter in meters] == [2 * (1 + looks)] * 2
    assert [meter.usage for meter in meters] == [same(2 * (1 + looks))] * 2
    assert result.usage == same(1 + looks)


def test_what_a_handler_asks_for_a_request_of_the_program_counts_once():
    with handler(ScriptedModel("a", "b")), usage() as outer, handler(SecondLook()), usage() as inner:
        completion(messages=HI)
    assert (outer.requests, inner.requests) == (2, 2)


def test_a_call_in_a_handler_of_requests_counts_once():
    is_asking = False

    def second(**request: Any) -> Any:
        nonlocal is_asking
        if not is_asking:
            is_asking = True
            with handler(SecondLook()):
                assert count("towers") == 3
            is_asking = False
        return fwd()

    with handler(ScriptedModel("3", "a second look", "b")), stack(), handler({completion: second}), usage() as used:
        result = run(report, "Oslo")
    assert used.requests == 3
    assert result.usage == used.usage == same(3)


def test_blocks_in_blocks_count_each():
    with usage() as whole, handler(ScriptedModel("a", "b", "c")), stack():
        report("Oslo")
        with usage() as part:
            report("Rome")
            report("Paris")
        assert part.usage == same(2)
    assert (whole.usage, part.usage) == (same(3), same(2))


def test_a_block_in_a_tool_counts_what_is_called_there():
    seen: list[UsageMeter] = []

    @Tool.define
    def ask_twice() -> str:
        """Ask twice."""
        with usage() as used:
            count("cats")
            count("dogs")
        seen.append(used)
        return "done"

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    with usage() as whole, handler(ScriptedModel(calls("ask_twice"), 1, 2, "Done.")), stack():
        work()
    assert (seen[0].requests, whole.requests) == (2, 4)


def test_it_can_be_read_in_the_block_and_stops_at_its_end():
    with handler(ScriptedModel("a", "b", "c")), stack():
        with usage() as used:
            assert (used.requests, used.input, used.total, used.cost) == (0, None, None, 0.0)
            report("Oslo")
            assert used.requests == 1
            report("Rome")
        report("Paris")
    assert used.requests == 2


def test_it_decorates_a_function():
    meter = UsageMeter()

    @handler(meter)
    def work() -> None:
        report("Oslo")

    with handler(ScriptedModel("a", "b")), stack():
        work()
        work()
    assert meter.requests == 2


# --- streams, tasks, threads ------------------------------------------------------------------------------------------


def test_listening_changes_nothing_about_a_request():
    listened: list[bool] = []

    def model(**request: Any) -> Any:
        listened.append(emit in interpretation())
        return says("a")

    with handler({completion: model}), stack():
        plain = run(report, "Oslo")
        with usage():
            metered = run(report, "Oslo")
    assert listened == [False, False]
    assert plain == metered


@pytest.mark.parametrize("follow", [steps, stream])
def test_calls_that_are_followed_count(follow: Any):
    with usage() as used, handler(ScriptedModel(calls("look"), "Rain.")), stack():
        for _ in follow(report, "Oslo"):
            pass
    assert used.usage == same(2)


def test_a_stream_that_is_left_in_the_middle_is_a_request_without_tokens():
    with handler(ScriptedModel(calls("look"), "Rain all day, and wind.")), stack(), usage() as used:
        with stream(report, "Oslo") as events:
            for event in events:
                if isinstance(event, TextDelta):
                    break
    assert (used.requests, used.failed, used.usage) == (2, 1, same(1))


def test_a_call_that_is_cancelled_has_used_what_it_used():
    control = CallControl()

    def stop(**request: Any) -> Any:
        control.cancel()
        return says("Rain.")

    with handler({completion: stop}), stack(), handler(control), usage() as used, pytest.raises(Cancelled):
        report("Oslo")
    assert used.requests == 1


def test_tasks_that_run_at_once_count():
    async def main() -> UsageMeter:
        with usage() as used:
            await asyncio.gather(*(acall(report, "Oslo") for _ in range(50)))
        return used

    with handler(ScriptedModel(*["a"] * 50)), stack():
        assert asyncio.run(main()).usage == same(50)


def test_threads_count_where_they_have_the_handlers():
    with handler(ScriptedModel(*["a"] * 64)), stack(), usage() as used, ThreadPoolExecutor(8) as pool:
        list(pool.map(propagate(report), ["Oslo"] * 64))
    assert used.usage == same(64)
    assert used.by_skill == {"report": same(64)}


def test_many_threads_add_to_one_meter_without_losing_any():
    meter, together = UsageMeter(), threading.Barrier(8)

    def work() -> None:
        with handler(ScriptedModel(*["a"] * 50)), handler(meter):
            together.wait()
            for _ in range(50):
                completion(messages=HI)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.requests == 400
    assert meter.usage == same(400)


# --- journals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def interrupted() -> MemoryCheckpointer:
    """The journal of a run that has made one of its two calls, and one of the two turns of the other."""
    store = MemoryCheckpointer()
    model = ScriptedModel("Rain.", calls("look"), NetworkError("down"))

    def program() -> None:
        report("Oslo")
        report("Rome")

    with handler(model), stack(), pytest.raises(NetworkError), handler(Journal("r", store)):
        program()
    return store


@pytest.mark.parametrize("is_outside", [True, False], ids=["outside of the journal", "inside"])
def test_what_a_journal_gives_again_stands_apart(interrupted: MemoryCheckpointer, is_outside: bool):
    journal = handler(Journal("r", interrupted))
    meter = UsageMeter()
    with contextlib.ExitStack() as entered:
        for one in (handler(ScriptedModel("Sun.")), stack()):
            entered.enter_context(one)
        for one in [handler(meter), journal] if is_outside else [journal, handler(meter)]:
            entered.enter_context(one)
        report("Oslo")
        assert report("Rome") == "Sun."
    assert (meter.requests, meter.usage) == (1, same(1))
    assert meter.replayed == same(2)  # a call that is answered whole, and a turn of the other
    assert meter.by_skill == {"report": same(1)}


def test_a_run_that_has_ended_spends_nothing():
    store = MemoryCheckpointer()
    for replies in ([calls("look"), "Rain."], []):
        with handler(ScriptedModel(*replies)), stack(), handler(Journal("r", store)), usage() as used:
            report("Oslo")
    assert (used.requests, used.usage, used.replayed, used.cost) == (0, Usage(), same(2), 0.0)


def test_the_result_of_a_call_has_what_was_spent_now(interrupted: MemoryCheckpointer):
    with handler(ScriptedModel("Sun.")), stack(), handler(Journal("r", interrupted)), usage() as used:
        results = [run(report, "Oslo"), run(report, "Rome")]
    assert [result.usage for result in results] == [Usage(), same(1)]
    assert used.usage == same(1)


def test_limits_and_usage_come_to_the_same():
    limits = Limits(tokens=240)
    with handler(ScriptedModel(*[calls("look")] * 9)), stack(), handler(limits), usage() as used:
        with pytest.raises(effectful_agents.errors.LimitExceeded):
            report("Oslo")
    assert used.total == 240


@pytest.mark.parametrize("is_inside", [True, False])
def test_limits_count_what_a_handler_asks_itself(is_inside: bool):
    order: list[Any] = [SecondLook(), Limits(tokens=240)]
    first, second = order if is_inside else reversed(order)
    with handler(ScriptedModel(*[calls("look"), "Fine."] * 9)), stack(), handler(first), handler(second):
        with usage() as used, pytest.raises(effectful_agents.errors.LimitExceeded):
            report("Oslo")
    assert used.total == 240


def test_limits_count_what_was_refused_and_paid_for():
    with handler({completion: lambda **_: says("No.")}), stack(num_retries=5), handler(Limits(tokens=240)):
        with handler(LiteLLMConfigurer(tool_choice=ToolChoice("required"))), usage() as used:
            with pytest.raises(effectful_agents.errors.LimitExceeded):
                report("Oslo")
    assert used.total == 240


# --- what it costs ----------------------------------------------------------------------------------------------------


def reply(model: str | None, **counts: Any) -> Any:
    response = says("ok", usage=Usage(**counts))
    return {**response, "model": model} if model else response


def cost(*replies: Any, model: str | None = "gpt-5-mini") -> float | None:
    with handler(ScriptedModel(*replies)), handler(LiteLLMConfigurer(model)), usage() as used:
        for _ in replies:
            completion(messages=HI)
    return used.cost


def test_each_model_has_its_price():
    replies = (reply("gpt-5-mini-2025-08-07", input=1000, output=100), reply("gpt-5-nano", input=1000, output=100))
    expected = [cost_of(model, Usage(input=1000, output=100)) for model in ("gpt-5-mini", "gpt-5-nano")]
    assert None not in expected
    assert cost(*replies) == pytest.approx(sum(expected))  # ty: ignore


@pytest.mark.parametrize(
    "replies",
    [
        (reply("nobody-knows-this", input=1, output=1),),
        (reply("gpt-5-mini", input=1, output=1), reply("nobody-knows-this", input=1, output=1)),
        (reply("gpt-5-mini"), reply("gpt-5-mini", input=1, output=1)),
        (reply("gpt-5-mini", input=1), reply("gpt-5-mini", input=1, output=1)),
    ],
    ids=["unknown", "one is unknown", "not counted", "half is not counted"],
)
def test_what_is_not_known_is_none(replies: Any):
    assert cost(*replies) is None


def test_a_model_on_this_machine_costs_nothing_counted_or_not():
    assert cost(reply(None), reply(None, input=5, output=1), model="local/smollm2") == 0.0


def test_prices_of_a_handler_hold_when_it_is_gone():
    with handler(ScriptedModel("a", "b")), stack(), usage() as used:
        with handler({cost_of: lambda model, usage: 0.5}):
            report("Oslo")
        report("Rome")
    assert used.cost == pytest.approx(0.5 + (cost_of("gpt-5-mini", DEFAULT_USAGE) or 0))


def test_prices_of_a_handler_may_be_unknown():
    with handler(ScriptedModel("a")), stack(), usage() as used, handler({cost_of: lambda model, usage: None}):
        report("Oslo")
    assert used.cost is None


def test_it_is_shown_in_a_line():
    with handler(ScriptedModel(*["a"] * 20)), stack(), usage() as used:
        for _ in range(20):
            report("Oslo")
    assert repr(used) == "<UsageMeter: 20 requests, 2,000 tokens in, 400 out, $0.0013>"
    assert repr(UsageMeter()) == "<UsageMeter: 0 requests, ? tokens in, ? out, $0.0000>"


# --- those who count --------------------------------------------------------------------------------------------------


def test_what_is_told_says_whose_it_is():
    told: list[Any] = []

    def note(used: Any) -> None:
        told.append((used.model, used.skill.__name__, used.usage, used.error, used.replayed))
        fwd()

    with handler(ScriptedModel(calls("look"), "Rain.")), stack(), handler({tell_usage: note}):
        report("Oslo")
    assert told == [("gpt-5-mini", "report", DEFAULT_USAGE, None, False)] * 2


@pytest.mark.parametrize("odd", [None, [], "many", 5, {"prompt_tokens": "lots", "completion_tokens": [None]}])
def test_odd_usage_is_none_that_was_counted(odd: Any):
    with handler({completion: lambda **_: {**says("a"), "usage": odd}}), stack(), usage() as used:
        result = run(report, "Oslo")
    assert (used.requests, used.usage, used.cost, result.usage) == (1, Usage(), None, Usage())
