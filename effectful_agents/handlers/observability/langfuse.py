"""Telling Langfuse what happens in a call."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from effectful_agents.errors import MissingDependencyError
from effectful_agents.handlers.observability.watching import (
    Place,
    arguments_of,
    failure_of,
    outcome_of,
    place_of_call,
    place_of_step,
    settings_of,
    watching,
    written,
)
from effectful_agents.messages import Response, Usage
from effectful_agents.messages.sensitive import hidden
from effectful_agents.operations.loop import (
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_tool,
    completion,
    model_in_use,
    send_request,
)
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.steps import ModelStep, StepEvent, ToolStep
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Skill

try:
    from langfuse import Langfuse, get_client
except ImportError as error:
    raise MissingDependencyError(
        '`LangfuseTracer` (`harness(langfuse=True)`) needs Langfuse: pip install "effectful-agents[langfuse]"'
    ) from error

__all__ = ["LangfuseTracer"]

_log = logging.getLogger(__name__)


class LangfuseTracer(ObjectInterpretation[Any, Any]):
    """Record each call, request and tool call with Langfuse, each inside of what made it.

    A call of a skill is an agent, a request to a model a generation, with its settings, tokens and cost, and a tool
    call a tool. Prompts, replies, arguments and results are recorded: that is what one looks at there. A client that
    has a `mask` keeps some of it back, of the texts of errors too. Those are told in short and without secrets. Of the
    settings there are those that say how the model samples, and no keys or addresses.

    It forwards everything and changes nothing. What goes wrong in telling is logged. Innermost in a stack: then it sees
    what comes from a `Journal`, and marks it with `replayed`, without tokens and cost.

    Args:
        client: The client; None for the one that the program has made, or else one that is made from the environment
            (`LANGFUSE_PUBLIC_KEY`, `LANGFUSE_SECRET_KEY`, `LANGFUSE_BASE_URL`). It sends when its `flush` is called, at
            times by itself, and at the end of the program.
    """

    def __init__(self, client: Langfuse | None = None) -> None:
        self.client = get_client() if client is None else client

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        given = _quietly(lambda: arguments_of(skill.arguments_of(*args, **kwargs)))
        with self._open("agent", skill.documented.name, place_of_call(), input=given) as observation:
            with watching(self, self._tell_again):
                value = fwd()
            observation.update(lambda: {"output": written(value, skill.result_type(*args, **kwargs))})
            return value

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        model = str(request.get("model") or model_in_use() or "")
        asked = _quietly(lambda: _asked({**request, "model": model})) or {}
        with self._open("generation", "completion", place_of_step(), **asked) as seen:
            token = _request.set(generation := _Generation(seen, model))
            try:
                response: Response = fwd()
            finally:
                _request.reset(token)
            seen.update(lambda: _answered(response, generation.model, counted=True))
            return response

    @implements(send_request)
    def send_request(self, **request: Any) -> Response:
        # As handlers have filled it in; of several attempts the last.
        generation = _request.get()
        if generation is not None:
            generation.model = str(request.get("model") or generation.model)
            named = {**request, "model": generation.model}
            generation.observation.update(lambda: _asked(named))
        return fwd()

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        given = _quietly(lambda: arguments_of(tool_call.bound_args))
        with self._open("tool", tool_call.name, place_of_step(), input=given) as observation:
            try:
                result: ToolResult[Any] = fwd()
            except Exception as error:
                observation.fail(failure_of(None, error))
                raise
            observation.fail(failure_of(result))
            observation.update(lambda: {"output": result[0].get("content")})
            return result

    def _open(self, kind: str, name: str, place: Place, **details: Any) -> _Observation:
        where = {"run_id": place.run_id, "step_id": place.step_id, "replayed": place.replayed}
        metadata = {key: value for key, value in where.items() if value} or None
        return _Observation(self.client, {"as_type": kind, "name": name, "metadata": metadata, **details})

    def _tell_again(self, step: StepEvent) -> None:
        place = Place(step.run_id, step.step_id, replayed=True)
        match step:
            case ModelStep(response=response) if response is not None:
                with self._open(
                    "generation", "completion", place, **(_quietly(lambda: _asked(step.request)) or {})
                ) as one:
                    one.update(lambda: _answered(response, "", counted=False))
            case ToolStep(tool_call=call, message=message):
                with self._open("tool", call.name, place, input=_quietly(lambda: arguments_of(call.bound_args))) as one:
                    one.fail(failure_of(None, step.error))
                    one.update(lambda: {"output": message and message.get("content")})


class _Observation:
    """An observation that is the current one in its block; what goes wrong about it is logged."""

    def __init__(self, client: Langfuse, details: dict[str, Any]) -> None:
        self._client = client
        self._details = details
        self._block: Any = None
        self._observation: Any = None
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        try:
            self._block = self._client.start_as_current_observation(**self._details)
            self._observation = self._block.__enter__()
        except Exception:
            self._block = None
            _log.warning("an observation could not be begun", exc_info=True)
        return self

    def update(self, details: Callable[[], Mapping[str, Any]]) -> None:
        """Add what these are, if they can be found out."""
        if self._observation is not None:
            try:
                self._observation.update(**details())
            except Exception:
                _log.warning("an observation could not be described", exc_info=True)

    def fail(self, error: BaseException | None) -> None:
        """Say that it failed, though nothing is raised; None says nothing."""
        self._failure = error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # No operation may be performed here: in a call that ends by a signal each raises it again.
        failure = self._failure or error
        if isinstance(failure, Exception):
            self.update(lambda: {"level": "ERROR", "status_message": self._said_by(failure)})
        elif failure is not None:
            self.update(lambda: {"status_message": outcome_of(failure)})
        try:
            if self._block is not None:
                self._block.__exit__(None, None, None)
        except Exception:
            _log.warning("an observation could not be ended", exc_info=True)

    def _said_by(self, error: Exception) -> str:
        """The text of an error, in short. Of itself the client masks only what comes in and goes out."""
        kind = type(error).__name__
        try:
            text = str(error)
            said = hidden(text[:_READ])
            mask = getattr(self._client, "_mask", None)
            if mask is not None:
                said = mask(data=said)
        except Exception:  # one that cannot be shown, or a mask that fails
            return kind
        if not isinstance(said, str) or not said:
            return kind
        return said if len(said) <= _SAID and len(text) <= _READ else f"{said[:_SAID]}…"


_READ, _SAID = 10_000, 1000
"""Characters of the text of an error that are looked at, and that are told."""


class _Generation:
    """The request that is on its way, and the model that it goes to as far as that is known."""

    def __init__(self, observation: _Observation, model: str) -> None:
        self.observation = observation
        self.model = model


_request: contextvars.ContextVar[_Generation | None] = contextvars.ContextVar(
    "effectful_agents_langfuse_request", default=None
)


def _asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a generation says of a request; the tools are in it where there are any."""
    messages = list(request.get("messages") or ())
    tools = request.get("tools")
    parameters = {
        name: value if isinstance(value, _PLAIN) else str(value) for name, value in settings_of(request).items()
    }
    return {
        "input": {"messages": messages, "tools": tools} if tools else messages,
        "model": request.get("model") or None,
        "model_parameters": parameters or None,
    }


