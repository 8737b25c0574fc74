"""Telling OpenTelemetry what happens in a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from effectful_agents.errors import DecodingError
from effectful_agents.handlers.observability.opentelemetry.conventions import OURS, SCHEMA_URL, VERSION
from effectful_agents.handlers.observability.opentelemetry.metrics import Histograms
from effectful_agents.handlers.observability.opentelemetry.requests import (
    ChatRequest,
    current_request,
    kind_of,
    naming,
    request_attributes,
    response_attributes,
)
from effectful_agents.handlers.observability.opentelemetry.spans import OpenSpan, error_type
from effectful_agents.handlers.observability.watching import (
    Place,
    arguments_of,
    failure_of,
    json_text,
    place_of_call,
    place_of_step,
    watching,
)
from effectful_agents.messages import Response, Usage
from effectful_agents.operations import code
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.loop import (
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_tool,
    completion,
    model_in_use,
    send_request,
)
from effectful_agents.operations.policy import Answer, Decision, ProposedEffect, Question, as_decision, decide
from effectful_agents.operations.policy import request_approval as request_approval_operation
from effectful_agents.operations.steps import ModelStep, StepEvent, ToolStep
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Skill

__all__ = ["OpenTelemetryTracer"]

_log = logging.getLogger(__name__)

_NAME = "effectful_agents"
_W3C = TraceContextTextMapPropagator()


class OpenTelemetryTracer(ObjectInterpretation[Any, Any]):
    """Tell OpenTelemetry of each call, request, tool call, run of code, decision and approval, as spans.

    The names are those of the semantic conventions for generative AI 1.41.0. The span of what happens is the current
    one while it does, so that spans of your own, and those of an HTTP client, stand below it; it goes with tasks,
    threads and `propagate`. A call belongs to the span that is current when it is made, or else to
    `current_call_context()`. Tokens and durations of requests are recorded as histograms.

    It forwards everything and changes nothing. What goes wrong in telling is logged. Innermost in a stack: then it sees
    what comes from a `Journal`, whose spans have no duration and the attribute `effectful_agents.replayed`, and its
    spans last as long as what they tell of.

    Args:
        tracer_provider: Makes the spans; None for the one that is set for the process.
        meter_provider: Keeps the measurements; None for the one that is set for the process.
        content: Whether prompts, replies, arguments, results and the texts of errors are written down. They may hold
            anything, and are what most of a trace weighs.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> provider, spans = TracerProvider(), InMemorySpanExporter()
    >>> provider.add_span_processor(SimpleSpanProcessor(spans))
    >>> @Skill.define
    ... def greet(name: str) -> str:
    ...     '''Greet {name}.'''
    ...     raise NotHandled
    >>> with handler(harness()), handler(ScriptedModel("Hello Ann!")), handler(OpenTelemetryTracer(provider)):
    ...     greet("Ann")
    'Hello Ann!'
    >>> [span.name for span in spans.get_finished_spans()]
    ['chat', 'invoke_agent greet']
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
    ) -> None:
        self.content = content
        self._providers = tracer_provider, meter_provider
        self._tracer = trace.get_tracer(_NAME, _version(), tracer_provider, SCHEMA_URL)
        self._histograms = Histograms(meter_provider, _NAME, _version())

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        return {"versions": {"semantic conventions": VERSION}, "content": self.content}

    def _is_idle(self) -> bool:
        """Whether nobody keeps spans or measurements: there is the API, and no SDK yet."""
        tracers, meters = self._providers
        return _is_of_api(tracers or trace.get_tracer_provider()) and _is_of_api(meters or metrics.get_meter_provider())

    def _open(self, name: str, attributes: Mapping[str, Any], place: Place, **options: Any) -> OpenSpan:
        where = {
            f"{OURS}.run_id": place.run_id or None,
            f"{OURS}.step_id": place.step_id or None,
            f"{OURS}.replayed": place.replayed or None,
        }
        return OpenSpan(self._tracer, name, {**attributes, **where}, texts=self.content, **options)

    # --- calls --------------------------------------------------------------------------------------------------------

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if self._is_idle():
            return fwd()
        name = skill.documented.name
        attributes = {
            **naming(model_in_use() or ""),
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": name,
        }
        if skill.agent is not None and (known := getattr(skill.agent, "__agent_id__", None)):
            attributes["gen_ai.agent.id"] = str(known)
        with self._open(f"invoke_agent {name}", attributes, place_of_call(), parent=_parent()):
            others = {decide: self._decide, code.exec: self._exec, code.eval: self._eval}
            with watching(self, self._tell_again, others):
                return fwd()

    @implements(current_call_context)
    def current_call_context(self) -> CallContext:
        if not trace.get_current_span().get_span_context().is_valid:
            return fwd()
        headers: dict[str, str] = {}
        _W3C.inject(headers)
        return CallContext.from_headers(headers)

    # --- requests to models -------------------------------------------------------------------------------------------

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        if self._is_idle():
            return fwd()
        model = str(request.get("model") or model_in_use() or "")
        name = f"chat {model}" if model else "chat"
        with self._open(name, naming(model), place_of_step(), kind=kind_of(model), parent=_parent()) as span:
            chat = ChatRequest(span, model, content=self.content)
            if span.recording:
                _guarded(lambda: span.set(request_attributes(request, content=self.content)))
            try:
                with chat.heard():
                    response: Response = fwd()
            except Exception as error:
                if isinstance(error, DecodingError) and error.response is not None:  # refused, and paid for
                    _guarded(chat.refused, error.response)
                self._measure(chat, {"error.type": error_type(error)})
                raise
            # One that is cancelled is not measured: how long it took says nothing of the model.
            _guarded(chat.answered, response)
            self._measure(chat, {})
            return response

    def _measure(self, chat: ChatRequest, more: Mapping[str, str]) -> None:
        self._histograms.record(chat.seconds, chat.first, chat.usage, {**chat.attributes, **more})

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        chat = current_request.get()
        if chat is not None:
            _guarded(chat.sent, request)
        return fwd()

    # --- tools and code -----------------------------------------------------------------------------------------------

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        if self._is_idle():
            return fwd()
        attributes = _of_tool(tool_call)
        with self._open(f"execute_tool {tool_call.name}", attributes, place_of_step()) as span:
            if self.content and span.recording:
                _guarded(
                    lambda: span.set({"gen_ai.tool.call.arguments": json_text(arguments_of(tool_call.bound_args))})
                )
            try:
                result: ToolResult[Any] = fwd()
            except Exception as error:
                span.fail(failure_of(None, error))
                raise
            span.fail(failure_of(result))
            if self.content:
                _guarded(lambda: span.set({"gen_ai.tool.call.result": _text(result[0].get("content"))}))
            return result

    # Not handled for good, as `decide` is not: where nothing runs code, there must seem to be nothing that does.

    def _exec(self, bytecode: CodeType, env: dict[str, Any]) -> None:
        with self._run_code(bytecode):
            return fwd()

    def _eval(self, bytecode: CodeType, env: dict[str, Any]) -> Any:
        with self._run_code(bytecode):
            return fwd()

    def _run_code(self, bytecode: CodeType) -> OpenSpan:
        file = getattr(bytecode, "co_filename", None)
        return self._open("execute_code", {"gen_ai.operation.name": "execute_code", "code.file.path": file}, Place())

    # --- decisions and approvals --------------------------------------------------------------------------------------

    def _decide(self, effect: ProposedEffect) -> Decision:
        if effect.replayed:
            return fwd()
        attributes = {**_of_effect(effect), "gen_ai.operation.name": "decide"}
        place = Place(effect.run_id, effect.step_id)
        with self._open(f"decide {effect.name or effect.kind.value}", attributes, place) as span:
            said = fwd()
            if span.recording:
                _guarded(lambda: span.set(_of_decision(as_decision(said), texts=self.content)))
            return said

    @implements(request_approval_operation)
    def request_approval(self, question: Question) -> Answer:
        effect = question.effect
        attributes = {"gen_ai.operation.name": "request_approval", f"{OURS}.reason_code": question.reason_code or None}
        attributes |= {} if effect is None else _of_effect(effect)
        name = "request_approval" if effect is None else f"request_approval {effect.name or effect.kind.value}"
        with self._open(name, attributes, Place(question.run_id, question.step_id)) as span:
            if self.content:
                span.set({f"{OURS}.question": question.text})
            answer = fwd()
            span.set({f"{OURS}.approved": getattr(answer, "approved", None), f"{OURS}.by": getattr(answer, "by", None)})
            return answer

    # --- what comes from a journal ------------------------------------------------------------------------------------

    def _tell_again(self, step: StepEvent) -> None:
        """A span of no duration for a step that does not happen now; it counts for no metric."""
        place = Place(step.run_id, step.step_id, replayed=True)
        match step:
            case ModelStep():
                model = str(step.request.get("model") or "")
                name, attributes = f"chat {model}".strip(), naming(model)
                kind = kind_of(model)
            case ToolStep():
                name, attributes = f"execute_tool {step.tool_call.name}", _of_tool(step.tool_call)
                kind = trace.SpanKind.INTERNAL
            case _:
                name, attributes = "request_approval", {"gen_ai.operation.name": "request_approval"}
                kind = trace.SpanKind.INTERNAL
        with self._open(name, attributes, place, kind=kind) as span:
            if isinstance(step, ModelStep) and step.response is not None and span.recording:
                usage = Usage.from_wire(step.response.get("usage"))
                response = step.response
                _guarded(lambda: span.set(response_attributes(response, usage, content=self.content)))
            if isinstance(step, ToolStep):
                span.fail(failure_of(None, step.error))


