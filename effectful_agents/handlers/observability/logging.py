"""One line in the log for each step."""

from __future__ import annotations

import logging
import reprlib
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, override

from effectful_agents.errors import OptionError, ToolCallExecutionError
from effectful_agents.messages import Response, StreamEvent, Usage
from effectful_agents.messages.sensitive import is_secret_name, without_secrets
from effectful_agents.operations.loop import model_in_use
from effectful_agents.operations.policy import DecisionRecord, Disposition, decided
from effectful_agents.operations.steps import (
    ApprovalStep,
    DelegateStep,
    FinalStep,
    ModelStep,
    Phase,
    StepEvent,
    ToolStep,
    emit,
)
from effectful_agents.operations.world import now
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["StepLogger"]

_OPEN = 4096
"""Steps whose beginning is remembered; of one that was broken off nobody tells the end."""
_WIDTH = 200
"""Characters of one value in a line."""
_READ = 20_000
"""Characters of a text that are looked through for secrets; those behind them are not shown."""


class StepLogger(ObjectInterpretation[Any, Any]):
    """Log one line for each step: requests to models, tool calls, delegations, questions to people, and the end.

    Listens to `emit` and `decided`. Anywhere in a stack. A line has the skill, the step, and what came of it: a model's
    tokens and seconds, a tool's arguments and result. What failed, and what was not allowed, is a warning; what is only
    about to happen, was allowed, or is told again from the journal of a run, is logged with `DEBUG`.

    What looks like a secret, or is named like one, is not written, values are shortened, and a line break in one starts
    no line of the log. A record also has `run_id`, `step_id`, `skill`, `step` ("model", "tool", "delegate", "approval"
    or "final"), and, where there are any, `model`, `tool`, `input_tokens`, `output_tokens` and `seconds` as attributes.

    Args:
        level: The level of a step that went well.
        logger: Where to log; None: `effectful_agents.steps`.
        content: Whether arguments and results are written; without, only names and sizes are.

    Raises:
        OptionError: The level is none.

    >>> import sys
    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.operations.world import now
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def login(user: str, password: str) -> str:
    ...     '''Open the mailbox of a user.'''
    ...     return "3 new mails"
    >>> @Skill.define
    ... def inbox(user: str) -> str:
    ...     '''What is new for {user}?'''
    ...     raise NotHandled
    >>> log = logging.getLogger("docs")
    >>> log.addHandler(logging.StreamHandler(sys.stdout)); log.setLevel(logging.INFO); log.propagate = False
    >>> model = ScriptedModel(calls("login", user="ann", password="hunter2"), "Three mails.")
    >>> with handler(model), handler(harness()), handler({now: lambda: 0.0}), handler(StepLogger(logger=log)):
    ...     answer = inbox("ann")
    inbox 000001-model: the model -> login (100+20 tokens, 0.00 s)
    inbox 000002-tool: login(user='ann', password=[secret]) -> '3 new mails' (0.00 s)
    inbox 000003-model: the model -> answer (100+20 tokens, 0.00 s)
    inbox 000004-final: 'Three mails.'
    """

    def __init__(
        self, level: int = logging.INFO, *, logger: logging.Logger | None = None, content: bool = True
    ) -> None:
        if not isinstance(level, int) or isinstance(level, bool):
            raise OptionError(f"`level` of `StepLogger` is {level!r}; it is a level such as `logging.INFO`.")
        self.level = level
        self.logger = logger or logging.getLogger("effectful_agents.steps")
        self.content = content
        self._begun: OrderedDict[tuple[str, str, int], float] = OrderedDict()
        self._lock = threading.Lock()

    @implements(emit)
    def emit(self, event: StreamEvent | StepEvent) -> None:
        if isinstance(event, StepEvent):
            self._try(self._log, event)
        fwd()

    @implements(decided)
    def decided(self, record: DecisionRecord) -> None:
        self._try(self._log_decision, record)
        fwd()

    def _try[T](self, log: Callable[[T], None], what: T) -> None:
        try:
            log(what)
        except Exception:
            # What is observed goes on in any case. As `logging` does with an error of one of its handlers.
            if logging.raiseExceptions:
                traceback.print_exc()

    def _log_decision(self, record: DecisionRecord) -> None:
        allowed = record.decision.disposition is Disposition.ALLOW
        level = logging.DEBUG if allowed else logging.WARNING
        if self.logger.isEnabledFor(level):
            self.logger.log(level, "%s", _of_decision(record))

    def _log(self, event: StepEvent) -> None:
        seconds = self._seconds(event)
        level = self._level(event)
        if not self.logger.isEnabledFor(level):
            return
        said, more = self._said(event)
        name = event.skill.__name__
        fields = {"run_id": event.run_id, "step_id": event.step_id, "skill": name, "step": _kind(event), **more}
        if seconds is not None:
            fields["seconds"] = seconds
        notes = [*_notes(more, seconds), *_marks(event)]
        line = f"{name} {event.step_id}: {said}{f' ({", ".join(notes)})' if notes else ''}"
        self.logger.log(level, "%s", line, extra=fields)

    def _level(self, event: StepEvent) -> int:
        if event.phase is Phase.ATTEMPTED or event.replayed:
            return logging.DEBUG
        return logging.WARNING if event.error is not None else self.level

    def _seconds(self, event: StepEvent) -> float | None:
        """How long a step took that is over and has happened; None for any other."""
        if event.replayed or isinstance(event, FinalStep):
            return None
        # Two calls of a skill at once have the same identifiers where no run tells them apart; their steps do not.
        step, at = (event.run_id, event.step_id, id(_subject(event))), now()
        with self._lock:
            if event.phase is Phase.COMPLETED:
                begun = self._begun.pop(step, None)
                return None if begun is None else max(0.0, at - begun)
            self._begun[step] = at
            if len(self._begun) > _OPEN:
                self._begun.popitem(last=False)
        return None

    def _said(self, event: StepEvent) -> tuple[str, dict[str, Any]]:
        """What a line says of a step, and the attributes that only such steps have."""
        match event:
            case ModelStep():
                return self._of_request(event)
            case ToolStep():
                called = f"{event.tool_call.name}{self._arguments(event)}"
                return f"{called}{self._outcome(event, event.value)}", {"tool": event.tool_call.name}
            case ApprovalStep():
                answer = event.decision
                asked = _text(event.question.text) if self.content else "a question"
                return f"{asked}{'' if answer is None else f' -> {_said_by(answer)}'}", {}
            case FinalStep():
                return (_shown(event.value) if self.content else type(event.value).__name__), {}
        return type(event).__name__, {}

    def _of_request(self, event: ModelStep) -> tuple[str, dict[str, Any]]:
        reply = event.response
        model = str((reply or {}).get("model") or event.request.get("model") or model_in_use() or "")
        fields: dict[str, Any] = {"model": model}
        if reply is not None:
            usage = Usage.from_wire(reply.get("usage"))
            fields |= {"input_tokens": usage.input, "output_tokens": usage.output}
        name = _shown_name(model) or "the model"
        if event.error is not None:
            return f"{name}{self._outcome(event, None)}", fields
        return f"{name}{'' if reply is None else f' -> {_reply(reply)}'}", fields

    def _arguments(self, event: ToolStep) -> str:
        if not self.content:
            return "(…)"
        given = event.tool_call.bound_args.arguments
        return f"({', '.join(f'{name}={_shown_as(name, value)}' for name, value in given.items())})"

    def _outcome(self, event: StepEvent, value: Any) -> str:
        if event.phase is Phase.ATTEMPTED:
            return ""
        if (error := event.error) is not None:
            if isinstance(error, ToolCallExecutionError):
                error = error.original_error
            what = type(error).__name__
            return f" failed: {what}: {_text(str(error))}" if self.content else f" failed: {what}"
        return f" -> {_shown(value)}" if self.content else ""


