"""Counting tokens with the tokenizers that come with LiteLLM."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from effectful_agents.messages import Message
from effectful_agents.operations.counting import TokenCount

__all__ = ["count"]


def count(litellm: ModuleType, content: str | Sequence[Message], model: str) -> TokenCount | None:
    """Count a text or messages.

    It is exact for texts and OpenAI's models. For others LiteLLM would fetch a tokenizer from a network, or take one of
    an earlier model; OpenAI's common one stands in for these, and the count is marked as an estimate. What goes around
    messages, and pictures in them, is estimated for all.

    Args:
        litellm: The library, which is loaded.
        content: A text, or messages.
        model: The model, as LiteLLM names it.

    Returns:
        The count, with the limit of the model where the library knows it; None if it cannot count this.
    """
    # Looked up by hand: LiteLLM's own function asks a server of Ollama's over the network.
    service, _, name = model.rpartition("/")
    entries = [litellm.model_cost.get(model), litellm.model_cost.get(name)]
    about = next((one for one in entries if one and one.get("litellm_provider") == (service or "openai")), {})
    about = about or entries[0] or {}
    is_openai = about.get("litellm_provider") == "openai"
    known = {"model": name if is_openai else ""}
    try:
        if isinstance(content, str):
            tokens = litellm.token_counter(**known, text=content)
        else:
            # Without the last argument it would fetch a picture to find out how large it is.
            tokens = litellm.token_counter(
                **known, messages=[dict(message) for message in content], use_default_image_token_count=True
            )
    except Exception:  # it raises whatever there is; the rule of the operation counts anything
        return None
    exact = is_openai and isinstance(content, str)
    return TokenCount(tokens, estimated=not exact, limit=about.get("max_input_tokens"))
