"""Tokens as services report them, where that is not in the usage, or where LiteLLM says more than the service did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from effectful_agents.messages.usage import token_count

__all__ = ["measured", "reported_in_pieces", "with_timings"]


def with_timings(usage: Mapping[str, Any], timings: Any) -> dict[str, Any]:
    """The usage with what llama.cpp's server says beside it: how many tokens of the prompt it had in its cache.

    >>> with_timings({"prompt_tokens": 30}, {"cache_n": 20, "prompt_n": 10})
    {'prompt_tokens': 30, 'prompt_tokens_details': {'cached_tokens': 20}}
    """
    cached = token_count(timings.get("cache_n")) if isinstance(timings, Mapping) else None
    details = usage.get("prompt_tokens_details") or {}
    if cached is None or not isinstance(details, Mapping) or details.get("cached_tokens") is not None:
        return dict(usage)
    return {**usage, "prompt_tokens_details": {**details, "cached_tokens": cached}}


def measured(usage: Mapping[str, Any], reasoning: Any, count: Callable[[str], int]) -> dict[str, Any]:
    """The usage that LiteLLM reports, without what nobody has measured.

    Of Anthropic's messages and Bedrock's Converse it makes 0 where nothing is said of a cache, 0 for reasoning where
    none came, and counts for itself where some did, with the tokenizer of other models.

    Args:
        usage: The usage, all that is None left out.
        reasoning: The reasoning in the reply, if there is any.
        count: How many tokens a text has by LiteLLM's own count.
    """
    # Only of these two dialects it says this for every reply.
    if "cache_creation_input_tokens" not in usage:
        return dict(usage)
    usage = dict(usage)
    prompt, replied = (dict(usage.get(f"{which}_tokens_details") or {}) for which in ("prompt", "completion"))
    cached = (usage["cache_creation_input_tokens"], usage.get("cache_read_input_tokens", 0))
    # A service that has a cache says for how long something was written to it, or that nothing was.
    if cached == (0, 0) and not prompt.get("cache_creation_token_details"):
        _drop(usage, "cache_creation_input_tokens", "cache_read_input_tokens")
        _drop(prompt, "cached_tokens", "cache_creation_tokens", "cache_write_tokens")
    thought = replied.get("reasoning_tokens")
    counted = count(reasoning) if thought and isinstance(reasoning, str) and reasoning else 0
    if thought is not None and thought == min(counted, usage.get("completion_tokens", counted)):
        _drop(replied, "reasoning_tokens", "text_tokens")
    return usage | {"prompt_tokens_details": prompt, "completion_tokens_details": replied}


def reported_in_pieces(usage: Mapping[str, Any], reported: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The usage that LiteLLM has put together of a stream, without the details that no piece of it had.

    Args:
        usage: The usage, all that is None left out.
        reported: That of each piece which had one.
    """
    kept: dict[str, Any] = {}
    for name, value in usage.items():
        if not name.endswith("_details"):
            kept[name] = value
            continue
        pieces = [piece for one in reported if isinstance(piece := one.get(name), Mapping)]
        kept[name] = {key: one for key, one in value.items() if any(piece.get(key) is not None for piece in pieces)}
    return {name: value for name, value in kept.items() if value != {}}


def _drop(counts: dict[str, Any], *names: str) -> None:
    for name in names:
        counts.pop(name, None)
