"""Dialects: how a request is written for a service, and how its replies are read. Nothing here opens a connection."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from effectful_agents.encoding import strict_response_format
from effectful_agents.handlers.provision.assembly import Piece, PieceOfCall
from effectful_agents.handlers.provision.counts import with_timings
from effectful_agents.messages import CompletionUsage, FinishReason, Request, Response, ResponseFormat, ToolChoice
from effectful_agents.messages.exchange import FINISH_REASONS

__all__ = ["OpenAICompatible", "Provider"]


class Provider(Protocol):
    """The dialect of one kind of service: pure functions, tried on recorded bodies without any service.

    Attributes:
        name: The kind of service; errors carry it.
    """

    @property
    def name(self) -> str: ...

    def to_wire(self, request: Request, *, stream: bool) -> dict[str, Any]:
        """The body that is sent.

        Args:
            request: The request. It is not changed, and neither is anything in it.
            stream: Whether the reply is to come in pieces.
        """
        ...

    def from_wire(self, body: Mapping[str, Any]) -> Response:
        """The reply that a whole body holds.

        Raises:
            ValueError: It holds none.
        """
        ...

    def from_chunk(self, chunk: Mapping[str, Any]) -> Piece:
        """What one piece of a stream adds to the reply.

        Raises:
            ValueError: It is no piece of a reply.
        """
        ...


# What a request says to whoever carries it out, and not to the model.
_NOT_SENT = frozenset({"api_key", "base_url", "num_retries", "timeout", "stream", "provider_options"})
_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclasses.dataclass(frozen=True, slots=True)
class OpenAICompatible:
    """The chat completions of OpenAI, as vLLM, llama-server, Ollama and most gateways speak them.

    Reasoning is found in `reasoning_content` and in `reasoning`, and is `reasoning_content` afterwards. Arguments of a
    tool call that come as an object become JSON. Tokens that are reported as null are left out, 0 stays 0. The schema
    of an answer is sent in strict form, where it has one.

    >>> OpenAICompatible().to_wire({"model": "qwen3", "messages": [], "tools": [], "timeout": 9}, stream=True)
    {'model': 'qwen3', 'messages': [], 'stream': True, 'stream_options': {'include_usage': True}}
    """

    name: str = "openai-compatible"

    def to_wire(self, request: Request, *, stream: bool) -> dict[str, Any]:
        body = {name: value for name, value in request.items() if name not in _NOT_SENT and value is not None}
        if not body.get("tools"):  # an error at some services where there are no tools
            for name in _ABOUT_TOOLS:
                body.pop(name, None)
        elif "tool_choice" in body:
            body["tool_choice"] = _choice_to_wire(body["tool_choice"])
        if "response_format" in body:
            body["response_format"] = strict_response_format(cast(ResponseFormat, body["response_format"]))
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body | (request.get("provider_options") or {})

    def from_wire(self, body: Mapping[str, Any]) -> Response:
        choices = _object(body).get("choices")
        if not isinstance(choices, list):
            raise ValueError("it has no `choices`")
        reply: dict[str, Any] = {
            "choices": [_choice(_object(choice), place) for place, choice in enumerate(choices)],
            **_known({name: body.get(name) for name in ("id", "created", "model")}),
        }
        if usage := _usage(body):
            reply["usage"] = usage
        return cast(Response, reply)

    def from_chunk(self, chunk: Mapping[str, Any]) -> Piece:
        # Where several replies were asked for, nothing is streamed, so there is one choice; the last piece, that with
        # the usage, has none.
        choice = _object(next(iter(_object(chunk).get("choices") or ()), {}))
        delta = _object(choice.get("delta") or {})
        return Piece(
            text=_text(delta.get("content")),
            reasoning=_reasoning(delta),
            refusal=refusal if isinstance(refusal := delta.get("refusal"), str) else None,
            calls=tuple(_pieces_of_calls(delta)),
            finish_reason=_finish_reason(choice),
            usage=_usage(chunk),
            fields=_known({name: chunk.get(name) for name in ("id", "created", "model")}),
        )


def _choice_to_wire(choice: Any) -> Any:
    return choice.to_wire() if isinstance(choice, ToolChoice) else choice


def _choice(raw: Mapping[str, Any], place: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, **_known(_object(raw.get("message") or {}))}
    if (reasoning := _reasoning(message)) is not None:
        message.pop("reasoning", None)
        message["reasoning_content"] = reasoning
    reason = _finish_reason(raw) or "stop"
    if calls := message.pop("tool_calls", None):
        message["tool_calls"] = [_call(_object(call)) for call in calls]
        message["content"] = message["content"] or None
        reason = "tool_calls" if reason == "stop" else reason  # Ollama and others say `stop`
    return {"index": raw.get("index", place), "message": message, "finish_reason": reason}


def _call(raw: Mapping[str, Any]) -> dict[str, Any]:
    function = _object(raw.get("function") or {})
    return {
        **_fields_of_call(raw),
        # A call without an identifier gets one from the loop, which knows its place in the conversation.
        "id": raw.get("id") or "",
        "type": "function",
        "function": {"name": function.get("name") or "", "arguments": _arguments(function.get("arguments"))},
    }


def _pieces_of_calls(delta: Mapping[str, Any]) -> Iterator[PieceOfCall]:
    for call in delta.get("tool_calls") or ():
        raw = _object(call)
        function = _object(raw.get("function") or {})
        yield PieceOfCall(
            index=raw.get("index"),
            id=raw.get("id") or "",
            name=function.get("name") or "",
            arguments=_arguments(function.get("arguments")),
            fields=_fields_of_call(raw),
        )


def _fields_of_call(raw: Mapping[str, Any]) -> dict[str, Any]:
    # Such as the signature with which Gemini wants its reasoning back.
    return {name: value for name, value in _known(raw).items() if name not in ("index", "id", "type", "function")}


def _arguments(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _reasoning(message: Mapping[str, Any]) -> str | None:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(name), str):
            return text
    return None


def _text(content: Any) -> str | None:
    # Mistral's reasoning models send a list of parts.
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    if content is not None and not isinstance(content, str):
        raise ValueError(f"text was expected where `{str(content)[:80]}` stands")
    return content


def _finish_reason(choice: Mapping[str, Any]) -> FinishReason | None:
    reason = choice.get("finish_reason")
    return FINISH_REASONS.get(reason, "stop") if reason else None


def _usage(body: Mapping[str, Any]) -> CompletionUsage | None:
    raw = body.get("usage")
    if not isinstance(raw, Mapping):
        return None
    usage = {name: _known(count) if isinstance(count, Mapping) else count for name, count in raw.items()}
    known = {name: count for name, count in _known(usage).items() if count != {}}
    return cast(CompletionUsage, with_timings(known, body.get("timings"))) if known else None


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"an object was expected where `{str(value)[:80]}` stands")
    return value
