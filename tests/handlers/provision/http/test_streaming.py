"""Replies that come in pieces."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from effectful_agents.errors import NetworkError, ProviderError, RefusalError, RequestTimeoutError
from effectful_agents.handlers.provision.http import OpenAICompatible
from effectful_agents.messages import Finish, StreamStart, TextDelta, TextEnd, TextStart
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import handler
from tests.handlers.provision.http.server import (
    DONE,
    HI,
    Server,
    begin_stream,
    chunk,
    listening,
    recorded,
    says,
    send_piece,
    stream,
    whole,
)

WHOLE = {"streamed": False}


def text(reply: Any) -> str:
    return reply["choices"][0]["message"]["content"]


def told(heard: list[Any]) -> list[str]:
    return [event.text for event in heard if isinstance(event, TextDelta)]


def error(message: str, **more: Any) -> bytes:
    return f"data: {json.dumps({'error': {'message': message, **more}})}\n\n".encode()


def test_where_nobody_listens_the_reply_comes_whole(server: Server):
    server.ask()
    assert "stream" not in server.bodies[0]


def test_where_somebody_listens_the_pieces_are_told(server: Server):
    server.will(stream(chunk("Hel"), chunk("lo", "stop"), DONE))
    with listening() as heard:
        reply = server.ask()
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert heard == [StreamStart("test-1"), TextStart(), TextDelta("Hel"), TextDelta("lo"), TextEnd(), Finish(reply)]
    assert text(reply) == "Hello"
    assert "provider_metadata" not in reply


def test_a_request_decides_whether_it_streams(server: Server):
    server.will(stream(chunk("Hello", "stop"), DONE), says("Hello"))
    assert text(server.ask(stream=True)) == "Hello"
    with listening() as heard:
        reply = server.ask(stream=False)
    assert ["stream" in body for body in server.bodies] == [True, False]
    assert told(heard) == ["Hello"]
    assert heard[-1] == Finish(reply)


@pytest.mark.parametrize("name", ["openai", "vllm", "llama_server", "ollama"])
def test_a_recorded_stream_gives_the_whole_reply(server: Server, name):
    body = recorded(f"{name}.sse")
    server.will(stream(*(body[start : start + 37] for start in range(0, len(body), 37))))
    assert server.ask(stream=True) == OpenAICompatible().from_wire(json.loads(recorded(f"{name}.json")))


def test_a_piece_is_told_before_the_next_one_is_sent(server: Server):
    """The server sends the second piece when the first has been told."""
    heard = threading.Event()

    def answer(request: Any) -> None:
        begin_stream(request)
        send_piece(request, chunk("first"))
        assert heard.wait(10)
        send_piece(request, chunk("second", "stop") + DONE)
        request.wfile.write(b"0\r\n\r\n")

    server.will(answer)

    def listen(event: Any) -> None:
        if isinstance(event, TextDelta):
            heard.set()

    with handler({emit: listen}):
        assert text(server.ask()) == "firstsecond"


def test_the_sentinel_ends_the_body(server: Server):
    """Whatever comes after it, and though the connection stays open."""
    server.will(server.wait_until_gone(chunk("Hello", "stop"), DONE, chunk(" again"), DONE))
    assert text(server.ask(stream=True)) == "Hello"
    assert server.gone.wait(10)


def test_a_stream_without_a_sentinel_is_complete_with_its_reason(server: Server):
    server.will(stream(chunk("Hello", "length")))
    reply = server.ask(stream=True)
    assert reply["choices"][0]["finish_reason"] == "length"


def test_several_replies_at_once_are_not_streamed(server: Server):
    server.ask(stream=True, n=2)
    assert "stream" not in server.bodies[0]


# --- services that cannot stream --------------------------------------------------------------------------------------


def test_a_service_that_answers_whole_all_the_same(server: Server):
    server.will(says("Hello"))
    with listening() as heard:
        reply = server.ask()
    assert heard == [StreamStart("test-1"), TextStart(), TextDelta("Hello"), TextEnd(), Finish(reply)]
    assert reply["provider_metadata"] == WHOLE


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_service_that_refuses_to_stream_is_asked_for_the_whole(server: Server, status):
    server.will(whole({"error": "streaming is not supported here"}, status), says("Hello"))
    with listening() as heard:
        assert server.ask()["provider_metadata"] == WHOLE
    assert told(heard) == ["Hello"]
    assert ["stream" in body for body in server.bodies] == [True, False]


def test_another_refusal_is_an_error(server: Server):
    server.will(whole({"error": "temperature must be positive"}, 400))
    with listening() as heard, pytest.raises(ProviderError, match="temperature"):
        server.ask()
    assert len(server.bodies) == 1
    assert heard == []


def test_a_page_is_no_stream(server: Server):
    server.will(whole(b"<html>", kind="text/html"))
    with pytest.raises(ProviderError, match="not JSON: <html>"):
        server.ask(stream=True)


@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream", ""])
def test_a_whole_reply_is_told_from_a_stream_whatever_is_said_of_it(server: Server, kind):
    server.will(
        whole(b"\n " + json.dumps(says("Hello")).encode(), kind=kind), whole({"error": {"message": "quota"}}, kind=kind)
    )
    reply = server.ask(stream=True)
    assert text(reply) == "Hello"
    with pytest.raises(ProviderError, match="quota"):
        server.ask(stream=True)


def test_keep_alives_say_nothing(server: Server):
    idle = b": alive\n\ndata:\n\ndata: null\n\ndata\n\n"
    server.will(stream(idle, chunk("Hel"), idle, chunk("lo", "stop"), idle, DONE))
    with listening() as heard:
        assert text(server.ask()) == "Hello"
    assert told(heard) == ["Hel", "lo"]


@pytest.mark.parametrize("end", [chunk("lo", "stop").rstrip(), chunk("lo", "stop") + b"data: [DONE]"])
def test_the_last_event_may_lack_its_end(server: Server, end):
    server.will(stream(chunk("Hel"), end))
    assert text(server.ask(stream=True)) == "Hello"


# --- streams that break -----------------------------------------------------------------------------------------------

BROKEN = {
    "the connection": (stream(chunk("Hel"), broken=True), NetworkError),
    "the end": (stream(chunk("Hel")), NetworkError),
    "a line": (stream(chunk("Hel"), chunk("lo")[:-12]), NetworkError),
    "a piece that is too deep": (stream(chunk("Hel"), b"data: %s\n\n" % (b"[" * 200_000)), ProviderError),
    "a piece": (stream(chunk("Hel"), b'data: {"choices": [\n\n'), ProviderError),
    "the form of a piece": (stream(chunk("Hel"), b"data: []\n\n"), ProviderError),
    "the service": (stream(chunk("Hel"), error("crashed", code=500)), ProviderError),
    "the service, in words": (stream(chunk("Hel"), b'data: {"error": "crashed"}\n\n'), ProviderError),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_stream_is_never_half_an_answer(server: Server, what):
    answer, kind = BROKEN[what]
    server.will(answer)
    with listening() as heard, pytest.raises(kind) as raised:
        server.ask()
    assert type(raised.value) is kind
    assert raised.value.retryable
    assert told(heard) == ["Hel"]
    assert not [event for event in heard if isinstance(event, (Finish, TextEnd))]


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_stream_is_asked_for_again_whole(server: Server, pauses: list[float], what):
    server.will(BROKEN[what][0], says("Hello"))
    with listening() as heard:
        reply = server.ask(options={"num_retries": 1})
    assert ["stream" in body for body in server.bodies] == [True, False]
    assert text(reply) == "Hello"
    assert told(heard) == ["Hel", "Hello"]
    assert [type(event) for event in heard].count(StreamStart) == 2
    assert heard[-1] == Finish(reply)


def test_what_fails_before_the_first_piece_is_streamed_again(server: Server, pauses: list[float]):
    server.will(whole({"error": "busy"}, 503), stream(chunk("Hello", "stop"), DONE))
    with listening():
        assert text(server.ask(options={"num_retries": 1})) == "Hello"
    assert ["stream" in body for body in server.bodies] == [True, True]


def test_a_stream_that_falls_silent_is_an_error(server: Server):
    server.will(server.wait_until_gone(chunk("Hel")))
    with pytest.raises(RequestTimeoutError):
        server.ask(stream=True, timeout=0.05)
    assert server.gone.wait(10)


def test_a_filter_in_the_middle_of_a_stream(server: Server):
    server.will(stream(chunk("Hel"), error("no", code="content_filter")))
    with pytest.raises(RefusalError):
        server.ask(stream=True)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_interruption_closes_the_connection(server: Server, kind):
    def interrupt(event: Any) -> None:
        if isinstance(event, TextDelta):
            raise kind

    server.will(server.wait_until_gone(chunk("Hel")))
    with handler(server.model()), handler({emit: interrupt}), pytest.raises(kind):
        completion(messages=HI)
    assert server.gone.wait(10)
