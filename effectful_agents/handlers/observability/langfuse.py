"""Recording calls with Langfuse."""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import importlib.util
import json
import logging
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from effectful_agents.encoding import encode
from effectful_agents.errors import MissingDependencyError, ToolCallExecutionError
from effectful_agents.messages import Response, StreamEvent, Usage
from effectful_agents.messages.exchange import settings_of_a_service
from effectful_agents.messages.stream import ReasoningDelta, TextDelta, ToolCallStart
from effectful_agents.operations.loop import (
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_tool,
    completion,
    model_in_use,
)
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.steps import StepEvent, current_ids, emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Skill

if TYPE_CHECKING:
    from langfuse import Langfuse

__all__ = ["LangfuseTracer"]

_log = logging.getLogger(__name__)

_PARTS = frozenset({"messages", "tools", "model", "response_format"})
"""What of a request is no setting of the model."""


class LangfuseTracer(ObjectInterpretation[Any, Any]):
    """Record calls with Langfuse: each call of a skill is an agent there, and in it are its requests and tool calls.

    Wraps `call_agent`, `call_tool` and `completion`. A call of a skill inside another one is an agent inside the
    other's; what a tool records itself, or any library that OpenTelemetry instruments, lies inside of the tool.
    Requests are recorded with their settings, but for those that let one into a service, the model that replied, its
    tokens, and what they cost where that is known. Nothing that goes wrong in recording ends a call; it is logged.

    Near the inner end of a stack: it records what the model was sent, and what it was told of a tool call.

    Args:
        client: The client of Langfuse; None takes the one of the process, `langfuse.get_client()`, which reads
            `LANGFUSE_PUBLIC_KEY`, `LANGFUSE_SECRET_KEY` and `LANGFUSE_BASE_URL` at the first call.

    Raises:
        MissingDependencyError: langfuse is not installed.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> from langfuse import Langfuse
    >>> @Skill.define
    ... def limerick(theme: str) -> str:
    ...     '''Write a limerick about {theme}.'''
    ...     raise NotHandled
    >>> client = Langfuse(public_key="pk", secret_key="sk", tracing_enabled=False)
    >>> with handler(ScriptedModel("There once was a bear")), handler(harness()), handler(LangfuseTracer(client)):
    ...     limerick("bears")
    'There once was a bear'
    """

    def __init__(self, client: Langfuse | None = None) -> None:
        # Without loading it, which takes a second.
        if client is None and importlib.util.find_spec("langfuse") is None:
            raise MissingDependencyError('`LangfuseTracer` needs langfuse: pip install "effectful-agents[langfuse]"')
        self._client = client

    @property
    def client(self) -> Langfuse:
        """The client of Langfuse; `flush()` of it sends what is recorded at once."""
        if self._client is None:
            import langfuse  # noqa: PLC0415 - slow

            self._client = langfuse.get_client()
        return self._client

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        with self._observed("agent", skill.__name__, lambda: _of_call(skill, args, kwargs)) as observation:
            value = fwd()
            observation.update(lambda: {"output": _recorded(value)})
            return value

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        with self._observed("tool", tool_call.name, lambda: {"input": _of_arguments(tool_call)}) as observation:
            message, value, _ = result = fwd()
            observation.update(lambda: {"output": message["content"]})
            if isinstance(value, ToolCallExecutionError):
                observation.fail(value.original_error)
            return result

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        name = request.get("model") or model_in_use() or "completion"
        with self._observed("generation", str(name), lambda: _of_request(request)) as observation:
            outer = _generation.get()
            _generation.set(observation)
            try:
                reply = fwd()
            finally:
                _generation.set(outer)
            observation.update(lambda: _of_reply(request, reply))
            return reply

    @implements(emit)
    def emit(self, event: StreamEvent | StepEvent) -> None:
        generation = _generation.get()
        if generation is not None and isinstance(event, TextDelta | ReasoningDelta | ToolCallStart):
            generation.begin()
        fwd()

    @contextlib.contextmanager
    def _observed(self, kind: Any, name: str, fields: Callable[[], dict[str, Any]]) -> Generator[_Observation]:
        """Record what happens in the block as one observation, in which all that is recorded meanwhile lies."""
        observation = _Observation()
        observation.try_to(
            lambda: observation.start(self.client.start_observation(name=name, as_type=kind, **fields()))
        )
        try:
            yield observation
        except BaseException as error:
            observation.fail(error)
            raise
        finally:
            observation.end()


