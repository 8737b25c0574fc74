"""Keeping a conversation below the limit of its model: what is oldest gives way to a summary."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from effectful_agents.errors import ContextLengthError, OptionError
from effectful_agents.handlers.legibility.summary import NoSummary, is_summary, summary_message
from effectful_agents.messages import Message, Response, Usage
from effectful_agents.messages.mending import RUNNING
from effectful_agents.operations.counting import count_tokens, estimate_tokens
from effectful_agents.operations.history import get_history
from effectful_agents.operations.loop import AssistantResult, call_assistant, completion
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import History, Scope, Tool
from effectful_agents.types.history import place_of_request, stand_in

__all__ = ["HistoryCompactor"]

_log = logging.getLogger(__name__)

_GOAL = 0.5
"""What a compaction aims at, as a share of what sets it off: it is rare, and the prompt's prefix holds meanwhile."""
_ROOM = 0.25
"""The share of that which a summary may have."""
_FULL = 0.9
"""The share of the limit that a request for a summary may fill, reply included; its size is known roughly only."""


class HistoryCompactor(ObjectInterpretation[Any, Any]):
    """Replace the oldest part of a long conversation by a summary that the model writes.

    Intercepts `call_assistant`. When the request of a turn would have more than `share` of the tokens that the model
    can read, the oldest calls of the conversation are replaced by one user message, which is marked as a summary; if
    that is not enough, so are the oldest turns of the running call whose tool calls are all answered. It aims at half
    of what set it off. The system message, what the user said in the running call, its last turn and any unanswered
    tool call stay as they are. When the conversation has grown again it is compacted again, its earlier summary
    with it. The agent's history is rewritten too, if the call succeeds, so that its next call begins with the summary;
    only a call that the same agent makes inside one of its tools leaves the history alone, and sends a shorter one.

    *The prefix of the prompt changes* with each compaction, so the provider's cache is of no use for that turn.

    The summary is asked for with a request of its own through `completion`, without tools and with at most an eighth
    of the tokens that set it off; what is too long for one request is summarised in several. Each of them is a
    `ModelStep`, like any other request, and has none of the stack's settings that are meant for answers (`stop`,
    `tool_choice`, …). A model that thinks until these tokens are used up is asked again with four times as many. If a
    request fails, the error ends the call and the history stays: nothing is dropped without a summary. If the model
    declines, or writes nothing, the call goes on with the whole conversation, and a warning in the log, as long as the
    model can still read it.

    It acts as well when the provider refuses a request as too long, whatever it took the limit to be: the conversation
    is compacted to the limit that the error names, or else to one below what was refused, and the turn is asked for
    again, once. Where nothing can give way the error passes.

    The size of a request is what the model reported for the turn before, and a count of what is new. Where the model
    reports nothing, and in the first turn of a call, all of it is counted, without the tools. Counts are those of
    `count_tokens` where they are exact, and otherwise those of `estimate_tokens`, which are the same in any process.

    Put it inside `TenacityRetryer`, so that it acts between turns and not between the attempts of one.

    Args:
        limit: Tokens that the model can read, prompt and reply together; None for what `count_tokens` says. Where
            that does not know the model, it acts only when a request is refused. LiteLLM's models are known as soon as
            it is loaded, so say the number where a run has to be repeatable.
        share: The share of the limit from which on it acts, above 0 and at most 1.

    Raises:
        OptionError: An option has a value that it cannot have.
        ProviderError: From a call: the request for the summary failed.
        ContextLengthError: From a call: a request is too long, and nothing in it can give way, or it still is, or the
            model wrote no summary.

    >>> from effectful_agents import Agent, NotHandled, Skill, handler, harness
    >>> from effectful_agents.testing import ScriptedModel
    >>> class Guide(Agent):
    ...     '''Somebody who tells stories.'''
    ...
    ...     @Skill.define
    ...     def ask(self, question: str) -> str:
    ...         '''{question}'''
    ...         raise NotHandled
    >>> guide = Guide()
    >>> summaries = "The user heard a story.", "The user heard two stories."
    >>> model = ScriptedModel("Long ago. " * 130, "Far away. " * 130, *summaries, "You are welcome.")
    >>> with handler(harness(system_prompt="brief")), handler(model), handler(HistoryCompactor(limit=1000)):
    ...     for question in ("A story!", "Another!", "Thank you!"):
    ...         answer = guide.ask(question)
    >>> [message["role"] for message in guide.__history__]
    ['system', 'user', 'user', 'assistant']
    >>> print(guide.__history__[1]["content"])
    (A summary of the conversation before, which had grown too long. The assistant wrote it.)
    The user heard two stories.
    """

    def __init__(self, limit: int | None = None, share: float = 0.8) -> None:
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise OptionError(f"`limit` is {limit!r}; it is a number of tokens, at least 1, or None.")
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise OptionError(f"`share` is {share!r}; it is a part of the limit, above 0 and at most 1.")
        self.limit = limit
        self.share = share

    def manifest(self) -> Mapping[str, object]:
        """What the manifest of a stack says of it."""
        limits = {} if self.limit is None else {"tokens": self.limit}
        return {"stages": ["history.compaction"], "limits": limits, "share": self.share}

    @implements(call_assistant)
    def call_assistant(
        self,
        messages: Sequence[Message],
        response_type: Any,
        env: Mapping[str, Any],
        tools: Set[Tool] = frozenset(),
    ) -> AssistantResult[Any]:
        if not messages:
            return fwd()
        call = self._call(messages, env)
        sent = call.shown(messages)
        tokens, known = call.measure(sent)
        limit = known if self.limit is None else self.limit
        if limit is not None and tokens > self.share * limit and not (call.unsummarised and tokens <= limit):
            try:
                shorter = _compacted(sent, call.question, tokens, limit, self.share)
            except NoSummary as error:
                if tokens > limit:
                    raise _too_long(error, tokens, limit) from error
                # Once in a call: what could not be done now can be no better a turn later.
                call.unsummarised, shorter = True, None
                _log.warning("a conversation of %d tokens was not compacted: %s", tokens, error)
            if shorter is not None:
                sent = call.take(messages, shorter)

        def ask() -> AssistantResult[Any]:
            outer = _turns.get()
            _turns.set((*outer, call.begun(sent)))
            try:
                return fwd() if sent is messages else fwd(sent, response_type, env, tools)
            finally:
                _turns.set(outer)

        try:
            return ask()
        except ContextLengthError as error:
            tokens = error.prompt_tokens or call.measure(sent)[0]
            # Less than what was refused, where nobody says how much less.
            limit = error.limit or max(int(self.share * tokens), 1)
            try:
                shorter = _compacted(sent, call.question, tokens, limit, self.share)
            except NoSummary as failed:
                raise _too_long(failed, tokens, error.limit) from failed
            if shorter is None:
                raise
            sent = call.take(messages, shorter)
        return ask()

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        response = fwd()
        for call in _turns.get():
            call.note(request.get("messages", ()), response)
        return response

    def _call(self, messages: Sequence[Message], env: Mapping[str, Any]) -> _Call:
        """What is known of the call that this turn belongs to."""
        key = (HistoryCompactor, id(self))
        call = env.memo.get(key) if isinstance(env, Scope) else None
        if call is None:
            call = _Call(messages[_last_request(messages)])
            if isinstance(env, Scope):
                env.memo[key] = call
        return call


