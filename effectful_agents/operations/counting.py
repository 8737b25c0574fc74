"""How many tokens a text or a conversation is, and how many a model can read."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.messages import Message
from effectful_agents.runtime import Operation

__all__ = ["TokenCount", "count_tokens", "estimate_tokens"]


@dataclasses.dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of tokens, and how far it can be relied on.

    Attributes:
        tokens: How many.
        estimated: Whether they were guessed by a rule, or counted with a tokenizer that is not the model's own.
        limit: Tokens that the model can read in one request, where whoever counted knows it.
    """

    tokens: int
    estimated: bool
    limit: int | None = None


@Operation.define
def count_tokens(content: str | Sequence[Message], model: str | None = None) -> TokenCount:
    """How many tokens a model reads in a text, or in messages with all that goes around them.

    By default it is estimated (see `estimate_tokens`), whatever the model. A handler that has a tokenizer counts for
    the models that it answers for, and forwards for others. None of them loads a library or uses a network for it.

    Args:
        content: A text, or messages; the tools that a request offers are not among them.
        model: The model; None for the one that requests go to if they name none.

    >>> count_tokens("The weather in Oslo is fine.")
    TokenCount(tokens=7, estimated=True, limit=None)
    >>> count_tokens([{"role": "user", "content": "The weather in Oslo is fine."}]).tokens
    11
    """
    return TokenCount(estimate_tokens(content), estimated=True)


# What a tokenizer rarely makes more of than one token: a short word, a digit, a run of punctuation, a new line.
_PIECES = re.compile(r"[A-Za-z]{1,7}|[0-9]|[!-/:-@\[-`{-~]+|\n")
_A_BYTE = 0.4
"""Tokens for a byte of the UTF-8 of any other character: 1.2 for a Chinese one, 0.8 for a Cyrillic one."""
_A_MESSAGE = 4
"""What stands around each message."""
_A_MEDIUM = 1000
"""A picture, a sound or a document."""


def estimate_tokens(content: str | Sequence[Message]) -> int:
    """Guess by a rule how many tokens a text or messages are.

    Every seven letters of a word begun, every digit, run of punctuation and line break is one token, and every byte of
    a character beyond ASCII 0.4. A message has 4 more, and a picture in it is 1,000. The page on legibility has how far
    this was off for several kinds of text; of data without words, such as base64, it is half of what there is.
    """
    return _of_text(content) if isinstance(content, str) else sum(map(_of_message, content))


def _of_text(text: str) -> int:
    pieces = sum(1 for _ in _PIECES.finditer(text))
    if text.isascii():
        return pieces
    others = sum(len(character.encode("utf-8", "surrogatepass")) for character in text if character > "\x7f")
    return pieces + math.ceil(_A_BYTE * others)


def _of_message(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    texts += [text for function in functions for text in (function["name"], function["arguments"])]
    texts += [block.get("thinking", "") for block in message.get("thinking_blocks") or ()]
    texts.append(message.get("reasoning_content") or "")
    return _A_MESSAGE + sum(map(_of_text, texts)) + _A_MEDIUM * sum(part["type"] != "text" for part in parts)
