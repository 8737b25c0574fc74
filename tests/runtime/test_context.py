"""Handlers follow tasks, threads that are given them, and copied contexts, and leak into nothing else."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from effectful.ops import semantics
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime import Operation, fwd, handler, interpretation, propagate


@Operation.define
def where() -> str:
    return "outside"


@EffectfulOperation.define
def library_where() -> str:
    return "outside"


def both() -> tuple[str, str]:
    return where(), library_where()


def stub(place: str) -> dict[Any, Callable[..., str]]:
    return {where: lambda: place, library_where: lambda: place}


HANDLERS = pytest.mark.parametrize("install", [handler, semantics.handler], ids=["ours", "effectful's"])


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function in a thread of its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@HANDLERS
def test_a_task_has_the_handlers_of_the_place_that_made_it(install: Any) -> None:
    async def main() -> list[Any]:
        with install(stub("inside")):
            task = asyncio.create_task(later())
        return [await task, both()]

    async def later() -> Any:
        await asyncio.sleep(0)
        return both()

    assert asyncio.run(main()) == [("inside", "inside"), ("outside", "outside")]


@HANDLERS
def test_tasks_that_run_in_turns_do_not_see_each_others_handlers(install: Any) -> None:
    async def one(place: str, turn: asyncio.Barrier) -> list[Any]:
        seen: list[Any] = []
        with install(stub(place)):
            for _ in range(3):
                await turn.wait()
                seen.append(both())
        await turn.wait()
        seen.append(both())
        return seen

    async def main() -> list[list[Any]]:
        turn = asyncio.Barrier(3)
        return await asyncio.gather(*(one(place, turn) for place in "abc"))

    assert asyncio.run(main()) == [[(place, place)] * 3 + [("outside", "outside")] for place in "abc"]


@HANDLERS
def test_to_thread_and_copied_contexts_carry_handlers(install: Any) -> None:
    async def main() -> Any:
        return await asyncio.to_thread(both)

    with install(stub("inside")):
        assert asyncio.run(main()) == ("inside", "inside")
        context = contextvars.copy_context()
    assert context.run(both) == ("inside", "inside")
    assert both() == ("outside", "outside")


@HANDLERS
def test_a_thread_starts_without_handlers_and_gives_none_back(install: Any) -> None:
    def work() -> Any:
        first = both()
        stack = install(stub("thread"))
        stack.__enter__()
        return first, both()

    with install(stub("inside")):
        assert in_thread(work) == (("outside", "outside"), ("thread", "thread"))
        assert both() == ("inside", "inside")


def test_carried_functions_have_the_handlers_of_their_making() -> None:
    with handler(stub("inside")):
        work = propagate(both)
    assert work.__name__ == "both"
    assert both() == ("outside", "outside")
    assert work() == ("inside", "inside")
    assert in_thread(work) == ("inside", "inside")


def test_a_carried_function_may_run_several_times_at_once() -> None:
    barrier = threading.Barrier(4)

    @propagate
    def work(place: str) -> list[str]:
        with handler(stub(place)):
            barrier.wait()
            seen = where()
            barrier.wait()
        return [seen, where()]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, "abcd")) == [[place, "outside"] for place in "abcd"]


def test_fwd_works_in_a_carried_function_and_in_a_thread_of_the_loop() -> None:
    async def main() -> str:
        return await asyncio.to_thread(where)

    with handler({where: lambda: in_thread(propagate(fwd)) + "!"}):
        assert where() == "outside!"
        assert asyncio.run(main()) == "outside!"


def test_a_handler_may_be_left_in_another_context_than_it_was_entered_in() -> None:
    def program() -> Any:
        with handler(stub("inside")):
            yield both()

    generator = program()
    assert contextvars.copy_context().run(next, generator) == ("inside", "inside")
    assert both() == ("outside", "outside")
    with handler({where: lambda: "other"}):
        generator.close()
        assert where() == "other"
    assert dict(interpretation()) == {}


def test_the_coroutine_of_a_carried_function_has_its_handlers_wherever_it_is_awaited() -> None:
    async def ask() -> str:
        await asyncio.sleep(0)
        return both()

    with handler({where: lambda: "inside"}):
        carried = propagate(ask)
        expected = both()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: asyncio.run(carried())).result() == expected


def test_generator_functions_are_not_carried() -> None:
    def count() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="generator function"):
        propagate(count)