def _too_long(reason: NoSummary, tokens: int, limit: int | None) -> ContextLengthError:
    return ContextLengthError(
        f"the conversation has about {tokens:,} tokens, more than the model can read, and was not compacted: {reason}. "
        "Give a model that thinks before it writes less to think (`reasoning_effort`), or drop messages yourself: "
        "`agent.__history__ = agent.__history__[-10:]`.",
        prompt_tokens=tokens,
        limit=limit,
    )


# The turns under way for which somebody wants to know what the model reports: of several compactors in a stack each.
_turns: contextvars.ContextVar[tuple[_Call, ...]] = contextvars.ContextVar("effectful_agents_compacted", default=())


class _Place(NamedTuple):
    """A place in a conversation that only grows: behind its first `length` messages, of which `last` is the last."""

    length: int
    last: Message

    @classmethod
    def at_end(cls, messages: Sequence[Message]) -> _Place:
        return cls(len(messages), messages[-1])

    def is_in(self, messages: Sequence[Message]) -> bool:
        return self.length <= len(messages) and messages[self.length - 1] is self.last


class _Call:
    """What is known of one call.

    Attributes:
        question: The message that opened it.
        unsummarised: Whether the model was asked for a summary, and wrote none.
    """

    def __init__(self, question: Message) -> None:
        self.question = question
        self.unsummarised = False
        self._measured: tuple[_Place, int] | None = None  # the tokens up to a place
        self._asked: _Place | None = None  # the end of what this turn sends
        # Where the history has to stay: what is sent in its place, and how much of the history that stands for.
        self._instead: tuple[History, _Place] | None = None

    def shown(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation as far as it is sent."""
        if self._instead is None:
            return messages
        shorter, place = self._instead
        if not place.is_in(messages):
            self._instead = None
            return messages
        shorter.extend(messages[place.length :])
        if isinstance(messages, History):  # calls inside the last turn's tools have taken some
            shorter.reserve(messages.reserved)
        self._instead = shorter, _Place.at_end(messages)
        return shorter

    def measure(self, messages: Sequence[Message]) -> tuple[int, int | None]:
        """The tokens of a conversation, and the limit of the model where that is known; only what is new is counted."""
        place, tokens = self._measured or (None, 0)
        if place is None or not place.is_in(messages):
            place, tokens = None, 0
        new = messages[place.length :] if place else messages
        count = count_tokens(new)
        # An estimate may be another in a process that has loaded a library; the rule is the same in all of them.
        tokens += estimate_tokens(new) if count.estimated else count.tokens
        self._measured = _Place.at_end(messages), tokens
        return tokens, count.limit

    def take(self, messages: Sequence[Message], shorter: list[Message]) -> Sequence[Message]:
        """Have the history give way to a shorter one, or where that may not be, what is sent; returns what to send."""
        self._measured = None
        history = get_history()
        if messages is history and self._instead is None and not _is_nested(messages, self.question):
            history[:] = shorter
            return history
        # The history has them still, and identifiers of calls that will join it are reserved there.
        instead = stand_in(shorter, messages)
        self._instead = instead, _Place.at_end(messages)
        return instead

    def begun(self, messages: Sequence[Message]) -> _Call:
        """Note what the turn sends."""
        self._asked = _Place.at_end(messages)
        return self

    def note(self, messages: Sequence[Message], response: Any) -> None:
        """Note what the model reports of a request, if that is the first of the turn."""
        if self._asked is None or len(messages) != self._asked.length or not self._asked.is_in(messages):
            return
        usage = response.get("usage") if isinstance(response, Mapping) else None
        tokens = Usage.from_wire(usage if isinstance(usage, Mapping) else None).input
        if tokens is not None:
            self._measured = self._asked, tokens


def _last_request(messages: Sequence[Message]) -> int:
    """Where the request of the running call stands; the first message where nobody has said anything."""
    place = place_of_request(messages) or 0
    while is_summary(messages[place]) and messages[place + 1 : place + 2] and messages[place + 1]["role"] == "user":
        place += 1
    return place


def _place_of(question: Message, messages: Sequence[Message]) -> int:
    found = next((i for i in range(len(messages) - 1, -1, -1) if messages[i] is question), None)
    return _last_request(messages) if found is None else found


def _is_nested(messages: Sequence[Message], question: Message) -> bool:
    """Whether the call is made inside a tool call of the same agent: it is asked on a copy of that call's history."""
    place = _place_of(question, messages)
    before = messages[place - 1] if place else None
    return before is not None and before["role"] == "tool" and before["content"] == RUNNING


# --- what gives way ---------------------------------------------------------------------------------------------------


def _compacted(
    messages: Sequence[Message], question: Message, tokens: int, limit: int, share: float
) -> list[Message] | None:
    """The conversation with a summary in the place of what is oldest; None where there is nothing to be gained.

    Args:
        messages: The conversation.
        question: The message that opened the running call.
        tokens: The tokens of the conversation.
        limit: The tokens that the model can read.
        share: The share of them from which on it is compacted.
    """
    place = _place_of(question, messages)
    guesses = [estimate_tokens([message]) for message in messages]
    a_guess = tokens / sum(guesses)  # tokens for each that was guessed
    goal = _GOAL * share * limit
    room = max(int(_ROOM * goal), 1)
    gone: list[int] = []
    freed = 0.0
    for unit in _units(messages, place):
        if tokens - freed + room <= goal:
            break
        gone += unit
        freed += a_guess * sum(guesses[index] for index in unit)
    if freed <= room or all(is_summary(messages[index]) for index in gone):
        return None
    summary = summary_message(
        [messages[index] for index in gone if index < place],
        [messages[index] for index in gone if index > place],
        question=messages[place],
        room=room,
        budget=(_FULL * limit - room) / a_guess,
    )
    dropped = set(gone)
    kept = [message for index, message in enumerate(messages) if index not in dropped]
    return [*kept[: _head(messages)], summary, *kept[_head(messages) :]]


def _head(messages: Sequence[Message]) -> int:
    return 1 if messages and messages[0]["role"] == "system" else 0


def _units(messages: Sequence[Message], place: int) -> Iterator[list[int]]:
    """What can give way only as a whole, by its positions, the oldest first.

    These are the earlier calls, and in the running one each turn whose tool calls are answered, but for the last turn.
    """
    unit: list[int] = []
    for index in range(_head(messages), place):
        if unit and messages[index]["role"] == "user" and messages[index - 1]["role"] != "user":
            yield unit
            unit = []
        unit.append(index)
    if unit:
        yield unit
    turns: list[list[int]] = []
    for index in range(place + 1, len(messages)):
        if messages[index]["role"] == "assistant":
            turns.append([index])
        elif messages[index]["role"] == "tool" and turns:
            turns[-1].append(index)
    for turn in turns[:-1]:
        message = messages[turn[0]]
        assert message["role"] == "assistant"
        if len(message.get("tool_calls", ())) == len(turn) - 1:
            yield turn
