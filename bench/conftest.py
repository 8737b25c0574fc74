"""What the measurements share: figures per model call, told in a table of their own after pytest-benchmark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_FIGURES = pytest.StashKey[list[tuple[str, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FIGURES] = []


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Add a line to the table of figures: what was measured, and the figure with its unit."""
    return lambda what, figure: request.config.stash[_FIGURES].append((what, figure))


@pytest.fixture
def per_model_call(benchmark: Any, report: Callable[[str, str], None]) -> Callable[[str, int], None]:
    """Add the median of a benchmark that has run, divided by the number of model calls in a round."""

    def add(what: str, calls: int) -> None:
        stats = benchmark.stats.stats if benchmark.stats is not None else None
        if stats is not None:  # not with --benchmark-disable
            report(what, f"{stats.median / calls * 1e6:8.1f} µs per model call (least {stats.min / calls * 1e6:.1f})")

    return add


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    figures = config.stash[_FIGURES]
    if figures:
        terminalreporter.section("figures")
        width = max(len(what) for what, _ in figures)
        for what, figure in figures:
            terminalreporter.line(f"{what:<{width}}  {figure}")
