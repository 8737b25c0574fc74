"""What a journal writes of each kind of step, and the step that it makes of it again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from effectful_agents.encoding import encode_result, to_jsonable
from effectful_agents.encoding.questions import asked_of, declared_type, question_digest
from effectful_agents.errors import EncodingError, JournalError, ToolCallExecutionError
from effectful_agents.handlers.durability.requests import RequestLog
from effectful_agents.handlers.durability.written import (
    arguments,
    digest,
    error_of,
    read,
    read_any,
    write_any,
    written_error,
)
from effectful_agents.operations.loop import DecodedToolCall, model_in_use
from effectful_agents.operations.policy import Answer, Question
from effectful_agents.operations.recorded import difference, request_of
from effectful_agents.operations.records import Durability, Phase, Record, RunState
from effectful_agents.operations.steps import ApprovalStep, DelegateStep, ModelStep, ToolStep
from effectful_agents.types import Skill, Tool

__all__ = ["ApprovalForm", "CallForm", "DirectForm", "Form", "ModelForm", "RecordForm", "ToolForm", "form_of"]


@dataclasses.dataclass
class Form[R]:
    """How one step is written; `R` is what it results in.

    Attributes:
        step_id: The step.
        kind: What it is.
        name: The skill or tool.
        digest: Stands for all that is asked.
        asked: What is asked, as JSON.
        repeatable: Whether making it once more does no harm.
        again: Whether it is made again when the run is resumed, since it changes the program's own objects; the steps
            inside it are answered from the journal.
        goes_on: Whether, begun and not ended, it is gone on with: the steps inside it are answered from the journal.
            Ended, it is answered itself, unless something in it changed objects of the program.
    """

    step_id: str
    kind: str
    name: str = ""
    digest: str = ""
    asked: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    repeatable: bool = False
    again: bool = False
    goes_on: bool = False

    keeps_silent = False
    """Whether a result that cannot be written down is no error: the code that called for it has it."""
    may_change = False
    """Whether it is made anew, and the run goes on, where something else is asked now than was recorded."""
    told_again = False
    """Whether the recorded result is given whatever is asked now: what it was for has happened."""

    @property
    def durability(self) -> Durability:
        """How soon it has to be written."""
        return Durability.DEFERRABLE if self.repeatable else Durability.DURABLE

    @property
    def receiver(self) -> Any:
        """The object that it may change."""
        return None

    @property
    def tool(self) -> Tool[..., Any] | None:
        """The tool that is called when the step is made."""
        return None

    def came(self, result: R) -> dict[str, Any]:
        """A result as JSON from which `result` makes the same.

        Raises:
            EncodingError: It has no such form.
        """
        raise NotImplementedError

    def result(self, body: Mapping[str, Any]) -> R:
        """The result that was recorded."""
        raise NotImplementedError

    def raised(self, error: Exception) -> dict[str, Any]:
        """What the step failed with, as JSON for `error`."""
        return written_error(error)

    def error(self, written: Mapping[str, Any]) -> Exception:
        """What the step had failed with."""
        return error_of(written)

    def differs(self, state: RunState, recorded: Record) -> str:
        """How what is asked differs from what was recorded for the step."""
        return difference(recorded.body.get("arguments", {}), self.asked.get("arguments", {}), "arguments")


class ModelForm(Form[ModelStep]):
    """A request to a model."""

    def __init__(self, step: ModelStep, log: RequestLog) -> None:
        asked_digest, asked = log.note(step.step_id, step.request)
        model = step.request.get("model") or model_in_use()
        if model is not None:
            asked["model"] = model
        super().__init__(step.step_id, "model", step.skill.__name__, asked_digest, asked, repeatable=True)
        self._step = step

    @property
    def durability(self) -> Durability:
        return Durability.DURABLE  # asking again does no harm, and costs money

    def came(self, result: ModelStep) -> dict[str, Any]:
        return {"response": to_jsonable(result.response)}

    def result(self, body: Mapping[str, Any]) -> ModelStep:
        response: Any = body["response"]
        return dataclasses.replace(self._step, phase=Phase.COMPLETED, response=response)

    def differs(self, state: RunState, recorded: Record) -> str:
        was, now = recorded.body.get("model"), self.asked.get("model")
        if was is not None and now is not None and was != now:
            return difference(was, now, "model")
        if recorded.digest == self.digest:
            return ""
        request = to_jsonable({name: value for name, value in self._step.request.items() if value is not None})
        return _of_requests(request_of(state, self.step_id), request)


def _of_requests(recorded: dict[str, Any], present: dict[str, Any]) -> str:
    """The first difference, of what comes first in a request: what it is for, its tools, then what was said."""
    for name in sorted((recorded.keys() | present.keys()) - {"messages", "tools"}):
        if found := difference(_only(recorded, name), _only(present, name)):
            return found
    heads = [_system(request) for request in (recorded, present)]
    if found := difference(*heads, "system"):
        return found
    tools = [{tool["function"]["name"]: tool for tool in request.get("tools", ())} for request in (recorded, present)]
    return difference(*tools, "tools") or difference(recorded["messages"], present["messages"], "messages")


def _only(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: request[name]} if name in request else {}


def _system(request: Mapping[str, Any]) -> Any:
    first = request["messages"][0] if request["messages"] else {}
    return first.get("content", "") if first.get("role") == "system" else ""


class ToolForm(Form[ToolStep]):
    """A tool call of the model."""

    def __init__(self, step: ToolStep) -> None:
        call = step.tool_call
        asked: dict[str, Any] = {"arguments": arguments(call.bound_args), "call": call.id}
        kind = "delegate" if isinstance(step, DelegateStep) else "tool"
        super().__init__(
            step.step_id,
            kind,
            call.name,
            digest(asked),
            asked,
            repeatable=call.tool.idempotent or step.denied is not None,
            again=(call.tool.rerun or isinstance(call.tool, Skill)) and step.denied is None,
            goes_on=call.tool.resumes and step.denied is None,
        )
        self._step = step
        self._call: DecodedToolCall[Any] = call

    @property
    def receiver(self) -> Any:
        return self._call.tool.receiver

    @property
    def tool(self) -> Tool[..., Any]:
        return self._call.tool

    def raised(self, error: Exception) -> dict[str, Any]:
        inner = error.original_error if isinstance(error, ToolCallExecutionError) else error
        return written_error(inner) | {"in tool": inner is not error}

    def error(self, written: Mapping[str, Any]) -> Exception:
        error = error_of(written)
        return ToolCallExecutionError(error, self._call) if written.get("in tool") else error

    @property
    def _result_type(self) -> Any:
        tool, bound = self._call.tool, self._call.bound_args
        return tool.result_type(*bound.args, **bound.kwargs) if isinstance(tool, Skill) else self._call.result_type

    def came(self, result: ToolStep) -> dict[str, Any]:
        body: dict[str, Any] = {"message": to_jsonable(result.message)}
        if isinstance(result.error, ToolCallExecutionError):
            not_made = {"not made": True} if result.denied is not None else {}
            return body | {"told": self.raised(result.error)} | not_made
        if not result.is_final:
            return body
        body["final"] = True
        try:
            return body | write_any(result.value, self._result_type)
        except EncodingError:
            if self.again:  # then it is made again, and has its value
                return body
            raise

    def result(self, body: Mapping[str, Any]) -> ToolStep:
        if "settled" in body:
            return self._settled(body)
        step = dataclasses.replace(self._step, phase=Phase.COMPLETED, message=body["message"])
        if "told" in body:
            return dataclasses.replace(step, error=self.error(body["told"]))
        final = bool(body.get("final"))
        value = read_any(body, self._result_type) if "value" in body else None
        return dataclasses.replace(step, value=value, is_final=final)

    def _settled(self, body: Mapping[str, Any]) -> ToolStep:
        """What a person said that came of it."""
        step = dataclasses.replace(self._step, phase=Phase.COMPLETED)
        if body["settled"] == "fail":
            error = ToolCallExecutionError(RuntimeError(body.get("error") or "it failed"), self._call)
            return dataclasses.replace(step, message=error.to_feedback_message(), error=error)
        value = read(body["value"], self._result_type)
        content = encode_result(self._call.tool, value)
        message: Any = {"role": "tool", "tool_call_id": self._call.id, "content": content}
        return dataclasses.replace(step, message=message, value=value)


class DirectForm(Form[Any]):
    """A tool that is called by code, of the program or of a model."""

    keeps_silent = True

    def __init__(self, step_id: str, tool: Tool[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        asked = {"arguments": arguments(tool.arguments_of(*args, **kwargs)), "direct": True}
        super().__init__(step_id, "tool", tool.__name__, digest(asked), asked, repeatable=tool.idempotent)
        self.again, self.goes_on = tool.rerun, tool.resumes and tool.skill is None
        self._tool = tool

    @property
    def receiver(self) -> Any:
        return self._tool.receiver

    @property
    def _result_type(self) -> Any:
        return self._tool.__signature__.return_annotation

    def came(self, result: Any) -> dict[str, Any]:
        try:
            return write_any(result, self._result_type)
        except EncodingError:
            if self.again or self.repeatable:  # then it is made again, and has its value
                return {"again": True}
            raise

    def result(self, body: Mapping[str, Any]) -> Any:
        if body.get("settled") == "fail":
            raise RuntimeError(body.get("error") or "it failed")
        if "settled" in body:
            return read(body["value"], self._result_type)
        return read_any(body, self._result_type)


class ApprovalForm(Form[ApprovalStep]):
    """A question to a person. It can be asked again: what is asked for the first time has been answered by nobody."""

    may_change = True

    def __init__(self, step: ApprovalStep) -> None:
        question: Question = step.question
        effect = question.effect
        self._step = step
        self._signature = None if effect is None or effect.tool is None else effect.tool.__signature__
        self.told_again = effect is not None and effect.replayed
        name = "ask" if effect is None else effect.name or str(effect.kind)
        asked = asked_of(question) | {"text": question.text}
        super().__init__(step.step_id, "approval", name, question_digest(question), asked, repeatable=True)

    @property
    def durability(self) -> Durability:
        return Durability.DURABLE  # asking again does no harm, and annoys

    def differs(self, state: RunState, recorded: Record) -> str:
        return ""  # it is about something else, and its name says so

    def came(self, result: ApprovalStep) -> dict[str, Any]:
        answer: Answer = result.decision
        said: dict[str, Any] = dataclasses.asdict(dataclasses.replace(answer, arguments=None))
        if answer.arguments is not None:
            given = answer.arguments.items()
            said["arguments"] = {name: write_any(value, declared_type(self._signature, name)) for name, value in given}
        return {"value": said}

    def result(self, body: Mapping[str, Any]) -> ApprovalStep:
        said = dict(body["value"])
        if said["arguments"] is not None:
            given = said["arguments"].items()
            said["arguments"] = {name: read_any(value, declared_type(self._signature, name)) for name, value in given}
        return dataclasses.replace(self._step, phase=Phase.COMPLETED, decision=Answer(**said))


class RecordForm(Form[Any]):
    """A value from outside."""

    def __init__(self, step_id: str, name: str, tp: Any, *, is_identifier: bool = False) -> None:
        super().__init__(step_id, "record", name, repeatable=True)
        self._type = tp
        self._is_identifier = is_identifier

    @property
    def durability(self) -> Durability:
        # An identifier is given to others, who keep it: a ledger, a store. After a crash it has to be the same.
        return Durability.DURABLE if self._is_identifier else Durability.DEFERRABLE

    def came(self, result: Any) -> dict[str, Any]:
        try:
            return write_any(result, self._type)
        except EncodingError as error:
            raise EncodingError(
                f"{str(error).removesuffix('.')}. `record(fn, tp)` takes the type of the value."
            ) from error

    def result(self, body: Mapping[str, Any]) -> Any:
        return read_any(body, self._type)


class CallForm(Form[Any]):
    """A call of a skill that the program makes."""

    def __init__(self, step_id: str, skill: Skill[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        asked = {"arguments": arguments(skill.arguments_of(*args, **kwargs))}
        super().__init__(step_id, "call", skill.__name__, digest(asked), asked, again=True)
        self._type = skill.result_type(*args, **kwargs)

    @property
    def durability(self) -> Durability:
        return Durability.DEFERRABLE

    def came(self, result: Any) -> dict[str, Any]:
        try:
            return write_any(result, self._type)
        except EncodingError:
            return {"again": True}  # it is made again, and has its value

    def result(self, body: Mapping[str, Any]) -> Any:
        return read_any(body, self._type)


def form_of(step: Any, log: RequestLog) -> Form[Any]:
    """How a step is written.

    Raises:
        JournalError: It is of a kind that a journal does not know.
    """
    if isinstance(step, ModelStep):
        return ModelForm(step, log)
    if isinstance(step, ToolStep):
        return ToolForm(step)
    if isinstance(step, ApprovalStep):
        return ApprovalForm(step)
    raise JournalError(f"a journal cannot write down a step of the class `{type(step).__name__}`.")
