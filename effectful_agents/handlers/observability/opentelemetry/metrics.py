"""The histograms of the conventions: tokens, durations, and the time to the first piece of a reply."""

from __future__ import annotations

import logging
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from effectful_agents.handlers.observability.opentelemetry.conventions import SCHEMA_URL, SECONDS, TOKENS
from effectful_agents.messages import Usage

__all__ = ["Histograms"]

_log = logging.getLogger(__name__)


class Histograms:
    """What requests to models are measured by.

    Args:
        provider: Keeps the measurements; None for the one that is set for the process.
        name: The instrumentation.
        version: Its version.
    """

    def __init__(self, provider: MeterProvider | None, name: str, version: str) -> None:
        meter = metrics.get_meter(name, version, provider, SCHEMA_URL)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time to receive the first chunk of a reply that is streamed.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )

    def record(self, seconds: float, first: float | None, usage: Usage, attributes: dict[str, Any]) -> None:
        """Record one request.

        Args:
            seconds: How long it took.
            first: After how many seconds the first piece came; None where the reply came whole.
            usage: Its tokens; what nobody counted is not recorded.
            attributes: The model, and how it ended.
        """
        try:
            self._duration.record(seconds, attributes)
            if first is not None:
                self._first.record(first, attributes)
            for kind, count in (("input", usage.input), ("output", usage.output)):
                if count is not None:
                    self._tokens.record(count, {**attributes, "gen_ai.token.type": kind})
        except Exception:
            _log.warning("a request could not be measured", exc_info=True)
