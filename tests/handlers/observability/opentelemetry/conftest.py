"""What keeps spans and measurements for a test to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from effectful_agents.handlers.observability.opentelemetry import OpenTelemetryTracer


class Traced:
    """Spans and measurements that have come.

    Attributes:
        provider: Makes the spans.
        meters: Keeps the measurements.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def tracer(self, **options: Any) -> OpenTelemetryTracer:
        return OpenTelemetryTracer(self.provider, self.meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def __getitem__(self, name: str) -> ReadableSpan:
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]

    def tree(self) -> str:
        """The names of the spans, each below that which it belongs to."""
        spans = self.spans
        known = {span.context.span_id for span in spans}
        lines: list[str] = []

        def add(parent: int | None, depth: int) -> None:
            for span in spans:
                above = span.parent.span_id if span.parent and span.parent.span_id in known else None
                if above == parent:
                    lines.append("  " * depth + span.name)
                    add(span.context.span_id, depth + 1)

        add(None, 0)
        return "\n".join(lines)

    def points(self) -> dict[str, list[Any]]:
        """The measurements, by the name of the metric."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[Any]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found


@pytest.fixture
def traced() -> Iterator[Traced]:
    kept = Traced()
    yield kept
    kept.provider.shutdown()
    kept.meters.shutdown()
