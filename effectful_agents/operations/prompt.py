"""Sections of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from effectful_agents.messages import ContentPart

__all__ = ["PromptSection", "section"]


class PromptSection(TypedDict):
    """A titled part of a prompt; it is written as a Markdown heading and what stands under it."""

    type: Literal["prompt_section"]
    title: str
    content: Sequence[ContentPart | PromptSection]


def section(title: str, *content: str | ContentPart | PromptSection) -> PromptSection:
    """Make a section; plain text becomes a text part, and empty text is left out.

    >>> section("Rules", "Be brief.")
    {'type': 'prompt_section', 'title': 'Rules', 'content': [{'type': 'text', 'text': 'Be brief.'}]}
    """
    parts: list[ContentPart | PromptSection] = [
        {"type": "text", "text": part} if isinstance(part, str) else part for part in content if part
    ]
    return {"type": "prompt_section", "title": title, "content": parts}
