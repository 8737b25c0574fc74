"""What came of a call, and questions to people, as the protocol writes them. Nothing of this process is told."""

from __future__ import annotations

import json
import logging
import secrets
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types

from effectful_agents.encoding.questions import shown_arguments
from effectful_agents.errors import Denied, StepDenied
from effectful_agents.messages import ContentPart
from effectful_agents.messages.sensitive import without_secrets
from effectful_agents.messages.text import printable_lines, printable_text
from effectful_agents.operations.policy import Answer, Question

__all__ = ["NOBODY", "answer_of", "blocks_of", "failed", "form_of", "refused"]

_log = logging.getLogger("effectful_agents.mcp")

_LONGEST = 2_000
_AUDIO = {"mp3": "audio/mpeg"}
NOBODY = Answer(approved=False, reason="the client cannot ask anybody", from_nobody=True)


def blocks_of(content: str | Sequence[ContentPart]) -> list[Any]:
    """What a model would be told of a result, as content of the protocol."""
    if isinstance(content, str):
        return [mcp_types.TextContent(type="text", text=content)]
    return [_block(part) for part in content]


def _block(part: Any) -> Any:
    match part["type"]:
        case "text":
            return mcp_types.TextContent(type="text", text=part["text"])
        case "image_url":
            mime_type, data = _data(part["image_url"]["url"])
            if data:
                return mcp_types.ImageContent(type="image", data=data, mime_type=mime_type)
            return mcp_types.TextContent(type="text", text=part["image_url"]["url"])
        case "input_audio":
            audio = part["input_audio"]
            mime_type = _AUDIO.get(audio["format"], f"audio/{audio['format']}")
            return mcp_types.AudioContent(type="audio", data=audio["data"], mime_type=mime_type)
    file = part["file"]
    mime_type, data = _data(file.get("file_data", ""))
    if not data:
        return mcp_types.TextContent(type="text", text="[a file that the service of a model keeps]")
    name = urllib.parse.quote((file.get("filename") or "file").rpartition("/")[2], safe="")
    resource = mcp_types.BlobResourceContents(uri=f"file:///{name}", mime_type=mime_type, blob=data)
    return mcp_types.EmbeddedResource(type="resource", resource=resource)


def _data(url: str) -> tuple[str, str]:
    """The media type and the base64 of a `data:` address; empty for any other."""
    head, _, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if head.startswith("data:") and data else ("application/octet-stream", "")


# --- what went wrong --------------------------------------------------------------------------------------------------


def failed(name: str, error: BaseException, *, by_tool: bool) -> Any:
    """What a client is told of a failure: of one of the tool's own what it says, without secrets, and no traceback.

    Args:
        name: The tool.
        error: What was raised.
        by_tool: Whether the tool raised it. What is about this server is not for the client, which gets a number.
    """
    if isinstance(error, Denied | StepDenied):
        return refused(f"This call was not allowed: {error}")
    if by_tool:
        return refused(f"{type(error).__name__}: {_said(error)}")
    number = secrets.token_hex(4)
    _log.error("the call of `%s` failed (%s)", name, number, exc_info=error)
    return refused(f"The server could not do this; its log has the reason under {number}.")


def _said(error: BaseException) -> str:
    """What an error says, without secrets; of one of the machine not which file it is about."""
    if isinstance(error, OSError):
        return error.strerror or "it failed"
    return without_secrets(printable_lines(str(error))) or "it says nothing more"


def refused(text: str) -> Any:
    """A result that says what is wrong, which the model of the client reads."""
    text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return mcp_types.CallToolResult(content=blocks_of(text), is_error=True)


# --- questions --------------------------------------------------------------------------------------------------------


def form_of(question: Question) -> Any:
    """A question to a person as a form."""
    lines = [printable_lines(question.text)]
    returns: Mapping[str, Any] | None = getattr(question, "returns", None)
    if question.effect is not None:
        lines += [f"{name} = {printable_text(json.dumps(value))}" for name, value in _shown(question)]
    if returns is not None:
        told = f"The result, as JSON that fits {json.dumps(returns)}"
        fields: dict[str, Any] = {"result": {"type": "string", "title": "Result", "description": told[:_LONGEST]}}
        required = ["result"]
    elif question.effect is None:
        fields, required = {"answer": {"type": "string", "title": "Answer"}}, ["answer"]
    else:
        fields = {
            "approve": {"type": "boolean", "title": "Approve", "description": "May it be done?"},
            "reason": {"type": "string", "title": "Why not"},
        }
        required = ["approve"]
    schema = {"type": "object", "properties": fields, "required": required}
    return mcp_types.ElicitRequestFormParams(message="\n".join(lines)[:_LONGEST], requested_schema=schema)


def _shown(question: Question) -> list[tuple[str, Any]]:
    effect = question.effect
    return [] if effect is None else list(shown_arguments(effect, strict=True).items())


def answer_of(question: Question, said: Any) -> Answer:
    """What a person has said in such a form; whatever is not plainly a yes is none."""
    if said is None or said.action == "cancel":
        return NOBODY
    content = said.content or {}
    reason = content.get("reason")
    why = reason if isinstance(reason, str) else ""
    if said.action != "accept":
        return Answer(approved=False, reason=why or "it was declined")
    if getattr(question, "returns", None) is not None or question.effect is None:
        text = content.get("result" if question.effect is not None else "answer")
        return Answer(text=text) if isinstance(text, str) else NOBODY
    return Answer(approved=content.get("approve") is True, reason=why)
