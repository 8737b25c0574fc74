"""What requests to models have used, told to whoever counts it."""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from effectful_agents.errors import DecodingError
from effectful_agents.messages import Request, Response, Usage
from effectful_agents.operations.loop import completion, model_in_use
from effectful_agents.operations.prices import model_of
from effectful_agents.operations.steps import current_ids
from effectful_agents.runtime import Operation, StopScope, entered_scopes, fwd, handler, interpretation, shielded
from effectful_agents.types import Skill

__all__ = ["RequestUsage", "answered", "counted", "tell_replayed", "tell_usage"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestUsage:
    """What one request to a model has used.

    Attributes:
        model: The model that replied, or else the one that was asked; empty where nobody named one.
        usage: The tokens, as far as they were reported.
        skill: The skill in whose call it was made; None outside of calls.
        error: What the request ended with instead of a reply. One that was refused because of what stood in it was
            paid for, and has its tokens here.
        replayed: Whether it was not made now, and its reply comes from a journal.
        aside: Whether a handler of `completion` made it by itself, while it handled another request.
        request: The request.
        response: The reply, as far as there is one.
        scopes: What it was made in and may be stopped by; who counts is shielded from that.
    """

    model: str
    usage: Usage
    skill: Skill[..., Any] | None = None
    error: BaseException | None = None
    replayed: bool = False
    aside: bool = False
    request: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    response: Any = dataclasses.field(default=None, repr=False, compare=False)
    scopes: Sequence[StopScope] = dataclasses.field(default=(), repr=False, compare=False)


@Operation.define
def tell_usage(used: RequestUsage) -> None:
    """Tell what a request has used; by default nobody counts.

    Every request that the loop or a handler makes is told once, when it has ended, however it did: that of a first
    attempt as that of a second, of a nested call, of a summary or a second look. What a provider repeats within a
    request (its `num_retries`) and a model that a `Fallback` passes over count as one with the request. A handler
    forwards, so that others count too. It must not raise.

    Unlike with `emit`, it makes no difference to a request whether somebody listens: it is not streamed for that.
    """


_told: contextvars.ContextVar[object] = contextvars.ContextVar("effectful_agents_usage_is_told", default=None)
"""The request, of those that are told of when they have ended, in which the code runs; None outside of any."""


def answered(request: Request) -> Response:
    """Perform `completion`, and tell what that has used.

    What handlers of it ask with a `completion` of their own is told for itself.
    """
    if tell_usage not in interpretation():
        return completion(**request)
    this = object()
    arrived = False

    def pass_on(**filled: Any) -> Response:
        """Innermost, so that each performance of `completion` comes by once, whatever is forwarded how often."""
        nonlocal arrived
        if _told.get() is not this:  # it has a place like this one, further in
            return fwd()
        if not arrived:
            arrived = True
            return fwd()
        return _counted(filled, fwd, lambda used: tell_usage(dataclasses.replace(used, aside=True)))

    outer = _told.get()
    _told.set(this)
    try:
        with handler({completion: pass_on}):
            return _counted(request, lambda: completion(**request), tell_usage)
    finally:
        _told.set(outer)


def tell_replayed(request: Mapping[str, Any], reply: Any) -> None:
    """Tell what a request had used whose reply comes from a journal."""
    if tell_usage in interpretation():
        tell_usage(dataclasses.replace(_used(request, reply), replayed=True))


def counted(request: Mapping[str, Any], add: Callable[[RequestUsage], None]) -> Response:
    """Forward a request, in a handler of `completion`, and count it unless it is told of when it has ended.

    That is a request which a program makes itself with `completion`. It is counted by a handler that it passes.
    """
    return _counted(request, fwd, add) if _told.get() is None else fwd()


def _counted(request: Mapping[str, Any], ask: Callable[[], Response], add: Callable[[RequestUsage], None]) -> Response:
    scopes = entered_scopes()
    try:
        reply = ask()
    except BaseException as error:
        with shielded():  # what ends here may have been stopped, and was paid for all the same
            used = _used(request, getattr(error, "response", None), error)
            add(dataclasses.replace(used, scopes=scopes))
        raise
    with shielded():
        add(dataclasses.replace(_used(request, reply), scopes=scopes))
    return reply


def _used(request: Mapping[str, Any], reply: Any, error: BaseException | None = None) -> RequestUsage:
    if error is not None and not isinstance(error, DecodingError):
        reply = None
    ids = current_ids()
    return RequestUsage(
        model=model_of(request, reply, model_in_use()),
        usage=Usage.from_wire(reply.get("usage")) if isinstance(reply, Mapping) else Usage(),
        skill=None if ids is None else ids.skill,
        error=error,
        request=request,
        response=reply,
    )
