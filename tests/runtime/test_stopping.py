"""Scopes that can be stopped from outside: where the code in them notices."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import anyio
import pytest
import trio

from effectful_agents.errors import Cancelled, Suspended
from effectful_agents.runtime import (
    InThread,
    Operation,
    SignalScope,
    StopScope,
    bridged,
    check_stopped,
    entered_scopes,
    handler,
    pause,
    propagate,
    shielded,
    time_left,
    wait,
)

RUN: dict[str, Any] = {"asyncio": lambda main: asyncio.run(main()), "trio": trio.run}


@Operation.define
def look() -> str:
    """Look."""
    return "seen"


def stopped(scope: StopScope, error: type[BaseException] = KeyError) -> StopScope:
    scope.stop(lambda: error("stopped"))
    return scope


def test_operations_raise_inside_of_a_stopped_scope_and_not_outside():
    scope = stopped(StopScope())
    with scope:
        for _ in range(2):
            with pytest.raises(KeyError, match="stopped"):
                look()
            with handler({look: lambda: "handled"}), pytest.raises(KeyError):
                look()
    assert look() == "seen"


def test_the_first_reason_counts():
    scope = StopScope()
    stopped(scope, KeyError)
    stopped(scope, ValueError)
    with scope, pytest.raises(KeyError):
        check_stopped()


def test_of_several_scopes_the_innermost_counts_and_all_are_known():
    outer, inner = stopped(StopScope(), ValueError), StopScope()
    with outer, inner:
        assert list(entered_scopes()) == [inner, outer]
        with pytest.raises(ValueError, match="stopped"):
            look()
        stopped(inner)
        with pytest.raises(KeyError):
            look()
    assert entered_scopes() == ()


def test_scopes_may_be_left_in_another_order():
    one, two = StopScope(), StopScope()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert entered_scopes() == (two,)
    two.__exit__(None, None, None)
    assert entered_scopes() == ()


def test_time_left_is_that_of_the_first_to_run_out():
    assert time_left() is None
    with StopScope(seconds=1000), StopScope(seconds=10), StopScope():
        left = time_left()
        assert left is not None
        assert 9 < left <= 10
    with StopScope(seconds=0):
        assert time_left() == 0


def test_a_scope_whose_time_is_over_raises_what_it_was_told():
    with StopScope(seconds=0, too_late=lambda: TimeoutError("late")) as scope:
        assert scope.stopped
        with pytest.raises(TimeoutError, match="late"):
            look()


# --- signals ----------------------------------------------------------------------------------------------------------


@Operation.define
def suspend() -> None:
    """Suspend."""
    raise Suspended("wait")


def test_a_signal_that_was_eaten_is_raised_at_the_next_operation_and_at_the_end():
    def scope() -> None:
        with SignalScope():
            for operation in (suspend, look, look):
                with pytest.raises(Suspended):
                    operation()

    with pytest.raises(Suspended, match="wait"):
        scope()
    assert look() == "seen"


def test_a_signal_is_remembered_by_the_innermost_scope_only_while_it_has_not_passed_on():
    with SignalScope():
        with pytest.raises(Suspended), SignalScope():
            suspend()
        assert look() == "seen"  # it has not come out of an operation performed here


def test_what_stops_a_scope_ends_nothing_further_out():
    @Operation.define
    def work() -> None:
        with stopped(StopScope(), Cancelled):
            look()

    with SignalScope():
        with pytest.raises(Cancelled):
            work()
        assert look() == "seen"


def test_errors_are_not_remembered():
    @Operation.define
    def fail() -> None:
        raise LookupError

    with SignalScope():
        with pytest.raises(LookupError):
            fail()
        assert look() == "seen"


# --- waiting ----------------------------------------------------------------------------------------------------------


def stop_soon(scope: StopScope) -> threading.Thread:
    thread = threading.Thread(target=stopped, args=(scope,))
    thread.start()
    return thread


def test_a_pause_ends_when_a_scope_is_stopped():
    with StopScope() as scope:
        thread = stop_soon(scope)
        with pytest.raises(KeyError):
            pause(3600)
    thread.join()


def test_a_pause_ends_with_the_time_of_a_scope():
    begun = time.monotonic()
    with StopScope(seconds=0.01, too_late=TimeoutError), pytest.raises(TimeoutError):
        pause()
    assert time.monotonic() - begun < 30


def test_a_pause_waits_for_an_event():
    event = threading.Event()
    event.set()
    pause(3600, event)
    with StopScope():
        pause(3600, event)
    pause(0)


@pytest.mark.parametrize("way", RUN)
def test_what_is_awaited_is_cancelled_when_a_scope_is_stopped_from_a_thread(way):
    ended = []

    async def forever(scope: StopScope) -> None:
        thread = stop_soon(scope)
        try:
            await anyio.sleep_forever()
        finally:
            thread.join()
            ended.append(True)

    def call() -> None:
        with StopScope() as scope:
            wait(forever(scope))

    async def main() -> None:
        with pytest.raises(KeyError):
            await bridged(call)

    RUN[way](main)
    assert ended == [True]


def test_what_is_awaited_without_an_event_loop_is_cancelled_too():
    with StopScope(seconds=0.01, too_late=TimeoutError), pytest.raises(TimeoutError):
        wait(anyio.sleep_forever())


@pytest.mark.parametrize("way", RUN)
def test_nothing_is_awaited_any_more_in_a_stopped_scope(way):
    begun = []

    async def note() -> None:
        begun.append(True)

    def call() -> None:
        with stopped(StopScope()):
            for _ in range(2):
                with pytest.raises(KeyError):
                    wait(note())

    async def main() -> None:
        await bridged(call)

    RUN[way](main)
    call()
    assert begun == []


@pytest.mark.parametrize("way", RUN)
def test_a_value_that_came_in_time_is_not_lost(way):
    async def value() -> int:
        await anyio.sleep(0)
        return 3

    def call() -> int:
        with StopScope(seconds=3600), StopScope():
            return wait(value())

    async def main() -> int:
        return await bridged(call)

    assert RUN[way](main) == call() == 3


# --- threads ----------------------------------------------------------------------------------------------------------


def test_a_scope_is_carried_into_threads():
    scope = StopScope()
    with scope:
        work = propagate(look)
    stopped(scope)
    call = InThread(work, "test")
    call.wait()
    with pytest.raises(KeyError):
        call.result()


def test_an_abandoned_thread_ends_at_its_next_operation_and_says_when():
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    results: list[Any] = []

    def work() -> None:
        begun.set()
        go_on.wait(30)
        try:
            look()
        except BaseException as error:
            results.append(type(error))
            raise

    call = InThread(work, "test")
    begun.wait(30)
    with StopScope(seconds=0.001, too_late=TimeoutError), pytest.raises(TimeoutError):
        call.wait()
    call.abandon(Cancelled, ended.set)
    go_on.set()
    assert ended.wait(30)
    assert results == [Cancelled]


@pytest.mark.parametrize("way", RUN)
def test_a_thread_is_waited_for_without_blocking_the_event_loop(way):
    go_on = threading.Event()

    async def main() -> list[str]:
        order = []

        async def other() -> None:
            order.append("other")
            go_on.set()

        def call() -> None:
            running = InThread(lambda: go_on.wait(30), "test")
            running.wait()
            order.append("thread")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridged, call)
            tasks.start_soon(other)
        return order

    assert RUN[way](main) == ["other", "thread"]


def test_the_error_of_a_thread_is_raised_where_its_result_is_asked_for():
    def fail() -> None:
        raise LookupError("gone")

    call = InThread(fail, "test")
    call.wait()
    with pytest.raises(LookupError, match="gone"):
        call.result()


@pytest.mark.parametrize("way", RUN)
def test_what_cleans_up_may_wait_where_it_says_so(way):
    cleaned = []

    def call() -> None:
        with stopped(StopScope()):
            try:
                look()
            finally:
                with shielded():
                    wait(anyio.sleep(0))
                    cleaned.append(look())

    async def main() -> None:
        with pytest.raises(KeyError):
            await bridged(call)

    RUN[way](main)
    assert cleaned == ["seen"]
