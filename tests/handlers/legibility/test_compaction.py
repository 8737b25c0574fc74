"""Long conversations whose oldest part gives way to a summary."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import Agent, CallControl, NotHandled, Skill, Tool, fwd, handler, harness, run, stream
from effectful_agents.errors import (
    Cancelled,
    NetworkError,
    OptionError,
    ProviderError,
)
from effectful_agents.handlers.durability import transaction
from effectful_agents.handlers.legibility import HistoryCompactor
from effectful_agents.handlers.legibility.summary import is_summary
from effectful_agents.messages import Finish, TextDelta, Usage
from effectful_agents.operations.counting import TokenCount, count_tokens
from effectful_agents.operations.loop import call_assistant, completion
from effectful_agents.operations.steps import ModelStep, emit
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.legibility.compacting import (
    UNKNOWN,
    WORDS,
    Bot,
    Model,
    Nested,
    roles,
    silent,
    stack,
    wants_summary,
)
from tests.messages.validity import faults


def _call(name: str) -> Any:
    return {"id": name, "type": "function", "function": {"name": "lookup", "arguments": "{}"}}


def test_earlier_calls_give_way_to_a_summary():
    bot, model = Bot(), Model(*(f"{n}. " + WORDS * 60 for n in range(4)), "Last.")
    with stack(model, limit=3000):
        for question in "abcde":
            bot.ask(f"Question {question}")
    assert roles(bot.__history__) == ["system", "summary", "user", "assistant", "user", "assistant"]
    assert faults(bot.__history__) == []
    assert "It was about numbers." in bot.__history__[1]["content"]
    assert "Question d" in bot.__history__[2]["content"]
    (asked,) = model.summaries
    assert "tools" not in asked
    assert "response_format" not in asked
    text = asked["messages"][1]["content"]
    assert [f"Question {one}" in text for one in "abcde"] == [True, True, True, False, False]
    assert model.requests[-1]["messages"] == bot.__history__[:-1]


def test_below_the_share_nothing_changes():
    bot, model = Bot(), Model(*(WORDS * 20 for _ in range(5)))
    with stack(model, limit=100_000):
        for question in "abcde":
            bot.ask(question)
    assert model.summaries == []
    assert roles(bot.__history__) == ["system", *["user", "assistant"] * 5]
    for request, following in zip(model.requests, model.requests[1:], strict=False):
        assert following["messages"][: len(request["messages"])] == request["messages"]


def test_finished_turns_of_the_running_call_give_way_too():
    turns = [
        silent(batch(calls("lookup", id=f"{n}a", key=f"{n}a", words=100), calls("lookup", id=f"{n}b", key=f"{n}b")))
        for n in range(8)
    ]
    bot, model = Bot(), Model(*turns, "Done.")
    with stack(model, limit=1000):
        assert bot.ask("What is the question?") == "Done."
    assert faults(bot.__history__) == []
    assert roles(bot.__history__[:3]) == ["system", "summary", "user"]
    assert "What is the question?" in bot.__history__[2]["content"]
    assert model.summaries
    for request in model.requests:
        assert faults(request["messages"]) == []
        assert any("What is the question?" in str(one["content"]) for one in request["messages"] if not is_summary(one))
    # The results of the turn before are always there: the model has not read them yet.
    for request, turn in zip(model.requests[1:], range(8), strict=True):
        assert [one["tool_call_id"] for one in request["messages"][-2:]] == [f"{turn}a", f"{turn}b"]
    assert "lookup returned: <0a>" in model.summaries[0]["messages"][1]["content"]
    assert "What is the question?" in model.summaries[0]["messages"][1]["content"]


def test_it_is_repeated_and_the_summary_goes_into_the_next():
    bot = Bot()
    model = Model(*(f"{n}. " + WORDS * 20 for n in range(12)), summary="All about numbers.")
    with stack(model, limit=1000):
        for question in range(12):
            bot.ask(f"Question {question}")
    assert len(model.summaries) >= 3
    assert roles(bot.__history__).count("summary") == 1
    for later in model.summaries[1:]:
        assert "All about numbers." in later["messages"][1]["content"]


def test_what_the_model_reports_counts():
    bot = Bot()
    large = batch(calls("lookup", id="1", key="k"))
    large["usage"] = {"prompt_tokens": 5000}
    model = ScriptedModel("Earlier.", large, "A summary.", "Done.")
    with stack(model, limit=6000):
        bot.ask("1")
        bot.ask("2")
    assert roles(bot.__history__) == ["system", "summary", "user", "assistant", "tool", "assistant"]


def test_the_limit_of_the_model_is_asked_for():
    bot, model = Bot(), Model(*(WORDS * 20 for _ in range(6)))

    def known(content: Any, model: Any = None) -> TokenCount:
        count: TokenCount = fwd()
        return TokenCount(count.tokens, count.estimated, limit=1000)

    with handler({count_tokens: known}), stack(model):
        for question in "abcdef":
            bot.ask(question)
    assert model.summaries


def test_an_estimate_of_a_library_that_happens_to_be_loaded_changes_nothing():
    histories = []
    for loaded in (False, True):
        bot, model = Bot(), Model(*(WORDS * 20 for _ in range(6)))

        def estimate(content: Any, model: Any = None, *, times: int = 3 if loaded else 1) -> TokenCount:
            count: TokenCount = fwd()
            return TokenCount(count.tokens * times, estimated=True)

        with handler({count_tokens: estimate}), stack(model, limit=1000):
            for question in "abcdef":
                bot.ask(question)
        histories.append(json.dumps(bot.__history__))
    assert "summary" in histories[0]
    assert histories[0] == histories[1]


def test_a_conversation_without_a_system_message_is_compacted_too():
    messages: list[Any] = [
        {"role": "user", "content": "What?"},
        *(
            one
            for n in range(4)
            for one in (
                {"role": "assistant", "content": None, "tool_calls": [_call(f"c{n}")]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": WORDS * 20},
            )
        ),
    ]
    sent: list[Any] = []

    def note(messages: Any, *_: Any) -> Any:
        sent.append(list(messages))
        return {"role": "assistant", "content": ""}, [], ""

    with handler({call_assistant: note}), handler(ScriptedModel("Short.")), transaction():
        with handler(HistoryCompactor(limit=1000)):
            call_assistant(messages, str, {}, frozenset())
            call_assistant([], str, {}, frozenset())
    assert roles(sent[0]) == ["summary", "user", "assistant", "tool"]
    assert sent[0][-1] is messages[-1]
    assert sent[1] == []
    assert len(messages) == 9


def test_without_a_limit_it_never_acts():
    bot, model = Bot(), Model(*(WORDS * 500 for _ in range(6)))
    with stack(model):
        for question in "abcdef":
            bot.ask(question)
    assert not model.summaries


def test_only_what_is_new_is_counted():
    counted: list[int] = []

    def note(content: Any, model: Any = None) -> TokenCount:
        counted.append(len(content))
        return fwd()

    turns = [silent(calls("lookup", id=str(n), key="k")) for n in range(20)]
    with handler({count_tokens: note}), stack(Model(*turns, "Done."), limit=10**6):
        Bot().ask("?")
    assert counted == [2] * 21


# What is never lost


def test_one_message_that_is_too_long_is_summarised_in_a_request_that_is_not():
    bot, model = Bot(), Model("first " + WORDS * 2000 + " last", "Second.")
    with stack(model, limit=2000):
        bot.ask("1")
        bot.ask("2")
    for asked in model.summaries:
        assert count_tokens(asked["messages"]).tokens <= 2000
    text = "".join(asked["messages"][1]["content"] for asked in model.summaries)
    assert "first" in text
    assert "last" in text
    assert "characters are left out here" in text


def test_a_long_conversation_is_summarised_in_several_requests():
    bot = Bot()
    model = Model(*(f"Part {n} " + WORDS * 100 for n in range(6)), "Now.", summary="So far.")
    with handler(harness(system_prompt="brief")), handler(model):
        for n in range(6):
            bot.ask(f"Question {n}")
        with handler(HistoryCompactor(limit=2500)):
            bot.ask("And now?")
    assert len(model.summaries) > 1
    texts = [asked["messages"][1]["content"] for asked in model.summaries]
    assert all("So far." in text for text in texts[1:])
    for n in range(6):
        assert sum(f"Part {n} " in text for text in texts) == 1
    assert roles(bot.__history__) == ["system", "summary", "user", "assistant"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (NetworkError("down"), NetworkError),
        ({"choices": []}, ProviderError),
        (Cancelled(), Cancelled),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_where_no_summary_could_be_made_the_error_ends_the_call_and_nothing_is_lost(reply, error):
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(3)), summary=reply)
    with stack(model, limit=1000):
        bot.ask("a")
        bot.ask("b")
        before = json.dumps(bot.__history__)
        with pytest.raises(error):
            bot.ask("c")
        assert json.dumps(bot.__history__) == before
        model._summary = "Better."
        bot.ask("c")
    assert is_summary(bot.__history__[1])


def test_a_summary_that_was_cut_off_says_so():
    cut = says("It was")
    cut["choices"][0]["finish_reason"] = "length"
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(3)), summary=cut)
    with stack(model, limit=1000):
        for question in "abc":
            bot.ask(question)
    assert "cut off" in bot.__history__[1]["content"]


def test_a_call_that_fails_later_leaves_the_history_as_it_was():
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(2)), RuntimeError("down"), "Better.")
    with stack(model, limit=1000):
        bot.ask("a")
        bot.ask("b")
        before = json.dumps(bot.__history__)
        with pytest.raises(RuntimeError):
            bot.ask("c")
        assert json.dumps(bot.__history__) == before


def test_a_history_that_is_handed_in_is_not_changed():
    given = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": WORDS * 200}] * 3
    given = [dict(message) for message in given]
    before = json.dumps(given)
    with stack(Model("Done."), limit=1000):
        result = run(Bot().ask, "?", history=given)
    assert json.dumps(given) == before
    assert roles(result.messages) == ["system", "summary", "user", "assistant"]


def test_what_the_program_said_meanwhile_stays():
    control = CallControl()

    def say(**_: Any) -> Any:
        if len(model.requests) == 2:
            control.say("Be quick!")
        return fwd()

    turns = [silent(calls("lookup", id=str(n), key=str(n), words=200)) for n in range(8)]
    bot, model = Bot(), Model(*turns, "Done.")
    with stack(model, control, {completion: say}, limit=1000):
        bot.ask("What?")
    assert model.summaries
    assert [one["content"] for one in bot.__history__ if one["role"] == "user"][-1] == "Be quick!"
    assert faults(bot.__history__) == []


# Retries, nesting, several at once


def test_attempts_that_failed_leave_no_trace():
    class Counter(Agent):
        @Skill.define
        def count(self, what: str) -> int:
            """How many {what}?"""
            raise NotHandled

    counter = Counter()
    model = Model(*['{"value": 1}'] * 3, "qqq " * 300, "vvv", '{"value": 7}', '{"value": 8}')
    with stack(model, limit=700):
        values = [counter.count(f"{what} " + WORDS * 10) for what in "abcde"]
    assert values == [1, 1, 1, 7, 8]
    assert model.summaries
    assert faults(counter.__history__) == []
    assert "qqq" not in json.dumps(counter.__history__)
    assert "vvv" not in json.dumps(counter.__history__)


def test_a_call_of_the_same_agent_inside_its_tool():
    agent = Nested()
    long = [WORDS * 20 for _ in range(4)]
    model = Model(*long, silent(calls("think", id="t", about="it")), "Thought.", "Done.")
    seen: list[int] = []

    def only_inside(content: Any, model: Any = None) -> TokenCount:
        nested = any("Think about it" in str(message["content"]) for message in content)
        seen.append(len(content))
        return TokenCount(10_000 if nested else 1, estimated=False)

    with handler({count_tokens: only_inside}), stack(model, limit=1000):
        for question in "abcd":
            agent.ask(question)
        assert agent.ask("e") == "Done."
    assert len(model.summaries) >= 1
    inside = next(one for one in model.requests if "Think about it" in str(one["messages"][-1]["content"]))
    assert roles(inside["messages"]) == ["system", "summary", "user"]
    # The history has all of it, in order, and no summary: what it is about is there.
    assert roles(agent.__history__) == [
        *["system", *["user", "assistant"] * 4],
        *["user", "assistant", "tool", "assistant"],
        *["user", "assistant"],
    ]
    assert faults(agent.__history__) == []


def test_identifiers_stay_unique_where_a_shorter_conversation_is_sent():
    agent = Nested()
    replies = [
        *[silent(calls("think", id=f"out{n}", about="x")) for n in range(1)],
        *[silent(calls("lookup", id="same", key=str(n), words=200)) for n in range(6)],
        "Thought.",
        "Done.",
    ]
    model = Model(*(WORDS * 20 for _ in range(2)), *replies)
    with stack(model, limit=1000):
        agent.ask("a")
        agent.ask("b")
        assert agent.ask("c") == "Done."
    assert model.summaries
    assert faults(agent.__history__) == []
    for request in model.requests:
        assert faults(request["messages"]) == []


def test_several_calls_of_one_agent_at_once():
    arrived: list[str] = []

    @Tool.define
    async def meet(name: str) -> str:
        """Wait for the others."""
        arrived.append(name)
        while len(arrived) < 4:
            await asyncio.sleep(0)
        return f"met {name}"

    class Busy(Agent):
        """An agent that several tasks ask."""

        @Skill.define
        async def ask(self, question: str) -> str:
            """{question}"""
            raise NotHandled

    def reply(request: Any) -> Any:
        if wants_summary(request):
            return says("So far.", usage=UNKNOWN)
        last = request["messages"][-1]
        if last["role"] == "user" and "meet" in last["content"]:
            return silent(calls("meet", id="m", name=last["content"][-1]))
        return says(WORDS * 20, usage=UNKNOWN)

    async def program() -> None:
        for question in range(4):
            await busy.ask(f"Question {question}")
        await asyncio.gather(*(busy.ask(f"meet {name}") for name in "abcd"))

    busy, model = Busy(), ScriptedModel(*[reply] * 50)
    with handler(harness(system_prompt="brief")), handler(model), handler(HistoryCompactor(limit=1000)):
        asyncio.run(program())
    assert sum(wants_summary(request) for request in model.requests) >= 4
    for messages in (busy.__history__, *(request["messages"] for request in model.requests)):
        assert faults(messages) == []
    questions = [str(message["content"]) for message in busy.__history__ if message["role"] == "user"]
    assert all(any(f"meet {name}" in question for question in questions) for name in "abcd")


def test_two_compactors_do_not_get_in_each_others_way():
    bot, model = Bot(), Model(*(WORDS * 20 for _ in range(9)))
    with stack(model, HistoryCompactor(limit=1200), limit=1000):
        for question in "abcdefghi":
            bot.ask(question)
    assert roles(bot.__history__).count("summary") == 1
    assert faults(bot.__history__) == []


def test_whoever_listens_does_not_take_the_summary_for_the_answer():
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(2)), "The answer.", summary="The summary.")
    heard: list[Any] = []
    with stack(model, limit=1000):
        bot.ask("a")
        bot.ask("b")
        with handler({emit: heard.append}):
            text = "".join(event.text for event in stream(bot.ask, "c") if isinstance(event, TextDelta))
    assert model.summaries
    assert text == "The answer."


def test_a_request_for_a_summary_is_a_step_like_any_other():
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(2)), "The answer.")
    model._summary = says("The summary.", usage=Usage(input=700, output=9))
    heard: list[Any] = []
    with stack(model, limit=1000):
        bot.ask("a")
        bot.ask("b")
        with handler({emit: heard.append}):
            used = run(bot.ask, "c").usage
    assert used.input == 700 * len(model.summaries)
    asked = [event for event in heard if isinstance(event, ModelStep)]
    assert [(event.step_id, event.depth, str(event.phase)) for event in (*asked[:2], *asked[-2:])] == [
        ("000001-call/000001-model", 1, "attempted"),
        ("000001-call/000001-model", 1, "completed"),
        ("000003-model", 0, "attempted"),
        ("000003-model", 0, "completed"),
    ]
    assert [event.request for event in asked[:-2:2]] == model.summaries
    assert all(Usage.from_wire(event.response["usage"]).input == 700 for event in asked[1:-2:2] if event.response)
    assert sum(isinstance(event, Finish) for event in heard) == 3


def test_a_summary_that_fails_is_told_as_a_step_that_failed():
    bot, model = Bot(), Model(*(WORDS * 40 for _ in range(2)), summary=NetworkError("down"))
    heard: list[Any] = []
    with stack(model, limit=1000), handler({emit: heard.append}):
        bot.ask("a")
        bot.ask("b")
        with pytest.raises(NetworkError):
            bot.ask("c")
    assert isinstance(heard[-1], ModelStep)
    assert isinstance(heard[-1].error, NetworkError)


# Options


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1.5}, {"share": 0}, {"share": 1.1}, {"share": "half"}])
def test_options_that_cannot_be(options):
    with pytest.raises(OptionError):
        HistoryCompactor(**options)


# Whatever the conversation


TURN = st.one_of(st.just(()), st.lists(st.integers(0, 60), min_size=1, max_size=4).map(tuple))
"""The words of the results of a turn's calls; an empty one is an answer."""
CALLS = st.lists(st.lists(TURN, min_size=1, max_size=6).map(tuple), min_size=1, max_size=6)