def _said_by(answer: Any) -> str:
    what = "approved" if answer.approved else "refused"
    return (f"{what}, amended" if answer.arguments else what) + (f" by {_text(answer.by)}" if answer.by else "")


def _subject(event: StepEvent) -> object:
    """What both halves of a step have, and no other step."""
    match event:
        case ModelStep():
            return event.request
        case ToolStep():
            return event.tool_call
        case ApprovalStep():
            return event.question
    return None


def _kind(event: StepEvent) -> str:
    kinds = {ModelStep: "model", DelegateStep: "delegate", ToolStep: "tool", ApprovalStep: "approval"}
    return next((kind for cls, kind in kinds.items() if isinstance(event, cls)), "final")


def _marks(event: StepEvent) -> list[str]:
    return [
        *(["from the journal"] if event.replayed else []),
        *([f"attempt {event.attempt}"] if event.attempt > 1 else []),
    ]


def _notes(fields: Mapping[str, Any], seconds: float | None) -> list[str]:
    counts = [fields.get("input_tokens"), fields.get("output_tokens")]
    notes = (
        [] if counts == [None, None] else ["+".join("?" if one is None else f"{one:,}" for one in counts) + " tokens"]
    )
    return notes if seconds is None else [*notes, f"{seconds:.2f} s"]


