"""The parts that the content of a message is made of."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = ["Audio", "ContentPart", "Document", "Image", "RedactedThinking", "Text", "Thinking"]


class Text(TypedDict):
    """A piece of text."""

    type: Literal["text"]
    text: str


class _ImageUrl(TypedDict):
    url: str
    """An `https:` address, or a `data:` one that holds the picture in base64."""
    detail: NotRequired[Literal["auto", "low", "high"]]


class Image(TypedDict):
    """A picture."""

    type: Literal["image_url"]
    image_url: _ImageUrl


class _InputAudio(TypedDict):
    data: str
    """The sound in base64."""
    format: str


class Audio(TypedDict):
    """A recorded sound."""

    type: Literal["input_audio"]
    input_audio: _InputAudio


class _File(TypedDict, total=False):
    file_data: str
    """A `data:` address that holds the file in base64."""
    file_id: str
    filename: str
    format: str


class Document(TypedDict):
    """A document, such as a PDF."""

    type: Literal["file"]
    file: _File


class Thinking(TypedDict):
    """Reasoning that a provider shows; it must go back unchanged, with its signature."""

    type: Literal["thinking"]
    thinking: str
    signature: NotRequired[str]


class RedactedThinking(TypedDict):
    """Reasoning that a provider keeps encrypted; it must go back unchanged."""

    type: Literal["redacted_thinking"]
    data: Any


type ContentPart = Text | Image | Audio | Document
"""What the content of a message may hold. Reasoning stands beside the content: see `AssistantMessage`."""
