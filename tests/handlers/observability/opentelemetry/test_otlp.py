"""What arrives at a collector: the real exporters, over HTTP, and the protocol's own messages."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.handlers.observability.opentelemetry import OpenTelemetryTracer
from effectful_agents.handlers.observability.opentelemetry.conventions import SCHEMA_URL
from effectful_agents.messages import Usage
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.observability.collecting import Collector, attributes


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


@Skill.define
def advise(city: str) -> str:
    """What to wear in {city}. Use `weather`."""
    raise NotHandled


def test_a_collector_gets_spans_that_hang_together_and_the_histograms():
    model = ScriptedModel(
        calls("weather", city="Oslo", usage=Usage(input=10, output=2)),
        says("A coat.", usage=Usage(input=30, output=4, cache_read=8)),
    )
    with Collector() as collector:
        spans = TracerProvider(resource=Resource.create({"service.name": "wardrobe"}), shutdown_on_exit=False)
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector.url}/v1/metrics"))
        meters = MeterProvider([reader], shutdown_on_exit=False)
        with handler(harness(model="gpt-5-mini")), handler(model), handler(OpenTelemetryTracer(spans, meters)):
            advise("Oslo")
        spans.shutdown()
        meters.shutdown()

    found = {span.name: span for span in collector.spans()}
    call, tool, chat = (found[name] for name in ("invoke_agent advise", "execute_tool weather", "chat gpt-5-mini"))
    assert len(collector.spans()) == 4
    assert {span.trace_id for span in collector.spans()} == {call.trace_id}
    assert {span.parent_span_id for span in collector.spans()} == {b"", call.span_id}
    assert call.kind == call.SPAN_KIND_INTERNAL
    assert chat.kind == chat.SPAN_KIND_CLIENT
    assert tool.start_time_unix_nano >= call.start_time_unix_nano
    assert attributes(chat)["gen_ai.usage.cache_read.input_tokens"] == 8
    assert attributes(chat)["gen_ai.response.finish_reasons"] == ["stop"]
    resource, scope = collector.scopes()[0]
    assert scope.schema_url == SCHEMA_URL
    assert scope.scope.name == "effectful_agents"
    assert attributes(resource)["service.name"] == "wardrobe"

    metrics = {metric.name: metric for metric in collector.metrics()}
    assert set(metrics) == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}
    tokens = {
        attributes(one)["gen_ai.token.type"]: one for one in metrics["gen_ai.client.token.usage"].histogram.data_points
    }
    assert {kind: (one.count, one.sum) for kind, one in tokens.items()} == {"input": (2, 40), "output": (2, 6)}
    (durations,) = metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert durations.count == 2
    assert metrics["gen_ai.client.operation.duration"].unit == "s"
