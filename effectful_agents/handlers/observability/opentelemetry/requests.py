"""One request to a model: what its span and the metrics say of it."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Generator, Mapping
from typing import Any, cast

from opentelemetry.trace import SpanKind

from effectful_agents.handlers.observability.opentelemetry.content import (
    input_messages,
    output_messages,
    tool_definitions,
)
from effectful_agents.handlers.observability.opentelemetry.conventions import provider_of
from effectful_agents.handlers.observability.opentelemetry.spans import OpenSpan
from effectful_agents.messages import PromptProgress, Response, StreamEvent, StreamStart, Usage
from effectful_agents.operations.steps import StepEvent, emit
from effectful_agents.runtime import fwd, handler, interpretation

__all__ = ["ChatRequest", "current_request", "kind_of", "naming", "request_attributes", "response_attributes"]

current_request: contextvars.ContextVar[ChatRequest | None] = contextvars.ContextVar(
    "effectful_agents_traced_request", default=None
)
"""The request that is on its way."""


class ChatRequest:
    """A request that is on its way, and how long that took.

    Args:
        span: Its span.
        model: The model that it names, so far.
        content: Whether texts are written down.

    Attributes:
        attributes: What the metrics say of it.
        usage: The tokens of its reply.
        first: After how many seconds the first piece of the reply came.
    """

    def __init__(self, span: OpenSpan, model: str, *, content: bool) -> None:
        self._span = span
        self._content = content
        self._begun = time.perf_counter()
        self.attributes: dict[str, Any] = naming(model)
        self.usage = Usage()
        self.first: float | None = None

    @property
    def seconds(self) -> float:
        """How long it has been on its way."""
        return time.perf_counter() - self._begun

    @contextlib.contextmanager
    def heard(self) -> Generator[None]:
        """Notice when the first piece comes, where replies are asked for in pieces."""
        token = current_request.set(self)
        try:
            # To listen where nobody else does would have models asked for pieces.
            with handler({emit: self._hear}) if emit in interpretation() else contextlib.nullcontext():
                yield
        finally:
            current_request.reset(token)

    def _hear(self, event: StreamEvent | StepEvent) -> None:
        if self.first is None and not isinstance(event, StreamStart | PromptProgress | StepEvent):
            self.first = self.seconds
        fwd()

    def sent(self, request: Mapping[str, Any]) -> None:
        """Take in the request as it goes out, with all that handlers have filled in. Of several attempts the last."""
        model = str(request.get("model") or "") or self.attributes.get("gen_ai.request.model", "")
        self.attributes = naming(model)
        if self._span.recording:
            attributes = {**self.attributes, **request_attributes(request, content=self._content)}
            self._span.set(attributes, f"chat {model}" if model else "chat")

    def answered(self, response: Response) -> None:
        """Take in the reply."""
        self.usage = Usage.from_wire(response.get("usage"))
        if (response.get("provider_metadata") or {}).get("streamed") is False:
            self.first = None
        if model := response.get("model"):
            self.attributes["gen_ai.response.model"] = model
        if self._span.recording:
            streamed: dict[str, Any] = {"gen_ai.response.time_to_first_chunk": self.first}
            streamed["gen_ai.request.stream"] = True if self.first is not None else None
            self._span.set({**streamed, **response_attributes(response, self.usage, content=self._content)})

    def refused(self, response: Any) -> None:
        """Take in a reply that ended the request with an error: it has its tokens."""
        if isinstance(response, Mapping):
            self.answered(cast(Response, response))


def naming(model: str) -> dict[str, Any]:
    """What says which model is asked."""
    named: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider_of(model)}
    if model:
        named["gen_ai.request.model"] = model
    return named


def kind_of(model: str) -> SpanKind:
    """Models inside the process are asked inside of it."""
    return SpanKind.INTERNAL if model.startswith("local/") else SpanKind.CLIENT


_SAME = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed")


def request_attributes(request: Mapping[str, Any], *, content: bool) -> dict[str, Any]:
    """What a span says of a request."""
    found: dict[str, Any] = {f"gen_ai.request.{name}": _number(request.get(name)) for name in _SAME}
    most = request.get("max_completion_tokens", request.get("max_tokens"))
    found["gen_ai.request.max_tokens"] = _number(most)
    stop = request.get("stop")
    if stop:
        found["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else [str(one) for one in stop]
    if request.get("n", 1) != 1:
        found["gen_ai.request.choice.count"] = _number(request.get("n"))
    if form := request.get("response_format"):
        found["gen_ai.output.type"] = "text" if form.get("type") == "text" else "json"
    if content:
        found["gen_ai.input.messages"] = input_messages(request.get("messages") or ())
        if tools := request.get("tools"):
            found["gen_ai.tool.definitions"] = tool_definitions(tools)
    return found


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) else None


def response_attributes(response: Mapping[str, Any], usage: Usage, *, content: bool) -> dict[str, Any]:
    """What a span says of a reply."""
    choices = response.get("choices") or ()
    found: dict[str, Any] = {
        "gen_ai.response.id": response.get("id"),
        "gen_ai.response.model": response.get("model"),
        "gen_ai.response.finish_reasons": [str(choice.get("finish_reason") or "") for choice in choices] or None,
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    if content:
        found["gen_ai.output.messages"] = output_messages(response)
    return found
