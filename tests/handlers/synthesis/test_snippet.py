"""A session that the model is offered for the time of a call."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from effectful_agents import Agent, CallControl, NotHandled, Skill, Tool, acall, handler
from effectful_agents.errors import Cancelled, MissingHandlerError
from effectful_agents.handlers.durability import HistoryBuilder
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.synthesis import StatefulReplSynthesizer
from effectful_agents.operations.history import CompactionScope
from effectful_agents.operations.loop import DecodedToolCall, call_assistant, call_tool
from effectful_agents.operations.session import exec_code, repl_env, repl_history
from effectful_agents.runtime import fwd
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.synthesis.coding import coding, results, roles, runs, tools

LIMIT = 10
seen: list[Any] = []


@Skill.define
def ask(n: int, words: list[str] | None = None) -> str:
    """Say something about {n}."""
    raise NotHandled


@Tool.define
def look() -> str:
    """Look at the session from inside a tool."""
    seen.append((repl_history(), {name: repl_env().get(name) for name in ("n", "x", "LIMIT")}))
    return "seen"


class Bot(Agent):
    """A bot that keeps things."""

    def __init__(self) -> None:
        self.codes: dict[str, str] = {}

    @Skill.define
    def ask(self, question: str) -> str:
        """{question}"""
        raise NotHandled


# The session


def test_state_stays_from_one_tool_call_to_the_next():
    with coding(runs("m = 2"), runs("import math\nprint(math.gcd(m, 4))"), "done") as model:
        assert ask(1) == "done"
    assert results(model) == ["", "2\n"]


def test_arguments_shadow_what_is_around_and_both_are_there():
    @Skill.define
    def shadow(LIMIT: int) -> str:
        """{LIMIT}"""
        raise NotHandled

    with coding(runs("print(LIMIT, look.__name__)"), "done") as model:
        shadow(3)
    assert results(model) == ["3 look\n"]


def test_defaults_are_arguments_too():
    with coding(runs("print(n, words)"), "done") as model:
        ask(1)
    assert results(model) == ["1 None\n"]


def test_the_receiver_of_a_method_is_there():
    bot = Bot()
    with coding(runs("self.codes['room'] = 'BBA'\nprint(question)"), "done") as model:
        bot.ask("where?")
    assert (bot.codes, results(model)) == ({"room": "BBA"}, ["where?\n"])


def test_a_piece_sees_what_was_bound_and_the_history_of_the_session():
    seen.clear()
    with coding(runs("x = n + 1"), runs("1 / 0"), calls("look"), "done"):
        ask(4)
    assert seen == [(["x = n + 1"], {"n": 4, "x": 5, "LIMIT": 10})]


def test_rebinding_a_name_leaves_the_module_alone():
    with coding(runs("LIMIT = 11"), runs("print(LIMIT)"), "done") as model:
        ask(1)
    assert (LIMIT, results(model)) == (10, ["", "11\n"])


def test_the_next_call_gets_an_empty_session():
    bot = Bot()
    with coding(runs("x = 1"), "one", runs("print(x)"), "two") as model:
        bot.ask("1")
        bot.ask("2")
    assert "NameError: name 'x' is not defined" in results(model)[-1]


def test_a_call_inside_a_call_has_a_session_of_its_own():
    @Tool.define
    def inside() -> str:
        """Ask somebody else."""
        return ask(2)

    @Skill.define
    def outer(n: int) -> str:
        """{n}"""
        raise NotHandled

    replies = [
        runs("x = n"),
        calls("inside"),
        runs("print(n, 'x' in globals())"),
        "inner",
        runs("print(n, x)"),
        "outer",
    ]
    with coding(*replies) as model:
        outer(1)
    inner = model.requests[3]["messages"]
    assert inner[-1]["content"] == "2 False\n"
    assert results(model)[-1] == "1 1\n"


def test_a_snippet_may_call_a_skill_which_has_a_session_too():
    with coding(runs("x = 1\nprint(ask(2))\nprint(x)"), runs("x = 5\nprint('inner')"), "two", "one") as model:
        assert ask(1) == "one"
    assert results(model)[-1] == "two\n1\n"


def test_without_a_session_the_operations_say_what_to_install():
    assert repl_history() == []
    for operation in (repl_env, lambda: exec_code(compile("1", "x", "exec"))):
        with pytest.raises(MissingHandlerError, match="StatefulReplSynthesizer"):
            operation()


# How it ends


def test_it_ends_with_an_exception():
    kept: list[Any] = []

    def fail(tool_call: DecodedToolCall) -> Any:
        kept.append(repl_env()["n"])
        raise ZeroDivisionError

    with coding(runs("x = 1")), handler({call_tool: fail}):
        with pytest.raises(ZeroDivisionError):
            ask(3)
        assert kept == [3]
        assert repl_history() == []
        with pytest.raises(MissingHandlerError):
            repl_env()


def test_it_ends_with_a_cancellation():
    def stop(_: Any) -> Any:
        raise Cancelled("enough")

    with coding(runs("x = 1"), stop):
        with pytest.raises(Cancelled):
            ask(3)
        with pytest.raises(MissingHandlerError):
            repl_env()


def test_what_a_call_left_running_cannot_use_its_session():
    kept: list[Any] = []

    def keep(tool_call: DecodedToolCall) -> Any:
        kept.append(contextvars.copy_context())
        return fwd()

    with coding(runs("x = 1"), "done"), handler({call_tool: keep}):
        ask(1)
    with pytest.raises(MissingHandlerError, match="ended"):
        kept[0].run(exec_code, compile("x = 2", "x", "exec"))


def test_calls_that_run_at_once_have_a_session_each():
    replies = {n: [runs("x = n * 10"), runs("print(n, x)"), f"done {n}"] for n in range(5)}
    told: dict[int, str] = {}

    def reply(request: Any) -> Any:
        text = next(message["content"] for message in request["messages"] if message["role"] == "user")
        n = int(text.split("about ")[1].split(".")[0])
        if len(replies[n]) == 1:
            told[n] = request["messages"][-1]["content"]
        return replies[n].pop(0)

    async def main() -> list[str]:
        return await asyncio.gather(*(acall(ask, n) for n in range(5)))

    with coding(*[reply] * 15):
        assert asyncio.run(main()) == [f"done {n}" for n in range(5)]
    assert told == {n: f"{n} {n * 10}\n" for n in range(5)}


def test_an_async_skill_has_a_session():
    @Skill.define
    async def later(n: int) -> str:
        """{n}"""
        raise NotHandled

    with coding(runs("x = n"), runs("print(x)"), "done") as model:
        assert asyncio.run(later(7)) == "done"
        with pytest.raises(MissingHandlerError):
            repl_env()
    assert results(model) == ["", "7\n"]


# What the model is told


def test_the_traceback_has_the_lines_of_the_snippet_and_no_folders():
    with coding(runs("x = 1"), runs("def f():\n    return [][x]\n\nf()"), "done") as model:
        ask(1)
    assert results(model)[-1].splitlines() == [
        "The tool raised an exception.",
        "Traceback (most recent call last):",
        '  File "snippet_2.py", line 4, in <module>',
        "    f()",
        '  File "snippet_2.py", line 2, in f',
        "    return [][x]",
        "IndexError: list index out of range",
    ]


def test_the_lines_of_one_session_are_not_shown_for_another():
    with coding(runs("1 / 0  # one"), "a", runs("\n\n1 / 0  # two"), "b") as model:
        ask(1)
        first = results(model)
        ask(2)
    assert "1 / 0  # one" in first[0]
    assert "1 / 0  # two" in results(model)[0]


def test_code_that_is_no_python_is_not_run_and_costs_an_attempt():
    with coding(runs("x ="), "fine") as model:
        assert ask(1) == "fine"
    assert "This call was not made" in results(model)[0]
    assert "SyntaxError: invalid syntax" in results(model)[0]
    assert 'File "snippet_1.py", line 1' in results(model)[0]


def test_code_that_an_executor_is_not_there_for_is_not_asked_for():
    with coding("fine", eval_provider="none", tool_calling="json") as model:
        ask(1)
    assert "exec_code" not in tools(model.requests[0])


def test_each_request_says_which_session_it_opens():
    bot = Bot()
    with coding("one", "two", system_prompt="full") as model:
        bot.ask("1")
        bot.ask("2")
    opened = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"]
    sections = [text[text.index("## REPL session") :] for text in opened]
    assert len(sections) == 2
    assert sections[0] == sections[1]
    system = model.requests[0]["messages"][0]["content"]
    assert "## StatefulReplSynthesizer" in system


def test_the_tool_is_the_same_in_every_turn_and_every_call():
    bot = Bot()
    with coding(runs("x = 1"), "one", "two") as model:
        bot.ask("1")
        bot.ask("2")
    assert model.requests[0]["tools"] == model.requests[1]["tools"] == model.requests[2]["tools"]
    parameters = tools(model.requests[0])["exec_code"]["parameters"]
    assert list(parameters["properties"]) == ["code", "compact"]
    assert parameters["required"] == ["code"]
    assert parameters["properties"]["compact"]["enum"] == ["none", "turn", "conversation"]


def test_the_env_of_a_turn_has_what_the_session_bound():
    found: list[Any] = []

    def look_at(messages: Any, response_type: Any, env: Any, tools: Any) -> Any:
        found.append((env.get("x"), env["n"], env.skill.__name__))
        return fwd()

    # Between the session and the loop.
    with handler(AgentLoop()), handler(ScriptedModel(runs("x = 1\nn = 9"), "done")), handler(HistoryBuilder()):
        with handler({call_assistant: look_at}), handler(BuiltinExecutor()), handler(StatefulReplSynthesizer()):
            ask(4)
    assert found == [(None, 4, "ask"), (1, 9, "ask")]


# Compaction


def answered(bot: Bot, *replies: Any) -> Any:
    with coding("first answer", *replies, "second answer") as model:
        bot.ask("first question")
        bot.ask("second question")
    return model


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("none", ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool"]),
        ("turn", ["system", "user", "assistant", "user", "assistant", "tool"]),
        ("conversation", ["system", "user", "assistant", "tool"]),
    ],
)
def test_a_snippet_that_succeeds_compacts_the_conversation(scope, left):
    bot = Bot()
    model = answered(bot, runs("x = 1"), runs("print(x)", compact=scope))
    assert roles(model.requests[-1]["messages"]) == left
    assert roles(bot.__history__) == [*left, "assistant"]
    texts = str(model.requests[-1]["messages"])
    assert "second question" in texts
    assert ("first question" in texts) is (scope != "conversation")
    assert model.requests[-1]["messages"][-1]["content"] == "1\n"


def test_a_snippet_that_raises_compacts_nothing():
    model = answered(Bot(), runs("x = 1"), runs("1 / 0", compact="conversation"))
    assert len(model.requests[-1]["messages"]) == 8


def test_other_calls_of_the_turn_that_asks_keep_their_results():
    first, second = runs("print(1)", id="a"), runs("print(2)", compact="conversation", id="b")
    model = answered(Bot(), runs("x = 1"), batch(first, second, runs("print(3)", id="c")))
    assert results(model) == ["1\n", "2\n", "3\n"]
    assert roles(model.requests[-1]["messages"]) == ["system", "user", "assistant", "tool", "tool", "tool"]


def test_what_the_program_said_meanwhile_stays():
    control = CallControl()

    def say(_: Any) -> Any:
        control.say("and be brief")
        return runs("x = 1")

    with coding(say, runs("print(x)", compact="turn"), "done") as model, handler(control):
        ask(1)
    texts = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"]
    assert "Say something about 1." in texts[0]
    assert texts[1] == "and be brief"


def test_the_scopes_are_those_of_the_history_operations():
    assert [scope.value for scope in CompactionScope] == ["none", "turn", "conversation"]


def test_a_request_outside_of_a_call_is_offered_the_tool_and_nothing_else():
    model = ScriptedModel("hi")
    with handler(model), handler(AgentLoop()), handler(BuiltinExecutor()), handler(StatefulReplSynthesizer()):
        call_assistant([{"role": "user", "content": "?"}], str, {"x": 1})
    assert list(tools(model.requests[0])) == ["exec_code"]


def test_names_of_a_session_are_merged_over_a_plain_mapping():
    found: list[Any] = []

    @Tool.define
    def ask_aside() -> str:
        """Ask the model something, outside of a skill."""
        return str(call_assistant([{"role": "user", "content": "?"}], str, {"n": 0, "y": 2})[2])

    def look_at(messages: Any, response_type: Any, env: Any, tools: Any) -> Any:
        found.append(dict(env) if isinstance(env, dict) else None)
        return fwd()

    @Skill.define
    def local(n: int) -> str:
        """{n}"""
        raise NotHandled

    model = ScriptedModel(runs("n = 7"), calls("ask_aside"), "aside", "done")
    with handler(model), handler(AgentLoop()), handler(LexicalToolExtractor()), handler(HistoryBuilder()):
        with handler({call_assistant: look_at}), handler(BuiltinExecutor()), handler(StatefulReplSynthesizer()):
            assert local(1) == "done"
    assert found == [None, None, {"n": 7, "y": 2}, None]
