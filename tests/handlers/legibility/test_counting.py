"""How many tokens something is: by a rule, with the local model's tokenizer, with those that LiteLLM brings."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Agent, fwd, handler
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.operations import counting
from effectful_agents.operations.counting import TokenCount, count_tokens, estimate_tokens
from effectful_agents.operations.loop import completion

PICTURE: Any = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
CALL: Any = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CONVERSATION: list[Any] = [
    {"role": "system", "content": "You know the weather."},
    {"role": "user", "content": "How is the weather in Oslo?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny, 21 degrees"},
    {"role": "assistant", "content": "It is sunny."},
    {"role": "user", "content": "Thank you!"},
]
ROWS = [
    {"id": i, "name": f"item {i}", "price": i * 37 / 10, "tags": ["red", "large"], "url": f"https://example.org/{i}"}
    for i in range(50)
]
TEXTS = {
    "prose": (Path(__file__).parents[3] / "docs" / "rationale.md").read_text(encoding="utf-8")[:8000],
    "code": inspect.getsource(counting) + inspect.getsource(Agent),
    "json": json.dumps(ROWS),
    "indented json": json.dumps(ROWS, indent=2),
    "chinese": "今天早上我很早就起床了，因为外面的天气非常好。吃过早饭以后，我和几个朋友一起去了城市北边的公园。"  # noqa: RUF001
    "公园里的人不多，湖面上有几只小船，岸边的柳树刚刚长出新的叶子。我们沿着湖边慢慢地走，一边走一边谈论最近读过的书。",  # noqa: RUF001
}


# The rule


def test_without_a_handler_it_is_an_estimate():
    assert count_tokens("Three short words") == TokenCount(3, estimated=True)
    assert count_tokens("") == TokenCount(0, estimated=True)
    assert count_tokens([]) == TokenCount(0, estimated=True)
    assert count_tokens("Three short words", "gpt-5-mini") == TokenCount(3, estimated=True)


def test_all_that_a_model_reads_of_a_message_counts():
    bare = estimate_tokens([{"role": "assistant", "content": None}])
    for extra in (
        {"content": "words"},
        {"tool_calls": [CALL]},
        {"reasoning_content": "thoughts"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "thoughts"}]},
        {"content": [{"type": "text", "text": "words"}]},
    ):
        message: Any = {"role": "assistant", "content": None, **extra}
        assert estimate_tokens([message]) > bare
    assert estimate_tokens([{"role": "user", "content": [PICTURE]}]) == bare + 1000


@given(st.text(), st.text())
def test_a_longer_text_has_no_fewer_tokens(one, other):
    assert max(estimate_tokens(one), estimate_tokens(other)) <= estimate_tokens(one + other) + 1
    assert estimate_tokens(one + other) <= estimate_tokens(one) + estimate_tokens(other) + 1


@given(st.lists(st.text(), max_size=5))
def test_messages_are_counted_one_by_one(texts):
    messages: list[Any] = [{"role": "user", "content": text} for text in texts]
    assert estimate_tokens(messages) == sum(4 + estimate_tokens(text) for text in texts)


# The local model's own


@pytest.mark.local_model
@pytest.mark.parametrize("messages", [CONVERSATION, CONVERSATION[1:2], CONVERSATION[:2], CONVERSATION[1:4]])
def test_a_local_model_counts_what_it_will_report(messages):
    with handler(LocalModel()):
        count = count_tokens(messages)
        reply = completion(messages=messages, max_tokens=1)
    assert count == TokenCount(reply["usage"]["prompt_tokens"], estimated=False, limit=4096)


@pytest.mark.local_model
def test_counting_leaves_the_prefix_that_the_model_keeps():
    messages: list[Any] = [{"role": "user", "content": "How do you do? " * 20}]
    with handler(LocalModel()):
        completion(messages=messages, max_tokens=1)
        count = count_tokens(messages)
        count_tokens("something else")
        reply = completion(messages=messages, max_tokens=1)
    assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == count.tokens - 1


@pytest.mark.local_model
def test_what_is_longer_than_the_context_is_counted_too():
    with handler(LocalModel()):
        assert count_tokens("hello" + " world" * 9999) == TokenCount(10_000, estimated=False, limit=4096)
        assert count_tokens("") == TokenCount(0, estimated=False, limit=4096)


@pytest.mark.local_model
def test_it_counts_for_the_models_that_it_answers_for():
    with handler(LocalModel(None)):
        assert count_tokens("hello").estimated
        assert not count_tokens("hello", "local/smollm2").estimated
        assert count_tokens("hello", "gpt-5-mini") == TokenCount(1, estimated=True)


@pytest.mark.local_model
def test_what_a_local_model_cannot_read_is_estimated():
    with handler(LocalModel()):
        assert count_tokens([{"role": "user", "content": [PICTURE]}]) == TokenCount(1004, estimated=True, limit=4096)
    with handler(LocalModel("local/absent.gguf", context=512)):
        assert count_tokens("hello") == TokenCount(1, estimated=True, limit=512)


@pytest.mark.local_model
@pytest.mark.parametrize(
    ("kind", "error"), [("prose", 0.1), ("code", 0.1), ("json", 0.15), ("indented json", 0.15), ("chinese", 0.4)]
)
def test_the_estimate_is_off_by_no_more_than_the_manual_says(kind, error):
    with handler(LocalModel()):
        tokens = count_tokens(TEXTS[kind]).tokens
    assert estimate_tokens(TEXTS[kind]) == pytest.approx(tokens, rel=error)


# LiteLLM's


def test_litellm_is_not_loaded_to_count():
    code = """