class _Observation:
    """One observation, if there is one: what goes wrong in recording is logged."""

    def __init__(self) -> None:
        self._recorded: Any = None
        self._outer: Any = None
        self._begun = False

    def try_to(self, record: Callable[[], object]) -> None:
        try:
            record()
        except Exception:
            _log.exception("something could not be recorded with Langfuse")

    def start(self, recorded: Any) -> None:
        """Be a client's observation, the one in which others lie from now on."""
        from opentelemetry import context, trace  # noqa: PLC0415 - comes with langfuse

        self._outer = context.get_current()
        self._recorded = recorded
        context.attach(trace.set_span_in_context(recorded._otel_span))

    def update(self, fields: Callable[[], dict[str, Any]]) -> None:
        if self._recorded is not None:
            self.try_to(lambda: self._recorded.update(**fields()))

    def begin(self) -> None:
        """The first piece of a reply has come."""
        if not self._begun:
            self._begun = True
            self.update(lambda: {"completion_start_time": datetime.datetime.now(datetime.UTC)})

    def fail(self, error: BaseException) -> None:
        # A signal is what somebody wanted: a run that waits, a call that was cancelled.
        level = "ERROR" if isinstance(error, Exception) else "WARNING"
        self.update(lambda: {"level": level, "status_message": f"{type(error).__name__}: {error}".removesuffix(": ")})

    def end(self) -> None:
        if self._recorded is None:
            return
        from opentelemetry import context  # noqa: PLC0415

        # Not `detach`, which complains where a greenlet was given another context meanwhile.
        context.attach(self._outer)
        self.try_to(self._recorded.end)


_generation: contextvars.ContextVar[_Observation | None] = contextvars.ContextVar(
    "effectful_agents_langfuse_generation", default=None
)


# --- what is recorded -------------------------------------------------------------------------------------------------


def _of_call(skill: Skill, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    stamp, ids = skill.template.stamp, current_ids()
    about = {"prompt": stamp.name, "prompt_version": stamp.version, "prompt_digest": stamp.digest}
    if ids is not None and ids.run_id:
        about["run_id"] = ids.run_id
    try:
        given: Mapping[str, Any] = skill.__signature__.bind(*args, **kwargs).arguments
    except TypeError:  # the call will say so
        given = {"args": args, "kwargs": kwargs}
    return {"input": {name: _recorded(value) for name, value in given.items()}, "metadata": about}


def _of_arguments(tool_call: DecodedToolCall[Any]) -> dict[str, Any]:
    return {name: _recorded(value) for name, value in tool_call.bound_args.arguments.items()}


def _of_request(request: Mapping[str, Any]) -> dict[str, Any]:
    hidden = _PARTS | settings_of_a_service(request).keys()
    tools = request.get("tools")
    fields: dict[str, Any] = {
        "input": {"messages": request.get("messages"), "tools": tools} if tools else request.get("messages"),
        "model_parameters": {name: _simple(value) for name, value in request.items() if name not in hidden},
    }
    if model := request.get("model") or model_in_use():
        fields["model"] = str(model)
    return fields


def _of_reply(request: Mapping[str, Any], reply: Response) -> dict[str, Any]:
    usage = Usage.from_wire(reply.get("usage"))
    fields: dict[str, Any] = {"output": reply["choices"][0]["message"], "usage_details": _counts(usage)}
    model = reply.get("model") or request.get("model") or model_in_use()
    if model:
        fields["model"] = str(model)
        cost = cost_of(str(model), usage)
        if cost is not None:
            fields["cost_details"] = {"total": cost}
    return fields


def _counts(usage: Usage) -> dict[str, int]:
    """Tokens by kind. Langfuse adds them up, so that what is a part of a count is taken out of it."""
    parts = {
        "input_cached_tokens": usage.cache_read,
        "input_cache_creation": usage.cache_write,
        "output_reasoning_tokens": usage.reasoning,
    }
    counts = {name: count for name, count in parts.items() if count}
    if usage.input is not None:
        counts["input"] = max(0, usage.input - (usage.cache_read or 0) - (usage.cache_write or 0))
    if usage.output is not None:
        counts["output"] = max(0, usage.output - (usage.reasoning or 0))
    return counts


def _recorded(value: Any) -> Any:
    """A value as JSON, or as Python shows it where it has none; one that cannot even be shown by its type."""
    for attempt in (encode, repr):
        try:
            return attempt(value)
        except Exception:
            _log.debug("a value of type %s cannot be recorded by %s", type(value).__name__, attempt.__name__)
    return f"<{type(value).__name__}>"


def _simple(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False, default=repr)
