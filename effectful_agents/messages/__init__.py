"""The words that travel between the loop and a model: messages, requests, replies, stream events and usage.

Everything is a plain dictionary in the shape of OpenAI's chat completions, described by a TypedDict; only `Usage` and
the stream events are small frozen classes. Nothing of a provider's library appears here: its objects are converted
where they enter. The module names every field that the loop, the history or a handler of this package looks at; other
fields of a provider pass through untouched.
"""

from effectful_agents.messages.content import Audio, ContentPart, Document, Image, RedactedThinking, Text, Thinking
from effectful_agents.messages.conversation import (
    AssistantMessage,
    FunctionCall,
    Message,
    Role,
    SystemMessage,
    ToolCall,
    ToolCallID,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from effectful_agents.messages.exchange import (
    AUTO,
    Choice,
    FinishReason,
    Request,
    Response,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from effectful_agents.messages.stream import (
    Finish,
    PartialValue,
    PromptProgress,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from effectful_agents.messages.usage import CompletionUsage, Usage

__all__ = [
    "AUTO",
    "AssistantMessage",
    "Audio",
    "Choice",
    "CompletionUsage",
    "ContentPart",
    "Document",
    "Finish",
    "FinishReason",
    "FunctionCall",
    "Image",
    "Message",
    "PartialValue",
    "PromptProgress",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "RedactedThinking",
    "Request",
    "Response",
    "ResponseFormat",
    "Role",
    "StreamEvent",
    "StreamStart",
    "SystemMessage",
    "Text",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "Thinking",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallID",
    "ToolCallStart",
    "ToolChoice",
    "ToolDefinition",
    "ToolMessage",
    "ToolResult",
    "Usage",
    "UserMessage",
]