class Scripted(Model):
    """Replies by the script of each call; everything that is said is unlike anything else."""

    def __init__(self, script: list[Any]) -> None:
        replies: list[Any] = []
        for number, call in enumerate(script):
            for place, turn in enumerate(call[: call.index(()) if () in call else len(call)]):
                names = [f"c{number}.{place}.{index}" for index in range(len(turn))]
                replies.append(
                    silent(batch(*(calls("lookup", id=n, key=n, words=w) for n, w in zip(names, turn, strict=True))))
                )
            replies.append(f"answer {number}; " + WORDS)
        super().__init__(*replies)


def conversation(script: list[Any], limit: int | None) -> tuple[list[Any], Scripted]:
    bot, model = Bot(), Scripted(script)
    with stack(model, limit=limit):
        for number, _ in enumerate(script):
            bot.ask(f"question {number};")
    return list(bot.__history__), model


@given(CALLS, st.integers(450, 2500))
@settings(max_examples=60)
def test_whatever_the_conversation_it_stays_valid_in_order_and_nothing_gets_lost(script, limit):
    whole, _ = conversation(script, None)
    history, model = conversation(script, limit)
    for messages in (history, *(request["messages"] for request in model.requests)):
        assert faults(messages) == []
        assert messages[0] == whole[0]
        assert roles(messages).count("summary") <= 1
        kept = iter(whole)
        assert all(message in kept for message in messages if not is_summary(message)), "in order"
    for request in model.requests:
        shown = {json.dumps(message) for message in request["messages"]}
        last = max(whole.index(message) for message in request["messages"] if not is_summary(message))
        question = max(i for i in range(last + 1) if whole[i]["role"] == "user")
        assert json.dumps(whole[question]) in shown, "the question of the running call"
    material = "\n".join(asked["messages"][1]["content"] for asked in model.summaries)
    for message in whole:
        if message not in history:
            content = message["content"] or message["tool_calls"][0]["function"]["arguments"]
            assert content.strip().split(" ")[0] in material, "in the material of a summary"
    assert bool(model.summaries) == (history != whole)
