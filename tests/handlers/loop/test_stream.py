"""`stream`: the model's replies piece by piece, and the answer as far as it has come."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, fwd, handler, harness, run, stream
from effectful_agents.errors import ProviderError
from effectful_agents.messages import Finish, PartialValue, StreamStart, TextDelta, TextEnd, ToolCallStart
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.testing import ScriptedModel, calls, says


@dataclasses.dataclass
class City:
    """A city."""

    name: str
    people: int = 0


@Tool.define
def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


@Skill.define
def nested(question: str) -> str:
    """{question}"""
    raise NotHandled


@Skill.define
def cities() -> list[City]:
    """Name cities."""
    raise NotHandled


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


def streamed(*script: Any, skill: Any = nested, size: int = 4, **options: Any) -> Any:
    arguments = () if skill is cities else ("?",)
    with handler(harness()), handler(ScriptedModel(*script, chunk_size=size)):
        return stream(skill, *arguments, **options)


def test_the_text_comes_in_pieces_and_then_the_whole():
    call = streamed("Hello world")
    events = list(call)
    assert [type(event).__name__ for event in events] == [
        *("StreamStart", "TextStart", "TextDelta", "TextDelta", "TextDelta", "TextEnd", "Finish")
    ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == call.value == "Hello world"
    assert events[-1].response["choices"][0]["message"]["content"] == "Hello world"
    assert events[-1].response["usage"]["total_tokens"] > 0


def test_each_turn_is_streamed():
    events = list(streamed(calls("measure", text="abc"), "3"))
    assert [event.kind for event in events if isinstance(event, StreamStart | ToolCallStart | TextEnd | Finish)] == [
        *("stream_start", "tool_call_start", "finish", "stream_start", "text_end", "finish")
    ]


def test_what_nested_calls_say_is_left_out():
    call = streamed(calls("nested", question="deep"), "inside", "outside", skill=Bot().ask)
    assert "".join(event.text for event in call if isinstance(event, TextDelta)) == "outside"


def test_an_event_loop_gets_the_pieces(go):
    async def main():
        call = streamed("Hello world")
        return "".join([event.text async for event in call if isinstance(event, TextDelta)]), call.value

    assert go(main) == ("Hello world", "Hello world")


def test_leaving_a_stream_leaves_no_trace():
    bot = Bot()
    for event in streamed("Hello world", skill=bot.ask):
        if isinstance(event, TextDelta):
            break
    assert bot.__history__ == []


def test_partial_values_of_an_answer():
    call = streamed('[{"name": "Rome", "people": 28}, {"name": "Oslo"}]', skill=cities, partial=True)
    values = [event.value for event in call if isinstance(event, PartialValue)]
    assert values[-1] == call.value == [City("Rome", 28), City("Oslo")]
    assert [City("Rome", 28)] in values
    assert all(isinstance(value, list) for value in values)


def test_no_partial_values_unless_asked_for():
    assert not [event for event in streamed("[]", skill=cities) if isinstance(event, PartialValue)]


def test_a_backend_that_cannot_stream_gives_one_piece_and_says_so():
    def whole(**_: Any) -> Any:
        return says("Hello world")

    with handler(harness()), handler({completion: whole}):
        call = stream(nested, "?")
    events = list(call)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello world"]
    assert events[-1].response["provider_metadata"] == {"streamed": False}
    assert call.value == "Hello world"


def test_a_backend_that_streams_is_not_told_twice():
    heard = []

    def hear(event: Any) -> None:
        heard.append(event)
        fwd()

    with handler(harness()), handler(ScriptedModel("Hello")), handler({emit: hear}):
        assert nested("?") == "Hello"
    assert sum(isinstance(event, Finish) for event in heard) == 1


@pytest.mark.parametrize("reply", [None, {}, {"choices": []}, {"choices": [None]}, {"choices": [{"message": 3}]}, 5])
def test_what_is_no_reply_is_the_same_error_whoever_listens(reply):
    def broken(**_: Any) -> Any:
        return reply

    with handler(harness()), handler({completion: broken}):
        with pytest.raises(ProviderError):
            list(stream(nested, "?"))
        with pytest.raises(ProviderError):
            nested("?")


def test_a_program_of_several_calls_is_streamed():
    def program() -> str:
        return nested("1") + nested("2")

    with handler(harness()), handler(ScriptedModel("one", "two")):
        call = stream(program)
    assert "".join(event.text for event in call if isinstance(event, TextDelta)) == call.value == "onetwo"


def test_run_is_streamed_and_gives_its_result():
    with handler(harness()), handler(ScriptedModel("hi")):
        call = stream(run, nested, "?")
    assert [event.text for event in call if isinstance(event, TextDelta)] == ["hi"]
    assert len(call.value.messages) == 3


def test_a_tool_may_stream_a_call_of_its_own():
    said = []

    @Tool.define
    def read_out(question: str) -> str:
        """Read out an answer."""
        call = stream(nested, question)
        said.extend(event.text for event in call if isinstance(event, TextDelta))
        return call.value

    @Skill.define
    def outer() -> str:
        """Do it."""
        raise NotHandled

    with handler(harness()), handler(ScriptedModel(calls("read_out", question="x"), "inside", "done")):
        call = stream(outer)
    assert [event.text for event in call if isinstance(event, TextDelta)] == ["done"]
    assert said == ["inside"]
