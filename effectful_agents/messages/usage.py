"""Tokens: as providers report them, and as we count them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypedDict

__all__ = ["CompletionUsage", "Usage"]


class _PromptDetails(TypedDict, total=False):
    cached_tokens: int | None
    cache_creation_tokens: int | None


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

    @classmethod
    def from_wire(cls, usage: Mapping[str, Any] | None) -> Usage:
        """Read the `usage` of a reply; what is not there, or is no number of tokens, is None.

        >>> Usage.from_wire({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}})
        Usage(input=9, output=2, reasoning=None, cache_read=4, cache_write=None, estimated=False)
        """
        return cls(
            input=_count(usage, "prompt_tokens"),
            output=_count(usage, "completion_tokens"),
            reasoning=_count(usage, "completion_tokens_details", "reasoning_tokens"),
            cache_read=_first(
                _count(usage, "prompt_tokens_details", "cached_tokens"), _count(usage, "cache_read_input_tokens")
            ),
            cache_write=_first(
                _count(usage, "prompt_tokens_details", "cache_creation_tokens"),
                _count(usage, "cache_creation_input_tokens"),
            ),
        )


def _count(usage: Any, *path: str) -> int | None:
    for name in path:
        usage = usage.get(name) if isinstance(usage, Mapping) else None
    return usage if isinstance(usage, int) and not isinstance(usage, bool) else None


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None:
        return other
    return one if other is None else one + other


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one
