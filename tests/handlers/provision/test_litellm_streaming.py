"""LiteLLM's streams, from a server on this machine that speaks as OpenAI and Anthropic do.

The bodies in `recorded` and `http/recorded` were written by hand in the form in which each of the services answers.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from effectful_agents.errors import (
    Cancelled,
    ConfigurationError,
    NetworkError,
    ProviderError,
    RefusalError,
    RequestTimeoutError,
    ResultDecodingError,
)
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import StopScope, bridged, handler
from tests.handlers.provision.http.server import (
    DONE,
    HI,
    TOOLS,
    Server,
    chunk,
    listening,
    recorded,
    says,
    stream,
    whole,
)

ANTHROPIC = (Path(__file__).parent / "recorded" / "anthropic.sse").read_bytes()
WHOLE = {"streamed": False}

pytestmark = pytest.mark.usefixtures("_litellm_is_loaded")

type Ask = Callable[..., Any]


def litellm(server: Server, **config: Any) -> LiteLLMConfigurer:
    settings = {"model": "openai/test-1", "base_url": server.url, "api_key": "x", "num_retries": 0}
    return LiteLLMConfigurer(**settings | config)


def anthropic(server: Server, **config: Any) -> LiteLLMConfigurer:
    url = server.url.removesuffix("/v1")
    return litellm(server, model="anthropic/claude-sonnet-4-5", base_url=url, tools=TOOLS, **config)


def in_a_plain_call(configurer: LiteLLMConfigurer, **request: Any) -> Any:
    with handler(configurer):
        return completion(messages=HI, **request)


def awaited(configurer: LiteLLMConfigurer, **request: Any) -> Any:
    async def main() -> Any:
        with handler(configurer):
            return await bridged(completion, messages=HI, **request)

    return asyncio.run(main())


@pytest.fixture(params=[in_a_plain_call, awaited])
def ask(request: Any) -> Any:
    yield request.param
    gc.collect()  # what was left open says so here


def message(reply: Any) -> Any:
    return reply["choices"][0]["message"]


def told(heard: list[Any], kind: type = TextDelta) -> list[str]:
    return [event.text for event in heard if isinstance(event, kind)]


def delta(finish: str | None = None, **content: Any) -> bytes:
    piece = {"id": "r1", "model": "test-1", "choices": [{"index": 0, "delta": content, "finish_reason": finish}]}
    return f"data: {json.dumps(piece)}\n\n".encode()


def failure(text: str, **more: Any) -> bytes:
    return f"data: {json.dumps({'error': {'message': text, **more}})}\n\n".encode()


# --- replies ----------------------------------------------------------------------------------------------------------


def test_where_nobody_listens_the_reply_comes_whole(server: Server, ask: Ask):
    ask(litellm(server))
    assert "stream" not in server.bodies[0]


def test_where_somebody_listens_the_pieces_are_told(server: Server, ask: Ask):
    server.will(stream(chunk("Hel"), chunk("lo", "stop"), DONE))
    with listening() as heard:
        reply = ask(litellm(server))
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert heard == [StreamStart("test-1"), TextStart(), TextDelta("Hel"), TextDelta("lo"), TextEnd(), Finish(reply)]
    assert message(reply) == {"role": "assistant", "content": "Hello"}
    assert "provider_metadata" not in reply


def test_a_request_decides_whether_it_streams(server: Server, ask: Ask):
    server.will(stream(chunk("Hello", "stop"), DONE), says("Hello"))
    assert message(ask(litellm(server), stream=True))["content"] == "Hello"
    with listening() as heard:
        reply = ask(litellm(server), stream=False)
    assert ["stream" in body for body in server.bodies] == [True, False]
    assert heard == [StreamStart("test-1"), TextStart(), TextDelta("Hello"), TextEnd(), Finish(reply)]
    assert reply["provider_metadata"] == WHOLE


def test_options_of_a_stream_are_sent_with_a_stream_only(server: Server):
    server.will(stream(chunk("Hello", "stop"), DONE), says("Hello"))
    for streamed in (True, False):
        in_a_plain_call(litellm(server), stream=streamed, stream_options={"include_obfuscation": False})
    assert server.bodies[0]["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "stream_options" not in server.bodies[1]


def test_several_replies_at_once_are_not_streamed(server: Server):
    in_a_plain_call(litellm(server), stream=True, n=2)
    assert "stream" not in server.bodies[0]


@pytest.mark.parametrize("name", ["openai", "vllm", "llama_server", "ollama"])
def test_a_recorded_stream_gives_the_whole_reply(server: Server, ask: Ask, name: str):
    body = recorded(f"{name}.sse")
    server.will(stream(*(body[start : start + 37] for start in range(0, len(body), 37))))
    reply = ask(litellm(server), stream=True, tools=TOOLS)
    server.will(json.loads(recorded(f"{name}.json")))
    expected = in_a_plain_call(litellm(server), stream=False, tools=TOOLS)
    # Of Ollama's whole replies LiteLLM keeps the reasoning a second time, and a text that is empty.
    message(expected).pop("provider_specific_fields", None)
    assert message(reply) == {**message(expected), "content": message(expected)["content"] or None}
    assert reply["choices"][0]["finish_reason"] == expected["choices"][0]["finish_reason"]
    assert Usage.from_wire(reply["usage"]) == Usage.from_wire(expected["usage"])


def test_reasoning_is_told_before_the_text(server: Server, ask: Ask):
    server.will(stream(recorded("vllm.sse")))
    with listening() as heard:
        reply = ask(litellm(server))
    assert told(heard, ReasoningDelta) == ["The user", " greets."]
    assert told(heard) == ["\n\nHello", "!"]
    assert [type(event) for event in heard].index(ReasoningEnd) < heard.index(TextStart())
    assert message(reply)["reasoning_content"] == "The user greets."


def test_calls_of_tools_are_told_by_their_place(server: Server, ask: Ask):
    server.will(stream(recorded("openai_calls.sse")))
    with listening() as heard:
        reply = ask(litellm(server), tools=TOOLS)
    assert [event for event in heard if isinstance(event, ToolCallStart)] == [
        ToolCallStart("call_a", "weather", 0),
        ToolCallStart("call_b", "time", 1),
    ]
    pieces = [event.arguments for event in heard if isinstance(event, ToolCallDelta) and event.index == 0]
    assert pieces == ['{"ci', 'ty":"Os', 'lo"}']
    assert [call["function"]["arguments"] for call in message(reply)["tool_calls"]] == ['{"city":"Oslo"}', "{}"]


def test_calls_that_a_service_numbers_alike_are_told_apart(server: Server):
    calls = [
        {"index": 0, "id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "fg"
    ]
    server.will(stream(delta(tool_calls=calls[:1]), delta("tool_calls", tool_calls=calls[1:]), DONE))
    reply = in_a_plain_call(litellm(server), stream=True)
    assert [(call["id"], call["function"]["arguments"]) for call in message(reply)["tool_calls"]] == [
        ("f", "{}"),
        ("g", "{}"),
    ]


def test_what_a_provider_adds_to_a_call_goes_back_with_it(server: Server):
    """Gemini's way to OpenAI's form: the signature of the reasoning stands in the call."""
    added = {"extra_content": {"google": {"thought_signature": "s=="}}}
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **added}
    server.will(stream(delta(tool_calls=[call]), delta("tool_calls"), DONE))
    (streamed,) = message(in_a_plain_call(litellm(server), stream=True))["tool_calls"]
    assert streamed["extra_content"] == added["extra_content"]


def test_annotations_are_kept(server: Server):
    note = {"type": "url_citation", "url_citation": {"url": "http://a", "title": "t", "start_index": 0, "end_index": 1}}
    server.will(stream(chunk("a"), delta(annotations=[note]), chunk("b", "stop"), DONE))
    assert message(in_a_plain_call(litellm(server), stream=True))["annotations"] == [note]


def test_tokens_that_nobody_has_counted_are_unknown(server: Server, ask: Ask):
    server.will(stream(chunk("Hello", "stop"), DONE))
    assert "usage" not in ask(litellm(server), stream=True)


def test_a_refusal_which_litellm_leaves_out_of_streams_is_found_in_the_whole_reply(server: Server):
    server.will(stream(delta(refusal="I can"), delta("stop", refusal="not."), DONE), says("", refusal="I cannot."))
    assert message(in_a_plain_call(litellm(server), stream=True))["refusal"] == "I cannot."
    assert ["stream" in body for body in server.bodies] == [True, False]


def test_the_reply_is_held_to_the_choice_of_tools(server: Server):
    server.will(stream(chunk("Hello", "stop"), DONE))
    with pytest.raises(ResultDecodingError):
        in_a_plain_call(litellm(server), stream=True, tools=TOOLS, tool_choice="required")


# --- Anthropic --------------------------------------------------------------------------------------------------------


def test_anthropics_thinking_keeps_its_blocks_and_signatures(server: Server, ask: Ask):
    server.will(stream(ANTHROPIC))
    with listening() as heard:
        reply = ask(anthropic(server))
    blocks = [
        {
            "type": "thinking",
            "thinking": "  The user asks about\nthe weather. ",
            "signature": "EqQBCkYIBxgCKkA8rT+9w==",
        },
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"},
    ]
    said = message(reply)
    assert said["thinking_blocks"] == said["provider_specific_fields"]["thinking_blocks"] == blocks
    assert said["reasoning_content"] == "".join(told(heard, ReasoningDelta)) == blocks[0]["thinking"]
    assert said["content"] == "".join(told(heard)) == "Let me look that up."
    assert [(call["id"], call["function"]) for call in said["tool_calls"]] == [
        ("toolu_01A", {"name": "weather", "arguments": '{"city": "Oslo"}'}),
        ("toolu_01B", {"name": "time", "arguments": ""}),
    ]
    usage = Usage.from_wire(reply["usage"])
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (2460, 89, 2048, 0)
    assert heard[-1] == Finish(reply)


def test_anthropics_thinking_goes_back_as_it_came(server: Server):
    server.will(stream(ANTHROPIC))
    with handler(anthropic(server, stream=True)):
        first: Any = message(completion(messages=HI))
        results: list[Any] = [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in first["tool_calls"]
        ]
        completion(messages=[*HI, first, *results])
    sent = server.bodies[1]["messages"][1]["content"]
    assert [part for part in sent if "thinking" in part["type"]] == first["thinking_blocks"]
    assert [part["input"] for part in sent if part["type"] == "tool_use"] == [{"city": "Oslo"}, {}]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (stream(ANTHROPIC[: ANTHROPIC.index(b"event: message_delta")]), NetworkError),
        (stream(ANTHROPIC[:1500], broken=True), NetworkError),
        (
            stream(
                ANTHROPIC[: ANTHROPIC.index(b"event: content_block_stop")],
                b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
            ),
            ProviderError,
        ),
    ],
    ids=["the end", "the connection", "the service"],
)
def test_anthropics_broken_streams(server: Server, ask: Ask, body: Any, kind: type[ProviderError]):
    server.will(body)
    with pytest.raises(kind) as raised:
        ask(anthropic(server, stream=True))
    assert type(raised.value) is kind
    assert raised.value.retryable


# --- services that cannot stream --------------------------------------------------------------------------------------


def test_a_service_that_answers_whole_all_the_same(server: Server, ask: Ask):
    server.will(says("Hello"))
    with listening() as heard:
        reply = ask(litellm(server))
    assert heard == [StreamStart("test-1"), TextStart(), TextDelta("Hello"), TextEnd(), Finish(reply)]
    assert reply["provider_metadata"] == WHOLE


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_service_that_refuses_to_stream_is_asked_for_the_whole(server: Server, status: int):
    server.will(whole({"error": {"message": "streaming is not supported here"}}, status), says("Hello"))
    with listening() as heard:
        assert in_a_plain_call(litellm(server))["provider_metadata"] == WHOLE
    assert told(heard) == ["Hello"]
    assert ["stream" in body for body in server.bodies] == [True, False]


def test_another_refusal_is_an_error(server: Server, ask: Ask):
    server.will(whole({"error": {"message": "temperature must be positive"}}, 400))
    with listening() as heard, pytest.raises(ProviderError, match="temperature"):
        ask(litellm(server))
    assert len(server.bodies) == 1
    assert heard == []


def test_a_model_of_which_litellm_knows_that_it_does_not_stream(server: Server, ask: Ask):
    server.will(says("Hello"))
    with listening() as heard:
        reply = ask(litellm(server, model="azure/o1", api_version="2025-01-01"))
    assert "stream" not in server.bodies[0]
    assert told(heard) == ["Hello"]
    assert reply["provider_metadata"] == WHOLE
    assert heard[-1] == Finish(reply)


# --- streams that break -----------------------------------------------------------------------------------------------

BROKEN = {
    "the connection": (stream(chunk("Hel"), broken=True), NetworkError),
    "the end": (stream(chunk("Hel")), NetworkError),
    "a piece": (stream(chunk("Hel"), b'data: {"choices": [\n\n'), ProviderError),
    "the form of a piece": (stream(chunk("Hel"), b"data: []\n\n"), ProviderError),
    "the service": (stream(chunk("Hel"), failure("crashed", code=500)), ProviderError),
    "the service, in words": (stream(chunk("Hel"), b'data: {"error": "crashed"}\n\n'), ProviderError),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_stream_is_never_half_an_answer(server: Server, ask: Ask, what: str):
    answer, kind = BROKEN[what]
    server.will(answer)
    with listening() as heard, pytest.raises(kind) as raised:
        ask(litellm(server))
    assert type(raised.value) is kind
    assert raised.value.retryable
    assert told(heard) == ["Hel"]
    assert not [event for event in heard if isinstance(event, Finish | TextEnd)]
    assert "Original exception" not in str(raised.value)


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_stream_is_asked_for_again_whole(server: Server, ask: Ask, pauses: list[float], what: str):
    server.will(BROKEN[what][0], says("Hello"))
    with listening() as heard:
        reply = ask(litellm(server, num_retries=1))
    assert ["stream" in body for body in server.bodies] == [True, False]
    assert pauses == [0.5]
    assert message(reply)["content"] == "Hello"
    assert told(heard) == ["Hel", "Hello"]
    assert [type(event) for event in heard].count(StreamStart) == 2
    assert heard[-1] == Finish(reply)


def test_what_fails_before_the_first_piece_is_streamed_again(server: Server, ask: Ask, pauses: list[float]):
    server.will(whole({"error": {"message": "busy"}}, 503), stream(chunk("Hello", "stop"), DONE))
    with listening():
        assert message(ask(litellm(server, num_retries=1)))["content"] == "Hello"
    assert ["stream" in body for body in server.bodies] == [True, True]


def test_what_the_service_will_refuse_again_is_not_asked_again(server: Server, pauses: list[float]):
    server.will(stream(chunk("Hel"), failure("bad request", code=400)))
    with pytest.raises(ProviderError) as raised:
        in_a_plain_call(litellm(server, num_retries=2), stream=True)
    assert raised.value.status == 400
    assert len(server.bodies) == 1


def test_where_litellm_does_not_say_that_a_stream_broke_it_is_not_relied_on(server: Server, ask: Ask):
    """It does not for OpenAI's older dialect."""
    choice = {"index": 0, "text": "Hello", "finish_reason": "stop"}
    body = {"id": "r1", "object": "text_completion", "choices": [choice]}
    server.will(whole(body, connection="close"))  # LiteLLM closes no client of this dialect
    with listening() as heard:
        assert message(ask(litellm(server, model="text-completion-openai/m")))["content"] == "Hello"
    assert told(heard) == ["Hello"]
    assert ["stream" in body for body in server.bodies] == [False]


