"""The scripted model, as users meet it in their tests."""

from __future__ import annotations

import dataclasses
import enum
import json
import threading
import traceback
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, harness
from effectful_agents.errors import (
    ConfigurationError,
    Denied,
    MissingHandlerError,
    NetworkError,
    OptionError,
    ProviderError,
)
from effectful_agents.messages import (
    Finish,
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
    Usage,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.policy import (
    ALLOW,
    Answer,
    Decision,
    Disposition,
    EffectKind,
    decided,
    request_approval,
)
from effectful_agents.operations.steps import emit
from effectful_agents.operations.world import sleep
from effectful_agents.runtime import handler
from effectful_agents.testing import DEFAULT_USAGE, ScriptedModel, batch, calls, says


class Colour(enum.Enum):
    RED = "red"


class Size(enum.StrEnum):
    BIG = "big"


@dataclasses.dataclass
class City:
    name: str
    people: int


@dataclasses.dataclass
class Box:
    value: int


def ask(text: str = "hi", **request: Any) -> Any:
    return completion(messages=[{"role": "user", "content": text}], **request)


def message(reply: Any) -> Any:
    return reply["choices"][0]["message"]


def asking_for(schema: dict[str, Any]) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}


WRAPPED = asking_for({"type": "object", "properties": {"value": {}}, "required": ["value"]})
CITY = asking_for({"type": "object", "properties": {"name": {}, "people": {}}, "required": ["name", "people"]})


def test_replies_are_given_in_their_order():
    with handler(ScriptedModel("one", says("two"), calls("three"))):
        assert [message(ask())["content"] for _ in range(3)] == ["one", "two", None]


def test_a_reply_is_handed_out_as_it_is():
    reply = says("two")
    with handler(ScriptedModel(reply)):
        assert ask() is reply


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (None, "null"),
        ([1, 2], "[1, 2]"),
        (Colour.RED, '"red"'),
        (Size.BIG, '"big"'),
        ({"a": 1}, '{"a": 1}'),
        ("ä", "ä"),
        (["ä"], '["ä"]'),
    ],
)
def test_a_value_is_written_as_json_where_the_request_asks_for_no_form(value: Any, text: str):
    with handler(ScriptedModel(value)):
        assert message(ask())["content"] == text


@pytest.mark.parametrize(
    ("value", "wire"), [(3, 3), (True, True), (None, None), ([City("Paris", 2)], [{"name": "Paris", "people": 2}])]
)
def test_a_value_is_wrapped_where_the_request_asks_for_it(value: Any, wire: Any):
    with handler(ScriptedModel(value)):
        assert json.loads(message(ask(**WRAPPED))["content"]) == {"value": wire}


def test_an_object_is_not_wrapped():
    with handler(ScriptedModel(City("Paris", 2), {"name": "Rome", "people": 3}, Box(1))):
        assert json.loads(message(ask(**CITY))["content"]) == {"name": "Paris", "people": 2}
        assert json.loads(message(ask(**CITY))["content"]) == {"name": "Rome", "people": 3}
        assert json.loads(message(ask(**WRAPPED))["content"]) == {"value": 1}


def test_a_text_is_never_wrapped_so_that_malformed_answers_can_be_scripted():
    with handler(ScriptedModel("{")):
        assert message(ask(**WRAPPED))["content"] == "{"


@pytest.mark.parametrize("failure", [NetworkError("down"), NetworkError, KeyboardInterrupt, KeyboardInterrupt()])
def test_an_exception_is_raised_and_the_next_request_gets_the_next_reply(failure: Any):
    with handler(ScriptedModel(failure, "back")):
        with pytest.raises(failure if isinstance(failure, type) else type(failure)) as caught:
            ask()
        assert isinstance(failure, type) or caught.value is failure
        assert message(ask())["content"] == "back"


def test_a_function_answers_according_to_the_request():
    def answer(request: Any) -> Any:
        return 7 if request["messages"][0]["content"] == "number" else NetworkError("not a number")

    with handler(ScriptedModel(answer, answer)):
        assert message(ask("number"))["content"] == "7"
        with pytest.raises(NetworkError):
            ask("word")


