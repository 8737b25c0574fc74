"""What it costs to look on: no tracer, OpenTelemetry's API alone, its SDK, Langfuse's client, lines in a log."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from langfuse import Langfuse
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider

from bench.stacks import loop_history_retry, skill_with_tools
from effectful_agents import ObjectInterpretation, handler
from effectful_agents.handlers.observability.langfuse import LangfuseTracer
from effectful_agents.handlers.observability.opentelemetry import OpenTelemetryTracer
from effectful_agents.handlers.observability.steps_log import StepLogger
from effectful_agents.testing import ScriptedModel, calls

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROUNDS, WARMUP = 500, 50


def _api_alone() -> Any:
    return OpenTelemetryTracer(NoOpTracerProvider(), NoOpMeterProvider())


def _sdk(*, content: bool = False) -> Any:
    # Spans are made and dropped: what an exporter takes is its own, and in a thread of its own.
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    return OpenTelemetryTracer(TracerProvider(shutdown_on_exit=False), meters, content=content)


def _log() -> Any:
    logger = logging.Logger("of this measurement")
    logger.addHandler(logging.NullHandler())
    return StepLogger(logger)


WATCHERS: dict[str, Any] = {
    "no tracer": ObjectInterpretation,
    "OpenTelemetry, API alone": _api_alone,
    "OpenTelemetry, SDK": _sdk,
    "OpenTelemetry, SDK, with content": lambda: _sdk(content=True),
    "Langfuse, client without keys": lambda: LangfuseTracer(Langfuse(tracing_enabled=False)),
    "lines in a log": _log,
}


@pytest.mark.parametrize("watcher", WATCHERS)
def test_run_of_two_model_calls_that_is_watched(benchmark: Any, per_model_call: Any, watcher: str) -> None:
    skill = skill_with_tools(1)
    script = [calls("tool_0", city="Oslo"), '{"city": "Oslo", "degrees": 3.5}']
    model = ScriptedModel(*script * (ROUNDS + WARMUP + 1))
    benchmark.group = "watched"
    with handler(model), handler(loop_history_retry()), handler(WATCHERS[watcher]()):
        benchmark.pedantic(skill, args=("Oslo",), rounds=ROUNDS, warmup_rounds=WARMUP)
    per_model_call(f"two model calls and a tool, {watcher}", 2)
