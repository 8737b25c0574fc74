"""What tokens cost: by default, by the table of prices that LiteLLM brings."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from effectful_agents.messages import Usage
from effectful_agents.runtime import Operation

__all__ = ["cost_of"]


@Operation.define
def cost_of(model: str, usage: Usage) -> float | None:
    """What the tokens of a model cost, in US dollars. A handler may know other prices, and forwards for other models.

    Args:
        model: The name of the model, with or without its provider.
        usage: The tokens.

    Returns:
        The sum; None where the table has no price for the model, or nobody counted the tokens.

    >>> cost_of("nobody/knows-this", Usage(input=10, output=1)) is None
    True
    """
    prices = _prices().get(model) or _prices().get(model.rpartition("/")[2])
    if not prices or usage.input is None or usage.output is None:
        return None
    price, price_out = prices.get("input_cost_per_token"), prices.get("output_cost_per_token")
    if price is None or price_out is None:
        return None
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return (
        max(0, usage.input - read - written) * price
        + read * prices.get("cache_read_input_token_cost", price)
        + written * prices.get("cache_creation_input_token_cost", price)
        + usage.output * price_out
    )


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