def test_requests_keep_the_messages_that_they_had():
    history: list[Any] = [{"role": "user", "content": "first"}]
    model = ScriptedModel("a", "b")
    with handler(model):
        history.append(message(completion(messages=history, temperature=0)))
        history.append({"role": "user", "content": "second"})
        completion(messages=history)
    assert [len(request["messages"]) for request in model.requests] == [1, 3]
    assert model.requests[0] == {"messages": [{"role": "user", "content": "first"}], "temperature": 0}
    assert model.remaining == 0


@pytest.mark.parametrize(("replies", "count"), [((), "0 replies"), (("a",), "1 reply"), (("a", "b"), "2 replies")])
def test_the_end_of_the_script_is_told_with_the_last_message(replies: tuple[str, ...], count: str):
    model = ScriptedModel(*replies)
    with handler(model):
        for _ in replies:
            ask()
        with pytest.raises(ConfigurationError, match=f"(?s){count}.*user.*And Rome"):
            ask("And Rome?")
    assert len(model.requests) == len(replies) + 1


def test_the_end_of_the_script_without_messages():
    with handler(ScriptedModel()), pytest.raises(ConfigurationError, match="no messages"):
        completion(messages=[])


def test_a_long_last_message_is_cut_in_the_error():
    with handler(ScriptedModel()), pytest.raises(ConfigurationError) as caught:
        ask("x" * 10_000)
    assert len(str(caught.value)) < 600


