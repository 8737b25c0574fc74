"""Tools with the real model: whatever is offered and chosen, the reply is a call of it that fits, or an answer."""

import json
import random
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, TypeAdapter, create_model

from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.messages import (
    Message,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolChoice,
    ToolDefinition,
    Usage,
)
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import handler

pytestmark = pytest.mark.local_model

CITIES = ("Rome", "Oslo", "Kyiv")
KINDS: dict[str, Any] = {
    "city": Literal["Rome", "Oslo", "Kyiv"],
    "count": Annotated[int, Field(gt=0, le=20)],
    "flag": bool,
    "code": Annotated[str, Field(pattern=r"^[A-Z]\d{2}$")],
    "note": Annotated[str, Field(max_length=6)],
    "pair": tuple[bool, bool],
    "tags": Annotated[list[Literal["a", "b"]], Field(max_length=2)],
    "maybe": Literal[1, 2] | None,
}


def tool_set(number: int) -> dict[str, TypeAdapter[Any]]:
    """One to four tools with up to three parameters, some of them optional: the validators of their arguments."""
    draw = random.Random(number)
    tools = {}
    for index in range(draw.randint(1, 4)):
        parameters = draw.sample(sorted(KINDS), draw.randint(0, 3))
        fields: dict[str, Any] = {name: (KINDS[name], ... if draw.random() < 0.7 else None) for name in parameters}
        tools[f"tool_{index}"] = TypeAdapter(create_model(f"Arguments{index}", **fields))
    return tools


def definition(name: str, arguments: TypeAdapter[Any]) -> ToolDefinition:
    function: Any = {"name": name, "description": f"Does {name}.", "parameters": arguments.json_schema()}
    return {"type": "function", "function": function}


ANSWER: Any = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {"type": "object", "properties": {"value": {"enum": CITIES}}, "required": ["value"]},
    },
}


@pytest.mark.parametrize("number", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 30))])
def test_every_reply_is_a_call_that_fits_or_an_answer(number):
    tools = tool_set(number)
    request: Any = {
        "messages": [{"role": "user", "content": "Do what has to be done."}],
        "tools": [definition(name, arguments) for name, arguments in tools.items()],
        "response_format": ANSWER,
        "max_tokens": 100,
        "temperature": 1.0,
    }
    last = list(tools)[-1]
    with handler(LocalModel()):
        for choice in (ToolChoice("auto"), ToolChoice("none"), ToolChoice("required"), ToolChoice("named", last)):
            reply = completion(**request, tool_choice=choice.to_wire())
            message = reply["choices"][0]["message"]
            calls = message.get("tool_calls", [])
            assert bool(calls) in {"auto": (True, False), "none": (False,)}.get(choice.mode, (True,))
            assert reply["choices"][0]["finish_reason"] == ("tool_calls" if calls else "stop")
            for call in calls:
                assert message["content"] is None
                assert call["function"]["name"] in ([last] if choice.mode == "named" else tools)
                tools[call["function"]["name"]].validate_json(call["function"]["arguments"])
            if not calls:
                assert json.loads(message["content"])["value"] in CITIES


WEATHER = definition("weather", TypeAdapter(create_model("Weather", city=(KINDS["city"], ...))))
NOTHING = definition("stations", TypeAdapter(create_model("Stations")))


def conversation(question: str = "Where is it warm? Use the tools.") -> list[Message]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]


def replied(messages: list[Message], reply: Any) -> None:
    """Put a reply into the conversation, its calls answered."""
    message = reply["choices"][0]["message"]
    messages.append(message)
    for index, call in enumerate(message.get("tool_calls", [])):
        call["id"] = f"call_{len(messages)}_{index}"
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "cold"})


def test_a_call_is_not_repeated_and_its_turns_are_served_from_the_cache():
    messages = conversation()
    seen: list[tuple[str, str]] = []
    known = 0
    with handler(LocalModel()):
        for _ in range(5):
            reply = completion(messages=messages, tools=[WEATHER, NOTHING], response_format=ANSWER, temperature=0)
            usage = Usage.from_wire(reply["usage"])
            assert (usage.cache_read or 0) >= known
            known = usage.input or 0
            replied(messages, reply)
            calls = reply["choices"][0]["message"].get("tool_calls", [])
            seen += [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
            if not calls:
                break
    assert len(set(seen)) == len(seen)
    assert len(messages) == 2 + 2 * len(seen) + 1


def test_a_call_may_be_repeated_where_that_is_allowed():
    messages = conversation()
    choice = ToolChoice("named", "stations").to_wire()
    with handler(LocalModel(repeat=True)):
        for _ in range(2):
            reply = completion(messages=messages, tools=[WEATHER, NOTHING], tool_choice=choice)
            assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "stations"
            replied(messages, reply)


def test_the_events_of_a_call_have_its_name_and_its_arguments():
    events: list[StreamEvent] = []
    with handler(LocalModel()), handler({emit: events.append}):
        reply = completion(messages=conversation(), tools=[WEATHER], tool_choice="required")
    [call] = reply["choices"][0]["message"]["tool_calls"]
    told = [event for event in events if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd)]
    assert told[0] == ToolCallStart(name="weather")
    assert told[-1] == ToolCallEnd()
    assert "".join(event.arguments for event in told[1:-1]) == call["function"]["arguments"]


def test_an_answer_in_free_text_comes_without_its_envelope():
    events: list[StreamEvent] = []
    with handler(LocalModel()), handler({emit: events.append}):
        reply = completion(messages=conversation("Say hello."), tools=[WEATHER], tool_choice="none", max_tokens=40)
    text = reply["choices"][0]["message"]["content"]
    assert text
    assert not text.startswith(("{", '"'))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