def test_a_stream_that_ends_without_a_word_of_why_is_broken(server: Server, ask: Ask):
    """For some dialects LiteLLM says all the same that it is complete."""
    server.will(stream(chunk("Hel")))
    with listening() as heard, pytest.raises(NetworkError, match="broke off"):
        ask(litellm(server, model="text-completion-codestral/m", base_url=f"{server.url}/fim"))
    assert told(heard) == ["Hel"]
    assert told(heard) == ["Hel"]


def test_a_filter_in_the_middle_of_a_stream(server: Server, ask: Ask):
    server.will(stream(chunk("Hel"), failure("no", code="content_filter")))
    with pytest.raises(RefusalError):
        ask(litellm(server), stream=True)


def test_a_stream_that_falls_silent_is_an_error(server: Server, ask: Ask):
    server.will(server.wait_until_gone(chunk("Hel")))
    with pytest.raises(RequestTimeoutError):
        ask(litellm(server), stream=True, timeout=0.1)
    assert server.gone.wait(10)


def test_a_call_with_a_time_limit_does_not_wait_longer(server: Server, ask: Ask):
    server.will(server.wait_until_gone(chunk("Hel")))
    with pytest.raises((RequestTimeoutError, Cancelled)), StopScope(seconds=0.3):
        ask(litellm(server), stream=True)
    assert server.gone.wait(10)


