"""What a delegate is: one tool with one parameter, a conversation of its own, and the stack that it is called in."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any

import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, acall, handler, harness, run
from effectful_agents.encoding import tool_codec
from effectful_agents.errors import DefinitionError, LimitExceeded, OptionError
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.observability import usage
from effectful_agents.handlers.policy import Limits
from effectful_agents.operations.steps import DelegateStep, Phase, emit
from effectful_agents.testing import ScriptedModel, batch, calls, says
from tests.handlers.delegation.delegate.team import Playing, results_in, tools_of


class _Researcher(Agent):
    """Finds out facts."""

    @Tool.define
    def look_up(self, word: str) -> str:
        """Look a word up."""
        return f"{word} is a word"

    @Skill.define
    def research(self, question: str) -> str:
        """researcher: {question}"""
        raise NotHandled


_expert = _Researcher()


@Skill.define(tools=False)
async def _translate(text: str) -> str:
    """translator: {text}"""
    raise NotHandled


@dataclasses.dataclass
class _Boss(Agent):
    ask = Delegate(_expert, name="ask")
    translate: Any = dataclasses.field(default_factory=lambda: Delegate(_translate, name="translate"))

    @Skill.define
    def work(self, topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled


RESEARCH = [calls("look_up", word="snow"), "It is cold."]


@pytest.fixture(autouse=True)
def _forget() -> None:
    _expert.__history__ = []


def played(model: Playing, call: Any, **options: Any) -> Any:
    with handler(harness(system_prompt="brief", **options)), handler(model.handlers):
        return call()


def test_the_one_who_delegates_sees_one_tool_and_the_result():
    model = Playing(boss=[calls("ask", brief="snow?"), "Cold."], researcher=RESEARCH)
    assert played(model, lambda: _Boss().work("snow")) == "Cold."
    assert tools_of(model.of("boss")[0]) == ["ask", "translate"]
    assert tools_of(model.of("researcher")[0]) == ["look_up"]
    assert results_in(model.of("boss")[1]) == ["It is cold."]
    assert "researcher: snow?" in str(model.of("researcher")[0]["messages"])
    assert "boss: snow" not in str(model.of("researcher")[0]["messages"])


def test_what_the_model_is_shown():
    definition = tool_codec(Delegate(_expert)).definition()["function"]
    assert (definition["name"], definition["description"]) == ("researcher", "Finds out facts.")
    assert list(definition["parameters"]["properties"]) == ["brief"]
    assert "sees nothing of this conversation" in definition["parameters"]["properties"]["brief"]["description"]
    other = Delegate(_translate, name="t", description="Translates.")
    assert (other.__name__, other.description, other.is_async) == ("t", "Translates.", True)


def test_each_call_begins_empty_and_leaves_nothing_in_the_history_of_the_agent():
    script = [calls("ask", brief="one?"), calls("ask", brief="two?"), "done"]
    model = Playing(boss=script, researcher=RESEARCH)
    _expert.__history__ = [{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "yes"}]
    before = list(_expert.__history__)
    boss = _Boss()
    played(model, lambda: boss.work("snow"))
    first, _, second, _ = model.of("researcher")
    assert [[message["role"] for message in request["messages"]] for request in (first, second)] == [
        ["system", "user"]
    ] * 2
    assert "one?" not in str(second["messages"])
    assert _expert.__history__ == before
    assert [message["role"] for message in boss.__history__].count("tool") == 2


def test_methods_of_a_delegated_agent_share_the_conversation_of_their_call():
    class Pair(Agent):
        @Skill.define
        def inner(self, text: Annotated[str, "what"], times: int = 1) -> str:
            """inner: {text}"""
            raise NotHandled

        @Skill.define
        def outer(self, text: str) -> str:
            """outer: {text}"""
            raise NotHandled

    pair = Pair()
    to_pair = Delegate(pair.outer)
    model = Playing(inner=["", "in"], outer=[calls("inner", text="x"), "out"])
    assert played(model, lambda: to_pair("go")) == "out"
    assert "outer: go" in str(model.of("inner")[0]["messages"])
    assert list(pair.__history__) == []


def test_an_agent_that_is_kept_keeps_its_fields_and_no_conversation(tmp_path):
    @dataclasses.dataclass
    class Kept(Agent):
        __agent_id__: str
        seen: int = 0

        @Tool.define
        def look_up(self, word: str) -> str:
            """Look a word up."""
            self.seen += 1
            return word

        @Skill.define
        def research(self, question: str) -> str:
            """researcher: {question}"""
            raise NotHandled

    for number in (1, 2):
        kept = Kept("kept")
        model = Playing(researcher=RESEARCH)
        stack = harness(system_prompt="brief", persist_db=tmp_path / "agents.db")
        with handler(stack), handler(model.handlers):
            assert Delegate(kept)("snow?") == "It is cold."
        assert kept.seen == number
        assert list(kept.__history__) == []
        assert len(model.of("researcher")[0]["messages"]) == 1


TWO = batch(calls("ask", brief="one?", id="a"), calls("ask", brief="two?", id="b"))


@pytest.mark.parametrize("way", ["sequence", "threads", "tasks"])
def test_two_calls_in_one_turn_are_two_conversations(way):
    @Skill.define(tools=False)
    async def look(text: str) -> str:
        """researcher: {text}"""
        raise NotHandled

    @Skill.define
    def work(topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled

    _to = look if way == "tasks" else _expert
    ask = Delegate(_to, name="ask", concurrent=way == "threads")
    del look
    echo = [lambda request: str(request["messages"][-1]["content"])]
    model = Playing(boss=[TWO, "done"], researcher=echo)
    steps: list[Any] = []
    with handler(harness(system_prompt="brief")), handler(model.handlers), handler({emit: steps.append}):
        assert (asyncio.run(acall(work, "snow")) if way == "tasks" else work("snow")) == "done"
    first, second = results_in(model.of("boss")[1])
    assert ("one?" in first, "two?" in first, "one?" in second, "two?" in second) == (True, False, False, True)
    inner = sorted({event.step_id for event in steps if getattr(event, "depth", 0) == 1})
    assert inner == [f"00000{n}-delegate/000001-call/000001-model" for n in (2, 3)]
    assert ask.is_async == (way == "tasks")


def test_steps_reach_the_observers_and_usage_is_summed():
    replies = [calls("ask", brief="snow?"), *RESEARCH, "Cold."]
    told: list[Any] = []
    counted = [says(reply) if isinstance(reply, str) else reply for reply in replies]
    for number, reply in enumerate(counted):
        reply["usage"] = {"prompt_tokens": 10**number, "completion_tokens": 1, "total_tokens": 10**number + 1}
    stack = harness(system_prompt="brief")
    with handler(stack), handler(ScriptedModel(*counted)), usage() as used, handler({emit: told.append}):
        result = run(_Boss().work, "snow")
    assert result.usage == used.usage
    assert used.input == 1111
    delegated = [event for event in told if isinstance(event, DelegateStep)]
    assert [event.phase for event in delegated] == [Phase.ATTEMPTED, Phase.COMPLETED]
    assert [event.step_id for event in delegated] == ["000002-delegate"] * 2
    inside = [event for event in told if getattr(event, "step_id", "").startswith("000002-delegate/")]
    assert {event.depth for event in inside} == {1}
    assert {type(event).__name__ for event in inside} == {"ModelStep", "ToolStep"}


def test_limits_count_what_is_done_inside():
    model = Playing(boss=[calls("ask", brief="snow?"), "Cold."], researcher=RESEARCH)
    with handler(harness(system_prompt="brief")), handler(model.handlers), handler(Limits(turns=2)):
        with pytest.raises(LimitExceeded, match="`turns` of 2"):
            _Boss().work("snow")


def test_an_error_inside_is_a_result_for_the_one_who_delegates():
    def fails(request: Any) -> Any:
        raise ValueError("boom")

    model = Playing(boss=[calls("ask", brief="snow?"), "It failed."], researcher=[fails])
    assert played(model, lambda: _Boss().work("snow")) == "It failed."
    assert "boom" in results_in(model.of("boss")[1])[0]


# How deep


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_agents_that_delegate_to_each_other_are_stopped(depth):
    class Ping(Agent):
        @Skill.define
        def ping(self, text: str) -> str:
            """ping: {text}"""
            raise NotHandled

    class Pong(Agent):
        @Skill.define
        def pong(self, text: str) -> str:
            """pong: {text}"""
            raise NotHandled

    one, other = Ping(), Pong()
    one.to_pong = Delegate(other, depth=depth)  # ty: ignore[unresolved-attribute]
    other.to_ping = Delegate(one, depth=depth)  # ty: ignore[unresolved-attribute]
    answer = [lambda request: results_in(request)[0]]
    model = Playing(ping=[calls("pong", brief="go"), *answer], pong=[calls("ping", brief="go"), *answer])
    said = played(model, lambda: one.ping("go"))
    assert f"the limit `depth` of {depth} was reached" in said
    assert len(said) < 3_000
    assert len(model.requests) == 2 * (depth + 1)


def test_the_lowest_depth_of_those_at_work_counts():
    @Skill.define(tools=False)
    def last(text: str) -> str:
        """last: {text}"""
        raise NotHandled

    to_last = Delegate(last, depth=3)

    class First(Agent):
        @Tool.define
        def hand_on(self) -> str:
            """Hand on."""
            return to_last("go")

        @Skill.define
        def first(self, text: str) -> str:
            """first: {text}"""
            raise NotHandled

    model = Playing(first=[calls("hand_on"), lambda request: results_in(request)[0]], last=["done"])
    assert "the limit `depth` of 1 was reached" in played(model, lambda: Delegate(First(), depth=1)("go"))
    assert played(model, lambda: Delegate(First(), depth=2)("go")) == "done"


def test_a_skill_is_not_offered_its_own_delegate():
    @Skill.define
    def think(text: str) -> str:
        """think: {text}"""
        raise NotHandled

    again = Delegate(think, name="again")
    model = Playing(think=["done"])
    played(model, lambda: think("go"))
    assert "again" not in tools_of(model.of("think")[0])
    assert again.skill == think


# Bad briefs and definitions


def test_a_brief_that_is_too_long_is_an_error_for_the_model():
    boss = _Boss()
    boss.ask_shortly = Delegate(_expert, name="ask_shortly", max_brief=5)  # ty: ignore[unresolved-attribute]
    model = Playing(boss=[calls("ask_shortly", brief="x" * 6), "No."])
    assert played(model, lambda: boss.work("snow")) == "No."
    assert "`max_brief` of 5 was reached" in results_in(model.of("boss")[1])[0]


@Skill.define
def _number(n: int) -> str:
    """{n}"""
    raise NotHandled


@Skill.define
def _two(a: str, b: str) -> str:
    """{a}{b}"""
    raise NotHandled


@Skill.define
def _nothing() -> str:
    """Nothing."""
    raise NotHandled


class _Several(Agent):
    @Skill.define
    def one(self, a: str) -> str:
        """{a}"""
        raise NotHandled

    @Skill.define
    def two(self, a: str) -> str:
        """{a}"""
        raise NotHandled


class _Silent(Agent):
    @Skill.define
    def number(self, n: int) -> str:
        """{n}"""
        raise NotHandled


@Tool.define
def _plain(text: str) -> str:
    """A plain tool."""
    return text


@pytest.mark.parametrize(
    ("to", "told"),
    [
        (_number, "its parameter `n` is no `str`"),
        (_two, "its parameter `b` has no default"),
        (_nothing, "it has no parameter"),
        (_Several(), "several skills.*Delegate\\(agent.one\\).*Delegate\\(agent.two\\)"),
        (_Silent(), "no skill of the agent `_Silent` takes one text"),
        (_Researcher, "make an instance"),
        (_plain, "stands for a skill or an agent"),
        (3, "this is int"),
    ],
)
def test_what_cannot_be_a_delegate_is_told_when_it_is_defined(to, told):
    with pytest.raises(DefinitionError, match=told):
        Delegate(to)


@pytest.mark.parametrize(
    "options",
    [{"depth": 0}, {"depth": True}, {"max_brief": 0.5}, {"grants": ["fly"]}, {"grants": "model_call"}],
)
def test_options_that_cannot_be(options):
    with pytest.raises(OptionError):
        Delegate(_expert, **options)
    with pytest.raises(DefinitionError):
        Delegate(_expert, risk=Risk.READ, timeout=-1)
