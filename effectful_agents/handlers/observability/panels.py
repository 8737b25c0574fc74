"""Messages as panels: whatever a model wrote, on any terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.segment import Segment
from rich.text import Text as Line

from effectful_agents.messages import Message, Response

__all__ = [
    "Framed",
    "content_text",
    "first_message",
    "framed",
    "gist",
    "pretty",
    "reasoning_text",
    "styled",
    "tool_calls",
]


def framed(lines: Sequence[Line], title: str, style: str) -> Framed:
    """Lines in a frame with a title."""
    heading = styled(" ".join(title.split()))
    return Framed(Panel(Group(*lines), title=heading, title_align="left", border_style=style))


class Framed:
    """A panel in the characters that the console's encoding has: rich shortens lines with one that not all have."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        encoding = console.encoding
        for text, style, control in console.render(self._panel, options):
            yield Segment(_encodable(text, encoding), style, control)


def _encodable(text: str, encoding: str) -> str:
    if text.isascii() or text.encode(encoding, "replace").decode(encoding) == text:
        return text
    return "".join(_replaced(one, encoding) for one in text)


def _replaced(character: str, encoding: str) -> str:
    if character.encode(encoding, "ignore"):
        return character
    # As wide as it was, so that frames stay straight.
    return "." if character == "…" else "?" * cell_len(character)


def styled(text: str, style: str = "") -> Line:
    """Text in a style, without the characters that steer a terminal."""
    return Line(_printable(text), style=style, overflow="fold")


def _printable(text: str) -> str:
    """Text without the characters that steer a terminal, or turn the direction of writing."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _harmless(one) for one in text)


def _harmless(character: str) -> str:
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) == "Cf" else "\N{REPLACEMENT CHARACTER}"


def pretty(text: str, width: int) -> str:
    """An object or a list in JSON on one line where it fits, and indented where not; any other text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
        line = json.dumps(value, ensure_ascii=False)
        return line if len(line) <= width else json.dumps(value, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def first_message(reply: Response) -> Message:
    """The message of the first choice; an empty one where there is none."""
    # Of a reply that is none the loop makes an error, and that must not be one of ours.
    message: Any = {}
    match reply:
        case {"choices": [{"message": Mapping() as message}, *_]}:
            pass
    return {**message, "role": "assistant"}


def gist(message: Message) -> tuple[str, ...]:
    """What a reply and the message that it becomes have in common."""
    return (content_text(message), *(name for _, name, _ in tool_calls(message)))


def content_text(message: Message) -> str:
    """What a message says, or why it says nothing."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, str):
        return content
    return "\n".join(_part(part) for part in (content if isinstance(content, Sequence) else [content]))


def _part(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image_url"}:
            return "(a picture)"
        case {"type": "input_audio"}:
            return "(a sound)"
        case {"type": "file", "file": {"filename": name}}:
            return f"(a file: {name})"
        case _:
            return "(something that is no text)"


def reasoning_text(message: Mapping[str, Any]) -> str:
    """The reasoning in a message."""
    if isinstance(reasoning := message.get("reasoning_content"), str) and reasoning:
        return reasoning
    found = [block.get("thinking") for block in _list(message.get("thinking_blocks")) if isinstance(block, Mapping)]
    return "\n".join(thinking for thinking in found if isinstance(thinking, str))


def tool_calls(message: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Identifier, name and arguments of each tool call of a message; a model may have written anything there."""
    found = []
    for raw in _list(message.get("tool_calls")):
        call: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        inside = call.get("function")
        function: Mapping[str, Any] = inside if isinstance(inside, Mapping) else {}
        arguments = function.get("arguments") or ""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        found.append((str(call.get("id") or ""), str(function.get("name") or ""), text))
    return found


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
