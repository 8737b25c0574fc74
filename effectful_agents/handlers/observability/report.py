"""A request as text for a person: its parts, and how many tokens each of them is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from effectful_agents.encoding import render_section
from effectful_agents.messages import Message, Request, SystemMessage
from effectful_agents.messages.text import text_for_reading
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.prompt import PromptSection, section

__all__ = ["Report"]


class Report:
    """Writes what a model is sent, part by part, each under a title with its tokens.

    Numbers that are estimated are marked: in a title by the word, in the table of sections by `~`.

    Args:
        model: The model whose tokens are counted; None for the one that requests go to if they name none.
        emphasised: What is done to titles.
    """

    def __init__(self, model: str | None = None, emphasised: Callable[[str], str] = str) -> None:
        self._model = model
        self._emphasised = emphasised

    def of_request(self, request: Request, document: PromptSection | None = None) -> str:
        """A whole request, and the sum of it.

        Args:
            request: The request.
            document: The sections that its system message was written from, where they are known.
        """
        lines: list[str] = []
        total = TokenCount(0, estimated=False)
        messages = request["messages"]
        for place, message in enumerate(messages, 1):
            # With what stands before it: some chats begin with something of their own.
            counted = self._count(messages[:place])
            lines += self._of_message(message, TokenCount(counted.tokens - total.tokens, counted.estimated), document)
            total = counted
        form: Any = request.get("response_format")
        others = [(f"tool {tool['function']['name']}", tool) for tool in request.get("tools", ())]
        for name, value in [*others, *([("response format", form)] if form is not None else [])]:
            counted = self._count(json.dumps(value, ensure_ascii=False))
            total = TokenCount(total.tokens + counted.tokens, total.estimated or counted.estimated)
            lines += [self._title(name, counted), json.dumps(value, ensure_ascii=False, indent=2)]
        return "\n".join([*lines, self._emphasised(_said(total))])

    def of_system_message(self, message: SystemMessage, document: PromptSection | None = None) -> str:
        """A system message, as it stands in the text of its request; an empty one is not sent."""
        if not message["content"]:
            return self._emphasised("--- no system message")
        return "\n".join(self._of_message(message, self._count([message]), document))

    def _of_message(self, message: Message, counted: TokenCount, document: PromptSection | None) -> Iterator[str]:
        yield self._title(f"{message['role']} message", counted)
        if message["role"] == "system" and document is not None:
            for half in _sections(document):
                yield self._row(0, half)
                for part in _sections(half):
                    yield self._row(1, part)
            yield ""
        yield text_for_reading(message.get("content"))

    def _row(self, depth: int, part: PromptSection) -> str:
        counted = self._count(text_for_reading(render_section(section("", part))))
        number = f"{'~' if counted.estimated else ''}{counted.tokens:,}"
        return f"{number:>8}  {'  ' * depth}{part['title'] or '(the task)'}"

    def _title(self, name: str, counted: TokenCount) -> str:
        return self._emphasised(f"--- {name}: {_said(counted)}")

    def _count(self, content: str | Sequence[Message]) -> TokenCount:
        return count_tokens(content, self._model)


def _said(counted: TokenCount) -> str:
    return f"{counted.tokens:,} tokens{', estimated' if counted.estimated else ''}"


def _sections(prompt: PromptSection) -> Iterator[PromptSection]:
    """The sections right in a prompt that are written: those that have something in them."""
    for part in prompt["content"]:
        if part["type"] == "prompt_section" and render_section(section("", part)):
            yield part