_PLAIN = (str, int, float, bool)


def _answered(response: Mapping[str, Any], asked: str, *, counted: bool) -> dict[str, Any]:
    """What a generation says of a reply."""
    choices = response.get("choices") or ()
    found: dict[str, Any] = {"output": choices[0].get("message") if choices else None}
    model = response.get("model") or asked
    if model:
        found["model"] = model
    if counted:
        usage = Usage.from_wire(response.get("usage"))
        found["usage_details"] = _tokens(usage) or None
        cost = cost_of(asked or model, usage)
        if cost is None and model != asked:
            cost = cost_of(model, usage)
        found["cost_details"] = None if cost is None else {"total": cost}
    return found


def _tokens(usage: Usage) -> dict[str, int]:
    """Tokens by kind, each of them once: Langfuse adds them up."""
    found: dict[str, int] = {}
    if usage.input is not None:
        found["input"] = max(0, usage.input - (usage.cache_read or 0) - (usage.cache_write or 0))
    if usage.output is not None:
        found["output"] = max(0, usage.output - (usage.reasoning or 0))
    if usage.input is not None and usage.output is not None:
        found["total"] = usage.input + usage.output
    others = {
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_reasoning_tokens": usage.reasoning,
    }
    return found | {name: count for name, count in others.items() if count}


def _quietly[T](make: Callable[[], T]) -> T | None:
    try:
        return make()
    except Exception:  # the call itself will say what is wrong with it
        return None
