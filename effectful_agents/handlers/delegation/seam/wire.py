"""The data of the seam as JSON, and back. Nothing of it is believed: whoever wrote it is another process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, cast

from effectful_agents.messages import (
    PromptProgress,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Response,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolDefinition,
)
from effectful_agents.operations.elsewhere import (
    DescribedCall,
    DescribedEffect,
    Hello,
    PermittedDecision,
    ToolDeclaration,
    ToolOutcome,
    Welcome,
)
from effectful_agents.operations.policy import Disposition
from effectful_agents.types import Risk

__all__ = [
    "as_json",
    "read_call",
    "read_decision",
    "read_effect",
    "read_event",
    "read_hello",
    "read_json",
    "read_outcome",
    "read_response",
    "read_welcome",
    "write_decision",
    "write_event",
    "write_outcome",
    "write_record",
    "write_welcome",
]

_EVENTS: Mapping[str, Any] = {
    "stream_start": StreamStart,
    "prompt_progress": PromptProgress,
    "text_start": TextStart,
    "text_delta": TextDelta,
    "text_end": TextEnd,
    "reasoning_start": ReasoningStart,
    "reasoning_delta": ReasoningDelta,
    "reasoning_end": ReasoningEnd,
    "tool_call_start": ToolCallStart,
    "tool_call_delta": ToolCallDelta,
    "tool_call_end": ToolCallEnd,
}
_MOST_TOOLS = 1_000
_LONGEST_NAME = 200


def as_json(data: Any) -> bytes:
    """JSON as it crosses, in one line. Keys keep their order, since a model is to be sent the same bytes."""
    return json.dumps(data, separators=(",", ":")).encode()


def read_json(text: bytes) -> dict[str, Any]:
    """An object from the other side.

    Raises:
        ValueError: It is none.
    """
    try:
        data = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


# --- greeting ---------------------------------------------------------------------------------------------------------


def write_record(record: Hello | DescribedEffect | DescribedCall) -> dict[str, Any]:
    """What the program sends, but for requests to models."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def read_hello(data: Mapping[str, Any]) -> Hello:
    """What a program opens with.

    Raises:
        ValueError: It is no greeting.
    """
    versions, tools = _list(data, "versions"), _list(data, "tools")
    if len(tools) > _MOST_TOOLS:
        raise ValueError(f"`tools` has {len(tools)} entries; a greeting takes {_MOST_TOOLS}")
    definitions = tuple(_definition(tool) for tool in tools)
    names = {definition["function"]["name"] for definition in definitions}
    if len(names) < len(definitions):
        raise ValueError("`tools` has a name twice")
    return Hello(versions=tuple(one for one in versions[:100] if isinstance(one, str)), tools=definitions)


def write_welcome(welcome: Welcome) -> dict[str, Any]:
    """What a gateway answers."""
    tools = [{field.name: getattr(one, field.name) for field in dataclasses.fields(one)} for one in welcome.tools]
    return {
        "version": welcome.version,
        "tool_refs": dict(welcome.tool_refs),
        "tools": tools,
        "model": welcome.model,
        "decides": welcome.decides,
    }


def read_welcome(data: Mapping[str, Any]) -> Welcome:
    """What a gateway answered.

    Raises:
        ValueError: It is no answer to a greeting.
    """
    tools = _list(data, "tools")
    if len(tools) > _MOST_TOOLS:
        raise ValueError(f"`tools` has {len(tools)} entries; {_MOST_TOOLS} is the most")
    refs = _mapping(data, "tool_refs")
    if not all(isinstance(ref, str) for ref in refs.values()):
        raise ValueError("`tool_refs` has a reference that is no text")
    return Welcome(
        version=_text(data, "version"),
        tool_refs=cast(Mapping[str, str], refs),
        tools=tuple(_declaration(tool) for tool in tools),
        model=_text(data, "model"),
        decides=data.get("decides") is True,
    )


def _declaration(data: Any) -> ToolDeclaration:
    if not isinstance(data, Mapping):
        raise ValueError("a tool is no JSON object")
    timeout, effect = data.get("timeout"), data.get("effect")
    if not (timeout is None or (_is_number(timeout) and timeout > 0)):
        raise ValueError("the `timeout` of a tool is no number of seconds above 0")
    if effect not in ("once", "keyed", "idempotent"):
        raise ValueError("the `effect` of a tool is none that there is")
    return ToolDeclaration(
        definition=_definition(data.get("definition")),
        risk=_risk(data),
        effect=effect,
        concurrent=data.get("concurrent") is True,
        timeout=timeout,
    )


def _definition(data: Any) -> ToolDefinition:
    function = data.get("function") if isinstance(data, dict) else None
    if not isinstance(function, dict) or data.get("type") != "function":
        raise ValueError("a tool is no definition of a function")
    if not 0 < len(_text(function, "name")) <= _LONGEST_NAME or not isinstance(function.get("parameters"), dict):
        raise ValueError("the definition of a tool has no name, or no parameters")
    _text(function, "description")
    return cast(ToolDefinition, data)


