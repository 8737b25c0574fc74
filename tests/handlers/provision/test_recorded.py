"""What services have sent, read by LiteLLM and by `HttpModel`: the tokens, the text and the calls.

All tests that need LiteLLM for it are in this file, so that one process loads it.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness, usage
from effectful_agents.errors import ConfigurationError, ProviderError
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.messages import Finish, StreamStart, TextDelta, ToolCallDelta, Usage
from effectful_agents.operations.loop import completion
from effectful_agents.testing import ReplayModel
from tests.handlers.provision.http.server import HI, Server, listening, stream

RECORDED = Path(__file__).parents[2] / "recorded"
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]

CALL, ANSWER, PLAIN = "call", "answer", "plain"
USED: dict[str, dict[str, Usage]] = {
    "openai": {
        CALL: Usage(input=1460, output=90, reasoning=64, cache_read=0),
        ANSWER: Usage(input=1574, output=10, reasoning=0, cache_read=1408),
    },
    "anthropic": {
        CALL: Usage(input=2069, output=74, cache_read=0, cache_write=2048),
        ANSWER: Usage(input=2178, output=9, cache_read=2048, cache_write=0),
        PLAIN: Usage(input=40, output=9, cache_read=0, cache_write=0),
    },
    "gemini": {
        CALL: Usage(input=88, output=72, reasoning=57),
        ANSWER: Usage(input=2150, output=8, cache_read=2030),
    },
    "bedrock": {
        CALL: Usage(input=2060, output=41, cache_read=0, cache_write=2048),
        ANSWER: Usage(input=2144, output=9, cache_read=2048, cache_write=0),
        PLAIN: Usage(input=40, output=9),
    },
    "mistral": {CALL: Usage(input=92, output=27), ANSWER: Usage(input=141, output=8, cache_read=64)},
    "ollama": {CALL: Usage(input=171, output=22), ANSWER: Usage(input=204, output=8)},
    "llama_cpp": {
        CALL: Usage(input=180, output=21, cache_read=0),
        ANSWER: Usage(input=214, output=8, cache_read=200),
    },
    "deepseek": {
        CALL: Usage(input=300, output=45, reasoning=20, cache_read=0),
        ANSWER: Usage(input=366, output=9, cache_read=320),
    },
}
"""What the bodies say, by hand."""

PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "bedrock": "bedrock",
    "mistral": "mistral",
    "ollama": "ollama_chat",
    "llama_cpp": "hosted_vllm",
    "deepseek": "deepseek",
}
"""The services, as LiteLLM names them."""
STREAMS = {"bedrock": ".eventstream", "ollama": ".ndjson"}
COMPATIBLE = ("openai", "mistral", "llama_cpp", "deepseek")
BODIES = [(service, name) for service, bodies in USED.items() for name in bodies]


def body(service: str, name: str, *, streamed: bool) -> Path:
    return RECORDED / service / (name + (STREAMS.get(service, ".sse") if streamed else ".json"))


def check_message(reply: Any, name: str) -> None:
    choice = reply["choices"][0]
    if name != CALL:
        assert choice["message"]["content"] == "It is cold in Oslo."
        assert choice["finish_reason"] == "stop"
        return
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
    assert choice["finish_reason"] == "tool_calls"


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: -3 degrees"


@Skill.define
def describe(city: str) -> str:
    """Describe the weather in {city}."""
    raise NotHandled


@pytest.fixture
def litellm(_litellm_is_loaded: None) -> None:
    pass


# --- by LiteLLM -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("service", "name"), BODIES)
def test_litellm_reads_tokens_and_message(service: str, name: str, streamed: bool):
    model = ReplayModel(body(service, name, streamed=streamed), provider=PROVIDERS[service])
    with handler(model), listening() as heard:
        reply = completion(messages=HI, tools=TOOLS)
    check_message(reply, name)
    used = Usage.from_wire(reply["usage"])
    if service == "llama_cpp" and streamed:
        # LiteLLM drops the timings of a stream: nobody has measured it, then.
        assert used == Usage(input=USED[service][name].input, output=USED[service][name].output)
    else:
        assert used == USED[service][name]
    assert isinstance(heard[0], StreamStart)
    assert heard[-1] == Finish(reply)
    pieces = [event for event in heard if isinstance(event, TextDelta | ToolCallDelta)]
    assert len(pieces) >= 1
    assert ("provider_metadata" not in reply) is streamed


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("service", list(USED))
def test_a_whole_call_runs_on_recorded_bodies_and_its_tokens_add_up(service: str, streamed: bool):
    model = ReplayModel(
        *(body(service, name, streamed=streamed) for name in (CALL, ANSWER)), provider=PROVIDERS[service]
    )
    with usage() as used, handler(model), handler(harness(eval_provider="none")):
        assert describe("Oslo") == "It is cold in Oslo."
    assert model.remaining == 0
    assert model.requests[1]["messages"][-1]["content"] == "Oslo: -3 degrees"
    both = USED[service][CALL] + USED[service][ANSWER]
    assert (used.requests, used.input, used.output) == (2, both.input, both.output)
    if not (service == "llama_cpp" and streamed):
        assert used.usage == both


@pytest.mark.usefixtures("litellm")
def test_a_body_is_read_in_a_call_that_is_awaited():
    model = ReplayModel(*(body("anthropic", name, streamed=True) for name in (CALL, ANSWER)), provider="anthropic")

    async def main() -> str:
        with handler(model), handler(harness(eval_provider="none")):
            return await acall(describe, "Oslo")

    assert asyncio.run(main()) == "It is cold in Oslo."


@pytest.mark.usefixtures("litellm")
@pytest.mark.parametrize(
    ("service", "model", "per_million"),
    [
        ("openai", "openai/gpt-5-mini", (0.25, 0.025, 0.25, 2.0)),
        ("anthropic", "anthropic/claude-sonnet-4-5", (3.0, 0.3, 3.75, 15.0)),
        ("gemini", "gemini/gemini-2.5-flash", (0.3, 0.03, 0.3, 2.5)),
        ("bedrock", "bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0", (3.0, 0.3, 3.75, 15.0)),
        ("mistral", "mistral/mistral-large-latest", (0.5, 0.05, 0.5, 1.5)),
        ("ollama", "ollama_chat/qwen3:8b", (0.0, 0.0, 0.0, 0.0)),
        ("deepseek", "deepseek/deepseek-reasoner", (0.28, 0.028, 0.28, 0.42)),
    ],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_each_kind_of_token_has_its_price(service: str, model: str, per_million: Any, streamed: bool):
    replay = ReplayModel(*(body(service, name, streamed=streamed) for name in (CALL, ANSWER)), provider=model)
    with usage() as used, handler(replay), handler(harness(model=model, eval_provider="none")):
        describe("Oslo")
    read, cached, written, replied = per_million
    counts = used.usage
    assert counts.input is not None
    assert counts.output is not None
    fresh = counts.input - (counts.cache_read or 0) - (counts.cache_write or 0)
    cost = fresh * read + (counts.cache_read or 0) * cached + (counts.cache_write or 0) * written
    assert used.cost == pytest.approx((cost + counts.output * replied) / 1e6)


@pytest.mark.usefixtures("litellm")
def test_a_provider_that_litellm_does_not_know_is_named():
    with handler(ReplayModel(body("openai", ANSWER, streamed=False), provider="nobody")):
        with pytest.raises(ConfigurationError, match="nobody"):
            completion(messages=HI)


@pytest.mark.usefixtures("litellm")
def test_a_body_that_is_no_reply_fails_as_a_request_does(tmp_path: Path):
    (tmp_path / "reply.json").write_text("<html>")
    with handler(ReplayModel(tmp_path / "reply.json", provider="anthropic")), pytest.raises(ProviderError):
        completion(messages=HI)


@pytest.mark.usefixtures("litellm")
def test_the_key_of_a_request_is_not_used_for_a_body():
    with handler(ReplayModel(body("anthropic", ANSWER, streamed=False), provider="anthropic")):
        reply = completion(messages=HI, model="anthropic/claude-sonnet-4-5", api_key="sk-real", base_url="http://x")
    check_message(reply, ANSWER)


# --- by our own -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", [CALL, ANSWER])
@pytest.mark.parametrize("service", COMPATIBLE)
def test_bodies_that_are_compatible_are_read_without_litellm(service: str, name: str, streamed: bool):
    with handler(ReplayModel(body(service, name, streamed=streamed))), listening() as heard:
        reply = completion(messages=HI, tools=TOOLS)
    check_message(reply, name)
    assert Usage.from_wire(reply["usage"]) == USED[service][name]
    assert heard[-1] == Finish(reply)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("service", COMPATIBLE)
def test_a_server_that_sends_them_gives_the_same(server: Server, service: str, streamed: bool):
    sent = [body(service, name, streamed=streamed).read_bytes() for name in (CALL, ANSWER)]
    server.will(*(stream(one) if streamed else json.loads(one) for one in sent))
    model = HttpModel(server.url, model="m", num_retries=0)
    with usage() as used, handler(harness(model="m", eval_provider="none")), handler(model), listening():
        assert describe("Oslo") == "It is cold in Oslo."
    assert used.usage == USED[service][CALL] + USED[service][ANSWER]


def test_when_the_bodies_have_run_out_it_is_said_with_the_last_message():
    with handler(ReplayModel(body("openai", ANSWER, streamed=False))):
        completion(messages=HI)
        with pytest.raises(ConfigurationError, match=r"given 1 body .*user, 'hi'"):
            completion(messages=HI)