def test_threads_share_a_script_without_losing_or_doubling_a_reply():
    model = ScriptedModel(*(str(number) for number in range(400)))
    seen: list[str] = []

    def work() -> None:
        with handler(model):
            for _ in range(50):
                seen.append(message(ask())["content"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen, key=int) == [str(number) for number in range(400)]
    assert len(model.requests) == 400


def test_a_listener_hears_each_reply_as_a_stream():
    events: list[Any] = []
    reply = batch(says("Let me look."), calls("add", id="a", x=1), calls("now", id="b"))
    message(reply)["reasoning_content"] = "hm"
    with handler(ScriptedModel(reply, chunk_size=9)), handler({emit: events.append}):
        ask()
    assert events == [
        StreamStart(),
        ReasoningStart(),
        ReasoningDelta("hm"),
        ReasoningEnd(),
        TextStart(),
        TextDelta("Let me lo"),
        TextDelta("ok."),
        TextEnd(),
        ToolCallStart("a", "add", 0),
        ToolCallDelta('{"x": 1}', 0),
        ToolCallEnd(0),
        ToolCallStart("b", "now", 1),
        ToolCallDelta("{}", 1),
        ToolCallEnd(1),
        Finish(reply),
    ]


def test_a_reply_without_choices_streams_nothing_and_arrives():
    events: list[Any] = []
    with handler(ScriptedModel({"choices": []})), handler({emit: events.append}):
        assert ask() == {"choices": []}
    assert events == [StreamStart(), Finish({"choices": []})]


def test_a_piece_of_a_stream_has_at_least_one_character():
    with pytest.raises(ValueError, match="chunk_size"):
        ScriptedModel("a", chunk_size=0)


def test_usage_is_reported_as_it_was_written_down():
    assert Usage.from_wire(says("a")["usage"]) == DEFAULT_USAGE
    assert says("a")["usage"]["total_tokens"] == 120
    assert Usage.from_wire(calls("a", usage=Usage(input=7, cache_read=0))["usage"]) == Usage(input=7, cache_read=0)
    assert "usage" not in says("a", usage=Usage())


def test_replies_say_how_they_ended():
    assert [
        reply["choices"][0]["finish_reason"] for reply in (says("a"), calls("b"), batch(says("a"), calls("b")))
    ] == [
        "stop",
        "tool_calls",
        "tool_calls",
    ]


def test_arguments_of_calls_are_python_values():
    call = message(calls("visit", city=City("Köln", 1), colour=Colour.RED))["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"city": {"name": "Köln", "people": 1}, "colour": "red"}


def test_a_batch_of_texts_is_one_text_and_has_the_usage_of_the_first():
    reply = batch(says("a", usage=Usage(input=1)), says("b"))
    assert message(reply) == {"role": "assistant", "content": "ab"}
    assert reply["usage"] == {"prompt_tokens": 1}


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        batch()


# --- decisions, and errors that pass ----------------------------------------------------------------------------------


@Skill.define
def answer(question: str) -> str:
    """Answer: {question}"""
    raise NotHandled


@Tool.define
def consult(topic: str) -> str:
    """Ask the other one."""
    return answer(topic)


@Skill.define
def lead() -> str:
    """Use the tool."""
    raise NotHandled


BRIEF = harness(system_prompt="brief")


@pytest.mark.parametrize("kind", [Disposition.DENY_STEP, Disposition.TERMINATE_RUN])
def test_a_decision_against_a_request_ends_the_call(kind):
    log: list[Any] = []
    denied = Decision(kind, "too_late", "Not after ten.", rule="hours")
    with handler(ScriptedModel(denied, "never")) as model, handler(BRIEF), handler({decided: log.append}):
        with pytest.raises(Denied, match=r"Not after ten\. \(rule: hours\)"):
            answer("What?")
    assert model.remaining == 1
    assert [(one.decision, one.effect.kind, one.callers) for one in log] == [(denied, EffectKind.MODEL_CALL, (answer,))]


def test_a_decision_in_a_call_inside_of_another_ends_both():
    with handler(ScriptedModel(calls("consult", topic="tea"), Disposition.DENY_STEP, "never")), handler(BRIEF):
        with pytest.raises(Denied):
            lead()


def test_a_decision_that_allows_lets_the_next_reply_follow():
    with handler(ScriptedModel(ALLOW, lambda request: Decision(), "yes")) as model, handler(BRIEF):
        assert answer("What?") == "yes"
    assert len(model.requests) == 1


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_is_asked_where_a_decision_says_so(approved):
    questions: list[Any] = []

    def person(question: Any) -> Answer:
        questions.append(question)
        return Answer(approved=approved, reason="because")

    model = ScriptedModel(Decision(Disposition.REQUIRE_APPROVAL, message="May it?"), "yes")
    with handler(model), handler(BRIEF), handler({request_approval: person}):
        if approved:
            assert answer("What?") == "yes"
        else:
            with pytest.raises(Denied, match="because"):
                answer("What?")
    assert [(one.text, one.effect.kind) for one in questions] == [("May it?", EffectKind.MODEL_CALL)]


def test_where_nobody_is_there_to_be_asked_it_is_an_error():
    with handler(ScriptedModel(Disposition.REQUIRE_APPROVAL)), handler(BRIEF), pytest.raises(MissingHandlerError):
        answer("What?")


def test_errors_that_pass_are_followed_by_the_next_reply_where_that_is_wanted():
    waited: list[float] = []
    busy = ProviderError("busy", status=503, retry_after=7)
    with handler({sleep: waited.append}), handler(ScriptedModel(busy, busy, "yes", num_retries=2)) as model:
        assert message(ask())["content"] == "yes"
        assert len(model.requests) == 1
    assert waited == [7, 7]
    with handler({sleep: waited.append}), handler(ScriptedModel(busy, busy, num_retries=1)):
        with pytest.raises(ProviderError):
            ask()
    wrong = ProviderError("wrong", status=400)
    with handler(ScriptedModel(wrong, "never", num_retries=5)) as model:
        with pytest.raises(ProviderError):
            ask()
    assert model.remaining == 1
    with pytest.raises(OptionError, match="num_retries"):
        ScriptedModel(num_retries=-1)


def test_a_script_can_be_written_later():
    model = ScriptedModel("one")
    model.add("two", "three")
    with handler(model):
        assert [message(ask())["content"] for _ in range(2)] == ["one", "two"]
        model.clear()
        assert model.remaining == 0
        with pytest.raises(ConfigurationError, match="was given 2 replies"):
            ask()


def test_an_error_that_is_raised_again_and_again_does_not_grow():
    error = RuntimeError("down")
    lengths = set()
    for _ in range(3):
        with handler(ScriptedModel(error)), pytest.raises(RuntimeError) as caught:
            completion(messages=[])
        lengths.add(len(list(traceback.walk_tb(caught.value.__traceback__))))
    assert len(lengths) == 1
