"""`ReplayModel` on bodies in OpenAI's dialect, and `split_sse`; other dialects are in provision/test_recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, handler, harness, stream
from effectful_agents.errors import ConfigurationError, NetworkError, OptionError, ProviderError, ResultDecodingError
from effectful_agents.messages import Finish, StreamStart, TextDelta, TextEnd, TextStart, ToolChoice
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.testing import ReplayModel, split_sse

RECORDED = Path(__file__).parents[1] / "recorded"
HI: Any = [{"role": "user", "content": "hi"}]


@Skill.define
def report(place: str) -> str:
    """Report from {place}."""
    raise NotHandled


def test_bodies_are_served_in_their_order_and_requests_are_kept():
    model = ReplayModel(RECORDED / "openai" / "answer.json", str(RECORDED / "mistral" / "answer.sse"))
    with handler(model):
        names = [completion(messages=HI, seed=seed)["model"] for seed in (1, 2)]
    assert names == ["gpt-5-mini-2025-08-07", "mistral-large-latest"]
    assert [request["seed"] for request in model.requests] == [1, 2]
    assert model.remaining == 0


def test_a_stream_is_told_in_the_pieces_in_which_it_came():
    heard: list[Any] = []
    with handler(ReplayModel(RECORDED / "openai" / "answer.sse")), handler({emit: heard.append}):
        reply = completion(messages=HI)
    pieces = [TextDelta(text) for text in ("It is ", "cold in ", "Oslo.")]
    assert heard == [StreamStart("gpt-5-mini-2025-08-07"), TextStart(), *pieces, TextEnd(), Finish(reply)]


def test_a_stream_is_read_where_nobody_listens():
    with handler(ReplayModel(RECORDED / "openai" / "answer.sse")), handler(harness()):
        assert report("Oslo") == "It is cold in Oslo."


def test_a_call_is_followed_piece_by_piece():
    with handler(ReplayModel(RECORDED / "llama_cpp" / "answer.sse")), handler(harness()):
        told = [event.text for event in stream(report, "Oslo") if isinstance(event, TextDelta)]
    assert told == ["It is ", "cold in ", "Oslo."]


def test_half_of_a_stream_is_no_reply(tmp_path: Path):
    body = tmp_path / "half.sse"
    body.write_bytes((RECORDED / "openai" / "answer.sse").read_bytes()[:700])
    with handler(ReplayModel(body)), pytest.raises(NetworkError, match="broke off"):
        completion(messages=HI)


@pytest.mark.parametrize("text", ["<html>", "[]", '{"choices": 3}', ""])
def test_a_body_that_is_no_reply_is_named(tmp_path: Path, text: str):
    (tmp_path / "odd.json").write_text(text)
    with handler(ReplayModel(tmp_path / "odd.json")), pytest.raises(ProviderError, match=r"odd\.json"):
        completion(messages=HI)


def test_a_body_that_holds_an_error_raises_it(tmp_path: Path):
    (tmp_path / "error.json").write_text('{"error": {"message": "overloaded", "code": 503}}')
    with handler(ReplayModel(tmp_path / "error.json")), pytest.raises(ProviderError, match="overloaded") as caught:
        completion(messages=HI)
    assert caught.value.status == 503


def test_a_reply_is_held_to_the_choice_of_tools():
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    with handler(ReplayModel(RECORDED / "openai" / "answer.json")), pytest.raises(ResultDecodingError) as caught:
        completion(messages=HI, tools=tools, tool_choice=ToolChoice("required"))
    assert (caught.value.response or {}).get("usage")


@pytest.mark.parametrize(("bodies", "count"), [(0, "0 bodies"), (1, "1 body"), (2, "2 bodies")])
def test_the_end_of_the_bodies_is_told_with_the_last_message(bodies: int, count: str):
    model = ReplayModel(*[RECORDED / "openai" / "answer.json"] * bodies)
    with handler(model):
        for _ in range(bodies):
            completion(messages=HI)
        with pytest.raises(ConfigurationError, match=f"given {count} and has been asked once more.*user, 'hi'"):
            completion(messages=HI)
        with pytest.raises(ConfigurationError, match="no messages"):
            completion(messages=[])


def test_a_body_that_is_not_there_is_told_at_once(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ReplayModel(tmp_path / "nowhere.json")


@pytest.mark.parametrize("bad", [lambda: ReplayModel({"choices": []}), lambda: ReplayModel(provider="")])  # ty: ignore
def test_what_is_no_body_or_no_provider_is_refused(bad: Any):
    with pytest.raises(OptionError):
        bad()


# --- split_sse --------------------------------------------------------------------------------------------------------


def test_a_recorded_stream_has_the_fragments_that_were_sent():
    fragments = split_sse((RECORDED / "openai" / "answer.sse").read_text())
    texts = [choice["delta"].get("content") for one in fragments for choice in one["choices"]]
    assert texts == ["", "It is ", "cold in ", "Oslo.", None]
    assert fragments[-1]["usage"]["prompt_tokens"] == 1574


def test_named_events_without_a_sentinel_end_with_the_body():
    fragments = split_sse((RECORDED / "anthropic" / "answer.sse").read_text())
    assert (fragments[0]["type"], fragments[-1]["type"]) == ("message_start", "message_stop")


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
@pytest.mark.parametrize("after", ["", 'data: {"late": 1}', "data: no JSON", "data: [DONE]"])
def test_the_sentinel_ends_the_body(end: str, after: str):
    assert split_sse(end.join(['data: {"a": 1}', "data: [DONE]", after, ""])) == [{"a": 1}]


def test_the_sentinel_counts_however_often_it_comes_and_only_as_a_whole_event():
    assert split_sse('data: {"a": "[DONE]"}\n\ndata: {"b": 2}\n\ndata:[DONE]\n\ndata: [DONE]\n\n') == [
        {"a": "[DONE]"},
        {"b": 2},
    ]
    assert split_sse("data: [DONE]") == []


@pytest.mark.parametrize("text", ["", "\n\n", ": hello\n\n", "event: ping\n\n", "data:\n\n"])
def test_what_says_nothing_is_left_out(text: str):
    assert split_sse(text) == []


@pytest.mark.parametrize("text", ["data: {\n\n", "data: [1]\n\n", "data: 3\n\n"])
def test_a_fragment_that_is_no_object_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        split_sse(text)


def test_a_fragment_may_take_several_lines_and_have_any_characters():
    text = json.dumps({"a": "ü\u2028🌉"}, ensure_ascii=False)
    assert split_sse(f"\ufeffdata: {text}\n\ndata: {{\ndata: }}\n\n") == [{"a": "ü\u2028🌉"}, {}]
