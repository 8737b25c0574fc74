"""Tokens: as providers report them, and as we count them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypedDict

__all__ = ["CompletionUsage", "Usage", "token_count"]


class _PromptDetails(TypedDict, total=False):
    cached_tokens: int | None
    cache_creation_tokens: int | None
    cache_write_tokens: int | None


class _CompletionDetails(TypedDict, total=False):
    reasoning_tokens: int | None


class CompletionUsage(TypedDict, total=False):
    """Tokens of one reply, in the shape of chat completions."""

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    prompt_tokens_details: _PromptDetails | None
    completion_tokens_details: _CompletionDetails | None
    cache_creation_input_tokens: int | None
    cache_read_input_tokens: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were used.

    None means that nobody measured it; 0 means that it was measured, and was zero. The sum of two usages knows a count
    that at least one of them knows.

    Attributes:
        input: Tokens of the prompts, those served from a cache included.
        output: Tokens of the replies, reasoning included.
        reasoning: Tokens of reasoning.
        cache_read: Tokens of the prompts that were served from a cache.
        cache_write: Tokens of the prompts that were written to a cache.
        estimated: Whether a count was derived instead of reported.

    >>> Usage(input=100, output=20) + Usage(input=50, output=5, cache_read=0)
    Usage(input=150, output=25, reasoning=None, cache_read=0, cache_write=None, estimated=False)
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input, other.input),
            _sum(self.output, other.output),
            _sum(self.reasoning, other.reasoning),
            _sum(self.cache_read, other.cache_read),
            _sum(self.cache_write, other.cache_write),
            self.estimated or other.estimated,
        )

    @property
    def total(self) -> int | None:
        """Tokens of prompts and replies together; None where one of the two was not measured."""
        return None if self.input is None or self.output is None else self.input + self.output

    @classmethod
    def from_wire(cls, usage: Mapping[str, Any] | None) -> Usage:
        """Read the `usage` of a reply; what is not there, or is no number of tokens, is None.

        It is read in the form of chat completions, with the names that services add to it, and in those of OpenAI's
        responses and Anthropic's messages. The latter count the tokens of the cache beside those of the prompt.

        >>> Usage.from_wire({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}})
        Usage(input=9, output=2, reasoning=None, cache_read=4, cache_write=None, estimated=False)
        >>> Usage.from_wire({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 40}).input
        49
        """
        cache_read = _first(usage, *_CACHE_READ)
        cache_write = _first(usage, *_CACHE_WRITE)
        read = _first(usage, ("prompt_tokens",))
        if read is None:
            read = _first(usage, ("input_tokens",))
            if read is not None and usage is not None and not usage.get("input_tokens_details"):
                beside = [_first(usage, (name,)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
                read += sum(count or 0 for count in beside)
        return cls(
            input=read,
            output=_first(usage, ("completion_tokens",), ("output_tokens",)),
            reasoning=_first(usage, *_REASONING),
            cache_read=cache_read,
            cache_write=cache_write,
        )


# Where services report it; the first that is there counts.
_CACHE_READ = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("prompt_cache_hit_tokens",),  # DeepSeek
)
_CACHE_WRITE = (
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
_REASONING = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "thinking_tokens"),  # Anthropic
    ("reasoning_tokens",),
)

_DIGITS = 15
"""A number with more of them counts no tokens."""


def token_count(value: Any) -> int | None:
    """A reported number of tokens, in whatever form it was written; None where it is none.

    >>> [token_count(value) for value in (3, 3.0, "3", 3.5, -3, True, "three", float("nan"), None)]
    [3, 3, 3, None, None, None, None, None, None]
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 10**_DIGITS and value == int(value) else None


def _first(usage: Any, *paths: tuple[str, ...]) -> int | None:
    for path in paths:
        value = usage
        for name in path:
            # Every reply is read here, most of it is not there, and to ask an abstract class takes a while.
            if value is None:
                break
            value = value.get(name) if type(value) is dict or isinstance(value, Mapping) else None
        if value is not None and (count := token_count(value)) is not None:
            return count
    return None


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None:
        return other
    return one if other is None else one + other