def _reply(reply: Response) -> str:
    """What a reply is, in a word: the tools that it calls, or that it is an answer."""
    match reply:
        case {"choices": [{"message": {"tool_calls": [*calls]}}, *_]} if calls:
            return ", ".join(_shown_name(str(call["function"]["name"])) for call in calls)
        case {"choices": [{"finish_reason": str(reason)}, *_]} if reason != "stop":
            return f"answer, ended by {_shown_name(reason)}"
    return "answer"


def _of_decision(record: DecisionRecord) -> str:
    decision, effect = record.decision, record.effect
    caller = f"{record.callers[-1].__name__} " if record.callers else ""
    what = record.stage if effect is None else f"{effect.step_id or effect.kind.value}: {_shown_name(effect.name)}"
    why = ": ".join(filter(None, (_text(decision.rule), _text(decision.message or decision.reason_code))))
    return f"{caller}{what} {decision.disposition.name.lower()}{f' by {why}' if why else ''}"


# --- values in a line -------------------------------------------------------------------------------------------------


class _Repr(reprlib.Repr):
    """Shortens values without a secret in what is left: a text loses its secrets before it is cut."""

    def __init__(self) -> None:
        super().__init__(maxlevel=4, maxstring=_WIDTH // 2, maxother=_WIDTH // 2, maxlist=8, maxtuple=8, maxdict=8)

    @override
    def repr_str(self, x: str, level: int) -> str:
        text = without_secrets(x[:_READ])
        return repr(text) if len(text) < self.maxstring else f"{text[: self.maxstring]!r}…"

    @override
    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if not x or level <= 0:
            return super().repr_dict(x, level)
        shown = [f"{self.repr1(key, level - 1)}: {self._of(key, x[key], level)}" for key in list(x)[: self.maxdict]]
        return f"{{{', '.join(shown)}{', …' if len(x) > self.maxdict else ''}}}"

    def _of(self, key: Any, value: Any, level: int) -> str:
        return "[secret]" if isinstance(key, str) and is_secret_name(key) else self.repr1(value, level - 1)

    def repr_bytes(self, x: bytes, level: int) -> str:
        return f"<{len(x):,} bytes>"

    @override
    def repr_instance(self, x: Any, level: int) -> str:
        text = without_secrets(repr(x)[:_READ])
        return text if len(text) <= self.maxother else f"{text[: self.maxother - 1]}…"


_REPR = _Repr()


def _shown_as(name: str, value: Any) -> str:
    return "[secret]" if is_secret_name(name) else _shown(value)


def _shown(value: Any) -> str:
    """A value on one line; nothing that its class does when it is shown ends the call."""
    try:
        return _text(_REPR.repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def _shown_name(name: str) -> str:
    return _text(name)[:64]


def _text(text: str) -> str:
    """A text on one line, without secrets and without the characters that steer a terminal."""
    text = without_secrets(text[:_READ])
    text = text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one) for one in text)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]
