"""The economy of a run, from its journal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from effectful_agents import errors
from effectful_agents.handlers.observability.context_economy.events import records_of
from effectful_agents.handlers.observability.context_economy.kept import SentPrompts
from effectful_agents.handlers.observability.context_economy.prefix import compared
from effectful_agents.handlers.observability.context_economy.prompts import (
    CODE_TOOLS,
    Counter,
    Definition,
    Prompt,
    Said,
    called,
    meeting,
)
from effectful_agents.handlers.observability.context_economy.turns import (
    PrefixBreak,
    ToolEconomy,
    TurnEconomy,
    TurnOutcome,
)
from effectful_agents.handlers.observability.context_economy.whole import ContextEconomy
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.recorded import NewInRequest, reply_of
from effectful_agents.operations.records import Phase, Record, RunState
from effectful_agents.operations.steps import StepEvent

__all__ = ["economy"]


def economy(run: RunState | Iterable[StepEvent]) -> ContextEconomy:
    """What the models of a run were shown, turn by turn, and what it cost.

    A turn is a request that was attempted and the reply to it. One without a reply is listed and is in no sum: it was
    attempted, and nobody knows what it cost. Tokens of the parts of prompts are counted by `count_tokens`, and prices
    are those of `cost_of`, as they are handled where this is called.

    Args:
        run: The journal of a run, as `Checkpointer.load` gives it; or the events of calls that came one after the
            other, as `steps` gives them.

    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness, steps
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> @Skill.define
    ... def trip(month: str) -> str:
    ...     '''Suggest a city for {month}.'''
    ...     raise NotHandled
    >>> model = ScriptedModel(calls("weather", city="Oslo"), "Oslo.")
    >>> with handler(harness(system_prompt="brief", eval_provider="none")), handler(model):
    ...     seen = economy(list(steps(trip, "May")))
    >>> first, second = seen.turns
    >>> [str(part) for part in second.sections], second.tools["weather"].calls, first.tools["weather"].calls
    (['tools', 'user', 'replies', 'tool results'], 0, 1)
    >>> second.agreed == first.tokens, second.broken is None, seen.usage.input
    (True, True, 200)
    """
    state = run if isinstance(run, RunState) else records_of(run)
    reader = _Reader()
    for record in state.records:
        reader.read(record)
    return ContextEconomy(state.run_id, tuple(reader.ended()), reader.repeated)


@dataclasses.dataclass
class _Turn:
    """A turn on its way."""

    record: Record
    prompt: Prompt
    earlier: Said
    """The last message of earlier calls, and of the system."""
    before: _Turn | None
    is_first: bool
    """Whether it is the first of its call, and that before it is of another one."""
    reply: Record | None = None
    refused: bool = False
    by_code: list[str] = dataclasses.field(default_factory=list)
    """The tools that code of the reply called, one for each call."""

    @property
    def body(self) -> Mapping[str, Any]:
        """What is recorded of the reply."""
        return {} if self.reply is None else self.reply.body

    def ended(self, refused: Set[int], kept: int) -> TurnEconomy:
        """The turn, with what came of it.

        Args:
            refused: Identities of the messages after which there was a reply that was not taken.
            kept: How many tokens at the beginning of the prompt its model was sent before.
        """
        sections, tools, body = self.prompt.sections(self.earlier), self.prompt.of_tools(), self.body
        model, usage = reply_of(body)
        model = model or self.prompt.model
        outcome = self._outcome(body)
        agreed, broken = self._compared(refused, kept)
        replied = outcome in (TurnOutcome.REPLIED, TurnOutcome.REFUSED)
        if outcome is TurnOutcome.REPLIED:
            for name in [*_asked(body), *self.by_code]:
                tools[name] = tools.get(name, ToolEconomy()) + ToolEconomy(calls=1)
        return TurnEconomy(
            step_id=self.record.step_id,
            skill=self.record.name,
            model=model,
            outcome=outcome,
            attempt=self.record.attempt,
            sections=sections,
            system=self.prompt.system(),
            tools=tools,
            estimated=self.prompt.estimated,
            usage=usage,
            cost=cost_of(model, usage) if replied and model else None,
            agreed=agreed,
            broken=broken,
            error=_error(body),
        )

    def _compared(self, refused: Set[int], kept: int) -> tuple[int, PrefixBreak | None]:
        if self.before is None:
            return kept, None
        models = [reply_of(turn.body)[0] for turn in (self.before, self)]
        if not all(models):  # who was asked need not be called what whoever replied says
            models = [turn.prompt.model for turn in (self.before, self)]
        was, now = (
            dataclasses.replace(turn.prompt, model=model)
            for turn, model in zip((self.before, self), models, strict=True)
        )
        agreed, broken = compared(was, now, self.earlier.place if self.is_first else None, refused, kept)
        skill = self.before.record.name
        if broken is not None and broken.part != "model" and skill != self.record.name:
            # Each skill of an agent has tools and an answer of its own.
            how = f"{broken.how}; the call before was one of `{skill}`"
            broken = dataclasses.replace(broken, how=how, by="")
        return agreed, broken

    def _outcome(self, body: Mapping[str, Any]) -> TurnOutcome:
        if isinstance(body.get("response"), Mapping):
            return TurnOutcome.REFUSED if self.refused else TurnOutcome.REPLIED
        return TurnOutcome.UNKNOWN if self.reply is None else TurnOutcome.FAILED


def _asked(body: Mapping[str, Any]) -> list[str]:
    match body:
        case {"response": {"choices": [{"message": dict(message)}, *_]}}:
            return [name for _, name in called(message)]
    return []


def _error(body: Mapping[str, Any]) -> str:
    match body:
        case {"error": {"text": str(text)}} | {"denied": str(text)}:
            return text
    return ""


@dataclasses.dataclass
class _Call:
    """A call on its way: its latest turn, and the message that it was opened with, while that is there."""

    latest: _Turn
    opening: Said | None
    waits: _Turn | None
    """The latest turn, while nothing has come of its reply."""


class _Reader:
    """Takes the records of a run, in order.

    Attributes:
        turns: The turns so far.
        refused: Identities of the last messages of prompts to which the reply was not taken.
        repeated: How often calls of tools were made again, by tool.
    """

    def __init__(self) -> None:
        self.turns: list[_Turn] = []
        self._beginning = Said()
        self._turns: dict[tuple[str, int], _Turn] = {}
        self._at: dict[str, _Turn] = {}
        self._calls: dict[str, _Call] = {}
        self._alike: dict[tuple[str, str], _Turn] = {}
        self._definitions: dict[str, Definition] = {}
        self._counters: dict[str, Counter] = {}
        self._code: set[str] = set()
        self.refused: set[int] = set()
        self.repeated: dict[str, int] = {}

    def read(self, record: Record) -> None:
        """Take the next record."""
        call = self._calls.get(_call_of(record.step_id))
        if record.kind in ("tool", "delegate"):
            if record.phase is Phase.ATTEMPTED:
                self._call_tool(record)
            if call is not None:
                call.waits = None
        elif record.kind == "run" and record.phase is Phase.COMPLETED:
            self._end(str(record.body.get("error") or ""))
        elif record.kind == "model" and record.phase is Phase.ATTEMPTED:
            self._ask(record, call)
        elif record.kind == "model":
            turn = self._turns.get((record.step_id, record.attempt))
            if turn is not None:
                turn.reply = record

    def ended(self) -> Iterator[TurnEconomy]:
        """The turns, when all has been read."""
        names: dict[str, str] = {}  # who was asked need not be called what whoever replied says
        for turn in self.turns:
            if model := reply_of(turn.body)[0]:
                names.setdefault(turn.prompt.model, model)
        sent = SentPrompts()
        for turn in self.turns:
            model = reply_of(turn.body)[0] or names.get(turn.prompt.model, turn.prompt.model)
            yield turn.ended(self.refused, sent.take(turn.prompt, model))

    def _call_tool(self, record: Record) -> None:
        if record.attempt > 1:
            self.repeated[record.name] = self.repeated.get(record.name, 0) + 1
            return
        if record.name in CODE_TOOLS:
            self._code.add(record.step_id)
        around = _call_of(record.step_id)
        call = self._calls.get(_call_of(around)) if around in self._code else None
        if call is not None:
            call.latest.by_code.append(record.name)

    def _end(self, error: str) -> None:
        """The end of the run: what the last reply came to may be told by the error."""
        last = self.turns[-1] if self.turns else None
        kind = getattr(errors, error.partition(":")[0].rpartition(".")[2], None)
        undecodable = isinstance(kind, type) and issubclass(kind, errors.DecodingError)
        call = None if last is None else self._calls.get(_call_of(last.record.step_id))
        if undecodable and last is not None and call is not None and call.waits is last:
            last.refused = True

    def _ask(self, record: Record, call: _Call | None) -> None:
        new = NewInRequest.of(record.body)
        base = None if new.base is None else self._at.get(new.base)
        prompt = self._prompt(new, None if base is None else base.prompt, record)
        if call is not None and call.waits is not None:
            self._ask_again(call.waits)
        before = call.latest if call is not None else self._before(record, base)
        opening, earlier = _opened(prompt) if call is None else _went_on(prompt, call)
        turn = _Turn(record, prompt, earlier, before, call is None)
        self.turns.append(turn)
        self._turns[record.step_id, record.attempt] = self._at[record.step_id] = turn
        self._alike[_kinds(record.step_id), record.name] = turn
        self._calls[_call_of(record.step_id)] = _Call(turn, opening, turn)

    def _ask_again(self, turn: _Turn) -> None:
        """A turn was followed by another one and not by tool calls, so its reply was no answer."""
        if turn.reply is not None and "response" in turn.reply.body:
            turn.refused = True
            self.refused.add(id(turn.prompt.end))

    def _before(self, record: Record, base: _Turn | None) -> _Turn | None:
        """The turn that the first one of a call goes on from: of the same agent, or of the same skill."""
        if base is not None and _kinds(base.record.step_id) == _kinds(record.step_id):
            return base
        return self._alike.get((_kinds(record.step_id), record.name))

    def _prompt(self, new: NewInRequest, base: Prompt | None, record: Record) -> Prompt:
        model = str(record.body.get("model") or "")
        count = self._counters.setdefault(model, Counter(model or None))
        base = base or Prompt(self._beginning)
        end = base.end.at(new.keep)
        for message in new.messages:
            end = end.then(message, count)
        tools, form = base.tools, base.form
        if "tools" in new.set or "tools" in new.unset:
            tools = [self._definition(Definition.of_tool(tool, count)) for tool in new.set.get("tools") or ()]
        if "response_format" in new.set or "response_format" in new.unset:
            data = new.set.get("response_format")
            form = None if data is None else Definition.of("response_format", data, count)
        return Prompt(end, tools, form, model or base.model)

    def _definition(self, made: Definition) -> Definition:
        return self._definitions.setdefault(made.text, made)


def _opened(prompt: Prompt) -> tuple[Said | None, Said]:
    """The message of the user with which a call was opened, and the last one before it."""
    opening = _latest(prompt.end, lambda said: said.role == "user")
    return opening, prompt.end.at(0 if opening is None else opening.place - 1)


def _went_on(prompt: Prompt, call: _Call) -> tuple[Said | None, Said]:
    """The same in a later prompt of the call."""
    opening, earlier = call.opening, call.latest.earlier
    meet, *_ = meeting(call.latest.prompt.end, prompt.end)
    if meet.place >= (earlier if opening is None else opening).place:
        return opening, earlier
    # Messages before it were dropped, or gave way to others.
    if opening is not None:
        message = opening.message
        opening = _latest(prompt.end, lambda said: said.message == message, meet.place)
    return opening, prompt.end.at(min(meet.place, earlier.place) if opening is None else opening.place - 1)


def _latest(end: Said, is_it: Callable[[Said], bool], after: int = 0) -> Said | None:
    here: Said | None = end
    while here is not None and here.place > after:
        if is_it(here):
            return here
        here = here.before
    return None


def _call_of(step_id: str) -> str:
    return step_id.rpartition("/")[0]


def _kinds(step_id: str) -> str:
    """What a step is nested in, without the places."""
    return "/".join(part.rpartition("-")[2] for part in step_id.split("/"))
