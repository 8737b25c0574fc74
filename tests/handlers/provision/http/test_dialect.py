"""The dialect of OpenAI on kept bodies, and how a stream is put together.

The bodies in `recorded` were written by hand in the form in which each of the services answers.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.handlers.provision.assembly import Assembly
from effectful_agents.handlers.provision.http import OpenAICompatible, Piece, PieceOfCall, Provider, sse
from effectful_agents.messages import (
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
    Usage,
)
from tests.handlers.provision.http.server import HI, TOOLS, recorded

DIALECT: Provider = OpenAICompatible()


def chunks(name: str) -> list[Any]:
    return [json.loads(data) for data in sse.events([recorded(name)]) if data != "[DONE]"]


def put_together(pieces: list[Piece]) -> tuple[list[Any], Any]:
    assembly = Assembly("asked")
    events = [event for piece in pieces for event in assembly.add(piece)]
    return [*events, *assembly.end()], assembly.response()


def streamed(name: str) -> tuple[list[Any], Any]:
    return put_together([DIALECT.from_chunk(chunk) for chunk in chunks(name)])


def from_wire(name: str) -> Any:
    return DIALECT.from_wire(json.loads(recorded(name)))


def call(id: str, name: str, arguments: str) -> Any:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def message(response: Any) -> Any:
    return response["choices"][0]["message"]


# --- to the wire ------------------------------------------------------------------------------------------------------


def test_what_is_not_for_the_model_is_not_sent():
    elsewhere: Any = {"num_retries": 1, "api_key": "k", "base_url": "u", "timeout": 3, "stream": False}
    options = {"top_k": 3, "temperature": 1}
    request: Any = {"model": "m", "messages": HI, "temperature": 0, "seed": None, "provider_options": options}
    request |= elsewhere
    before = copy.deepcopy(request)
    assert DIALECT.to_wire(request, stream=False) == {"model": "m", "messages": HI, "temperature": 1, "top_k": 3}
    assert request == before


def test_a_stream_is_asked_for_with_its_usage():
    body = DIALECT.to_wire({"messages": HI}, stream=True)
    assert body == {"messages": HI, "stream": True, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize("tools", [{}, {"tools": []}])
def test_what_is_about_tools_goes_without_them(tools):
    body = DIALECT.to_wire({"messages": HI, "tool_choice": "auto", "parallel_tool_calls": False, **tools}, stream=False)
    assert body == {"messages": HI}


@pytest.mark.parametrize("choice", [ToolChoice("named", "time"), ToolChoice("named", "time").to_wire()])
def test_a_choice_of_tools_is_written_in_its_form(choice):
    body = DIALECT.to_wire({"messages": HI, "tools": TOOLS, "tool_choice": choice}, stream=False)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "time"}}
    assert body["tools"] is TOOLS


# --- from the wire ----------------------------------------------------------------------------------------------------


def test_a_text_of_openai():
    assert from_wire("openai.json") == {
        "id": "chatcmpl-C1",
        "created": 1760000000,
        "model": "gpt-5-mini-2025-08-07",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Grüße aus Köln\u2028🌉"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 19,
            "completion_tokens": 4,
            "total_tokens": 23,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
    }


@pytest.mark.parametrize("name", ["openai", "vllm", "llama_server", "ollama"])
def test_a_stream_gives_the_same_reply_as_the_whole_body(name):
    assert streamed(f"{name}.sse")[1] == from_wire(f"{name}.json")


def test_null_is_not_known_and_zero_is():
    assert Usage.from_wire(from_wire("vllm.json")["usage"]) == Usage(11, 7)
    assert Usage.from_wire(from_wire("ollama.json")["usage"]) == Usage(0, 25)
    assert Usage.from_wire(from_wire("llama_server.json")["usage"]) == Usage(30, 12, cache_read=0)
    assert "usage" not in DIALECT.from_wire({"choices": [], "usage": None})


@pytest.mark.parametrize(("name", "text"), [("vllm.json", "The user greets."), ("ollama.json", "Both cities.")])
def test_reasoning_has_one_name(name, text):
    assert message(from_wire(name))["reasoning_content"] == text
    assert "reasoning" not in message(from_wire(name))


def test_calls_end_a_reply_with_tool_calls_whatever_is_said():
    reply = from_wire("ollama.json")
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert message(reply)["content"] is None


def test_arguments_that_are_an_object_become_json():
    raw = {"function": {"name": "f", "arguments": {"a": "ü"}}, "extra_content": {"signature": "s"}}
    reply = DIALECT.from_wire({"choices": [{"message": {"tool_calls": [raw]}}]})
    assert message(reply)["tool_calls"] == [{**call("", "f", '{"a": "ü"}'), "extra_content": {"signature": "s"}}]


def test_a_call_without_arguments_has_an_empty_text():
    reply = DIALECT.from_wire({"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"name": "f"}}]}}]})
    assert message(reply)["tool_calls"] == [call("a", "f", "")]


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": [3]}, {"choices": [{"message": "text"}]}])
def test_a_body_without_a_reply_is_an_error(body):
    with pytest.raises(ValueError, match=r"choices|object"):
        DIALECT.from_wire(body)


# --- from a stream ----------------------------------------------------------------------------------------------------


def test_reasoning_ends_where_text_begins():
    assert streamed("vllm.sse")[0] == [
        StreamStart("Qwen/Qwen3-8B"),
        *(ReasoningStart(), ReasoningDelta("The user"), ReasoningDelta(" greets."), ReasoningEnd()),
        *(TextStart(), TextDelta("\n\nHello"), TextDelta("!"), TextEnd()),
    ]


def test_calls_come_in_pieces_that_are_no_json():
    events, reply = streamed("openai_calls.sse")
    assert events == [
        StreamStart("gpt-5-mini-2025-08-07"),
        *(ToolCallStart("call_a", "weather"), ToolCallDelta('{"ci'), ToolCallDelta('ty":"Os'), ToolCallDelta('lo"}')),
        *(ToolCallStart("call_b", "time", 1), ToolCallDelta("{}", 1)),
        *(ToolCallEnd(), ToolCallEnd(1)),
    ]
    assert message(reply)["tool_calls"] == [call("call_a", "weather", '{"city":"Oslo"}'), call("call_b", "time", "{}")]


def test_calls_with_the_same_number_are_told_apart_by_their_identifiers():
    assert [one["id"] for one in message(streamed("ollama.sse")[1])["tool_calls"]] == ["call_1", "call_2"]


def test_calls_without_numbers_and_identifiers_are_told_apart_by_their_names():
    pieces = [Piece(calls=(PieceOfCall(name="f", arguments="{"), PieceOfCall(arguments="}"), PieceOfCall(name="f")))]
    assert [one["function"]["arguments"] for one in message(put_together(pieces)[1])["tool_calls"]] == ["{}", ""]


def test_calls_that_come_at_the_same_time_are_kept_apart():
    parts = [PieceOfCall(0, "a", "f", "{"), PieceOfCall(1, "b", "g", "["), PieceOfCall(0, arguments="}")]
    events, reply = put_together([Piece(calls=(part,)) for part in [*parts, PieceOfCall(1, arguments="]")]])
    assert message(reply)["tool_calls"] == [call("a", "f", "{}"), call("b", "g", "[]")]
    assert events[-2:] == [ToolCallEnd(0), ToolCallEnd(1)]


def test_a_call_begins_with_its_name():
    events, _ = put_together([Piece(calls=(part,)) for part in (PieceOfCall(0, "a"), PieceOfCall(0, "", "f", "{}"))])
    assert events == [StreamStart("asked"), ToolCallStart("a", "f"), ToolCallDelta("{}"), ToolCallEnd()]


def test_a_call_without_a_name_is_told_at_the_end():
    events, reply = put_together([Piece(calls=(PieceOfCall(0, "a", "", "{}"),))])
    assert events[1:] == [ToolCallStart("a", ""), ToolCallDelta("{}"), ToolCallEnd()]
    assert message(reply)["tool_calls"] == [call("a", "", "{}")]


def test_text_that_goes_on_after_reasoning_is_another_block():
    events, reply = put_together([Piece("a"), Piece(reasoning="b"), Piece("c"), Piece(refusal="d")])
    assert [event.index for event in events if isinstance(event, TextStart)] == [0, 1]
    assert message(reply) == {"role": "assistant", "content": "ac", "refusal": "d", "reasoning_content": "b"}


def test_text_in_parts_is_text():
    delta = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert DIALECT.from_chunk({"choices": [{"delta": delta}]}).text == "ab"


def test_a_refusal_that_is_no_text_is_none():
    assert DIALECT.from_chunk({"choices": [{"delta": {"content": "a", "refusal": 5}}]}).refusal is None


@pytest.mark.parametrize("chunk", [[], "text", {"choices": [1]}, {"choices": [{"delta": {"content": 7}}]}])
def test_a_piece_that_is_none_is_an_error(chunk):
    with pytest.raises(ValueError, match="expected"):
        DIALECT.from_chunk(chunk)


# --- properties -------------------------------------------------------------------------------------------------------

texts = st.lists(st.text(max_size=4), max_size=4)


@given(reasoning=texts, text=texts, calls=st.lists(texts, max_size=3))
def test_however_a_reply_is_cut_into_pieces_it_is_the_same(reasoning, text, calls):
    pieces = [
        *(Piece(reasoning=part) for part in ["", *reasoning]),
        *(Piece(text=part) for part in ["", *text]),
        *(Piece(calls=(PieceOfCall(place, f"c{place}", "f"),)) for place in range(len(calls))),
        *(Piece(calls=(PieceOfCall(place, arguments=part),)) for place, parts in enumerate(calls) for part in parts),
    ]
    events, reply = put_together(pieces)
    in_one = Piece(
        "".join(text),
        "".join(reasoning),
        calls=tuple(PieceOfCall(place, f"c{place}", "f", "".join(parts)) for place, parts in enumerate(calls)),
    )
    assert reply == put_together([in_one])[1]

    def told(kind: type) -> str:
        return "".join(event.text for event in events if isinstance(event, kind))

    assert told(TextDelta) == "".join(text)
    assert told(ReasoningDelta) == "".join(reasoning)
    for place, parts in enumerate(calls):
        mine = [event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == place]
        assert "".join(mine) == "".join(parts)
    starts = [type(event).__name__ for event in events if type(event).__name__.endswith("Start")]
    ends = [type(event).__name__ for event in events if type(event).__name__.endswith("End")]
    assert sorted(starts[1:]) == sorted(end.replace("End", "Start") for end in ends)
