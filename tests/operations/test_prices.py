"""What tokens cost, and by which name of a model that is looked up."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents.messages import Usage
from effectful_agents.operations.prices import cost_of, model_of

MILLION = Usage(input=10**6, output=10**6)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-5-mini", 2.25),
        ("openai/gpt-5-mini", 2.25),
        ("azure/gpt-5-mini-2025-08-07", 2.25),
        ("anthropic/claude-sonnet-4-5", 18.0),
        ("bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0", 18.0),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 19.8),
        ("mistral/mistral-large-latest", 2.0),
        ("local/smollm2", 0.0),
        ("ollama/qwen3", 0.0),
        ("ollama_chat/qwen3:8b", 0.0),
    ],
)
def test_a_model_is_found_with_its_provider_and_without(model: str, dollars: float):
    assert cost_of(model, MILLION) == pytest.approx(dollars)


@pytest.mark.parametrize(
    "model", ["", "nobody", "nobody/knows", "local", "hosted_vllm/gpt-5-mini", "ollama/gpt-oss:120b-cloud"]
)
def test_a_model_without_a_price_has_none(model: str):
    assert cost_of(model, MILLION) is None


@pytest.mark.parametrize("usage", [Usage(), Usage(input=1), Usage(output=1)])
def test_tokens_that_nobody_counted_have_no_price_but_on_this_machine(usage: Usage):
    assert cost_of("gpt-5-mini", usage) is None
    assert cost_of("local/smollm2", usage) == 0.0


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (Usage(input=10**6, output=0), 3.0),
        (Usage(input=10**6, output=0, cache_read=10**6), 0.3),
        (Usage(input=10**6, output=0, cache_write=10**6), 3.75),
        (Usage(input=10**6, output=0, cache_read=500_000, cache_write=250_000), 0.15 + 0.9375 + 0.75),
        (Usage(input=0, output=10**6, reasoning=400_000), 15.0),
    ],
)
def test_tokens_of_a_cache_have_their_own_price(usage: Usage, dollars: float):
    assert cost_of("claude-sonnet-4-5", usage) == pytest.approx(dollars)


def test_reasoning_has_its_own_price_where_a_model_has_one():
    plain, thinking = (cost_of("dashscope/qwen-turbo", Usage(0, 10**6, reasoning)) for reasoning in (0, 10**6))
    assert plain is not None
    assert thinking is not None
    assert thinking > plain > 0


@pytest.mark.parametrize(
    ("request_", "reply", "name"),
    [
        ({"model": "gpt-5-mini"}, {"model": "gpt-5-mini-2025-08-07"}, "gpt-5-mini-2025-08-07"),
        ({"model": "openai/gpt-5-mini"}, {"model": "gpt-5-mini"}, "openai/gpt-5-mini"),
        ({"model": "mistral/mistral-large-latest"}, {"model": "mistral-large-2512"}, "mistral/mistral-large-2512"),
        ({"model": "openrouter/a/b"}, {"model": "a/b"}, "openrouter/a/b"),
        ({"model": "ollama_chat/qwen3:8b"}, {"model": "ollama_chat/qwen3:8b"}, "ollama_chat/qwen3:8b"),
        ({"model": "gpt-5"}, {}, "gpt-5"),
        ({"model": "gpt-5"}, None, "gpt-5"),
        ({}, {"model": "gpt-5"}, "gpt-5"),
        ({}, {}, "asked"),
        ({"model": "gpt-5"}, {"model": "b", "provider_metadata": {"fallback": {"model": "a/b"}}}, "a/b"),
        ({"model": "gpt-5"}, {"model": "", "provider_metadata": []}, "gpt-5"),
        ({"model": "gpt-5"}, "no reply", "gpt-5"),
    ],
)
def test_the_model_that_replied_is_named_so_that_it_has_a_price(request_: Any, reply: Any, name: str):
    assert model_of(request_, reply, "asked") == (name if request_ or reply else "asked")