# --- effects and tools ------------------------------------------------------------------------------------------------


def read_effect(data: Mapping[str, Any]) -> DescribedEffect:
    """An effect that a gateway is asked about.

    Raises:
        ValueError: It is none.
    """
    return DescribedEffect(
        kind=_text(data, "kind"),
        name=_text(data, "name"),
        arguments=_mapping(data, "arguments"),
        ref=_text(data, "ref"),
        risk=_risk(data),
        receiver=_text(data, "receiver"),
        by_code=data.get("by_code") is True,
        again=data.get("again") is True,
        step_id=_text(data, "step_id"),
        run_id=_text(data, "run_id"),
    )


def write_decision(decision: Any) -> dict[str, Any]:
    """A decision, of whatever kind a policy made."""
    written: dict[str, Any] = {
        "disposition": decision.disposition.name.lower(),
        "reason_code": decision.reason_code,
        "message": decision.message,
        "rule": decision.rule,
    }
    if decision.arguments is not None:
        written["arguments"] = dict(decision.arguments)
    if permit := getattr(decision, "permit", ""):
        written["permit"] = permit
    return written


def read_decision(data: Mapping[str, Any]) -> PermittedDecision:
    """A decision of a gateway.

    Raises:
        ValueError: It is none. Nothing else is taken for leave to do something.
    """
    try:
        disposition = Disposition[_text(data, "disposition").upper()]
    except KeyError:
        raise ValueError("the `disposition` of a decision is none that there is") from None
    return PermittedDecision(
        disposition,
        _text(data, "reason_code")[:_LONGEST_NAME],
        _text(data, "message")[:4_000],
        rule=_text(data, "rule")[:_LONGEST_NAME],
        arguments=None if data.get("arguments") is None else _mapping(data, "arguments"),
        permit=_text(data, "permit"),
    )


def read_call(data: Mapping[str, Any]) -> DescribedCall:
    """A call of a tool that the gateway holds.

    Raises:
        ValueError: It is none.
    """
    return DescribedCall(
        ref=_text(data, "ref"),
        arguments=_mapping(data, "arguments"),
        permit=_text(data, "permit"),
        run_id=_text(data, "run_id"),
    )


def write_outcome(outcome: ToolOutcome) -> dict[str, Any]:
    """What became of a call."""
    return {"error": outcome.error} if outcome.error else {"content": outcome.content}


def read_outcome(data: Mapping[str, Any]) -> ToolOutcome:
    """What a gateway says became of a call.

    Raises:
        ValueError: It is neither a result nor an error.
    """
    if error := _text(data, "error"):
        return ToolOutcome(error=error)
    content = data.get("content")
    parts = content if isinstance(content, list) else []
    if not isinstance(content, str | list) or not all(isinstance(one, dict) and "type" in one for one in parts):
        raise ValueError("the result of a tool is neither text nor a list of content parts")
    return ToolOutcome(content=content)


# --- replies ----------------------------------------------------------------------------------------------------------


def write_event(event: StreamEvent) -> dict[str, Any] | None:
    """A piece of a reply; None for one that does not cross: the end has all of the reply, which comes by itself."""
    if type(event) not in _EVENTS.values():
        return None
    return {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}


def read_event(data: Any) -> StreamEvent | None:
    """A piece of a reply; None for a kind that is not known here, which a later version may have added.

    Raises:
        ValueError: It is no piece.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    cls = _EVENTS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        return None
    wanted = {field.name for field in dataclasses.fields(cls)}
    values = {name: value for name, value in data.items() if name in wanted}
    for name, value in values.items():
        kinds = (str, type(None)) if name == "signature" else (int,) if name in ("index", "done", "total") else (str,)
        if not isinstance(value, kinds):
            raise ValueError(f"the `{name}` of a piece has the wrong type")
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError("a piece lacks a part") from error


def read_response(data: Any) -> Response:
    """A reply of a model, as far as others look into it without asking.

    Raises:
        ValueError: It is none.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices:
        raise ValueError("a reply has no choices")
    for choice in choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | list | type(None)):
            raise ValueError("a reply has a choice without a message")
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
            raise ValueError("a reply has a tool call that is none")
    return cast(Response, data)


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str) and "arguments" in function


# --- parts ------------------------------------------------------------------------------------------------------------


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"`{name}` is no text")
    return value


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"`{name}` is no list")
    return value


def _mapping(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` is no JSON object")
    return value


def _risk(data: Mapping[str, Any]) -> Risk:
    try:
        return Risk(data.get("risk", Risk.READ))
    except ValueError:
        raise ValueError("`risk` is none that there is") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
