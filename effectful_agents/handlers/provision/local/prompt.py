"""A conversation as a chat template shows it that knows the roles system, user and assistant, and nothing of tools.

The listing of the tools goes to the end of the system message, a call is shown as the reply that it was, its result as
a message of the user. Each message is written from itself and from those before it, so the text that a request begins
with is that of the turn before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError, ResultDecodingError
from effectful_agents.handlers.provision.local.grammar import Said, SaidCall
from effectful_agents.messages import Message, ToolCall, ToolDefinition

__all__ = ["asks_again", "chat", "said_before"]


# A small model that is to write JSON, or to choose a tool, does it better when it is told what for. Without a system
# message its template would say that it is a helpful assistant.
_FOR_A_PROGRAM = "Your answer becomes the value of a Python function: {}write the value itself and nothing else."
_WITH_TOOLS = "use the tools you need, and "


def chat(
    messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), *, for_a_program: bool = False
) -> list[dict[str, str]]:
    """Write a conversation with plain messages only.

    Args:
        messages: The conversation.
        tools: The tools that the model is shown. Where there are any, answers stand in the envelope of the grammar.
        for_a_program: Whether the reply is held to a form. A conversation without a system message gets one that says
            so.

    Raises:
        ConfigurationError: A message holds something else than text.
    """
    written: list[dict[str, str]] = []
    if for_a_program and not (messages and messages[0]["role"] == "system"):
        written.append({"role": "system", "content": _FOR_A_PROGRAM.format(_WITH_TOOLS if tools else "")})
    names: dict[str, str] = {}
    for message in messages:
        match message["role"]:
            case "assistant":
                calls = message.get("tool_calls") or []
                names |= {call["id"]: call["function"]["name"] for call in calls}
                _append(written, "assistant", _reply(message, calls, bool(tools)))
            case "tool":
                name = names.get(message["tool_call_id"], "")
                _append(written, "user", f"{name} returned: {_text(message)}")
            case role:
                _append(written, role, _text(message))
    if tools:
        listing = _listing(tools)
        if written and written[0]["role"] == "system":
            written[0]["content"] += f"\n\n{listing}"
        else:
            written.insert(0, {"role": "system", "content": listing})
    return written


def _append(written: list[dict[str, str]], role: str, text: str) -> None:
    # Many templates refuse two messages of the user in a row, which is what the results of several calls are.
    if written and written[-1]["role"] == role == "user":
        written[-1]["content"] += f"\n{text}"
    else:
        written.append({"role": role, "content": text})


def _reply(message: Mapping[str, Any], calls: Sequence[ToolCall], enveloped: bool) -> str:
    if calls:
        return "\n".join(
            f'{{"tool": {_json(call["function"]["name"])}, "arguments": {call["function"]["arguments"]}}}'
            for call in calls
        )
    text = _text(message)
    return f'{{"answer": {text if _is_object(text) else _json(text)}}}' if enveloped else text


def _is_object(text: str) -> bool:
    # The answer to a JSON schema is an object, and stood in the envelope as it is; free text stood there as a string.
    return text.startswith("{") and isinstance(_value(text), dict)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part["type"] != "text":
            kind = part["type"].removesuffix("_url").removeprefix("input_")
            raise ConfigurationError(f"a local model reads text only, and a message of the request holds: {kind}")
    return "".join(part["text"] for part in content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- the listing of the tools -----------------------------------------------------------------------------------------


def _listing(tools: Sequence[ToolDefinition]) -> str:
    head = 'Reply {"tool": …, "arguments": …} to call a tool, or {"answer": …} to answer. The tools:'
    return "\n".join([head, *map(_line, tools)])


def _line(tool: ToolDefinition) -> str:
    function = tool["function"]
    schema = function.get("parameters") or {}
    definitions = schema.get("$defs", {})
    required = schema.get("required", ())
    parameters = ", ".join(
        f"{name}{'' if name in required else '?'}: {_kind(value, definitions)}"
        for name, value in schema.get("properties", {}).items()
    )
    description = " ".join(function.get("description", "").split())
    about = [
        f"\n  {name}: {' '.join(value['description'].split())}"
        for name, value in schema.get("properties", {}).items()
        if isinstance(value, Mapping) and value.get("description")
    ]
    return f"- {function['name']}({parameters}): {description}{''.join(about)}"


def _kind(schema: Any, definitions: Mapping[str, Any], depth: int = 3) -> str:
    """What values a schema admits, in a few words; what is nested deeper than `depth` is not spelled out."""
    if not isinstance(schema, Mapping) or depth == 0:
        return "…"
    if "$ref" in schema:
        return _kind(definitions.get(schema["$ref"].removeprefix("#/$defs/")), definitions, depth)
    if "const" in schema:
        return _json(schema["const"])
    if "enum" in schema:
        return " | ".join(map(_json, schema["enum"]))
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(_kind(choice, definitions, depth - 1) for choice in schema[union])
    match schema.get("type"):
        case "array":
            return f"list of {_kind(schema.get('items', {}), definitions, depth - 1)}"
        case "object" if "properties" in schema:
            inner = (f"{name}: {_kind(value, definitions, depth - 1)}" for name, value in schema["properties"].items())
            return f"{{{', '.join(inner)}}}"
        case str(kind):
            return kind
        case _:
            return "any"


# --- where the conversation stands ------------------------------------------------------------------------------------

# How the message begins that asks for a mended answer: it belongs to the call that is going on.
_AGAIN = (
    str(ResultDecodingError(ValueError(), {"role": "assistant", "content": ""}).to_feedback_message()["content"])
    .partition("\n")[0]
)  # fmt: skip


def asks_again(message: Message) -> bool:
    """Whether a message sends a reply back because it could not be decoded."""
    return message["role"] == "user" and _text(message).startswith(_AGAIN)


def said_before(messages: Sequence[Message]) -> Said:
    """The tool calls that were answered, and the answers that were sent back, since the user's last question."""
    calls: list[SaidCall] = []
    answers: list[Any] = []
    results: set[str] = set()
    sent_back = False
    for place in reversed(range(len(messages))):
        message = messages[place]
        match message["role"]:
            case "user":
                sent_back = asks_again(message)
                # Behind the result of a tool it is no question, but what the program says to the running call.
                if not sent_back and (place == 0 or messages[place - 1]["role"] not in ("tool", "user")):
                    break
            case "tool":
                results.add(message["tool_call_id"])
            case "assistant" if message.get("tool_calls"):
                functions = [call["function"] for call in message["tool_calls"] if call["id"] in results]
                calls += [SaidCall(one["name"], _value(one["arguments"])) for one in functions]
            case "assistant" if sent_back:
                answers.append(_value(_text(message)))
    return Said(calls, answers)


def _value(text: str) -> Any:
    """The JSON value that a text stands for; one that stands for none is kept as the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