# --- interruptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("dialect", [litellm, anthropic])
def test_an_interruption_closes_the_connection(server: Server, kind: type[BaseException], dialect: Any):
    def interrupt(event: Any) -> None:
        raise kind

    begun = chunk("Hel") if dialect is litellm else ANTHROPIC[:1500]
    server.will(server.wait_until_gone(begun))
    with handler({emit: interrupt}), pytest.raises(kind):
        in_a_plain_call(dialect(server))
    assert server.gone.wait(10)


def test_an_error_of_a_listener_is_not_one_of_the_provider(server: Server, ask: Ask):
    server.will(server.wait_until_gone(chunk("Hel")))

    def fail(event: Any) -> None:
        raise ValueError("enough")

    with handler({emit: fail}), pytest.raises(ValueError, match="enough"):
        ask(litellm(server, num_retries=2))
    assert len(server.bodies) == 1
    assert server.gone.wait(10)


@pytest.mark.parametrize("dialect", [litellm, anthropic])
def test_cancelling_closes_the_connection(server: Server, dialect: Any):
    server.will(server.wait_until_gone(chunk("Hel") if dialect is litellm else ANTHROPIC[:1500]))

    async def main() -> Any:
        begun = asyncio.Event()
        with handler({emit: lambda event: begun.set()}), handler(dialect(server)):
            call = asyncio.create_task(bridged(completion, messages=HI))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        return await asyncio.to_thread(server.gone.wait, 10)

    assert asyncio.run(main())


