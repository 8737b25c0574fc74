"""Telling what an answer is so far."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from effectful_agents.encoding import PartialDecoder
from effectful_agents.errors import EncodingError
from effectful_agents.messages import Finish, Message, PartialValue, StreamEvent, StreamStart, TextDelta, ToolCallStart
from effectful_agents.operations.loop import AssistantResult, call_assistant
from effectful_agents.operations.steps import StepEvent, emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Tool

__all__ = ["PartialAnswers"]


class PartialAnswers(ObjectInterpretation[Any, Any]):
    """Decode the answer of a skill while the model writes it, and tell each new value as a `PartialValue`.

    Wraps `call_assistant`, which knows the type, and listens to `emit`; it forwards everything and changes nothing.
    Since it listens, replies are streamed. After each piece of text that makes a new value of the answer,
    `emit(PartialValue(value))` is performed; the last one, told before `Finish`, is the answer. What a value looks like
    while it is not complete, and how often it is decoded, `effectful_agents.encoding.PartialDecoder` says.

    Only the requests of the turn itself count, not those of calls that are nested in it, and several calls may go on at
    once. A reply that begins anew (an attempt to mend it, a stream that broke off) tells its values anew, so a value
    may be less than the one before. From the first tool call on nothing is told, since a turn with tool calls is no
    answer; text before it may have been told all the same, which matters for `str` only.

    Inside of `AgentLoop`; otherwise its place is free. Of two, the outer one tells. A listener that does not forward
    what it hears must stand outside of it.

    >>> from effectful_agents import NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def primes() -> list[int]:
    ...     '''The first primes.'''
    ...     raise NotHandled
    >>> def show(event):
    ...     if isinstance(event, PartialValue):
    ...         print(event.value)
    >>> model = ScriptedModel("[2, 3, 5]", chunk_size=3)
    >>> with handler(harness()), handler(model), handler({emit: show}), handler(PartialAnswers()):
    ...     answer = primes()
    [2]
    [2, 3]
    [2, 3, 5]
    """

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        outer = _turn.get()
        _turn.set(_Turn(self, response_type, env))
        try:
            return fwd()
        finally:
            _turn.set(outer)

    @implements(emit)
    def emit(self, event: StreamEvent | StepEvent) -> None:
        turn = _turn.get()
        if not isinstance(event, Finish):
            fwd()
        if turn is not None and turn.teller is self:
            for value in turn.hear(event):
                emit(PartialValue(value))
        if isinstance(event, Finish):
            fwd()


class _Turn:
    """A turn that is under way.

    Attributes:
        teller: The handler that tells of it.
    """

    def __init__(self, teller: PartialAnswers, response_type: Any, env: Mapping[str, Any]) -> None:
        self.teller = teller
        self._response_type = response_type
        self._env = env
        self._decoder = self._new_decoder()

    def hear(self, event: StreamEvent | StepEvent) -> Iterator[Any]:
        """Take in an event, and give the values that it makes."""
        match event:
            case StreamStart():
                self._decoder = self._new_decoder()
            case ToolCallStart():
                self._decoder = None
            case TextDelta(text=piece) if self._decoder is not None:
                yield from self._decoder.add(piece)
            case Finish() if self._decoder is not None:
                yield from self._decoder.end()

    def _new_decoder(self) -> PartialDecoder | None:
        try:
            return PartialDecoder(self._response_type, self._env)
        except EncodingError:  # for whoever decodes the answer to raise
            return None


_turn: contextvars.ContextVar[_Turn | None] = contextvars.ContextVar("effectful_agents_partial_turn", default=None)
