"""One turn on the wire: the request, and the reply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from effectful_agents.messages.conversation import AssistantMessage, Message
from effectful_agents.messages.usage import CompletionUsage

__all__ = [
    "AUTO",
    "FINISH_REASONS",
    "SETTINGS_OF_ANSWERS",
    "Choice",
    "FinishReason",
    "Request",
    "Response",
    "ResponseFormat",
    "ToolChoice",
    "ToolDefinition",
    "settings_of_a_service",
]


class _Function(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: dict[str, Any]
    """JSON schema of an object, a property for each parameter."""
    strict: NotRequired[bool]


class ToolDefinition(TypedDict):
    """A tool as the model is shown it."""

    type: Literal["function"]
    function: _Function


class _JsonSchema(TypedDict):
    name: str
    schema: dict[str, Any]
    strict: NotRequired[bool]


class ResponseFormat(TypedDict):
    """The form that an answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NotRequired[_JsonSchema]


class ToolChoice(NamedTuple):
    """Whether the model may, must or must not call a tool.

    >>> ToolChoice("named", "weather").to_wire()
    {'type': 'function', 'function': {'name': 'weather'}}
    >>> AUTO.to_wire()
    'auto'
    """

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None

    def to_wire(self) -> str | dict[str, Any]:
        """The value of a request's `tool_choice`."""
        if self.mode == "named":
            return {"type": "function", "function": {"name": self.name}}
        return self.mode

    @classmethod
    def from_wire(cls, value: Any) -> ToolChoice:
        """Read the value of a request's `tool_choice`; None and what is not known count as `auto`."""
        match value:
            case ToolChoice():
                return value
            case {"function": {"name": str(name)}}:
                return cls("named", name)
            case "required" | "any":
                return cls("required")
            case "none":
                return cls("none")
            case _:
                return AUTO


AUTO = ToolChoice()
"""The model decides."""


class Request(TypedDict, total=False):
    """What is asked of a model in one turn.

    Any other setting that a provider knows may stand beside these; it is handed on as it is.
    """

    model: str
    messages: list[Message]
    tools: list[ToolDefinition]
    tool_choice: str | dict[str, Any] | ToolChoice
    response_format: ResponseFormat
    temperature: float
    top_p: float
    max_tokens: int
    """Tokens that the reply may have."""
    seed: int
    stop: str | list[str]
    n: int
    stream: bool
    timeout: float
    """Seconds."""
    num_retries: int
    parallel_tool_calls: bool
    reasoning_effort: str
    api_key: str
    base_url: str
    provider_options: dict[str, Any]
    """What only one provider understands."""


SETTINGS_OF_ANSWERS = frozenset(
    {
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
        *(
            "response_format",
            "guided_json",
            "guided_grammar",
            "guided_regex",
            "guided_choice",
            "grammar",
            "json_schema",
        ),
        *("max_tokens", "max_completion_tokens", "min_tokens", "stop", "n", "best_of"),
        *("logprobs", "top_logprobs", "logit_bias", "prediction", "verbosity"),
        *("modalities", "audio", "web_search_options"),
    }
)
"""Settings of a request that are meant for the answer to it. A request that a handler makes for purposes of its own has
those that it needs itself; what says how a model is reached and how it samples holds for any."""

_OF_A_SERVICE = frozenset(
    {
        *("api_key", "base_url", "api_base", "api_version", "organization", "custom_llm_provider", "deployment_id"),
        *("headers", "extra_headers", "extra_query", "extra_body", "provider_options", "region_name"),
    }
)
_OF_SERVICES = ("aws_", "azure_", "vertex_", "watsonx_", "oci_")


def settings_of_a_service(request: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a request that say where its service is, what lets one in, and what only that one understands.

    They are of no use for another model, and a key is for nobody else to see.

    >>> settings_of_a_service({"model": "gpt-5-mini", "api_key": "sk-1", "aws_region_name": "eu", "temperature": 0})
    {'api_key': 'sk-1', 'aws_region_name': 'eu'}
    """
    return {name: value for name, value in request.items() if name in _OF_A_SERVICE or name.startswith(_OF_SERVICES)}


type FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
"""What the words of services mean."""


class Choice(TypedDict):
    """One of the replies to a request; the loop looks at the first."""

    index: int
    message: AssistantMessage
    finish_reason: FinishReason | None


class Response(TypedDict):
    """What a model replied in one turn."""

    choices: list[Choice]
    model: NotRequired[str]
    id: NotRequired[str]
    created: NotRequired[int]
    usage: NotRequired[CompletionUsage | None]
    provider_metadata: NotRequired[dict[str, Any]]