def test_a_call_that_is_stopped_closes_the_connection(server: Server, ask: Ask):
    server.will(server.wait_until_gone(chunk("Hel")))
    with pytest.raises(Cancelled), StopScope() as scope:
        with handler({emit: lambda event: scope.stop(Cancelled)}):
            ask(litellm(server))
    assert server.gone.wait(10)


def test_closing_the_call_closes_the_connection(server: Server):
    server.will(server.wait_until_gone(chunk("Hel")))

    async def main() -> Any:
        begun = asyncio.Event()
        with handler({emit: lambda event: begun.set()}), handler(litellm(server)):
            coroutine = bridged(completion, messages=HI)
            parked = coroutine.__await__()
            waiting = parked.send(None)
            while not begun.is_set():
                while waiting is not None and not waiting.done():
                    await asyncio.sleep(0)
                waiting = parked.send(None)
            coroutine.close()
        return await asyncio.to_thread(server.gone.wait, 10)

    assert asyncio.run(main())


def test_other_tasks_go_on_between_two_pieces(server: Server):
    def answer(request: Any) -> None:
        stream(chunk("Hel"), broken=True)(request)
        assert server.gone.wait(10)
        stream_end = chunk("lo", "stop") + DONE
        request.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(stream_end), stream_end))

    server.will(answer)

    async def main() -> Any:
        first = asyncio.Event()

        async def tick() -> None:
            await first.wait()
            server.gone.set()

        with handler({emit: lambda event: first.set()}), handler(litellm(server)):
            reply, _ = await asyncio.gather(bridged(completion, messages=HI), tick())
        return reply

    assert message(asyncio.run(main()))["content"] == "Hello"


def test_on_trio_the_error_says_what_to_use(server: Server):
    async def main() -> Any:
        with handler(litellm(server)):
            return await bridged(completion, messages=HI)

    with pytest.raises(ConfigurationError, match=r"asyncio only.*HttpModel"):
        trio.run(main)
    assert server.bodies == []
    assert message(anyio.run(main))["content"] == "hi"
