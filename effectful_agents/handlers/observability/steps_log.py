"""Writing steps to the log of the program."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Generator, Mapping
from typing import Any

from pydantic import BaseModel

from effectful_agents.errors import OptionError
from effectful_agents.handlers.observability.watching import (
    Place,
    failure_of,
    json_text,
    outcome_of,
    place_of_call,
    place_of_step,
    watching,
    written,
)
from effectful_agents.messages import Response, Usage
from effectful_agents.messages.sensitive import hidden, is_secret_name
from effectful_agents.operations.loop import (
    DecodedToolCall,
    ToolResult,
    call_agent,
    call_tool,
    completion,
    model_in_use,
)
from effectful_agents.operations.policy import Answer, DecisionRecord, Question, decided, request_approval
from effectful_agents.operations.steps import ModelStep, StepEvent, ToolStep, current_ids
from effectful_agents.operations.world import now
from effectful_agents.runtime import ObjectInterpretation, fwd, implements, shielded
from effectful_agents.types import Skill

__all__ = ["StepLogger"]

_log = logging.getLogger(__name__)

STEPS = "effectful_agents.steps"
logging.getLogger(STEPS).addHandler(logging.NullHandler())


class StepLogger(ObjectInterpretation[Any, Any]):
    """Write a line to the log for each request, tool call, decision, approval, and for the end of each call.

    The lines go to the logger `effectful_agents.steps`: those of what went well at the level INFO, decisions that allow
    at DEBUG, and what failed or was denied at WARNING. Nothing is shown unless the program sets up `logging`. A record
    has fields of its own besides its text: `kind`, `skill`, `run_id`, `step_id`, `replayed`, `outcome`, `seconds`, and
    as far as they apply `model`, `input_tokens`, `output_tokens`, `cache_read_tokens`, `tool`.

    Prompts and replies are not written down. Arguments are, in short, without what looks like a secret
    (`messages.sensitive`) or is called like one; of bytes there is the number alone. A line is one line, whatever
    stands in an argument.

    It forwards everything and changes nothing. Innermost in a stack: then it sees what comes from a `Journal`.

    Args:
        logger: Where to write; None for the one that is named above.
        length: The characters that are written of the arguments of a call and of the text of an error; 0 for none.

    >>> import sys
    >>> from effectful_agents import NotHandled, Skill, Tool, handler, harness
    >>> from effectful_agents.operations.world import now
    >>> from effectful_agents.testing import ScriptedModel, calls
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "rain"
    >>> @Skill.define
    ... def advise(city: str) -> str:
    ...     '''What to wear in {city}.'''
    ...     raise NotHandled
    >>> logger = logging.getLogger("example")
    >>> logger.setLevel(logging.INFO)
    >>> logger.addHandler(logging.StreamHandler(sys.stdout))
    >>> with handler(harness()), handler(ScriptedModel(calls("weather", city="Oslo"), "A coat.")):
    ...     with handler({now: lambda: 0.0}), handler(StepLogger(logger)):
    ...         advise("Oslo")
    model 000001-model of advise: tool_calls, 100 + 20 tokens, 0.000 s
    tool 000002-tool of advise: weather(city="Oslo"), 0.000 s
    model 000003-model of advise: stop, 100 + 20 tokens, 0.000 s
    call advise: returned, 0.000 s
    'A coat.'
    """

    def __init__(self, logger: logging.Logger | None = None, *, length: int = 200) -> None:
        if not isinstance(length, int) or length < 0:
            raise OptionError(f"`length` of `StepLogger` is {length!r}; it is a number of characters, 0 for none.")
        self.logger = logging.getLogger(STEPS) if logger is None else logger
        self.length = length

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        name = skill.documented.name
        with self._timed("call", place_of_call(), name, skill=name) as line:
            with watching(self, self._tell_again):
                value = fwd()
            line.says("returned")
            return value

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        place = place_of_step()
        model = str(request.get("model") or model_in_use() or "")
        with self._timed("model", place, _of_step(place), model=model or None) as line:
            response: Response = fwd()
            line.replied(response)
            return response

    @implements(call_tool)
    def call_tool(self, tool_call: DecodedToolCall[Any]) -> ToolResult[Any]:
        place = place_of_step()
        with self._timed("tool", place, _of_step(place), tool=tool_call.name) as line:
            line.says(self._call(tool_call))
            result: ToolResult[Any] = fwd()
            line.failed(failure_of(result))
            return result

    @implements(decided)
    def decided(self, record: DecisionRecord) -> None:
        decision, effect = record.decision, record.effect
        step = effect.step_id if effect is not None else ""
        name = (effect.name or effect.kind.value) if effect is not None else record.stage
        how = decision.disposition.name.lower()
        reason = f" ({', '.join(one for one in (decision.rule, decision.reason_code) if one)})"
        text = f"{name}: {how}{reason if reason != ' ()' else ''}"
        fields = {"rule": decision.rule, "reason_code": decision.reason_code, "outcome": how}
        place = Place(effect.run_id if effect is not None else "", step)
        self._write(logging.DEBUG if decision.allows else logging.WARNING, "decision", text, place, fields)
        fwd()

    @implements(request_approval)
    def request_approval(self, question: Question) -> Answer:
        name = "a question" if question.effect is None else question.effect.name
        with self._timed("approval", Place(question.run_id, question.step_id), name) as line:
            answer = fwd()
            line.says("approved" if getattr(answer, "approved", False) else "refused")
            return answer

    def _tell_again(self, step: StepEvent) -> None:
        place = Place(step.run_id, step.step_id, replayed=True)
        kind = {ModelStep: "model", ToolStep: "tool"}.get(
            type(step), "tool" if isinstance(step, ToolStep) else "approval"
        )
        fields = {"tool": step.tool_call.name} if isinstance(step, ToolStep) else {}
        shown = f": {step.tool_call.name}" if isinstance(step, ToolStep) else ""
        self._write(logging.INFO, kind, f"{_of_step(place)}{shown}, from the journal", place, fields)

    # --- lines --------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _timed(self, kind: str, place: Place, about: str, **fields: Any) -> Generator[_Line]:
        line = _Line(self, fields)
        began = now()
        failure: BaseException | None = None
        try:
            yield line
        except BaseException as error:
            failure = error
            raise
        finally:
            with shielded():  # a call that ends by a signal may perform no operation otherwise
                seconds = now() - began
                try:
                    line.write(kind, place, about, failure, seconds)
                except Exception:  # an error that cannot be shown
                    _log.warning("the end of a step could not be logged", exc_info=True)

    def _write(self, level: int, kind: str, text: str, place: Place, fields: Mapping[str, Any]) -> None:
        """Write a line. What a handler or a filter of `logging` raises does not end the call."""
        try:
            if not self.logger.isEnabledFor(level):
                return
            ids = current_ids()
            skill = ids.skill.documented.name if ids is not None and ids.skill is not None else ""
            where = {"kind": kind, "skill": skill, "run_id": place.run_id, "step_id": place.step_id}
            extra = {
                **where,
                "replayed": place.replayed,
                **{key: _name(one) for key, one in fields.items() if one is not None},
            }
            run = f"{place.run_id} " if place.run_id else ""
            self.logger.log(level, "%s", _on_one_line(f"{run}{kind} {text}"), extra=extra)
        except Exception:
            _log.warning("a step could not be logged", exc_info=True)

    def _call(self, tool_call: DecodedToolCall[Any]) -> str:
        if not self.length:
            return tool_call.name
        try:
            return f"{tool_call.name}({self.shortened(', '.join(_shown(tool_call.bound_args.arguments)))})"
        except Exception:  # what an argument's class does when it is written down
            return f"{tool_call.name}(…)"

    def shortened(self, text: str) -> str:
        """The beginning of a text, without secrets."""
        # Hidden first: the half of a key is not recognized any more.
        text = hidden(text[: 20 * self.length + 10_000])
        return text if len(text) <= self.length else f"{text[: self.length]}…"


class _Line:
    """What is written about something when it has ended."""

    def __init__(self, logger: StepLogger, fields: dict[str, Any]) -> None:
        self._logger = logger
        self._fields = fields
        self._text = ""
        self._failure: BaseException | None = None

    def says(self, text: str) -> None:
        self._text = text

    def failed(self, error: BaseException | None) -> None:
        self._failure = error

    def replied(self, response: Response) -> None:
        try:
            usage = Usage.from_wire(response.get("usage"))
            if model := response.get("model"):
                self._fields["model"] = str(model)
            counts = {"input_tokens": usage.input, "output_tokens": usage.output, "cache_read_tokens": usage.cache_read}
            self._fields |= counts
            reasons = [str(choice.get("finish_reason"))[:_LONGEST_NAME] for choice in response.get("choices") or ()]
            parts = [str(self._fields["model"] or "")[:_LONGEST_NAME], ", ".join(reasons), _tokens(usage)]
            self._text = ", ".join(part for part in parts if part)
        except Exception:  # a reply in a form of its own
            self._text = "a reply"

    def write(self, kind: str, place: Place, about: str, error: BaseException | None, seconds: float) -> None:
        failure = failure_of(None, self._failure or error)
        level, outcome, text = logging.INFO, "completed", self._text
        if isinstance(failure, Exception):
            level, outcome = logging.WARNING, type(failure).__name__
            said = self._logger.shortened(_said_by(failure)) if self._logger.length else ""
            text = ", ".join(part for part in (text, f"{outcome}: {said}" if said else outcome) if part)
        elif failure is not None:
            outcome = outcome_of(failure)
            text = ", ".join(part for part in (text, outcome) if part)
        fields = {**self._fields, "outcome": outcome, "seconds": seconds}
        self._logger._write(level, kind, f"{about}: {text}, {seconds:.3f} s", place, fields)


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # one that cannot be shown; its line is written all the same
        return ""


def _name(value: Any) -> Any:
    """What a field of a record says: a format of a program's own may write it into the line."""
    return _on_one_line(value[:_LONGEST_NAME]) if isinstance(value, str) else value


