"""What a server answers, as values of Python and as parts of the content of a message."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from effectful_agents.errors import PeerError
from effectful_agents.messages import ContentPart, Message
from effectful_agents.messages.text import printable_lines, printable_text, safe_text

__all__ = ["MCPPrompt", "MCPResource", "cut", "messages_of", "parts_of", "said", "size_of", "value_of"]

_LONGEST_ERROR = 4_000
_LONGEST_DESCRIPTION = 2_000


def cut(text: str | None) -> str:
    """What a server says of something, for a model: not long, and without what steers a terminal."""
    return printable_lines(text or "")[:_LONGEST_DESCRIPTION]


def size_of(blocks: Iterable[Any]) -> int:
    """Characters of the contents of a server, of whatever kind they are."""
    size = 0
    for block in blocks:
        resource = getattr(block, "resource", block)
        held = (
            getattr(one, name, None) for one in (block, resource) for name in ("text", "data", "blob", "description")
        )
        size += sum(len(text) for text in held if isinstance(text, str))
    return size


@dataclasses.dataclass(frozen=True, slots=True)
class MCPResource:
    """Something that a server lets one read.

    Attributes:
        uri: Its address there; of a template, one with `{fields}`.
        name: Its name.
        description: What the server says of it.
        mime_type: Its media type, as far as it is known.
        is_template: Whether the fields of the address have to be filled in.
    """

    uri: str
    name: str
    description: str = ""
    mime_type: str = ""
    is_template: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class MCPPrompt:
    """A prompt that a server keeps.

    Attributes:
        name: Its name.
        description: What it is for.
        arguments: The names of its arguments.
        required: Those of them that have to be given.
    """

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()


def value_of(result: Any, peer: str, tool: str) -> Any:
    """What a tool came to: its structured value, the text alone, or content parts where there is more than text.

    Raises:
        PeerError: The server says that the tool failed.
    """
    if result.is_error:
        told = " ".join(part["text"] for part in parts_of(result.content) if part["type"] == "text").strip()
        raise PeerError(told[:_LONGEST_ERROR] or f"the tool `{tool}` failed, and does not say how", peer=peer)
    parts = parts_of(result.content)
    is_text = all(part["type"] == "text" for part in parts)
    if result.structured_content is not None and is_text:
        return _unwrapped(result.structured_content)
    if is_text and len(parts) <= 1:
        return "".join(part["text"] for part in parts if part["type"] == "text")
    return parts


def _unwrapped(value: Any) -> Any:
    """What a server has put into an object because its protocol knows no other structured values."""
    if isinstance(value, dict) and value.keys() == {"result"} and not isinstance(value["result"], dict):
        return value["result"]
    return value


def parts_of(blocks: Iterable[Any]) -> list[ContentPart]:
    """Blocks of a server as parts of a message; an embedded resource and a link say what they are."""
    return [part for block in blocks for part in _parts(block)]


def _parts(block: Any) -> list[ContentPart]:
    match block.type:
        case "text":
            return [_text(block.text)]
        case "image":
            return [_image(block.data, block.mime_type)]
        case "audio":
            kind = block.mime_type.partition("/")[2].removeprefix("x-")
            return [{"type": "input_audio", "input_audio": {"data": _checked(block.data), "format": kind}}]
        case "resource":
            return resource_parts(block.resource)
        case "resource_link":
            about = f" ({block.description})" if block.description else ""
            return [_text(f"[{block.name}]({block.uri}){about}")]
    return [_text(f"[content of the kind {printable_text(str(block.type)[:40])}, which is not shown]")]


def resource_parts(resource: Any) -> list[ContentPart]:
    """A resource as parts: text, a picture, or a document with its name."""
    text = getattr(resource, "text", None)
    if text is not None:
        return [_text(text)]
    mime_type = resource.mime_type or "application/octet-stream"
    if mime_type.startswith("image/"):
        return [_image(resource.blob, mime_type)]
    name = str(resource.uri).rpartition("/")[2] or "resource"
    data = f"data:{mime_type};base64,{_checked(resource.blob)}"
    return [{"type": "file", "file": {"file_data": data, "filename": name}}]


def _text(text: str) -> ContentPart:
    return {"type": "text", "text": safe_text(text)}


def _image(data: str, mime_type: str) -> ContentPart:
    return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{_checked(data)}"}}


def _checked(data: str) -> str:
    """The base64 of a part, if it is some.

    Raises:
        ValueError: It is none.
    """
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("a part of the result is no base64") from error
    return data


def messages_of(messages: Sequence[Any]) -> list[Message]:
    """Messages of a prompt, or of a server that wants a model asked."""
    made: list[Any] = []
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        parts = parts_of(blocks)
        only = parts[0] if len(parts) == 1 else None
        content: Any = only["text"] if only is not None and only["type"] == "text" else parts
        made.append({"role": message.role, "content": content})
    return made


def said(error: BaseException) -> str:
    """What the SDK says went wrong, in one line that is not long."""
    text = printable_text(" ".join(str(error).split()))
    return (text or type(error).__name__)[:_LONGEST_ERROR]
