"""Sections of a prompt as Markdown."""

from __future__ import annotations

from effectful_agents.encoding.blocks import join
from effectful_agents.messages import ContentPart
from effectful_agents.messages.text import safe_text
from effectful_agents.operations.prompt import PromptSection

__all__ = ["render_section"]

_DEEPEST = 6
"""Levels of headings that Markdown has; what lies deeper is written at this level."""


def render_section(document: PromptSection) -> list[ContentPart]:
    r"""Write a document of sections.

    The section that is given is the document: its title is not written. Its children have `#` headings, theirs `##`,
    and so on. A section without a title has no heading. A blank line stands between two pieces of text; sections with
    nothing in them are left out.

    Returns:
        The blocks in order; neighbouring text is one block.

    >>> from effectful_agents.operations.prompt import section
    >>> render_section(section("All", section("Rules", "Be brief.")))
    [{'type': 'text', 'text': '# Rules\n\nBe brief.'}]
    """
    return _render(document, 0)


def _render(section: PromptSection, level: int) -> list[ContentPart]:
    blocks: list[ContentPart] = []
    for part in section["content"]:
        for block in _render(part, level + 1) if part["type"] == "prompt_section" else [part]:
            _add(blocks, block)
    if level and blocks and section["title"]:
        title = f"{'#' * min(level, _DEEPEST)} {safe_text(section['title'])}"
        heading: list[ContentPart] = [{"type": "text", "text": title}]
        for block in blocks:
            _add(heading, block)
        return heading
    return blocks


def _add(blocks: list[ContentPart], block: ContentPart) -> None:
    if block["type"] != "text":
        blocks.append(block)
    elif block["text"].strip():
        text = safe_text(block["text"])
        if blocks and blocks[-1]["type"] == "text":
            blocks[-1] = {"type": "text", "text": blocks[-1]["text"].rstrip("\n")}
            text = "\n\n" + text.lstrip("\n")
        join(blocks, text)
