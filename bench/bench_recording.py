"""What logging each step, and recording calls with Langfuse, add to a run of two model calls."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from bench.stacks import STACKS, Report, skill_with_tools
from effectful_agents import handler
from effectful_agents.handlers.observability.langfuse import LangfuseTracer
from effectful_agents.handlers.observability.logging import StepLogger
from effectful_agents.testing import ScriptedModel, calls

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP = 300, 30


def _logger(level: int) -> StepLogger:
    log = logging.Logger("bench", level)  # one that nobody else knows
    log.addHandler(logging.StreamHandler(io.StringIO()))
    return StepLogger(logger=log)


def _tracer(*, enabled: bool) -> LangfuseTracer:
    import langfuse
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    client = langfuse.Langfuse(
        public_key=f"pk-{enabled}",
        secret_key="sk",
        tracing_enabled=enabled,
        tracer_provider=TracerProvider(),
        span_exporter=InMemorySpanExporter(),
    )
    return LangfuseTracer(client)


WATCHED: dict[str, Callable[[], Any]] = {
    "nobody": contextlib.nullcontext,
    "a log that takes warnings": lambda: handler(_logger(logging.WARNING)),
    "a log that takes each step": lambda: handler(_logger(logging.INFO)),
    "Langfuse, disabled": lambda: handler(_tracer(enabled=False)),
    "Langfuse": lambda: handler(_tracer(enabled=True)),
}


@pytest.mark.parametrize("watched", WATCHED)
def test_run_that_is_recorded(benchmark: Any, per_model_call: Any, watched: str) -> None:
    skill = skill_with_tools(1)
    script = [calls("tool_0", city="Oslo"), '{"city": "Oslo", "degrees": 3.5}']
    model = ScriptedModel(*script * (ROUNDS + WARMUP + 1))
    benchmark.group = "two model calls that somebody records"
    with handler(model), handler(STACKS["whole stack"]()), WATCHED[watched]():
        value = benchmark.pedantic(skill, args=("Oslo",), rounds=ROUNDS, warmup_rounds=WARMUP)
    assert value == Report("Oslo", 3.5)
    per_model_call(f"recorded by {watched}", 2)
