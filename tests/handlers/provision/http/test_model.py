"""`HttpModel` against a server on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from effectful_agents import NotHandled, Skill, Tool, harness
from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    MissingHandlerError,
    ModelAccessError,
    NetworkError,
    OptionError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
    ToolCallDecodingError,
)
from effectful_agents.handlers.provision.http import HttpModel, OpenAICompatible
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import ToolChoice
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import now
from effectful_agents.runtime import handler
from tests.handlers.provision.http.server import HI, TOOLS, Server, recorded, says, whole

KEY = "sk-0123456789"
DEEP = b"[" * 200_000


def failing(status: int, message: str = "oops", **error: Any):
    return whole({"error": {"message": message, **error}}, status)


def calls(*names: str) -> Any:
    made = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    return says("", tool_calls=made)


# --- requests ---------------------------------------------------------------------------------------------------------


def test_a_request_is_sent_and_its_reply_returned(server: Server):
    server.will(recorded_reply := json.loads(recorded("openai.json")))
    reply = server.ask(temperature=0, response_format={"type": "json_object"})
    assert reply == OpenAICompatible().from_wire(recorded_reply)
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies == [
        {"temperature": 0, "response_format": {"type": "json_object"}, "messages": HI, "model": "m"}
    ]


def test_a_reply_without_a_name_has_that_of_the_request(server: Server):
    server.will({"choices": says("hi")["choices"]})
    assert server.ask()["model"] == "m"


def test_text_of_any_kind_arrives(server: Server):
    server.ask([{"role": "user", "content": "ü 🌉 \u2028 \ud800"}])
    assert server.bodies[0]["messages"][0]["content"] == "ü 🌉 \u2028 ?"


def test_without_a_key_no_header_is_sent(server: Server):
    server.ask()
    server.ask(options={"api_key": ""})
    assert all("authorization" not in headers for headers in server.headers)


def test_key_headers_and_path_are_sent(server: Server):
    server.ask(options={"api_key": KEY, "headers": {"X-Team": "red"}, "path": "v2/chat?version=3"})
    (headers,) = server.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-team"] == "red"
    assert server.paths == ["/v1/v2/chat?version=3"]


def test_a_header_may_replace_that_of_the_key(server: Server):
    server.ask(options={"api_key": KEY, "headers": {"Authorization": "Basic eA=="}})
    assert server.headers[0]["authorization"] == "Basic eA=="


def test_key_and_address_of_a_request_are_not_used(server: Server):
    """They are meant for LiteLLM, and may belong to another service."""
    server.ask(api_key=KEY, base_url="http://127.0.0.1:9/v1")
    assert "authorization" not in server.headers[0]
    assert KEY not in json.dumps(server.bodies)


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000", "ftp://x", "http://", "http://x:port/v1", "http://[x/v1"),
        *("http://a\x01b/", "http://a/v1\n", "http://a\ud800/", "http://xn--/", "http://a..b/", "http://ü\u0378/"),
        *(f"http://{'x' * 64}.example/", f"http://{'ü' * 60}.example/"),
    ],
)
def test_what_is_no_address_is_an_error(url):
    with pytest.raises(OptionError, match="`base_url`"):
        HttpModel(url)


@pytest.mark.parametrize(
    "host", ["x." * 2, "my_service", "127.0.0.1:1", "[::1]:8000", "bücher.example", "xn--bcher-kva.example"]
)
def test_these_are_addresses(host):
    HttpModel(f"http://{host}/v1")


@pytest.mark.parametrize("key", [KEY + "\n", KEY + " ", "schlüssel-lang"])
def test_a_key_that_cannot_be_sent_is_an_error_that_does_not_show_it(key):
    for options in ({"api_key": key}, {"headers": {"x-key": key}}):
        with pytest.raises(OptionError, match="cannot be sent") as raised:
            HttpModel("http://x", **options)
        assert key.strip() not in str(raised.value)


# --- which requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "asked", "sent"),
    [("m", "m", "m"), ("m", None, "m"), (None, "m", "m"), (None, None, None), ("local/m", "local/m", "local/m")],
)
def test_these_requests_are_answered(server: Server, mine, asked, sent):
    server.ask(options={"model": mine}, **({} if asked is None else {"model": asked}))
    assert server.bodies[0].get("model") == sent


@pytest.mark.parametrize(("mine", "asked"), [("m", "n"), ("m", "openai/m"), (None, "local/m"), ("m", "local/m")])
def test_these_are_forwarded(server: Server, mine, asked):
    with pytest.raises(MissingHandlerError):
        server.ask(options={"model": mine}, model=asked)
    assert server.bodies == []


def test_several_stand_side_by_side(server: Server):
    with handler(server.model(model="a", path="a")), handler(server.model(model="b", path="b")):
        for model in ("a", "b", "a"):
            completion(model=model, messages=HI)
    assert server.paths == ["/v1/a", "/v1/b", "/v1/a"]


def test_inside_of_litellm_it_takes_the_requests_and_the_settings(server: Server):
    with handler(LiteLLMConfigurer("m", temperature=0)), handler(server.model()):
        completion(messages=HI)
    assert server.bodies == [{"model": "m", "temperature": 0, "messages": HI}]


class Place(BaseModel):
    city: str
    warm: bool


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return "24 degrees"


@Skill.define
def find(month: str) -> Place:
    """Find a place for {month}. Use `weather`."""
    raise NotHandled


def test_a_skill_runs_with_tools_and_a_typed_answer(server: Server):
    made = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    server.will(says("", tool_calls=[made]), says('{"city": "Oslo", "warm": true}'))
    with handler(harness(model="m", eval_provider="none")), handler(server.model()):
        assert find("May") == Place(city="Oslo", warm=True)
    first, second = server.bodies
    assert first["tools"][0]["function"]["name"] == "weather"
    assert first["response_format"]["type"] == "json_schema"
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "24 degrees"}


# --- tool_choice ------------------------------------------------------------------------------------------------------


def test_a_reply_is_held_to_the_choice_of_tools(server: Server):
    with pytest.raises(ResultDecodingError):
        server.ask(tools=TOOLS, tool_choice="required")
    server.will(calls("weather"))
    with pytest.raises(ToolCallDecodingError):
        server.ask(tools=TOOLS, tool_choice=ToolChoice("named", "time"))
    assert server.bodies[1]["tool_choice"] == {"type": "function", "function": {"name": "time"}}
    assert server.ask(tools=TOOLS)["choices"][0]["finish_reason"] == "tool_calls"


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ModelAccessError, "pass `api_key=`"),
        (403, ModelAccessError, "pass `api_key=`"),
        (404, ModelAccessError, "`base_url`"),
        (405, ModelAccessError, "`path`"),
        (400, ProviderError, "oops"),
        (408, RequestTimeoutError, "oops"),
        (429, ProviderError, "oops"),
        (500, ProviderError, "oops"),
        (503, ProviderError, "oops"),
    ],
)
def test_a_status_becomes_an_error(server: Server, status, kind, words):
    server.will(failing(status))
    with pytest.raises(kind) as raised:
        server.ask()
    assert type(raised.value) is kind
    assert words in str(raised.value)
    assert f"`m` at {server.url}/chat/completions" in str(raised.value)
    if kind is not ModelAccessError:
        assert raised.value.status == status
        assert raised.value.retryable is (status in (408, 429, 500, 503))
        assert raised.value.provider == "openai-compatible"


def test_a_refused_key_is_told_from_a_missing_one(server: Server):
    server.will(failing(401, f"Incorrect API key provided: {KEY}"))
    with pytest.raises(ModelAccessError, match="the `api_key` was refused: Incorrect API key provided: …"):
        server.ask(options={"api_key": KEY})


def test_no_secret_stands_in_an_error(server: Server):
    secret = "secret-of-the-team"
    address = server.url.replace("http://", "http://ann:password@")
    server.will(failing(500, f"{KEY} {secret} password"))
    with (
        pytest.raises(ProviderError) as raised,
        handler(HttpModel(address, api_key=KEY, headers={"x-key": f"Token {secret}"}, num_retries=0)),
    ):
        completion(messages=HI)
    assert not [each for each in (KEY, secret, "password") if each in str(raised.value)]


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too long", "code": "context_length_exceeded", "type": "invalid_request_error"}},
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. You asked 5000.",
            "code": 400,
        },
        {"error": {"message": "the input exceeds the maximum context length", "type": "api_error"}},
        json.loads(recorded("llama_server_too_long.json")),
    ],
)
def test_a_prompt_that_is_too_long(server: Server, body):
    server.will(whole(body, 400))
    with pytest.raises(ContextLengthError) as raised:
        server.ask()
    assert not raised.value.retryable
    if "n_ctx" in json.dumps(body):
        assert (raised.value.prompt_tokens, raised.value.limit) == (5021, 4096)


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_a_filter_that_refuses(server: Server, code):
    server.will(failing(400, "not allowed", code=code))
    with pytest.raises(RefusalError, match="not allowed"):
        server.ask()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": "Not ready"}, "Not ready"),
        ({"error": "no such thing"}, "no such thing"),
        ({"message": "plain"}, "plain"),
        (b"<h1>Bad\n gateway</h1>", "<h1>Bad gateway</h1>"),
        (b"", "status 502"),
        (b"[1]", "[1]"),
        ({"error": {"reason": 1}}, '{"reason": 1}'),
        (b"x" * 2000, "x" * 500 + "…"),
    ],
)
def test_what_a_service_says_is_in_the_error(server: Server, body, words):
    server.will(whole(body, 502))
    with pytest.raises(ProviderError) as raised:
        server.ask()
    assert str(raised.value).endswith(f": {words}")


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"", b"{}", b"[]", b"null", b'{"choices": 1}', DEEP])
def test_a_body_that_holds_no_reply(server: Server, body):
    server.will(whole(body))
    with pytest.raises(ProviderError, match="cannot be read") as raised:
        server.ask()
    assert not raised.value.retryable


@pytest.mark.parametrize("body", [DEEP, b'{"error": %s%s}' % (b"[" * 5000, b"]" * 5000)])
def test_an_error_that_is_too_deep(server: Server, body):
    for status in (200, 500):
        server.will(whole(body, status))
        with pytest.raises(ProviderError):
            server.ask()


def test_an_error_may_come_with_status_200(server: Server):
    server.will(whole({"error": {"message": "upstream is down", "code": 502}}))
    with pytest.raises(ProviderError, match="upstream is down") as raised:
        server.ask()
    assert raised.value.status == 502


def test_an_address_that_has_moved(server: Server):
    server.will(whole(b"", 307, location="https://elsewhere/v1"))
    with pytest.raises(ModelAccessError, match="https://elsewhere/v1"):
        server.ask()


def test_an_answer_that_cannot_be_unpacked(server: Server):
    server.will(whole(b"no gzip", content_encoding="gzip"))
    with pytest.raises(ProviderError, match="cannot be read"):
        server.ask()


def test_nobody_listens():
    with pytest.raises(NetworkError) as raised, handler(HttpModel("http://127.0.0.1:9/v1", num_retries=0)):
        completion(messages=HI)
    assert raised.value.retryable
    assert raised.value.__cause__ is not None
    assert str(raised.value).startswith("http://127.0.0.1:9/v1/chat/completions: ")


@pytest.mark.parametrize("where", ["handler", "request"])
def test_nothing_comes(server: Server, where):
    server.will(server.wait_until_gone())
    options = {"timeout": 0.05} if where == "handler" else {}
    request = {"timeout": 0.05} if where == "request" else {}
    with pytest.raises(RequestTimeoutError, match=r"nothing came for 0\.05 s"):
        server.ask(options=options, **request)
    assert server.gone.wait(10)


# --- again ------------------------------------------------------------------------------------------------------------


def test_a_failure_that_may_pass_is_tried_again(server: Server, pauses: list[float]):
    server.will(failing(503), failing(500), says("at last"))
    assert server.ask(options={"num_retries": 2})["choices"][0]["message"]["content"] == "at last"
    assert pauses == [0.5, 1.0]


def test_a_request_says_how_often(server: Server, pauses: list[float]):
    server.will(failing(503))
    with pytest.raises(ProviderError):
        server.ask(num_retries=1)
    assert len(server.bodies) == 2


@pytest.mark.parametrize("after", ["7", "Thu, 01 Jan 1970 00:00:07 GMT"])
def test_the_pause_is_that_of_the_service(server: Server, pauses: list[float], after):
    server.will(whole({"error": "slow down"}, 429, retry_after=after), says("hi"))
    with handler({now: lambda: 0.0}):
        server.ask(options={"num_retries": 1})
    assert pauses == [7.0]


def test_a_pause_that_is_too_long_is_an_error(server: Server, pauses: list[float]):
    server.will(whole({"error": "slow down"}, 429, retry_after="3600"))
    with pytest.raises(ProviderError) as raised:
        server.ask(options={"num_retries": 1})
    assert raised.value.retry_after == 3600
    assert pauses == []


def test_what_will_not_pass_is_not_tried_again(server: Server, pauses: list[float]):
    server.will(failing(401))
    with pytest.raises(ConfigurationError):
        server.ask(options={"num_retries": 2})
    assert len(server.bodies) == 1


# --- loading ----------------------------------------------------------------------------------------------------------


def test_neither_httpx_nor_litellm_is_loaded_before_it_is_needed(server: Server):
    code = f"""
import sys
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
model = HttpModel({server.url!r})
print("httpx" in sys.modules)
with handler(model):
    completion(messages=[])
print("httpx" in sys.modules, "litellm" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["False", "True", "False"], "")
