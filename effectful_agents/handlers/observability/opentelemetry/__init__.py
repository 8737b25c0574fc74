"""Telling OpenTelemetry what happens: its API is all that is needed, and an SDK where the spans are to go anywhere."""

try:
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401
except ImportError as error:
    from effectful_agents.errors import MissingDependencyError

    raise MissingDependencyError(
        '`OpenTelemetryTracer` needs the API of OpenTelemetry: pip install "effectful-agents[otel]"'
    ) from error

from effectful_agents.handlers.observability.opentelemetry.tracer import OpenTelemetryTracer

__all__ = ["OpenTelemetryTracer"]