def _is_of_api(provider: object) -> bool:
    # By the module: what stands in for a provider until one is set is private, for metrics.
    return type(provider).__module__ in _OF_THE_API


_OF_THE_API = frozenset({"opentelemetry.trace", "opentelemetry.metrics", "opentelemetry.metrics._internal"})


def _parent() -> Context | None:
    """Where spans belong that begin outside of any: what the caller handed over."""
    if trace.get_current_span().get_span_context().is_valid:
        return None
    try:
        headers = current_call_context().headers()
        return _W3C.extract(headers, otel_context.get_current()) if headers else None
    except Exception:
        _log.warning("what the caller handed over could not be read", exc_info=True)
        return None


def _of_tool(tool_call: DecodedToolCall[Any]) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool_call.name,
        "gen_ai.tool.call.id": tool_call.id,
        "gen_ai.tool.type": "function",
    }


def _of_effect(effect: ProposedEffect) -> dict[str, Any]:
    return {f"{OURS}.effect": effect.kind.value, f"{OURS}.name": effect.name or None, f"{OURS}.risk": effect.risk.name}


def _of_decision(decision: Decision, *, texts: bool) -> dict[str, Any]:
    return {
        f"{OURS}.disposition": decision.disposition.name.lower(),
        f"{OURS}.reason_code": decision.reason_code or None,
        f"{OURS}.rule": decision.rule or None,
        f"{OURS}.message": decision.message if texts and decision.message else None,
    }


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json_text(content)


def _guarded[**P](tell: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """What reads foreign data, such as a reply in a form of its own, must not end the call."""
    try:
        tell(*args, **kwargs)
    except Exception:
        _log.warning("a span could not be described", exc_info=True)


def _version() -> str:
    from importlib import metadata  # noqa: PLC0415 - slow, and only needed here

    try:
        return metadata.version("effectful-agents")
    except metadata.PackageNotFoundError:
        return ""
