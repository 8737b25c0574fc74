"""Whatever goes wrong in telling is logged, and the call does not notice; and what is told where nobody listens."""

from __future__ import annotations

import builtins
import importlib
import logging
import sys

import pytest
from opentelemetry import trace
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import MissingDependencyError
from effectful_agents.handlers.observability.opentelemetry import OpenTelemetryTracer
from effectful_agents.handlers.observability.steps_log import StepLogger
from effectful_agents.handlers.observability.watching import arguments_of
from effectful_agents.operations.call_context import CallContext, current_call_context
from effectful_agents.operations.loop import completion, model_in_use
from effectful_agents.testing import ScriptedModel, calls

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Unwritable:
    """Has no form in JSON, and says nothing of itself."""

    def __repr__(self):
        raise RuntimeError("no")


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


@Skill.define
def advise(city: str) -> str:
    """What to wear in {city}. Use `weather`."""
    raise NotHandled


def answered(tracer, *replies) -> str:
    with handler(harness()), handler(ScriptedModel(*(replies or (calls("weather", city="Oslo"), "A coat.")))):
        with handler(tracer):
            return advise("Oslo")


@pytest.mark.parametrize("method", ["on_start", "on_end"])
def test_a_processor_that_raises_does_not_fail_the_call(method, caplog):
    class Broken(SpanProcessor):
        pass

    def fail(*_, **__):
        raise RuntimeError("the disk is full")

    setattr(Broken, method, fail)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    with caplog.at_level(logging.WARNING, "effectful_agents"):
        assert answered(OpenTelemetryTracer(provider)) == "A coat."
    assert "a span could not be ended" in caplog.text or "could not be begun" in caplog.text
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_meter_that_raises_does_not_fail_the_call(traced, caplog, monkeypatch):
    tracer = traced.tracer()
    monkeypatch.setattr(tracer._histograms, "_duration", None)
    with caplog.at_level(logging.WARNING, "effectful_agents"):
        assert answered(tracer) == "A coat."
    assert "could not be measured" in caplog.text


def test_a_caller_who_hands_over_something_else_does_not_fail_the_call(traced, caplog):
    with handler({current_call_context: lambda: "00-1-2-3"}), caplog.at_level(logging.WARNING, "effectful_agents"):
        assert answered(traced.tracer()) == "A coat."
    assert "could not be read" in caplog.text
    assert traced["invoke_agent advise"].parent is None


@pytest.mark.parametrize("content", [False, True])
def test_an_error_that_cannot_be_shown_stays_the_error_that_it_is(traced, content):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    with handler({completion: _raising(Mute)}), handler(traced.tracer(content=content)), handler(StepLogger()):
        with pytest.raises(Mute):
            completion(messages=[])
    assert "Mute" in traced["chat"].attributes["error.type"]


def _raising(error):
    def fail(**_):
        raise error

    return fail


def test_a_reply_in_a_form_of_its_own_is_passed_on_as_it_is(traced, caplog):
    odd = {"choices": 7, "usage": ["?"], "provider_metadata": "x"}
    with handler({completion: lambda **_: odd}), handler(traced.tracer(content=True)):
        with caplog.at_level(logging.WARNING, "effectful_agents"):
            assert completion(messages=[{"role": "user", "content": 7}], response_format="json") is odd
    assert "could not be described" in caplog.text
    assert traced["chat"].end_time


def test_arguments_that_cannot_be_written_are_named_by_their_class(traced):
    @Tool.define
    def keep(thing: object, other: int) -> str:
        """Keep a thing."""
        return "kept"

    bound = keep.__signature__.bind(Unwritable(), {1})
    written = arguments_of(bound)
    assert written == {"thing": "<Unwritable>", "other": "{1}"}


def test_where_nothing_is_sampled_spans_are_still_handed_on_as_such():
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    seen = []

    @Tool.define
    def fetch() -> str:
        """Fetch it."""
        seen.append(current_call_context().traceparent)
        return "it"

    @Skill.define
    def read() -> str:
        """Read it, with `fetch`."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("fetch"), "ok")), handler(OpenTelemetryTracer(provider)):
        read()
    *_, flags = seen[0].split("-")
    assert int(flags, 16) & 1 == 0


def test_with_the_api_alone_nothing_is_told_and_what_came_in_is_handed_on():
    seen = []

    @Tool.define
    def fetch() -> str:
        """Fetch it."""
        seen.append(current_call_context())
        return "it"

    @Skill.define
    def read() -> str:
        """Read it, with `fetch`."""
        raise NotHandled

    incoming = CallContext(PARENT)
    tracer = OpenTelemetryTracer(trace.NoOpTracerProvider(), NoOpMeterProvider())
    with handler({current_call_context: lambda: incoming}), handler(harness()):
        with handler(ScriptedModel(calls("fetch"), "ok")), handler(tracer):
            with handler({model_in_use: lambda: pytest.fail("asked, for a span that nobody keeps")}):
                assert read() == "ok"
            assert not trace.get_current_span().get_span_context().is_valid
    assert seen == [incoming]


def test_an_sdk_that_keeps_only_measurements_gets_them(traced):
    answered(OpenTelemetryTracer(trace.NoOpTracerProvider(), traced.meters))
    assert sum(point.count for point in traced.points()["gen_ai.client.operation.duration"]) == 2


def test_without_the_api_the_extra_is_named(monkeypatch):
    name = "effectful_agents.handlers.observability.opentelemetry"
    real = builtins.__import__

    def refuse(module, *args, **kwargs):
        if module.partition(".")[0] == "opentelemetry":
            raise ImportError(module)
        return real(module, *args, **kwargs)

    for module in [one for one in sys.modules if one.startswith(name)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"effectful-agents\[otel\]"):
        importlib.import_module(name)
