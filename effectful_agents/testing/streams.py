"""The pieces of a streamed reply as they are recorded: server-sent events whose data are chunks of chat completions.

Each event of ours is one of the recorded ones, and named as its `kind`. A reader of chat completions that does not know
the names finds the same reply in the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from effectful_agents.messages import (
    Finish,
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
)

__all__ = ["Sent", "events_of", "sent", "strings_in"]

type Sent = list[Any]
"""One server-sent event: its name and its data."""


def sent(event: StreamEvent) -> Sent | None:
    """An event as it is recorded; None for one that is made from others and not recorded.

    >>> sent(TextDelta("Hel"))
    ['text_delta', {'choices': [{'index': 0, 'delta': {'content': 'Hel'}}]}]
    """
    match event:
        case StreamStart(model):
            chunk = {"model": model} if model else {}
            data = _chunk({"role": "assistant"}, **chunk)
        case TextDelta(text, index):
            data = _chunk({"content": text}, **_block(index))
        case ReasoningDelta(text, index):
            data = _chunk({"reasoning_content": text}, **_block(index))
        case ReasoningEnd(index, str(signature)):
            data = _chunk({"reasoning_signature": signature}, **_block(index))
        case TextStart(index) | TextEnd(index) | ReasoningStart(index) | ReasoningEnd(index):
            data = _chunk({}, **_block(index))
        case ToolCallStart(id, name, index):
            data = _of_call(index, id=id, type="function", function={"name": name, "arguments": ""})
        case ToolCallDelta(arguments, index):
            data = _of_call(index, function={"arguments": arguments})
        case ToolCallEnd(index):
            data = _of_call(index)
        case PromptProgress(stage, done, total):
            data = {"choices": [], "prompt_progress": {"stage": stage, "done": done, "total": total}}
        case Finish(response):
            data = _last(response)
        case _:
            return None
    return [event.kind, data]


def events_of(recorded: Iterable[Sent], reply: Response | None) -> Iterator[StreamEvent]:
    """The events that were recorded.

    Args:
        recorded: What `sent` made of them.
        reply: The whole reply, which the last event holds; None where there was none.

    Raises:
        LookupError: An event is none of those that `sent` makes.
        TypeError: Its data are none.
    """
    for kind, data in recorded:
        if kind == "finish":
            if reply is not None:
                yield Finish(reply)
        else:
            yield _READERS[kind](data)


def strings_in(recorded: Iterable[Sent]) -> str:
    """All that the pieces say, one after the other."""
    return "".join(_strings(_delta(data)) for _, data in recorded if data["choices"])


def _strings(delta: dict[str, Any]) -> str:
    calls = "".join(call.get("function", {}).get("arguments", "") for call in delta.get("tool_calls", ()))
    return delta.get("reasoning_content", "") + delta.get("content", "") + calls


def _chunk(delta: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}], **fields}


def _of_call(place: int, **fields: Any) -> dict[str, Any]:
    return _chunk({"tool_calls": [{"index": place, **fields}]})


def _block(index: int) -> dict[str, Any]:
    return {"block": index} if index else {}


def _last(response: Response) -> dict[str, Any]:
    choices = response.get("choices") or [{}]
    last: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": choices[0].get("finish_reason") or "stop"}]
    }
    return last | {"usage": response["usage"]} if response.get("usage") else last


def _delta(data: dict[str, Any]) -> dict[str, Any]:
    return data["choices"][0]["delta"]


def _call(data: dict[str, Any]) -> dict[str, Any]:
    return _delta(data)["tool_calls"][0]


def _read_start(data: dict[str, Any]) -> StreamEvent:
    call = _call(data)
    return ToolCallStart(call["id"], call["function"]["name"], call["index"])


_READERS = {
    "stream_start": lambda data: StreamStart(data.get("model", "")),
    "prompt_progress": lambda data: PromptProgress(**data["prompt_progress"]),
    "text_start": lambda data: TextStart(data.get("block", 0)),
    "text_delta": lambda data: TextDelta(_delta(data)["content"], data.get("block", 0)),
    "text_end": lambda data: TextEnd(data.get("block", 0)),
    "reasoning_start": lambda data: ReasoningStart(data.get("block", 0)),
    "reasoning_delta": lambda data: ReasoningDelta(_delta(data)["reasoning_content"], data.get("block", 0)),
    "reasoning_end": lambda data: ReasoningEnd(data.get("block", 0), _delta(data).get("reasoning_signature")),
    "tool_call_start": _read_start,
    "tool_call_delta": lambda data: ToolCallDelta(_call(data)["function"]["arguments"], _call(data)["index"]),
    "tool_call_end": lambda data: ToolCallEnd(_call(data)["index"]),
}
