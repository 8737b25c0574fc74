"""Cassettes, as users meet them: what is written, what is given again, and what is said where nothing is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import NotHandled, Skill, Tool, acall, harness
from effectful_agents.errors import (
    CassetteError,
    ContextLengthError,
    NetworkError,
    OptionError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
    ToolCallDecodingError,
    UnrecordedRequest,
)
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import (
    Finish,
    PromptProgress,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolChoice,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import handler
from effectful_agents.testing import Cassette, ScriptedModel, batch, calls, says
from effectful_agents.testing.failures import written_failure
from effectful_agents.testing.streams import events_of, sent
from effectful_agents.testing.tape_text import laid_out, read_text
from tests.handlers.provision.http.server import DONE, Server, chunk, listening, recorded, stream


@Tool.define
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


@Skill.define
def vacation(month: str) -> str:
    """Suggest a city with good weather in {month}."""
    raise NotHandled


@Skill.define(tools=False)
def vacation_text(month: str) -> str:
    """Suggest a city for {month} in a word."""
    raise NotHandled


@Skill.define
async def capital(country: str) -> str:
    """The capital of {country}."""
    raise NotHandled


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "test.json"


def ask(text: str = "hi", **request: Any) -> Any:
    return completion(messages=[{"role": "user", "content": text}], **request)


def text(reply: Any) -> str:
    return reply["choices"][0]["message"]["content"]


def record(path: Path, *replies: Any, asks: Any = ask, **options: Any) -> Any:
    with handler(ScriptedModel(*replies)), handler(Cassette(path, "record", **options)):
        return asks()


# --- giving again -----------------------------------------------------------------------------------------------------


def test_a_reply_is_given_again_without_a_model(path):
    made = record(path, says("Good morning"))
    with handler(Cassette(path)) as cassette:
        assert ask() == made
    assert (cassette.played, cassette.recorded, cassette.unused) == (1, 0, [])


def test_the_same_request_gets_its_replies_in_order(path):
    record(path, "one", "two", "other", "three", asks=lambda: [ask(), ask(), ask("what?"), ask()])
    with handler(Cassette(path)):
        assert [text(ask()), text(ask("what?")), text(ask()), text(ask())] == ["one", "other", "two", "three"]


def test_each_block_begins_at_the_beginning(path):
    record(path, "one", "two", asks=lambda: [ask(), ask()])
    cassette = Cassette(path)
    for _ in range(2):
        with handler(cassette):
            assert text(ask()) == "one"
            with handler(cassette):  # installed once more inside
                assert text(ask()) == "two"


def test_what_is_done_with_a_reply_does_not_reach_the_cassette(path):
    record(path, "one")
    cassette = Cassette(path)
    for _ in range(2):
        with handler(cassette):
            reply = ask()
            assert text(reply) == "one"
            reply["choices"][0]["message"]["content"] = "changed"


def test_what_was_not_asked_again_can_be_asked_for(path):
    record(path, "one", "two", "other", asks=lambda: [ask(), ask(), ask("what?", temperature=0.5)])
    with handler(Cassette(path)) as cassette:
        ask()
    assert cassette.unused == [
        {"messages": [{"role": "user", "content": "hi"}]},
        {"temperature": 0.5, "messages": [{"role": "user", "content": "what?"}]},
    ]


def test_recording_asks_only_what_is_missing(path):
    record(path, "one")
    model = ScriptedModel("two", "three")
    with handler(model), handler(Cassette(path, "record")) as cassette:
        assert [text(ask()), text(ask()), text(ask("new"))] == ["one", "two", "three"]
    assert (cassette.played, cassette.recorded, model.remaining) == (1, 2, 0)
    with handler(Cassette(path)):
        assert [text(ask()), text(ask()), text(ask("new"))] == ["one", "two", "three"]


def test_rewriting_asks_everything_anew_and_forgets_the_rest(path):
    record(path, "one", "two", "gone", asks=lambda: [ask(), ask(), ask("gone")])
    with handler(ScriptedModel("uno", "dos")), handler(Cassette(path, "rewrite")):
        assert [text(ask()), text(ask("new"))] == ["uno", "dos"]
    with handler(Cassette(path)) as cassette:
        assert [text(ask()), text(ask("new"))] == ["uno", "dos"]
    assert cassette.unused == []


def test_rewriting_that_fails_forgets_nothing(path):
    record(path, "one", "kept", asks=lambda: [ask(), ask("kept")])
    model = ScriptedModel("uno", ZeroDivisionError)
    with pytest.raises(ZeroDivisionError), handler(model), handler(Cassette(path, "rewrite")):
        [ask(), ask()]
    with handler(Cassette(path)):
        assert [text(ask()), text(ask("kept"))] == ["uno", "kept"]


# --- what counts as the same request ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": "sk-other"},
        {"base_url": "http://elsewhere/v1"},
        {"timeout": 3},
        {"num_retries": 9},
        {"extra_headers": {"x-team": "b"}},
        {"metadata": {"trace": "17"}},
        {"client": object()},
        {"aws_secret_access_key": "abc"},
        {"stream": False},
        {"temperature": None},
        {"provider_options": {"api_key": "b", "top_k": 3}},
        {"tool_choice": ToolChoice("required")},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_how_a_request_travels_makes_no_difference(path, settings):
    common = {"model": "m", "provider_options": {"api_key": "a", "top_k": 3}, "tool_choice": "required"}
    record(path, "hello", asks=lambda: ask(api_key="sk-one", **common))
    with handler(Cassette(path)):
        assert text(ask(**common | settings)) == "hello"


@pytest.mark.parametrize(
    "settings", [{"model": "n"}, {"temperature": 1}, {"provider_options": {"top_k": 4}}, {"seed": 1}], ids=str
)
def test_what_may_change_a_reply_makes_a_difference(path, settings):
    record(path, "hello", asks=lambda: ask(model="m", provider_options={"top_k": 3}))
    with handler(Cassette(path)), pytest.raises(UnrecordedRequest):
        ask(**{"model": "m", "provider_options": {"top_k": 3}, **settings})


def test_a_class_that_is_the_form_of_an_answer_makes_a_difference(path):
    class Weather(pydantic.BaseModel):
        sun: int

    class Wind(pydantic.BaseModel):
        speed: int

    record(path, "sun", "wind", asks=lambda: [ask(response_format=Weather), ask(response_format=Wind)])
    with handler(Cassette(path)):
        assert [text(ask(response_format=Wind)), text(ask(response_format=Weather))] == ["wind", "sun"]
        with pytest.raises(UnrecordedRequest):
            ask(response_format=object)


def test_settings_can_be_left_out_of_account(path):
    record(path, "hello", asks=lambda: ask(model="m"), ignore=["model"])
    with handler(Cassette(path, ignore=["model"])):
        assert text(ask(model="n")) == "hello"


def test_what_differs_from_day_to_day_can_be_scrubbed(path):
    def scrub(words: str) -> str:
        return words.replace("Monday", "[day]").replace("Tuesday", "[day]")

    record(path, "It is Monday.", asks=lambda: ask("Today is Monday."), scrub=scrub)
    assert "Monday" not in path.read_text()
    with handler(Cassette(path, scrub=scrub)):
        assert text(ask("Today is Tuesday.")) == "It is [day]."


def test_a_program_is_replayed(path):
    stack = harness(model="gpt-5-mini", api_key=KEY, system_prompt="brief")
    with handler(ScriptedModel(calls("weather", city="Oslo"), "Oslo")), handler(Cassette(path, "record")):
        with handler(stack):
            assert vacation("May") == "Oslo"
    with handler(Cassette(path)) as cassette, handler(stack):
        assert vacation("May") == "Oslo"
        with pytest.raises(UnrecordedRequest, match=r"\[-May-\]\{\+June\+\}"):
            vacation("June")
    assert cassette.played == 2
    assert KEY not in path.read_text()


def test_awaited_calls_are_replayed(path):
    async def both() -> list[str]:
        return list(await asyncio.gather(acall(capital, "Norway"), acall(capital, "Peru")))

    def reply(request: Any) -> str:
        return "Oslo" if "Norway" in str(request["messages"][-1]) else "Lima"

    with handler(ScriptedModel(reply, reply)), handler(Cassette(path, "record")), handler(harness()):
        asyncio.run(both())
    with handler(Cassette(path)), handler(harness()):
        assert asyncio.run(both()) == ["Oslo", "Lima"]


# --- what is said where nothing is recorded ---------------------------------------------------------------------------


def error_of(path: Path, **request: Any) -> str:
    with handler(Cassette(path)), pytest.raises(UnrecordedRequest) as raised:
        completion(**request)
    assert raised.value.ends_call
    return str(raised.value)


def test_the_difference_to_the_nearest_request_is_shown(path):
    system = {"role": "system", "content": "Be brief. " * 50 + "Answer in English. " + "Be kind. " * 50}
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}

    def asks() -> None:
        completion(messages=[system, {"role": "user", "content": "The capital of Norway"}], temperature=0, tools=[tool])
        completion(messages=[system, {"role": "user", "content": "A joke, please"}], temperature=0, tools=[tool])

    record(path, "a", "b", asks=asks)
    other = {**system, "content": system["content"].replace("English", "French")}
    said = error_of(
        path, messages=[other, {"role": "user", "content": "The capital of Peru"}], temperature=1, seed=7, tools=[]
    )
    assert "Of the 2 recorded, number 1 is the nearest" in said
    assert "`temperature`: [-0-]{+1+}" in said
    assert "`seed` was not set, and is 7" in said
    assert "the tool `add` is not offered any more" in said
    assert "message 1 (system): …" in said
    assert "Answer in [-English-]{+French+}. Be kind." in said
    assert "and in 1 more place" in said
    assert len(said) < 1200


def test_another_length_of_the_conversation_is_shown(path):
    first = {"role": "user", "content": "one"}
    record(path, "a", asks=lambda: completion(messages=[first]))
    assert "message 2 (user) is new: 'two'" in error_of(path, messages=[first, {"role": "user", "content": "two"}])
    assert "message 1 (user) of the recorded ones is missing: 'one'" in error_of(path, messages=[])


def test_a_request_that_was_made_too_often_is_said_to_be(path):
    record(path, "a")
    with handler(Cassette(path)):
        ask()
        with pytest.raises(UnrecordedRequest, match="has this request once, and it was made once more"):
            ask()


def test_it_says_how_to_record(path):
    said = error_of(path, messages=[])
    assert said.startswith("there is no cassette")
    assert "--cassette-mode=record" in said
    record(path, "a")
    assert 'mode="record"' in error_of(path, messages=[])


# --- streams and errors -----------------------------------------------------------------------------------------------

EVENTS = [
    StreamStart("m"),
    PromptProgress("reading", 3, 10),
    ReasoningStart(1),
    ReasoningDelta("hm", 1),
    ReasoningEnd(1, "signed"),
    TextStart(),
    TextDelta("Hel\n"),
    TextEnd(),
    ToolCallStart("c1", "add", 2),
    ToolCallDelta('{"x"', 2),
    ToolCallEnd(2),
    TextStart(1),
    TextDelta("", 1),
    TextEnd(1),
    Finish(says("Hel\n")),
]


def test_every_event_is_written_and_read():
    written = json.loads(json.dumps([sent(event) for event in EVENTS]))
    assert list(events_of(written, says("Hel\n"))) == EVENTS


@pytest.mark.parametrize("name", ["openai.sse", "openai_calls.sse", "llama_server.sse", "ollama.sse", "vllm.sse"])
def test_a_streamed_reply_is_told_in_the_same_pieces_again(path, server, name):
    server.will(stream(recorded(name)))
    with handler(Cassette(path, "record")), listening() as heard:
        reply = server.ask()
    with handler(Cassette(path)), listening() as again:
        assert ask() == reply
    assert again == heard
    assert len(again) > 4
    with handler(Cassette(path)):
        assert ask() == reply


@pytest.fixture(scope="module")
def running_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def server(running_server: Server) -> Server:
    running_server.clear()
    return running_server


def test_a_reply_in_one_piece_is_told_as_one_again(path, server):
    with handler(Cassette(path, "record")), listening() as heard:
        reply = server.ask()
    assert reply["provider_metadata"] == {"streamed": False}
    with handler(Cassette(path)), listening() as again:
        assert ask() == reply
    assert again == heard
    with handler(Cassette(path)):
        assert ask() == {name: value for name, value in reply.items() if name != "provider_metadata"}


def test_recording_has_nothing_streamed_that_nobody_wants_to_hear(path, server):
    with handler(Cassette(path, "record")):
        server.ask()
    assert "stream" not in server.bodies[0]


def test_a_stream_that_began_anew_does_so_again(path, server):
    server.will(stream(chunk("Hel"), broken=True), says("Hello"))
    with handler(Cassette(path, "record")), listening() as heard, handler({sleep: lambda seconds: None}):
        reply = server.ask(options={"num_retries": 1})
    assert [type(event) for event in heard].count(StreamStart) == 2
    with handler(Cassette(path)), listening() as again:
        assert ask() == reply
    assert again == heard


ERRORS = [
    ProviderError("no such model", status=404, provider="openai", retry_after=2.5),
    RefusalError("no"),
    ContextLengthError("too long", prompt_tokens=9, limit=8, provider="x"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_provider_is_raised_again(path, error):
    with pytest.raises(type(error)):
        record(path, error)
    with handler(Cassette(path)), pytest.raises(type(error)) as raised:
        ask()
    again = raised.value
    assert (str(again), vars(again)) == (str(error), vars(error))


PASSING = [
    ProviderError("busy", status=503),
    ProviderError("too many", status=429),
    ProviderError("invalid key", status=401),
    NetworkError("no route"),
    RequestTimeoutError("late"),
]


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_an_outage_while_recording_is_not_replayed(path, error):
    with pytest.raises(type(error)):
        record(path, error)
    record(path, "one")
    with pytest.raises(type(error)), handler(ScriptedModel(error)), handler(Cassette(path, "rewrite")):
        ask()
    with handler(ScriptedModel(error)), handler(Cassette(path, "rewrite")), contextlib.suppress(type(error)):
        ask()
    with handler(Cassette(path)):
        assert text(ask()) == "one"


@pytest.mark.parametrize("error", PASSING, ids=str)
def test_an_outage_that_was_recorded_once_is_asked_again(path, error):
    record(path, "first", "second", asks=lambda: [ask(), ask()])
    data = read_text(path.read_text())
    data["recordings"][0]["replies"][0] = {"error": written_failure(error)}
    path.write_text(laid_out(data))
    with handler(Cassette(path)), pytest.raises(type(error)):
        ask()
    record(path, "third", asks=lambda: [ask(), ask()])
    with handler(Cassette(path)):
        assert [text(ask()), text(ask())] == ["second", "third"]


def test_a_reply_that_tool_choice_forbids_is_refused_again(path, server):
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "ab"]
    body = batch(calls("a", id="1"), calls("b", id="2"))
    server.will(body, says("no"))
    requests = [{"tools": tools, "tool_choice": "none"}, {"tools": tools, "tool_choice": "required"}]
    kinds: list[type[Exception]] = [ToolCallDecodingError, ResultDecodingError]
    errors: list[list[Any]] = [[], []]
    with handler(Cassette(path, "record")):
        for kind, request in zip(kinds, requests, strict=True):
            with pytest.raises(kind) as raised:
                server.ask(**request)
            errors[0].append(raised.value)
    with handler(Cassette(path)):
        for kind, request in zip(kinds, requests, strict=True):
            with pytest.raises(kind) as raised:
                ask(**request)
            errors[1].append(raised.value)
    for made, again in zip(*errors, strict=True):
        assert again.to_feedback_message() == made.to_feedback_message()
        assert again.raw_message == made.raw_message
    assert [str(each) for each in errors[1][0].others] == [str(each) for each in errors[0][0].others] != []


def test_the_pieces_are_a_stream_of_chat_completions(path, server):
    server.will(stream(recorded("openai_calls.sse")))
    with handler(Cassette(path, "record")), listening():
        made = server.ask()
    (recording,) = read_text(path.read_text())["recordings"]
    (written,) = recording["replies"]
    assert written["reply"] == made
    pieces = [f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in written["stream"]]
    server.will(stream(*pieces, DONE))
    with listening():
        again = server.ask()
    assert again["choices"] == made["choices"]
    assert again["usage"] == made["usage"]


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_replies_that_came_by_litellm_are_given_again(path, server, streamed):
    server.will(stream(recorded("openai_calls.sse")) if streamed else says("Hello"))
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    configurer = LiteLLMConfigurer("openai/m", base_url=server.url, api_key=KEY, num_retries=0)
    with contextlib.ExitStack() as stack:
        heard = stack.enter_context(listening()) if streamed else []
        with handler(Cassette(path, "record")), handler(configurer):
            made = completion(messages=messages)
    assert KEY not in path.read_text()
    with handler(Cassette(path)), handler(configurer), listening() as again:
        assert completion(messages=messages)["choices"] == made["choices"]
    assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
    assert again == heard or not streamed


@pytest.mark.local_model
def test_a_model_inside_the_process_is_given_again(path):
    stack = harness(model="local/smollm2", max_tokens=200)
    told: list[list[Any]] = []
    for mode in ("record", "replay"):
        with handler(Cassette(path, mode)), listening() as heard, handler(stack):
            vacation_text("May")
        told.append([event for event in heard if isinstance(event, PromptProgress | StreamStart | TextDelta | Finish)])
    assert told[0] == told[1]
    assert any(isinstance(event, TextDelta) for event in told[1])


def test_an_error_of_the_program_is_not_recorded(path):
    with pytest.raises(ZeroDivisionError):
        record(path, ZeroDivisionError)
    assert not path.exists()


# --- what is written --------------------------------------------------------------------------------------------------

KEY = "sk-proj-" + "x1" * 20


def test_no_key_is_written(path, monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "0123456789abcdef-of-the-environment")
    secret = "a.secret.that.has.no.form"

    def asks() -> None:
        ask(
            f"My key is {KEY}.",
            api_key=secret,
            extra_headers={"Authorization": "Bearer headers-have-secrets-too"},
            aws_secret_access_key="aws-secret-value",
            provider_options={
                "token": "another-secret-value",
                "deep": {"client_secret": "a-third-secret", "max_tokens": 5},
            },
        )

    reply = f"You said {KEY}, {secret}, and I am 0123456789abcdef-of-the-environment."
    with pytest.raises(ProviderError):
        record(path, reply, ProviderError(f"Wrong key {KEY} for {secret}", status=400), asks=lambda: [asks(), asks()])
    written = path.read_text()
    for hidden in (KEY, secret, "headers-have", "aws-secret", "another-secret", "third-secret", "of-the-environment"):
        assert hidden not in written
    assert "You said [TOKEN], [api key], and I am [api key]." in written
    assert '"max_tokens": 5' in written
    with handler(Cassette(path)):
        asks()


@pytest.mark.parametrize(
    "settings",
    [
        {"extra_headers": {"X-Title": "Barcelona guide", "User-Agent": "Barcelona/1.0"}},
        {"api_key": "Barcelona"},
        {"extra_headers": {"Cookie": "city=Barcelona", "Authorization": "Bearer Barcelona"}},
    ],
    ids=["title", "key", "cookie"],
)
def test_words_of_headers_and_of_keys_that_are_none_stay_in_texts(path, settings):
    assert (
        text(record(path, "Barcelona is nice", asks=lambda: ask("Barcelona guide?", **settings))) == "Barcelona is nice"
    )
    with handler(Cassette(path)):
        assert text(ask("Barcelona guide?")) == "Barcelona is nice"


def test_a_header_that_looks_like_a_key_is_one(path):
    key = "aB3dE5gH7jK9mN1pQ3sT5vW7"
    record(path, f"You sent {key}.", asks=lambda: ask(extra_headers={"X-Team": key}))
    assert key not in path.read_text()


def test_a_program_is_recorded_with_what_will_be_replayed(path, monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "0123456789abcdef-of-the-environment")

    def asks() -> list[str]:
        first = ask()
        rest = completion(messages=[first["choices"][0]["message"], {"role": "user", "content": "and?"}])
        return [text(first), text(rest)]

    options = {"scrub": lambda words: words.replace("Monday", "[day]")}
    replies = ("Monday, 0123456789abcdef-of-the-environment", "Monday")
    recorded = record(path, *replies, asks=asks, **options)
    assert recorded == ["[day], [api key]", "[day]"]
    monkeypatch.delenv("SOME_SERVICE_API_KEY")
    with handler(Cassette(path, **options)):
        assert asks() == recorded


FORMS = {
    "groq": "gsk_" + "a1B2" * 12,
    "aws": "aws_secret_access_key=wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLE",
    "bearer": "Authorization: Bearer abcdefghijklmnop0123456789",
    "basic": "Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
    "address": "postgresql://ann:hunter2hunter2@db/mail",
    "password": "password=hunter2",
    "json": json.dumps({"password": "hunter2hunter2", "user": "ann"}),
    "cut": "-----BEGIN PRIVATE KEY-----\nMIIabcdefghijkl",
}
CORES = ("a1B2a1B2", "wJalrXUtnFEMI", "abcdefghijklmnop", "dXNlcjpodW50", "hunter2", "MIIabc")


@pytest.mark.parametrize("form", FORMS)
def test_keys_of_usual_forms_are_not_written(path, form):
    reply = text(record(path, FORMS[form], asks=lambda: ask(FORMS[form])))
    assert not [core for core in CORES if core in path.read_text()]
    with handler(Cassette(path)):
        assert text(ask(FORMS[form])) == reply
        with pytest.raises(UnrecordedRequest):
            ask(f"and {FORMS[form]}")
    if form == "json":
        assert json.loads(reply) == {"password": "[secret]", "user": "ann"}


@pytest.mark.parametrize(
    "words",
    [
        "def login(password: str, token: Token | None = None): ...",
        "api_key = os.environ['SERVICE_API_KEY']",
        "Password: a word that lets you in. A basic understanding.",
        '{"token": "word", "password": null, "max_tokens": 20000000}',
    ],
    ids=["types", "code", "prose", "json"],
)
def test_what_is_named_like_a_secret_and_is_none_is_left(path, words):
    assert text(record(path, words)) == words
    with handler(Cassette(path)):
        assert text(ask()) == words


@pytest.mark.parametrize(
    "place",
    [
        lambda key: {"tools": [{"type": "mcp", "server_url": "u", "headers": {"Authorization": f"Bearer {key}"}}]},
        lambda key: {"tools": [{"type": "mcp", "server_url": "u", "headers": {"X-Me": key}}]},
        lambda key: {"tools": [{"type": "mcp", "server_url": "u", "authorization": key}]},
        lambda key: {"extra_body": {"auth": {"key": key}, "signature": key}},
        lambda key: {"proxy": f"http://ann:{key}@proxy"},
        lambda key: {"jwt": key, "bearer": key, "auth": key, "key": key},
    ],
    ids=["authorization", "header", "tool", "body", "proxy", "names"],
)
def test_keys_in_any_setting_make_no_difference_and_are_not_written(path, place):
    record(path, "a", asks=lambda: ask(**place("plainkey12345")))
    assert "plainkey12345" not in path.read_text()
    with handler(Cassette(path)):
        assert text(ask(**place("another-key-1"))) == "a"


def test_a_tool_may_describe_a_password(path):
    def asks(description: str) -> Any:
        parameters = {"type": "object", "properties": {"password": {"type": "string", "description": description}}}
        return ask("hi", tools=[{"type": "function", "function": {"name": "login", "parameters": parameters}}])

    record(path, "a", asks=lambda: asks("of the user"))
    assert "of the user" in path.read_text()
    with handler(Cassette(path)), pytest.raises(UnrecordedRequest):
        asks("of the admin")


def test_keys_deep_in_settings_are_not_written(path):
    record(path, "a", asks=lambda: ask(fallbacks=[{"model": "b", "api_key": "key-of-the-other"}]))
    assert "key-of-the-other" not in path.read_text()
    with handler(Cassette(path)):
        assert text(ask(fallbacks=[{"model": "b", "api_key": "another-key"}])) == "a"


def test_what_is_called_a_password_is_described_as_usual(path):
    def asks(description: str) -> Any:
        password = {"type": "string", "description": description}
        schema = {"type": "object", "properties": {"password": password}}
        form: Any = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
        return ask("Enter the password.", response_format=form)

    record(path, "a", asks=lambda: asks("Enter the password."))
    assert path.read_text().count("Enter the password.") == 2
    with handler(Cassette(path)), pytest.raises(UnrecordedRequest):
        asks("Another one.")


def test_a_key_in_two_pieces_of_a_stream_is_not_written(path, server):
    server.will(stream(chunk(KEY[:9]), chunk(KEY[9:], "stop"), DONE))
    with handler(Cassette(path, "record")), listening():
        server.ask()
    assert KEY[9:] not in path.read_text()
    with handler(Cassette(path)), listening() as heard:
        assert text(ask()) == "[TOKEN]"
    assert TextDelta("[TOKEN]") in heard


def test_images_are_named_by_their_digest(path):
    def look(data: str) -> Any:
        url = {"url": f"data:image/png;base64,{data}"}
        return completion(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": url}]}])

    record(path, "a cat", asks=lambda: look("AAAA" * 50_000))
    assert len(path.read_bytes()) < 1500
    with handler(Cassette(path)):
        assert text(look("AAAA" * 50_000)) == "a cat"
        with pytest.raises(UnrecordedRequest, match="sha256"):
            look("AAAB" * 50_000)


def test_an_image_in_a_reply_is_given_again(path):
    made = says("look")
    made["choices"][0]["message"]["images"] = [{"url": "data:image/png;base64," + "AAAA" * 1000}]
    record(path, made)
    with handler(Cassette(path)):
        assert ask() == made


def test_a_message_that_the_program_changes_is_another_one(path):
    def asks() -> list[str]:
        part = {"type": "text", "text": "one"}
        message: Any = {"role": "user", "content": [part]}
        first = text(completion(messages=[message]))
        part["text"] = "two"
        return [first, text(completion(messages=[message]))]

    record(path, "1", "2", asks=asks)
    with handler(Cassette(path)):
        assert asks() == ["1", "2"]
    two: Any = {"role": "user", "content": [{"type": "text", "text": "two"}]}
    with handler(Cassette(path)):
        assert text(completion(messages=[two])) == "2"


def test_a_conversation_is_written_once(path):
    messages: list[Any] = [{"role": "system", "content": "You are helpful.\nBe brief.\n"}]

    def asks() -> None:
        for number in range(10):
            messages.append({"role": "user", "content": f"question {number}"})
            messages.append(completion(messages=messages, temperature=0)["choices"][0]["message"])

    record(path, *(f"answer {number}" for number in range(10)), asks=asks)
    written = path.read_text()
    assert written.count("question 3") == 1
    assert written.count("temperature") == 1
    assert '"content": {"$lines": ["You are helpful.\\n", "Be brief.\\n"]}' in written
    assert max(map(len, written.splitlines())) < 150
    del messages[1:]
    with handler(Cassette(path)):
        for number in range(10):
            messages.append({"role": "user", "content": f"question {number}"})
            messages.append(completion(messages=messages, temperature=0)["choices"][0]["message"])
    assert messages[-1]["content"] == "answer 9"


def test_recording_again_leaves_each_request_in_its_place(path):
    record(path, "a", "b", "c", asks=lambda: [ask("one"), ask("two"), ask("three")])
    before = path.read_text()
    with handler(ScriptedModel("c", "B", "a")), handler(Cassette(path, "rewrite")):
        for question in ("three", "two", "one"):
            ask(question)
    assert path.read_text() == before.replace('"b"', '"B"')


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.text(st.characters(codec=None, categories=["Cs", "L", "Zl"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("$lines"), inner),
    )
)
def test_any_json_is_read_as_it_was_written(data):
    laid = laid_out(data, 3)
    assert read_text(laid.encode().decode()) == data


# --- files ------------------------------------------------------------------------------------------------------------


def spoilt(path: Path, change: Any) -> str:
    path.unlink(missing_ok=True)
    record(path, "a")
    path.write_text(change(path.read_text()))
    with pytest.raises(CassetteError) as raised, handler(Cassette(path)):
        pass
    assert raised.value.path == str(path)
    return str(raised.value)


def test_a_damaged_file_is_named_with_the_place(path):
    said = spoilt(path, lambda text: text.replace('"replies":', "<<<<<<< HEAD"))
    assert "test.json` is damaged" in said
    assert "line 7 column 4" in said
    assert "recording 1" in spoilt(path, lambda text: text.replace('"reply"', '"rely"'))
    assert "recording 1" in spoilt(path, lambda text: text.replace('"digest"', '"dig"'))
    assert "is no cassette" in spoilt(path, lambda text: "[]")
    assert "of version 2" in spoilt(path, lambda text: text.replace('"version": 1', '"version": 2'))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(recordings=None),
        lambda data: data.update(recordings={"a": 1}),
        lambda data: data.update(recordings=[None]),
        *(
            lambda data, reply=reply: data["recordings"][0].update(replies=[reply])
            for reply in ({"reply": None}, {"reply": "x"}, {"error": "x"}, {"error": {}}, {"error": {"class": 1}}, "x")
        ),
        lambda data: data["recordings"][0]["request"].update(messages=[{"role": "user", "content": {"$lines": [1]}}]),
        lambda data: data["recordings"][0]["request"].update(messages=[{"role": "user", "content": {"$lines": None}}]),
        lambda data: data["recordings"][0]["request"].update(messages=["x"]),
        lambda data: data["recordings"][0]["request"].update(settings=[1]),
    ],
)
def test_a_file_that_was_changed_by_hand_wrongly_is_named(path, change):
    def changed(text: str) -> str:
        data = json.loads(text)
        change(data)
        return json.dumps(data)

    assert "is damaged" in spoilt(path, changed)


def test_a_stream_that_somebody_broke_is_named(path):
    with handler({emit: lambda event: None}):
        record(path, "Hello")
        path.write_text(path.read_text().replace('"text_delta"', '"delta"'))
        with handler(Cassette(path)), pytest.raises(CassetteError, match="a stream in the cassette"):
            ask()


def test_a_file_that_cannot_be_written_is_an_error(path):
    path.parent.write_text("a file")
    with pytest.raises(CassetteError):
        record(path, "a")


def test_what_two_branches_recorded_can_be_merged_by_hand(path):
    record(path, "one")
    data = read_text(path.read_text())
    data["recordings"] *= 2
    path.write_text(laid_out(data))
    with handler(Cassette(path)):
        assert [text(ask()), text(ask())] == ["one", "one"]


@pytest.mark.parametrize("mode", ["none", "new_episodes", "all", "x"])
def test_a_mode_that_there_is_not_is_refused(path, mode):
    with pytest.raises(OptionError, match="vcrpy" if mode != "x" else "not 'x'"):
        Cassette(path, mode)


def test_the_names_of_settings_are_a_list(path):
    with pytest.raises(OptionError, match="ignore"):
        Cassette(path, ignore="model")


# --- several at once --------------------------------------------------------------------------------------------------


def in_threads(count: int, do: Any) -> None:
    threads = [threading.Thread(target=do, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_share_a_cassette(path):
    cassette = Cassette(path, "record")

    def play(number: int) -> None:
        with handler(ScriptedModel(lambda request: request["messages"][0]["content"] * 2)), handler(cassette):
            ask(str(number))

    in_threads(20, play)
    with handler(Cassette(path)) as again:
        assert [text(ask(str(number))) for number in range(20)] == [str(number) * 2 for number in range(20)]
    assert again.unused == []


def _record_five(path: Path, name: str) -> None:
    for number in range(5):
        record(path, f"{name}{number}", asks=lambda number=number: ask(f"{name}{number}"))


def _record_five_elsewhere(path: Path, name: str, folder: str) -> None:
    tempfile.tempdir = folder
    _record_five(path, name)


def _check_five_of_each(path: Path, names: str) -> None:
    with handler(Cassette(path)) as cassette:
        for name in names:
            assert [text(ask(f"{name}{number}")) for number in range(5)] == [f"{name}{number}" for number in range(5)]
    assert cassette.unused == []


def test_cassettes_of_the_same_file_lose_nothing(path):
    in_threads(4, lambda number: _record_five(path, "abcd"[number]))
    _check_five_of_each(path, "abcd")


@pytest.mark.slow
def test_processes_share_a_cassette(path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_record_five, args=(path, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    _check_five_of_each(path, "ab")


@pytest.mark.slow
def test_processes_with_other_names_for_a_cassette_and_other_temporary_folders_share_it(path, tmp_path):
    path.parent.mkdir()
    names = []
    for name in "abc":
        (tmp_path / name).symlink_to(path.parent)
        (tmp_path / f"temporary-{name}").mkdir()
        names.append((tmp_path / name / path.name, name, str(tmp_path / f"temporary-{name}")))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_record_five_elsewhere, args=each) for each in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    _check_five_of_each(path, "abc")


def test_a_cassette_that_is_a_link_stays_one(path, tmp_path):
    link = tmp_path / "link.json"
    record(path, "one")
    link.symlink_to(path)
    record(link, "two", asks=lambda: ask("two"))
    assert link.is_symlink()
    with handler(Cassette(path)):
        assert [text(ask()), text(ask("two"))] == ["one", "two"]


def test_a_process_that_dies_loses_nothing_that_was_recorded(path, monkeypatch):
    record(path, "one")
    before = path.read_text()
    cassette = Cassette(path, "record")

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, handler(ScriptedModel("two")), handler(cassette):
        patch.setattr(os, "replace", dies)
        with pytest.raises(KeyboardInterrupt):
            ask("two")
    assert path.read_text() == before
    record(path, "two", asks=lambda: ask("two"))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


RECORDING = """
import itertools, sys
from effectful_agents import handler
from effectful_agents.operations.loop import completion
from effectful_agents.testing import Cassette, ScriptedModel

with handler(ScriptedModel(*["an answer"] * 100_000)), handler(Cassette(sys.argv[1], "record")):
    for number in itertools.count():
        completion(messages=[{"role": "user", "content": f"question {number} " * 100}])
        print(number, flush=True)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_whole_files(path):
    for told in (5, 60):
        with subprocess.Popen(
            [sys.executable, "-c", RECORDING, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for number in process.stdout:
                if int(number) >= told:
                    break
            process.kill()
        with handler(Cassette(path)) as cassette:
            assert len(cassette.unused) > told
        assert len(cassette.unused) < 10_000
