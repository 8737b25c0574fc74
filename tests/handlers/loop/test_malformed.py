"""Replies that have not the form of one: always a typed error or another attempt, and never something that poisons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, handler, harness, run
from effectful_agents.errors import AgentsError, HistoryError
from effectful_agents.messages import Usage
from effectful_agents.messages.mending import mended
from effectful_agents.testing import ScriptedModel


@Tool.define
def rm(path: str) -> str:
    """Remove."""
    return "removed"


@Tool.define
def size(x: float) -> float:
    """Measure."""
    return x


class Bot(Agent):
    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled

    @Skill.define
    def number(self) -> int:
        """A number."""
        raise NotHandled


def reply(**message: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


def called(name: Any, arguments: Any, **more: Any) -> Any:
    return reply(content=None, tool_calls=[{"id": "a", "function": {"name": name, "arguments": arguments}, **more}])


CLEAN = [
    {"choices": {"a": 1}},
    {"choices": [None]},
    {"choices": [1]},
    {"choices": True},
    {"choices": [{"message": "text"}]},
    {"choices": [{"message": []}]},
    {"choices": [{}]},
    {"choices": [{"message": None}]},
    {},
    [],
    "x" * 3,
    reply(tool_calls=5),
    reply(tool_calls={"id": "a"}),
    reply(tool_calls=[None, 1, "x"]),
    reply(tool_calls=[{"function": "rm"}]),
    reply(tool_calls=[{"function": ["rm"]}]),
    reply(content=[None]),
    reply(content=[{}]),
    reply(content=[{"type": "text"}]),
    reply(content=[{"type": "text", "text": 5}]),
    reply(content=0),
    reply(content=1.5),
    reply(content={}),
    reply(content={"a": 1}),
    reply(content=b"x"),
    called("rm", {"path": {1, 2}}),
    called("rm", float("nan")),
    called("size", '{"x": NaN}'),
    called("rm", '{"path":' + "[" * 20_000),
    called("rm", "[" * 20_000),
    called(5, "{}"),
    called("\ud83d", '{"path": "half \ud83d"}'),
    {**reply(content=""), "usage": 5},
]


@pytest.mark.parametrize("odd", CLEAN, ids=lambda odd: repr(odd)[:60])
@pytest.mark.parametrize("skill", ["ask", "number"])
def test_whatever_comes_the_call_goes_on_or_ends_in_an_error_of_ours(odd, skill):
    bot = Bot()
    model = ScriptedModel(odd if isinstance(odd, dict) else (lambda request: odd), "7", "7", "7")
    with handler(harness(system_prompt="brief")), handler(model):
        try:
            run(getattr(bot, skill), *(["?"] if skill == "ask" else []))
        except AgentsError:
            assert bot.__history__ == []
    for messages in (*(request["messages"] for request in model.requests), bot.__history__):
        assert mended(messages) == messages
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode("utf-8")
        for message in messages:
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_lone_surrogate_in_an_answer_does_not_poison_the_history():
    bot = Bot()
    with handler(harness()), handler(ScriptedModel(reply(content="half \ud83d"))):
        bot.ask("?")
    json.dumps(bot.__history__, ensure_ascii=False).encode("utf-8")


def test_an_endless_code_fence_is_read():
    """It once took minutes."""
    with handler(harness(num_retries=0)), handler(ScriptedModel(reply(content="```json\n" + " " * 300_000))):
        with pytest.raises(AgentsError):
            Bot().number()


@pytest.mark.parametrize("usage", ["many", [1], 5, True, {"prompt_tokens": "nine", "completion_tokens_details": 3}])
def test_usage_that_is_none_costs_no_result(usage):
    bot = Bot()
    with handler(harness()), handler(ScriptedModel({**reply(content="ok"), "usage": usage})):
        result = run(bot.ask, "?")
    assert (result.value, result.usage) == ("ok", Usage())


@pytest.mark.parametrize("history", [[None], ["x"], "text", {"role": "user"}])
def test_a_history_that_is_none_is_refused_by_place(history):
    with handler(harness()), handler(ScriptedModel("ok")), pytest.raises(HistoryError, match="message 0"):
        run(Bot().ask, "?", history=history)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "robot", "content": "x"},
        {"role": "function", "name": "f", "content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": {"a": 1}},
        {"role": "system", "content": None},
        {"role": "tool", "tool_call_id": "x"},
        {"role": "assistant", "content": None},
        {"role": "assistant", "tool_calls": {"id": "a"}},
        {"role": "assistant", "content": None, "tool_calls": [None]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "rm", "arguments": "{"}}],
        },
    ],
    ids=repr,
)
def test_a_broken_message_in_a_history_is_mended(message):
    model = ScriptedModel("ok")
    with handler(harness()), handler(model):
        run(Bot().ask, "?", history=[message])
    for sent in model.requests[0]["messages"]:
        assert sent["role"] in ("system", "user", "assistant", "tool")
        assert isinstance(sent["content"], str | list) or sent.get("tool_calls")
        for call in sent.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
