"""The messages of a conversation."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from effectful_agents.messages.content import ContentPart, RedactedThinking, Thinking

__all__ = [
    "AssistantMessage",
    "FunctionCall",
    "Message",
    "Role",
    "SystemMessage",
    "ToolCall",
    "ToolCallID",
    "ToolMessage",
    "ToolResult",
    "UserMessage",
]

type Role = Literal["system", "user", "assistant", "tool"]
type ToolCallID = str


class FunctionCall(TypedDict):
    """Which tool the model calls, and with what."""

    name: str
    arguments: str
    """The arguments as the model wrote them: JSON, when all is well."""


class ToolCall(TypedDict):
    """One call of a tool, as the model asked for it."""

    id: ToolCallID
    type: Literal["function"]
    function: FunctionCall
    provider_specific_fields: NotRequired[Any]


class SystemMessage(TypedDict):
    """What holds for the whole conversation; its first message, where it has one."""

    role: Literal["system"]
    content: str | list[ContentPart]


class UserMessage(TypedDict):
    """What the program asks."""

    role: Literal["user"]
    content: str | list[ContentPart]


class AssistantMessage(TypedDict):
    """What the model replied: an answer, or calls of tools.

    Reasoning (`reasoning_content`, `thinking_blocks`, what else a provider adds) is kept and sent back byte for byte.
    """

    role: Literal["assistant"]
    content: str | list[ContentPart] | None
    tool_calls: NotRequired[list[ToolCall]]
    refusal: NotRequired[str]
    reasoning_content: NotRequired[str]
    thinking_blocks: NotRequired[list[Thinking | RedactedThinking]]
    provider_specific_fields: NotRequired[Any]


class ToolMessage(TypedDict):
    """The result of one call, for the model."""

    role: Literal["tool"]
    tool_call_id: ToolCallID
    content: str | list[ContentPart]


ToolResult = ToolMessage

type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
