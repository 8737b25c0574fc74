"""What tokens cost: by default, by the table of prices that LiteLLM brings."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from effectful_agents.messages import Usage
from effectful_agents.runtime import Operation

__all__ = ["cost_of", "model_of"]


@Operation.define
def cost_of(model: str, usage: Usage) -> float | None:
    """What the tokens of a model cost, in US dollars. A handler may know other prices, and forwards for other models.

    The table has the list price of each model. Tokens that came from a cache, or were written to one, have their own.
    Left out are the higher prices of single requests above 200,000 tokens and of caches that are kept for an hour, what
    services take for tools of theirs, and rebates. A model on this machine (`local/…`, `ollama/…`) costs nothing.

    Args:
        model: The name of the model, with or without its provider.
        usage: The tokens.

    Returns:
        The sum; None where the table has no price for the model, or nobody counted the tokens.

    >>> cost_of("nobody/knows-this", Usage(input=10, output=1)) is None
    True
    """
    service, _, name = model.partition("/")
    if service in _ON_THIS_MACHINE and name:
        return None if name.endswith(_ELSEWHERE) else 0.0
    prices = next((found for name in _names(model) if (found := _prices().get(name))), None)
    if not prices or usage.input is None or usage.output is None:
        return None
    price, price_out = prices.get("input_cost_per_token"), prices.get("output_cost_per_token")
    if price is None or price_out is None:
        return None
    read, written, reasoning = usage.cache_read or 0, usage.cache_write or 0, usage.reasoning or 0
    return (
        max(0, usage.input - read - written) * price
        + read * prices.get("cache_read_input_token_cost", price)
        + written * prices.get("cache_creation_input_token_cost", price)
        + max(0, usage.output - reasoning) * price_out
        + min(usage.output, reasoning) * prices.get("output_cost_per_reasoning_token", price_out)
    )


def model_of(request: Mapping[str, Any], response: Any, asked: str | None = None) -> str:
    """The model that replied, by a name for which there is a price; empty where nobody named one.

    A reply says more exactly than a request which model it was, and often leaves out whose.

    Args:
        request: The request.
        response: The reply, if there is one.
        asked: The model that is asked where the request names none.

    >>> model_of({"model": "azure/our-deployment"}, {"model": "gpt-5-mini-2025-08-07"})
    'azure/gpt-5-mini-2025-08-07'
    >>> model_of({"model": "bedrock/converse/amazon.nova-lite-v1:0"}, {"model": "amazon.nova-lite-v1:0"})
    'bedrock/converse/amazon.nova-lite-v1:0'
    """
    response = response if isinstance(response, Mapping) else {}
    metadata = response.get("provider_metadata")
    instead = metadata.get("fallback") if isinstance(metadata, Mapping) else None
    asked = str((instead and instead.get("model")) or request.get("model") or asked or "")
    replied = str(response.get("model") or "")
    if not replied or asked == replied or asked.endswith(f"/{replied}"):
        return asked
    service, _, name = asked.partition("/")
    return replied if "/" in replied or not name else f"{service}/{replied}"


_ON_THIS_MACHINE = frozenset({"local", "ollama", "ollama_chat", "lm_studio", "llamafile"})
_ELSEWHERE = ("-cloud", ":cloud")
"""How the names of models end that Ollama has run by others."""
_OF_ONES_OWN = frozenset({"hosted_vllm", "vllm", "xinference", "custom_openai"})
"""Their models are named as those of others, and have not their prices."""


def _names(model: str) -> Iterator[str]:
    """The names by which the table may have a model."""
    yield model
    service, slash, rest = model.partition("/")
    while slash and service not in _OF_ONES_OWN:
        yield rest
        _, slash, rest = rest.partition("/")


@functools.cache
def _prices() -> Mapping[str, Mapping[str, Any]]:
    # The file and not the package, whose import takes seconds.
    found = importlib.util.find_spec("litellm")
    if found is None or found.origin is None:
        return {}
    try:
        return json.loads((Path(found.origin).parent / "model_prices_and_context_window_backup.json").read_bytes())
    except (OSError, ValueError):  # another version of LiteLLM keeps them elsewhere
        return {}
