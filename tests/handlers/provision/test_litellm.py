"""LiteLLM against a server on this machine that speaks the chat completions of OpenAI."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    MissingDependencyError,
    ModelAccessError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
)
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import ToolChoice, Usage
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now, random, sleep
from effectful_agents.runtime import ObjectInterpretation, fwd, handler, implements
from effectful_agents.testing import ScriptedModel

HI: list[Any] = [{"role": "user", "content": "hi"}]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("f", "g")
]
NOWHERE = "http://127.0.0.1:9/v1"


class Provider:
    """Answers each request with the next (status, headers, body); the last one is given again and again."""

    def __init__(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                provider.requests.append(json.loads(body))
                status, headers, answer = provider.next_answer()
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(OSError):  # who does not wait is gone
                    self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.clear()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def clear(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = [(200, {}, reply("hi"))]

    def will_answer(self, *answers: Any) -> None:
        self.answers = [answer if isinstance(answer, tuple) else (200, {}, answer) for answer in answers]

    def next_answer(self) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer() if callable(answer) else answer

    def configurer(self, **config: Any) -> LiteLLMConfigurer:
        return LiteLLMConfigurer(**{"model": "openai/test", "base_url": self.url, "api_key": "x"} | config)

    def ask(self, messages: Any = HI, **config: Any) -> Any:
        with handler(self.configurer(**config)):
            return completion(messages=messages)


def reply(content: str | None = None, *, finish: str | None = "stop", usage: Any = None, **message: Any) -> Any:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    body = {"id": "reply-1", "object": "chat.completion", "created": 1, "model": "test-1", "choices": [choice]}
    return body if usage is None else body | {"usage": usage}


def call(name: str, arguments: Any = "{}", id: str = "c1") -> Any:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def failure(status: int, message: str = "oops", *, code: str | None = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, {"error": {"message": message, "type": "some_error", "code": code}}


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.server.shutdown()
    provider.server.server_close()


@pytest.fixture
def provider(server: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.clear()
    return server


@pytest.fixture
def pauses() -> Iterator[list[float]]:
    """How long the program would have waited, each time it did."""
    waited: list[float] = []
    with handler({sleep: waited.append, random: lambda: 0.0}):
        yield waited


# --- requests and replies ---------------------------------------------------------------------------------------------


def test_a_reply_is_plain_dictionaries_without_what_was_not_reported(provider: Provider):
    provider.will_answer(reply("Hello!", usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}))
    assert provider.ask() == {
        "id": "reply-1",
        "created": 1,
        "model": "test-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello!"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
    assert provider.requests == [{"model": "test", "messages": HI}]


def test_settings_and_options_of_the_provider_are_sent(provider: Provider):
    provider.ask(temperature=0, seed=3, provider_options={"top_k": 5})
    assert provider.requests[0] | {"temperature": 0, "seed": 3, "top_k": 5} == provider.requests[0]
    assert "provider_options" not in provider.requests[0]


def test_tools_and_the_form_of_the_answer_are_sent_as_they_are(provider: Provider):
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True}}
    provider.will_answer(reply(tool_calls=[call("f")], finish="tool_calls"))
    provider.ask(tools=TOOLS, tool_choice=ToolChoice("named", "f"), response_format=form)
    assert provider.requests[0]["tools"] == TOOLS
    assert provider.requests[0]["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert provider.requests[0]["response_format"] == form


def test_a_choice_of_tools_is_left_out_where_no_tool_is_offered(provider: Provider):
    provider.ask(tools=[], tool_choice="required", parallel_tool_calls=False)
    assert provider.requests == [{"model": "test", "messages": HI}]


def test_tool_calls_keep_their_identifiers_and_arguments(provider: Provider):
    provider.will_answer(reply(tool_calls=[call("f", '{"a":  1}', "x"), call("g", "{broken", "")], finish="tool_calls"))
    choice = provider.ask(tools=TOOLS)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [call("f", '{"a":  1}', "x"), call("g", "{broken", "")]


def test_a_reply_that_does_not_fit_the_classes_of_litellm_arrives_without_a_warning(provider: Provider):
    provider.will_answer(reply(tool_calls=[call("f", {"a": 1}), {"id": "y", "function": {"arguments": None}}]))
    tool_calls = provider.ask(tools=TOOLS)["choices"][0]["message"]["tool_calls"]
    assert json.loads(tool_calls[0]["function"]["arguments"]) == {"a": 1}
    assert tool_calls[1] == {"id": "y", "type": "function", "function": {"name": "", "arguments": ""}}


def test_warnings_of_the_users_own_models_are_still_shown(provider: Provider):
    provider.ask()
    with pytest.warns(UserWarning, match="Pydantic serializer warnings"):
        warnings.warn("Pydantic serializer warnings: yours", UserWarning, stacklevel=1)


def test_reasoning_goes_back_byte_for_byte(provider: Provider):
    blocks = [{"type": "thinking", "thinking": " hm\n", "signature": "s=="}, {"type": "redacted_thinking", "data": "x"}]
    provider.will_answer(reply("Yes.", reasoning_content="  hm\n", thinking_blocks=blocks))
    message = provider.ask()["choices"][0]["message"]
    assert message["reasoning_content"] == "  hm\n"
    assert message["thinking_blocks"] == blocks
    provider.ask([*HI, message, *HI])
    again = dict(message)
    # LiteLLM's name for what it does not know of a reply: here the blocks once more.
    del again["provider_specific_fields"]
    assert provider.requests[1]["messages"][1] == again


def test_neither_the_history_nor_the_tools_are_changed(provider: Provider):
    history = [*HI, {"role": "assistant", "content": None, "tool_calls": [call("f")], "thinking_blocks": []}]
    history.append({"role": "tool", "tool_call_id": "c1", "content": "done"})
    before = copy.deepcopy((history, TOOLS))
    for model in ("openai/test", "hosted_vllm/test", "mistral/test"):
        provider.ask(history, tools=TOOLS, model=model)
    assert (history, TOOLS) == before


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}, Usage(input=9, output=2)),
        ({"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}, Usage(input=9, output=0)),
        ({"prompt_tokens": 9}, Usage(input=9)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
            Usage(input=9, output=2, cache_read=0, reasoning=0),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
                "cache_creation_input_tokens": 3,
            },
            Usage(input=9, output=2, cache_read=4, reasoning=1, cache_write=3),
        ),
    ],
)
def test_what_is_not_reported_is_unknown_and_not_zero(provider: Provider, reported: Any, usage: Usage):
    provider.will_answer(reply("hi", usage=reported))
    assert Usage.from_wire(provider.ask().get("usage")) == usage


@pytest.mark.parametrize(
    ("finish", "ours"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("eos", "stop"), (None, "stop")],
)
def test_why_a_reply_ended_is_told_in_our_words(provider: Provider, finish: str | None, ours: str):
    provider.will_answer(reply("hi", finish=finish))
    assert provider.ask()["choices"][0]["finish_reason"] == ours


def test_a_refusal_is_handed_on(provider: Provider):
    provider.will_answer(reply(refusal="I cannot."))
    assert provider.ask()["choices"][0]["message"]["refusal"] == "I cannot."


def test_a_reply_without_choices_is_handed_on(provider: Provider):
    provider.will_answer({"choices": []})
    assert provider.ask()["choices"] == []


def test_a_choice_is_held_against_the_provider_too(provider: Provider):
    with pytest.raises(ResultDecodingError):
        provider.ask(tools=TOOLS, tool_choice="required")


# --- configuration ----------------------------------------------------------------------------------------------------


def test_the_inner_configuration_wins_and_handlers_between_see_the_merged_request():
    seen: list[Any] = []

    class Between(ObjectInterpretation[Any, Any]):
        @implements(completion)
        def completion(self, **request: Any) -> Any:
            seen.append(request)
            return fwd()

    outer = LiteLLMConfigurer("outer", temperature=0, seed=1)
    inner = LiteLLMConfigurer("inner", temperature=1)
    model = ScriptedModel("ok")
    with handler(model), handler(outer), handler(Between()), handler(inner):
        completion(messages=HI, temperature=2)
    assert seen == [{"model": "inner", "temperature": 2, "messages": HI}]
    assert model.requests == [{"model": "inner", "temperature": 2, "seed": 1, "messages": HI}]


def test_the_outermost_configurer_asks(provider: Provider):
    with handler(provider.configurer()), handler(LiteLLMConfigurer(seed=2)):
        completion(messages=HI)
    assert provider.requests == [{"model": "test", "messages": HI, "seed": 2}]


def test_options_of_the_provider_are_merged_one_by_one():
    model = ScriptedModel("ok")
    with handler(model), handler(LiteLLMConfigurer(provider_options={"a": 1, "b": 1})):
        completion(messages=HI, provider_options={"b": 2})
    assert model.requests[0]["provider_options"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "No model is given"),
        ({"model": "local/smollm2"}, "LocalModel"),
    ],
)
def test_what_cannot_be_asked_is_said_before_litellm_is_loaded(config: Any, message: str):
    with handler(LiteLLMConfigurer(**config)), pytest.raises(ConfigurationError, match=message):
        completion(messages=HI)


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (failure(401, "bad key"), ModelAccessError, "key for `openai/test` was refused: bad key"),
        (failure(404, "no such model"), ModelAccessError, "`openai/test` was not found at http.*no such model"),
        (failure(403), ProviderError, "oops"),
        (failure(400, "This model's maximum context length is 10 tokens."), ContextLengthError, "10 tokens"),
        (failure(400, "too much to read", code="context_length_exceeded"), ContextLengthError, "too much"),
        (failure(400, "not that", code="content_policy_violation"), RefusalError, "not that"),
    ],
)
def test_a_failure_that_stays_is_told_at_once(provider: Provider, answer: Any, error: type[Exception], text: str):
    provider.will_answer(answer)
    with pytest.raises(error, match=text) as caught:
        provider.ask()
    assert type(caught.value) is error
    assert caught.value.__context__ is not None
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_failure_that_may_pass_is_tried_again_and_then_told(provider: Provider, pauses: list[float], status: int):
    provider.will_answer(failure(status))
    with pytest.raises(ProviderError) as caught:
        provider.ask()
    assert (caught.value.status, caught.value.provider, caught.value.retryable) == (status, "openai", True)
    assert len(provider.requests) == 3
    assert pauses == [0.5, 1.0]


def test_a_failure_that_passes_is_not_noticed(provider: Provider, pauses: list[float]):
    provider.will_answer(failure(429, retry_after="7"), failure(500), reply("at last"))
    assert provider.ask(num_retries=2)["choices"][0]["message"]["content"] == "at last"
    assert pauses == [7.0, 1.0]


def test_no_request_is_repeated_where_that_is_not_wanted(provider: Provider, pauses: list[float]):
    provider.will_answer(failure(429, retry_after="7"))
    with pytest.raises(ProviderError) as caught:
        provider.ask(num_retries=0)
    assert caught.value.retry_after == 7.0
    assert (len(provider.requests), pauses) == (1, [])


def test_nobody_waits_for_an_hour(provider: Provider, pauses: list[float]):
    provider.will_answer(failure(429, retry_after="3600"))
    with pytest.raises(ProviderError) as caught:
        provider.ask()
    assert caught.value.retry_after == 3600.0
    assert (len(provider.requests), pauses) == (1, [])


@pytest.mark.parametrize(
    ("header", "seconds"), [("Thu, 01 Jan 1970 00:01:40 GMT", 40.0), ("-3", 0.0), ("soon", None), ("", None)]
)
def test_when_to_come_back_may_be_a_date(provider: Provider, header: str, seconds: float | None):
    provider.will_answer(failure(503, retry_after=header))
    with handler({now: lambda: 60.0}), pytest.raises(ProviderError) as caught:
        provider.ask(num_retries=0)
    assert caught.value.retry_after == seconds


def test_pauses_grow_to_a_limit_and_are_not_all_the_same(provider: Provider):
    waited: list[float] = []
    provider.will_answer(failure(500))
    with handler({sleep: waited.append, random: lambda: 1.0}), pytest.raises(ProviderError):
        provider.ask(num_retries=6)
    assert waited == [0.375, 0.75, 1.5, 3.0, 6.0, 6.0]


def test_no_answer_in_time(provider: Provider):
    release = threading.Event()

    def late() -> Any:
        release.wait(10)
        return failure(500)

    provider.answers = [late]
    with pytest.raises(RequestTimeoutError) as caught:
        provider.ask(timeout=0.2, num_retries=0)
    release.set()
    assert caught.value.status is None
    assert caught.value.retryable


def test_a_gateway_that_waited_in_vain(provider: Provider):
    provider.will_answer(failure(504))
    with pytest.raises(RequestTimeoutError) as caught:
        provider.ask(num_retries=0)
    assert caught.value.status == 504


@pytest.mark.parametrize("model", ["openai/test", "groq/test", "ollama/test"])
def test_nobody_listens(provider: Provider, pauses: list[float], model: str):
    with pytest.raises(NetworkError) as caught:
        provider.ask(model=model, base_url=NOWHERE, num_retries=1)
    assert caught.value.retryable
    assert len(pauses) == 1


@pytest.mark.parametrize("body", [b"{broken", b"<html></html>", b""])
def test_a_reply_that_is_not_json(provider: Provider, body: bytes):
    provider.will_answer((200, {}, body))
    with pytest.raises(ProviderError, match="not JSON") as caught:
        provider.ask(num_retries=0)
    assert caught.value.status is None


def test_a_reply_that_is_something_else(provider: Provider):
    provider.will_answer({"something": "else"})
    with pytest.raises(ProviderError, match="choices"):
        provider.ask(num_retries=0)


@pytest.mark.parametrize("model", ["nonsense", "nonsense/model"])
def test_a_model_that_nobody_knows(provider: Provider, model: str):
    with pytest.raises(ConfigurationError, match=f"`{model}`.*provider"):
        provider.ask(model=model)


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai/test", "OPENAI_API_KEY"), ("anthropic/test", "ANTHROPIC_API_KEY"), ("gemini/test", "GEMINI_API_KEY")],
)
def test_a_missing_key_is_told_with_the_variable_to_set(provider: Provider, model: str, variable: str):
    with pytest.raises(ModelAccessError, match=f"no key for `{model}`.*{variable}"):
        provider.ask(model=model, api_key=None)
    assert provider.requests == []


def test_a_setting_that_a_provider_does_not_know(provider: Provider):
    with pytest.raises(ConfigurationError, match="seed"):
        provider.ask(model="anthropic/test", seed=1)
    assert provider.requests == []


def test_a_package_that_a_provider_needs(provider: Provider, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("google.auth")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        provider.ask(model="vertex_ai/gemini-pro", api_key=None, base_url=None)


def test_an_exception_that_is_being_handled_is_not_mistaken_for_the_cause(provider: Provider):
    provider.will_answer(failure(500))
    try:
        provider.ask(base_url=NOWHERE, num_retries=0)
    except NetworkError:
        with pytest.raises(ProviderError) as caught:
            provider.ask(num_retries=0)
    assert caught.value.status == 500


def test_a_mistake_in_the_call_is_not_dressed_up_as_a_failure_of_the_provider(provider: Provider):
    with handler(provider.configurer(callbacks=object)), pytest.raises(TypeError):
        completion(messages=HI)


# --- loading ----------------------------------------------------------------------------------------------------------


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_litellm_is_not_loaded_before_it_is_used():
    program = """
import sys
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
from effectful_agents.testing import ScriptedModel
with handler(ScriptedModel("ok")), handler(LiteLLMConfigurer("gpt-5-mini")):
    completion(messages=[])
print(sorted({"litellm", "openai", "httpx", "aiohttp"} & set(sys.modules)))
"""
    assert run_python(program).stdout == "[]\n"


@pytest.mark.slow
def test_nothing_is_printed_and_no_price_table_is_fetched(provider: Provider):
    provider.will_answer(failure(401), failure(404), failure(500), reply("hi", finish="odd"))
    program = f"""
import os
os.environ.pop("LITELLM_LOCAL_MODEL_COST_MAP", None)
from effectful_agents.errors import AgentsError
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
ask = dict(base_url={provider.url!r}, api_key="x", num_retries=0)
for model in ["openai/test"] * 4 + ["nonsense"]:
    try:
        with handler(LiteLLMConfigurer(model, **ask)):
            completion(messages=[{{"role": "user", "content": "hi"}}])
    except AgentsError:
        pass
"""
    result = run_python(program)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)
    assert len(provider.requests) == 4
