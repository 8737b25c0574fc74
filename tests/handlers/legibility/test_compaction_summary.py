"""The request for a summary: its settings, its room, and what happens where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effectful_agents import handler, harness
from effectful_agents.errors import ContextLengthError
from effectful_agents.handlers.legibility import HistoryCompactor
from effectful_agents.handlers.legibility.summary import is_summary
from effectful_agents.operations.loop import send_request
from effectful_agents.testing import calls, says
from tests.handlers.legibility.compacting import UNKNOWN, WORDS, Bot, Model, Narrow, roles, silent, stack, wants_summary


def _reply(reason: str, **message: Any) -> Any:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}]}


_NO_SUMMARY = (
    says(""),
    says("  \n"),
    _reply("stop", content="no", refusal="no"),
    _reply("content_filter"),
    calls("lookup", key="k"),
    _reply("length", content=None, reasoning_content="Hm"),
)


@pytest.mark.parametrize("reply", _NO_SUMMARY)
def test_where_the_model_writes_no_summary_the_call_goes_on_as_long_as_it_can(reply, caplog):
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(3)), summary=reply)
    with stack(model, limit=1000):
        for question in "abc":
            bot.ask(question)
    assert roles(bot.__history__) == ["system", *["user", "assistant"] * 3]
    assert "not compacted" in caplog.text
    before = json.dumps(bot.__history__)
    with stack(model, limit=1000), pytest.raises(ContextLengthError, match=r"not compacted: .*agent\.__history__ ="):
        bot.ask("d")
    assert json.dumps(bot.__history__) == before
    model._summary, model._replies_left = "Better.", ["Last."]
    with stack(model, limit=1000):
        bot.ask("d")
    assert is_summary(bot.__history__[1])


def test_where_the_provider_refuses_a_request_and_no_summary_is_written_the_error_says_both():
    bot, model = Bot(), Narrow(800, *[WORDS * 40] * 3)
    with stack(model):
        bot.ask("a")
        bot.ask("b")
        model._summary = says("")
        with pytest.raises(ContextLengthError, match="the summary that the model wrote is empty"):
            bot.ask("c")


def test_it_is_not_asked_for_in_every_turn_where_the_model_writes_none():
    turns = [silent(calls("lookup", id=str(n), key="k")) for n in range(3)]
    bot, model = Bot(), Model(WORDS * 40, WORDS * 40, *turns, "Last.", summary=says(""))
    with stack(model, limit=1020):
        for question in "abc":
            bot.ask(question)
    assert len(model.summaries) == 1


def test_a_model_that_thinks_first_is_given_more_tokens():
    def thinks(request: Any) -> Any:
        enough = request["max_tokens"] > 300
        return says("At last.") if enough else _reply("length", content=None, reasoning_content="Hm")

    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(3)), summary=thinks)
    with stack(model, limit=1000):
        for question in "abc":
            bot.ask(question)
    assert "At last." in bot.__history__[1]["content"]
    first, *others = [request["max_tokens"] for request in model.summaries]
    assert first == 100
    assert set(others) == {400}
    assert len({request["messages"][0]["content"] for request in model.summaries}) == 1


def test_the_settings_of_the_stack_that_are_for_answers_are_not_those_of_a_summary():
    sent: list[Any] = []

    def send(**request: Any) -> Any:
        sent.append(request)
        return says("It was about numbers." if wants_summary(request) else WORDS * 40, usage=UNKNOWN)

    options: Any = {"max_completion_tokens": 50, "tool_choice": "auto", "stop": ["END"], "logprobs": True, "seed": 3}
    options |= {"response_format": {"type": "json_object"}, "provider_options": {"user": "u", "guided_json": {}}}
    bot = Bot()
    with handler(harness(model="m", system_prompt="brief", **options)), handler({send_request: send}):
        with handler(HistoryCompactor(limit=1000)):
            for question in "abc":
                bot.ask(question)
    summary, *_ = filter(wants_summary, sent)
    said = {name: value for name, value in summary.items() if value is not None and name != "messages"}
    wanted = {"model": "m", "seed": 3, "max_completion_tokens": 100, "provider_options": {"user": "u"}}
    assert {name: said[name] for name in wanted} == wanted
    assert not said.keys() & {"max_tokens", "tool_choice", "stop", "response_format", "logprobs", "tools"}
    assert sent[-1]["stop"] == ["END"]