_LONGEST_NAME = 200


def _of_step(place: Place) -> str:
    ids = current_ids()
    skill = f" of {ids.skill.documented.name}" if ids is not None and ids.skill is not None else ""
    return f"{place.step_id}{skill}".strip() or "outside of calls"


def _tokens(usage: Usage) -> str:
    if usage.input is None and usage.output is None:
        return ""
    cached = f" ({usage.cache_read} cached)" if usage.cache_read else ""
    shown = ["?" if one is None else str(one) for one in (usage.input, usage.output)]
    return f"{shown[0]}{cached} + {shown[1]} tokens"


def _shown(arguments: Mapping[str, Any]) -> Generator[str]:
    for name, value in arguments.items():
        yield f"{name}={_SECRET}" if is_secret_name(name) else f"{name}={json_text(_laid_open(value))}"


def _laid_open(value: Any, depth: int = 0) -> Any:
    """A value as JSON without what is called like a secret in it; of bytes only the number."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{memoryview(value).nbytes} bytes"
    if depth >= _DEEPEST:
        return "…"
    parts = _parts_of(value)
    if isinstance(parts, Mapping):
        named = next((one for key, one in parts.items() if str(key).lower() in _NAMING), None)
        hides = isinstance(named, str) and is_secret_name(named)
        return {
            _key(key): _SECRET if is_secret_name(str(key)) or (hides and str(key).lower() in _VALUES) else one
            for key, one in ((key, _laid_open(one, depth + 1)) for key, one in parts.items())
        }
    if isinstance(parts, list | tuple | set | frozenset):
        if len(parts) == 2 and not isinstance(parts, set | frozenset):
            name, _ = parts  # a header is often a pair
            if isinstance(name, str | bytes) and is_secret_name(str(name)):
                return [_key(name), _SECRET]
        return [_laid_open(one, depth + 1) for one in parts]
    encoded = written(value)
    return encoded if isinstance(encoded, str) else _laid_open(encoded, depth + 1)


def _parts_of(value: Any) -> Any:
    """The fields of an object that shows them; anything else is returned as it is."""
    if isinstance(value, BaseModel):
        shown = type(value).model_fields
        return {name: one for name, one in value if name not in shown or (shown[name].repr and not shown[name].exclude)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name, None) for one in dataclasses.fields(value) if one.repr}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    return value


_SECRET = "[secret]"
_DEEPEST = 20
_NAMING = frozenset({"name", "key", "field", "header"})
_VALUES = frozenset({"value", "values", "content", "default", "data"})


def _key(key: Any) -> str:
    return key if isinstance(key, str) else key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _on_one_line(text: str) -> str:
    """The text with its control characters written as escapes: nobody makes a line of the log by what he writes."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
