"""Replies are held to what the request said about tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents.errors import ResultDecodingError, ToolCallDecodingError
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages import ToolChoice
from effectful_agents.operations.loop import completion
from effectful_agents.runtime import handler
from effectful_agents.testing import ScriptedModel, batch, calls, says

HI: list[Any] = [{"role": "user", "content": "hi"}]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("f", "g")
]


def ask_with_choice(choice: Any, answer: Any, messages: Any = HI) -> Any:
    with handler(ScriptedModel(answer)), handler(LiteLLMConfigurer(tool_choice=choice)):
        return completion(messages=messages, tools=TOOLS)


@pytest.mark.parametrize(
    ("choice", "answer"),
    [
        ("auto", says("a")),
        ("auto", calls("f")),
        ("required", calls("f")),
        ("required", batch(says("a"), calls("f"), calls("g", id="2"))),
        ("none", says("a")),
        (ToolChoice("named", "f"), calls("f")),
        (ToolChoice("named", "f").to_wire(), batch(calls("f"), calls("f", id="2"))),
        ("required", {"choices": []}),
        ("required", {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "no"}}]}),
        (
            "required",
            {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "content_filter"}]},
        ),
    ],
)
def test_replies_that_obey_and_those_that_a_later_step_deals_with_pass(choice: Any, answer: Any):
    assert ask_with_choice(choice, answer) is answer


@pytest.mark.parametrize(
    ("choice", "wanted"), [("required", "one of the tools"), (ToolChoice("named", "g"), "the tool `g`")]
)
def test_a_tool_that_had_to_be_called_and_was_not(choice: Any, wanted: str):
    with pytest.raises(ResultDecodingError, match=wanted) as caught:
        ask_with_choice(choice, says("I would rather talk."))
    assert caught.value.raw_message == {"role": "assistant", "content": "I would rather talk."}
    assert caught.value.to_feedback_message()["role"] == "user"


@pytest.mark.parametrize(
    ("choice", "named"),
    [("none", ["No tool", "No tool"]), (ToolChoice("named", "f"), ["left out", "Only the tool `f`"])],
)
def test_every_call_of_a_reply_that_called_what_it_may_not_is_answered(choice: Any, named: list[str]):
    earlier = [
        *HI,
        {"role": "assistant", "content": None, "tool_calls": calls("f")["choices"][0]["message"]["tool_calls"]},
    ]
    earlier.append({"role": "tool", "tool_call_id": "call-1", "content": "done"})
    answer = batch(calls("f", x=1), calls("g", id=""))
    answer["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"] = "{broken"
    with pytest.raises(ToolCallDecodingError) as caught:
        ask_with_choice(choice, answer, earlier)
    error = caught.value
    made = error.raw_message["tool_calls"]
    feedback = [one.to_feedback_message() for one in (error, *error.others)]
    assert [one["tool_call_id"] for one in feedback] == [one["id"] for one in made] == ["call_3_0", "call_3_1"]
    assert all(text in str(one["content"]) for text, one in zip(named, feedback, strict=True))
    assert [one["function"]["arguments"] for one in made] == ['{"x": 1}', '{"malformed_arguments": "{broken"}']


def test_a_call_keeps_the_identifier_and_the_reasoning_that_it_came_with():
    answer = calls("f", id="f-7")
    answer["choices"][0]["message"]["reasoning_content"] = " hm "
    with pytest.raises(ToolCallDecodingError) as caught:
        ask_with_choice("none", answer)
    assert caught.value.raw_message == answer["choices"][0]["message"]
    assert caught.value.others == ()


def test_a_choice_means_nothing_where_no_tool_is_offered():
    with handler(ScriptedModel("hi")), handler(LiteLLMConfigurer(tool_choice="required")):
        assert completion(messages=HI)["choices"][0]["message"]["content"] == "hi"
