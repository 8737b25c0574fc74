"""Requests that the provider refuses as too long, and what the compactor makes of them."""

from __future__ import annotations

import json

import pytest

from effectful_agents import Agent, NotHandled, Skill
from effectful_agents.errors import ContextLengthError
from effectful_agents.handlers.legibility.summary import is_summary
from effectful_agents.testing import batch, calls, says
from tests.handlers.legibility.compacting import (  # noqa: F401 - the skills see `lookup`
    WORDS,
    Bot,
    Model,
    Narrow,
    Nested,
    lookup,
    roles,
    silent,
    stack,
    wants_summary,
)
from tests.handlers.provision.http.server import Server, whole
from tests.messages.validity import faults


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("thought", [None, 100_000])
def test_what_is_refused_as_too_long_is_compacted_and_asked_again(thought, named):
    bot, model = Bot(), Narrow(1000, *(f"{n}. " + WORDS * 20 for n in range(6)), named=named)
    with stack(model, limit=thought):
        for question in "abcdef":
            assert bot.ask(f"Question {question}").startswith(f"{'abcdef'.index(question)}. ")
    assert len(model.refused) == 1
    assert model.summaries
    assert roles(bot.__history__[:2]) == ["system", "summary"]
    assert roles(bot.__history__).count("summary") == 1
    assert "Question f" in bot.__history__[-2]["content"]
    for messages in (bot.__history__, *(request["messages"] for request in model.requests)):
        assert faults(messages) == []
    assert model.requests[-1]["messages"] == bot.__history__[:-1]


def test_finished_turns_give_way_when_a_request_is_refused():
    turns = [silent(batch(calls("lookup", id=f"{n}", key=f"{n}", words=150))) for n in range(8)]
    bot, model = Bot(), Narrow(900, *turns, "Done.")
    with stack(model):
        assert bot.ask("What?") == "Done."
    assert model.refused
    for messages in (bot.__history__, *(request["messages"] for request in model.requests)):
        assert faults(messages) == []
        assert any("What?" in str(one["content"]) for one in messages if not is_summary(one))
    for request, turn in zip(model.requests[1:], range(8), strict=True):
        assert request["messages"][-1]["tool_call_id"] == f"{turn}"


@pytest.mark.parametrize("named", [True, False])
def test_with_nothing_that_can_give_way_the_error_passes(named):
    bot, model = Bot(), Narrow(100, named=named)
    with stack(model), pytest.raises(ContextLengthError):
        bot.ask(WORDS * 20)
    assert len(model.refused) == 1
    assert not model.summaries
    assert bot.__history__ == []


def test_it_is_asked_again_only_once():
    bot, model = Bot(), Narrow(1000, *(WORDS * 20 for _ in range(3)))
    with stack(model):
        for question in "abc":
            bot.ask(question)
        before = list(bot.__history__)
        with pytest.raises(ContextLengthError):
            bot.ask(WORDS * 200)
    assert [wants_summary(request) for request in model.refused] == [False, False]
    assert bot.__history__ == before


def test_a_summary_that_is_refused_is_asked_for_in_smaller_parts():
    bot, wide = Bot(), Model(*(f"{n}. " + WORDS * 50 for n in range(6)))
    with stack(wide):
        for question in "abcdef":
            bot.ask(question)
    narrow = Narrow(1000, "Last.", named=False)
    with stack(narrow):
        bot.ask("g")
    assert len(narrow.summaries) > 1
    material = "".join(one["messages"][1]["content"] for one in narrow.summaries)
    assert all(f"{n}. one" in material for n in range(5))
    assert roles(bot.__history__)[:2] == ["system", "summary"]
    assert faults(bot.__history__) == []


def test_attempts_that_came_before_a_refusal_leave_no_trace():
    class Counter(Agent):
        @Skill.define
        def count(self, what: str) -> int:
            """How many {what}?"""
            raise NotHandled

    counter, good = Counter(), '{"value": 1}'
    model = Narrow(700, good, good, good, "qqq " * 400, good)
    with stack(model):
        assert [counter.count(what + WORDS * 9) for what in "abcd"] == [1, 1, 1, 1]
    assert model.refused
    assert faults(counter.__history__) == []
    assert "qqq" not in json.dumps([counter.__history__, model.requests[-1]["messages"]])


def test_a_refusal_inside_a_tool_of_the_same_agent_leaves_the_history_alone():
    agent = Nested()
    long = [WORDS * 20 for _ in range(4)]
    model = Narrow(1100, *long, silent(calls("think", id="t", about="it " + WORDS * 20)), "Thought.", "Done.")
    with stack(model):
        for question in "abcd":
            agent.ask(question)
        assert agent.ask("e") == "Done."
    inside = next(one for one in model.requests if "Think about it" in str(one["messages"][-1]["content"]))
    assert roles(inside["messages"])[:2] == ["system", "summary"]
    for messages in (agent.__history__, *(request["messages"] for request in model.requests)):
        assert faults(messages) == []


def test_a_service_that_refuses_a_request_is_asked_again_with_a_shorter_one():
    message = "This model's maximum context length is 400 tokens. However, your messages resulted in 450 tokens."
    refusal = whole({"error": {"message": message, "code": "context_length_exceeded"}}, 400)
    server, bot = Server(), Bot()
    server.will(says(WORDS * 10), says(WORDS * 10), refusal, says("It was about numbers."), says("Last."))
    try:
        with stack(server.model()):
            answers = [bot.ask(question) for question in "abc"]
    finally:
        server.http.shutdown()
        server.http.server_close()
    assert answers[-1] == "Last."
    _, _, refused, *summaries, asked = server.bodies
    assert summaries
    assert all(map(wants_summary, summaries))
    assert roles(refused["messages"]) == ["system", *["user", "assistant"] * 2, "user"]
    assert roles(asked["messages"])[:2] == ["system", "summary"]
    assert asked["messages"][-1] == refused["messages"][-1]
    assert asked["tools"] == refused["tools"]
    assert faults(bot.__history__) == []
