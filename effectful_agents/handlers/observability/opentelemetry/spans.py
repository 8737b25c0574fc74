"""One span, around something that must not notice it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from effectful_agents.handlers.observability.opentelemetry.conventions import OURS
from effectful_agents.handlers.observability.watching import outcome_of

__all__ = ["OpenSpan", "error_type"]

_log = logging.getLogger(__name__)


class OpenSpan:
    """A span that is the current one in its block. What goes wrong about it is logged, and the block goes on.

    Args:
        tracer: Makes it.
        name: Its name.
        attributes: What a sampler may look at; None leaves one out.
        kind: Its kind.
        parent: Where it belongs; None for the current context.
        texts: Whether what errors say may be written down: it may quote anything.

    Attributes:
        recording: Whether anything that is set on it is kept.
    """

    __slots__ = ("_arguments", "_failure", "_span", "_texts", "_token", "_tracer", "recording")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        attributes: Mapping[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Context | None = None,
        texts: bool = False,
    ) -> None:
        self._tracer = tracer
        self._arguments = (name, attributes, kind, parent)
        self._texts = texts
        self._span: Span | None = None
        self._token: Any = None
        self._failure: BaseException | None = None
        self.recording = False

    def __enter__(self) -> Self:
        name, attributes, kind, parent = self._arguments
        try:
            span = self._tracer.start_span(name, context=parent, kind=kind, attributes=_present(attributes))
            self._span = span
            self.recording = span.is_recording()
            # Where there is no SDK it is the span that is current already, or none.
            if self.recording or span.get_span_context() != trace.get_current_span().get_span_context():
                self._token = otel_context.attach(trace.set_span_in_context(span, parent))
        except Exception:
            _log.warning("the span `%s` could not be begun", name, exc_info=True)
        return self

    def set(self, attributes: Mapping[str, Any], name: str = "") -> None:
        """Set attributes, and another name; None leaves one out."""
        if not self.recording or self._span is None:
            return
        try:
            self._span.set_attributes(_present(attributes))
            if name:
                self._span.update_name(name)
        except Exception:
            _log.warning("attributes of a span could not be set", exc_info=True)

    def fail(self, error: BaseException | None) -> None:
        """Say that it failed, though nothing is raised; None says nothing."""
        self._failure = error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        # No operation may be performed here: in a call that ends by a signal each raises it again.
        if self._token is not None:
            otel_context.detach(self._token)
        if self._span is None:
            return
        try:
            if self.recording:
                self._end_with(self._span, self._failure or error)
        except Exception:
            _log.warning("the end of a span could not be told", exc_info=True)
        try:
            self._span.end()
        except Exception:
            _log.warning("a span could not be ended", exc_info=True)

    def _end_with(self, span: Span, error: BaseException | None) -> None:
        if error is None:
            return
        if not isinstance(error, Exception):
            span.set_attribute(f"{OURS}.outcome", outcome_of(error))
            return
        kind = error_type(error)
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, str(error) if self._texts else kind))
        if self._texts:
            span.record_exception(error)
        else:
            span.add_event("exception", {"exception.type": kind, "exception.stacktrace": _frames_of(error)})


def _frames_of(error: BaseException) -> str:
    """Where an error was raised, with lines of files, and no values. The text of the error is not among them."""
    frames = traceback.extract_tb(error.__traceback__)
    # What is in no file may be a model's code, and then has in it what a program was asked to do.
    return "".join(
        traceback.format_list(
            [
                traceback.FrameSummary(frame.filename, frame.lineno, frame.name, line="")
                if frame.filename.startswith("<")
                else frame
                for frame in frames
            ]
        )
    )


def error_type(error: BaseException) -> str:
    """The value of `error.type`: the name of the class, with its module where that is not Python's own."""
    cls = type(error)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _present(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
