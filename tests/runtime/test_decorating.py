"""`handler` as a decorator."""

import asyncio
import functools
import inspect
import threading
from typing import Any

import pytest

from effectful_agents.runtime import Operation, fwd, handler


@Operation.define
def place() -> str:
    return "outside"


INSIDE: dict[Any, Any] = {place: lambda: "inside " + fwd()}
inside = handler(INSIDE)


@inside
def synchronous(x: int, *, y: int = 2) -> str:
    """Say where it runs."""
    return f"{place()} {x} {y}"


def test_a_function_runs_with_the_handlers_at_each_call_and_keeps_its_signature() -> None:
    assert synchronous(1) == "inside outside 1 2"
    assert synchronous(1, y=3) == "inside outside 1 3"
    assert place() == "outside"
    assert synchronous.__name__ == "synchronous"
    assert synchronous.__doc__ == "Say where it runs."
    assert str(inspect.signature(synchronous)) == "(x: int, *, y: int = 2) -> str"
    assert inspect.unwrap(synchronous) is not synchronous


def test_a_coroutine_function_has_the_handlers_while_it_runs() -> None:
    @inside
    async def twice() -> list[str]:
        first = place()
        await asyncio.sleep(0)
        return [first, place()]

    assert inspect.iscoroutinefunction(twice)
    coroutine = twice()
    assert place() == "outside"
    assert asyncio.run(coroutine) == ["inside outside"] * 2


def test_what_makes_coroutines_is_recognised() -> None:
    async def plain() -> str:
        await asyncio.sleep(0)
        return place()

    class Callable:
        async def __call__(self) -> str:
            return await plain()

    class Holder:
        @inside
        @staticmethod
        async def static() -> str:
            return await plain()

        @inside
        @classmethod
        async def of_class(cls) -> str:
            return await plain()

        @inside
        async def method(self) -> str:
            return await plain()

    called = Callable()
    functools.update_wrapper(called, plain)
    for function in (
        inside(Operation.define(plain)),
        inside(functools.partial(plain)),
        inside(called),
        Holder.static,
        Holder.of_class,
        Holder().method,
    ):
        assert asyncio.run(function()) == "inside outside"


def test_other_callables_are_called_inside() -> None:
    class Made:
        def __init__(self) -> None:
            self.place = place()

        async def __call__(self) -> None: ...

    assert inside(place)() == "inside outside"
    assert inside(Made)().place == "inside outside"
    assert inside(functools.partial(synchronous, 1))() == "inside inside outside 1 2"


def test_a_generator_function_is_refused() -> None:
    def generator() -> Any:
        yield place()

    async def async_generator() -> Any:
        yield place()

    for function in (generator, async_generator, functools.partial(generator), Operation.define(generator)):
        with pytest.raises(TypeError, match=r"generator function `.*generator.*`.*with handler"):
            inside(function)


def test_one_object_decorates_recursive_functions_in_several_threads() -> None:
    @inside
    def deep(depth: int, barrier: threading.Barrier) -> str:
        barrier.wait()
        return deep(depth - 1, barrier) if depth else place()

    barrier = threading.Barrier(3)
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(deep(3, barrier))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["inside " * 4 + "outside"] * 3


def test_one_object_is_entered_in_several_threads_at_once() -> None:
    barrier = threading.Barrier(4)
    results: list[list[str]] = []

    def work() -> None:
        with inside:
            barrier.wait()
            first = place()
            barrier.wait()
        results.append([first, place()])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [["inside outside", "outside"]] * 4


def test_an_exception_leaves_nothing_installed() -> None:
    @inside
    def fail() -> None:
        raise LookupError

    @inside
    async def fail_later() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        fail()
    with pytest.raises(LookupError):
        asyncio.run(fail_later())
    assert place() == "outside"
