"""What happens while a reply is on its way: a start, a delta and an end for each kind of content."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from effectful_agents.messages.exchange import Response

__all__ = [
    "Finish",
    "PartialValue",
    "PromptProgress",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "StreamEvent",
    "StreamStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
]


@dataclasses.dataclass(frozen=True, slots=True)
class StreamStart:
    """A request was accepted; no content has come yet."""

    model: str = ""
    kind: Literal["stream_start"] = "stream_start"


@dataclasses.dataclass(frozen=True, slots=True)
class PromptProgress:
    """A model on this machine is being loaded, or is reading the prompt.

    Attributes:
        stage: `loading` or `reading`.
        done: Tokens of the prompt that have been read, those of the cache included.
        total: Tokens of the prompt; 0 while it is not known.
    """

    stage: Literal["loading", "reading"]
    done: int = 0
    total: int = 0
    kind: Literal["prompt_progress"] = "prompt_progress"


@dataclasses.dataclass(frozen=True, slots=True)
class TextStart:
    """Text begins."""

    index: int = 0
    kind: Literal["text_start"] = "text_start"


@dataclasses.dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of text."""

    text: str = ""
    index: int = 0
    kind: Literal["text_delta"] = "text_delta"


@dataclasses.dataclass(frozen=True, slots=True)
class TextEnd:
    """The text is complete."""

    index: int = 0
    kind: Literal["text_end"] = "text_end"


@dataclasses.dataclass(frozen=True, slots=True)
class ReasoningStart:
    """Reasoning begins."""

    index: int = 0
    kind: Literal["reasoning_start"] = "reasoning_start"


@dataclasses.dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning."""

    text: str = ""
    index: int = 0
    kind: Literal["reasoning_delta"] = "reasoning_delta"


@dataclasses.dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """The reasoning is complete; `signature` is the token that some providers want back with it."""

    index: int = 0
    signature: str | None = None
    kind: Literal["reasoning_end"] = "reasoning_end"


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The call of a tool begins."""

    id: str = ""
    name: str = ""
    index: int = 0
    kind: Literal["tool_call_start"] = "tool_call_start"


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call's arguments; only all of them together are JSON."""

    arguments: str = ""
    index: int = 0
    kind: Literal["tool_call_delta"] = "tool_call_delta"


@dataclasses.dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The arguments of the call are complete."""

    index: int = 0
    kind: Literal["tool_call_end"] = "tool_call_end"


@dataclasses.dataclass(frozen=True, slots=True)
class Finish:
    """The reply is complete; `response` holds all of it, with its usage."""

    response: Response
    kind: Literal["finish"] = "finish"


@dataclasses.dataclass(frozen=True, slots=True)
class PartialValue:
    """What the answer is so far, decoded into the type that is asked for; see `handlers.loop.PartialAnswers`."""

    value: Any
    kind: Literal["partial_value"] = "partial_value"


type StreamEvent = (
    StreamStart
    | PromptProgress
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Finish
    | PartialValue
)
