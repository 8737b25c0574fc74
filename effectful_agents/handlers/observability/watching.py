"""What those share that look on: which step it is, how it ended, what is to be written down of it."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Any

from effectful_agents.encoding import encode
from effectful_agents.errors import Signal, Suspended, ToolCallExecutionError
from effectful_agents.operations.journal import attempt_of, perform_step
from effectful_agents.operations.loop import ToolResult
from effectful_agents.operations.steps import StepEvent, current_ids
from effectful_agents.runtime import fwd, handler, interpretation

__all__ = [
    "Place",
    "arguments_of",
    "failure_of",
    "json_text",
    "outcome_of",
    "place_of_call",
    "place_of_step",
    "settings_of",
    "watching",
    "written",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where something happens.

    Attributes:
        run_id: The run; empty where there is none.
        step_id: The step; empty where it is none.
        replayed: Whether it did not happen now, and is told again from a journal.
    """

    run_id: str = ""
    step_id: str = ""
    replayed: bool = False


@dataclasses.dataclass(slots=True)
class _Step:
    """A step that is taken; `made` says whether anything of it happens, though it is told again."""

    replayed: bool
    made: bool = False


_step: contextvars.ContextVar[_Step | None] = contextvars.ContextVar("effectful_agents_watched_step", default=None)


def place_of_step() -> Place:
    """The place of what an operation inside a step does, a request to a model or a tool call, which so is made."""
    ids, step = current_ids(), _step.get()
    if step is not None:
        step.made = True
    if ids is None:
        return Place()
    return Place(ids.run_id, ids.prefix.removesuffix("/"), step is not None and step.replayed)


def place_of_call() -> Place:
    """The place of a call that is about to begin."""
    ids = current_ids()
    if ids is None:
        return Place()
    # A call that the program makes in a run is a step of it. It has no other that says so.
    replayed = bool(ids.run_id) and ids.skill is None and attempt_of(ids.coming("call"))[1]
    return Place(ids.run_id, ids.prefix.removesuffix("/"), replayed)


_watching: contextvars.ContextVar[frozenset[int]] = contextvars.ContextVar(
    "effectful_agents_watching", default=frozenset()
)
"""Those that look on already in the calls that the code is in."""


@contextlib.contextmanager
def watching(
    owner: object,
    told_again: Callable[[StepEvent], None],
    others: Mapping[Any, Callable[..., Any]] = MappingProxyType({}),
) -> Generator[None]:
    """Handle some operations in a call, and in those inside of it, where somebody else handles them already.

    To handle `perform_step` or `emit` is to say that somebody follows the call, and then replies are asked for in
    pieces; to handle `decide`, that effects are decided about. Who looks on must not be the first to.

    Args:
        owner: Who looks on.
        told_again: Gets each step that comes from a journal, and of which nothing happens.
        others: More operations, and what handles them.
    """
    already = _watching.get()
    if id(owner) in already:
        yield
        return
    here = interpretation()
    handlers = {operation: function for operation, function in others.items() if operation in here}
    if perform_step in here:
        handlers[perform_step] = functools.partial(_take, told_again)
    token = _watching.set(already | {id(owner)})
    try:
        with handler(handlers) if handlers else contextlib.nullcontext():
            yield
    finally:
        _watching.reset(token)


def _take(told_again: Callable[[StepEvent], None], step: StepEvent, body: Callable[[], Any]) -> Any:
    outer = _step.get()
    token = _step.set(taken := _Step(step.replayed))
    try:
        completed = fwd()
    finally:
        _step.reset(token)
        if taken.made and outer is not None:
            outer.made = True
    if step.replayed and not taken.made:
        told_again(completed)
    return completed


def outcome_of(error: BaseException) -> str:
    """In a word, how something ended that neither came to its end nor failed."""
    if isinstance(error, Suspended):
        return "suspended"
    if isinstance(error, GeneratorExit):
        return "closed"
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted"
    return "cancelled" if isinstance(error, Signal) or "Cancel" in type(error).__name__ else "ended"


def failure_of(result: ToolResult[Any] | None, error: BaseException | None = None) -> BaseException | None:
    """What a tool raised, be it that a handler has caught it; None where it did not."""
    if error is None and result is not None and isinstance(result[1], BaseException):
        error = result[1]
    return error.original_error if isinstance(error, ToolCallExecutionError) else error


def arguments_of(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Arguments as JSON, as far as they can be written so; what cannot is its `repr`."""
    parameters = bound.signature.parameters
    return {name: written(value, parameters[name].annotation) for name, value in bound.arguments.items()}


def written(value: Any, annotation: Any = Any) -> Any:
    """A value as JSON, or else its `repr`."""
    try:
        encoded = encode(value, Any if annotation is inspect.Parameter.empty else annotation)
        json.dumps(encoded)
    except Exception:  # a call from code may have any value, and what writes it may raise anything
        return _shown(value)
    return encoded


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def json_text(value: Any) -> str:
    """Anything as JSON text, for people: what has no form in JSON is its `repr`."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_shown)
    except Exception:  # keys that are no text, what contains itself
        return json.dumps(_shown(value), ensure_ascii=False)


_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop", "n")
_MORE_SETTINGS = ("frequency_penalty", "presence_penalty", "reasoning_effort", "parallel_tool_calls", "tool_choice")


def settings_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a request that say how the model samples: no address, key or text is among them."""
    return {name: request[name] for name in (*_SETTINGS, *_MORE_SETTINGS) if request.get(name) is not None}