import sys
from effectful_agents import handler
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.loop import count_tokens
with handler(LiteLLMConfigurer("gpt-5-mini")):
    print(count_tokens("hello").estimated, "litellm" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.fixture
def _loaded(_litellm_is_loaded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM, as after a first request, on a machine without a network."""
    import socket

    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("counting used the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("_loaded")
@pytest.mark.parametrize("model", ["gpt-5-mini", "gpt-4o", "openai/gpt-4o"])
def test_texts_are_exact_for_models_of_openai(model):
    with handler(LiteLLMConfigurer(model)):
        count = count_tokens("Hello world, how are you?")
    assert (count.tokens, count.estimated) == (7, False)
    assert count.limit is not None
    assert count.limit >= 100_000


@pytest.mark.usefixtures("_loaded")
@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000),
        ("replicate/meta/llama-2-70b", 4096),
        ("groq/llama-3-unknown", None),
        ("ollama/qwen3", None),
        ("nobody/knows-it", None),
    ],
)
def test_other_models_get_an_estimate_without_a_network(model, limit):
    with handler(LiteLLMConfigurer()):
        count = count_tokens("Hello world, how are you?", model)
    assert count == TokenCount(7, estimated=True, limit=limit)


@pytest.mark.usefixtures("_loaded")
def test_messages_with_calls_and_pictures_are_counted_and_left_alone():
    messages = [*CONVERSATION, {"role": "user", "content": [{"type": "text", "text": "And this?"}, PICTURE]}]
    before = copy.deepcopy(messages)
    with handler(LiteLLMConfigurer("gpt-5-mini")):
        count = count_tokens(messages)
        without = count_tokens(CONVERSATION)
    assert messages == before
    assert count.estimated
    assert 20 < without.tokens < count.tokens


@pytest.mark.usefixtures("_loaded")
def test_local_models_and_requests_without_a_model_go_past_it():
    asked: list[Any] = []

    def note(content, model=None):
        asked.append(model)
        return fwd()

    with handler({count_tokens: note}):
        with handler(LiteLLMConfigurer("gpt-5-mini")):
            count_tokens("hello", "local/absent.gguf")
        with handler(LiteLLMConfigurer()):
            count_tokens("hello")
    assert asked == ["local/absent.gguf", None]
