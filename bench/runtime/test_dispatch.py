"""What an operation costs. Figures are reported, never asserted: `pytest bench/runtime --benchmark-only`."""

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from effectful_agents.runtime import Layers, Operation, fwd, handler


@Operation.define
def add(x: int, y: int) -> int:
    return x + y


@Operation.define
def elsewhere(x: int) -> int:
    return x


class Bot:
    @Operation.define
    def ask(self, question: str) -> str:
        return question


FORWARDING: dict[Any, Any] = {add: lambda x, y: fwd()}
BUSY: dict[Any, Any] = {Operation.define(elsewhere, name=f"operation_{i}"): lambda x: x for i in range(60)}


@pytest.mark.parametrize("handlers", [0, 1, 10])
def test_perform(benchmark: BenchmarkFixture, handlers: int) -> None:
    """An operation under so many forwarding handlers of it, while others are installed too."""
    with handler(Layers(BUSY, *[FORWARDING] * handlers)):
        assert benchmark(add, 1, 2) == 3


@pytest.mark.parametrize("installed", [0, 60])
def test_install_and_leave(benchmark: BenchmarkFixture, installed: int) -> None:
    """One handler, over so many operations that are handled."""

    def install() -> None:
        with handler(FORWARDING):
            pass

    with handler(Layers(*[BUSY] * bool(installed))):
        benchmark(install)


def test_install_ten_layers_at_once(benchmark: BenchmarkFixture) -> None:
    layers = Layers(*[FORWARDING] * 10)

    def install() -> None:
        with handler(layers):
            pass

    benchmark(install)


def test_bind(benchmark: BenchmarkFixture) -> None:
    """An operation accessed through an instance."""
    bot = Bot()
    benchmark(lambda: bot.ask)


def test_perform_bound(benchmark: BenchmarkFixture) -> None:
    """One accessed through an instance and performed, unhandled."""
    bot = Bot()
    assert benchmark(lambda: bot.ask("hi")) == "hi"
