"""The names that OpenTelemetry's semantic conventions for generative AI give to what we tell.

They are those of version 1.41.0, the last that was published together with a schema, and what backends read. They go
on in a repository of their own (`semantic-conventions-genai`), whose first version, 0.1.0, says of itself that more
will change: it has other metrics for tokens and durations, and `cache_write` for `cache_creation`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["OURS", "SCHEMA_URL", "SECONDS", "TOKENS", "VERSION", "provider_of"]

VERSION = "1.41.0"
"""The version of the conventions."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

OURS = "effectful_agents"
"""What the names of attributes begin with that are in no convention."""

TOKENS = tuple(4**power for power in range(14))
"""Boundaries of the buckets of tokens."""
SECONDS = tuple(0.01 * 2**power for power in range(14))
"""Boundaries of the buckets of durations."""

_PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "anthropic",
        "azure": "azure.ai.openai",
        "azure_ai": "azure.ai.inference",
        "bedrock": "aws.bedrock",
        "bedrock_converse": "aws.bedrock",
        "cohere": "cohere",
        "cohere_chat": "cohere",
        "deepseek": "deepseek",
        "gemini": "gcp.gemini",
        "groq": "groq",
        "mistral": "mistral_ai",
        "moonshot": "moonshot_ai",
        "openai": "openai",
        "perplexity": "perplexity",
        "vertex_ai": "gcp.vertex_ai",
        "watsonx": "ibm.watsonx.ai",
        "xai": "x_ai",
    }
)
"""By the first part of a model's name, as LiteLLM writes it. Another stands for itself, as the conventions allow."""

_FAMILIES = (
    (re.compile(r"(gpt-|chatgpt-|o\d|codex-|text-)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "gcp.gen_ai"),
    (re.compile(r"(mistral|ministral|magistral|codestral|devstral)"), "mistral_ai"),
    (re.compile(r"command"), "cohere"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"grok"), "x_ai"),
)


def provider_of(model: str) -> str:
    """The value of `gen_ai.provider.name` for a model, by its name; `unknown` where that does not say it.

    >>> provider_of("bedrock/anthropic.claude-sonnet-4-5"), provider_of("gpt-5-mini"), provider_of("ollama/qwen3")
    ('aws.bedrock', 'openai', 'ollama')
    """
    prefix, slash, _ = model.partition("/")
    if slash and prefix:
        return _PROVIDERS.get(prefix, prefix)
    return next((provider for pattern, provider in _FAMILIES if pattern.match(model)), "unknown")
