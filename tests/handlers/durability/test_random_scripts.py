"""Whatever a model, a tool or a handler does, and wherever it fails: histories stay valid, calls are all or nothing.

Two agents that see each other play scripts at random. An account of its own of what happened says what each history
must hold: the messages of the calls that succeeded, and nothing of those that failed or of attempts that were refused.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from random import Random
from typing import Any

import tenacity
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from effectful_agents import Agent, NotHandled, ObjectInterpretation, Skill, Tool, fwd, handler, implements
from effectful_agents.errors import (
    ConfigurationError,
    DecodingError,
    LimitExceeded,
    NetworkError,
    RefusalError,
    Suspended,
    ToolCallExecutionError,
)
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.messages.mending import mended
from effectful_agents.operations.history import append_message, conversation, get_history
from effectful_agents.operations.loop import call_agent, call_assistant, call_system, call_tool, call_user, completion
from effectful_agents.runtime import Layers, interpretation
from tests.messages.validity import faults

TURNS, ATTEMPTS = 6, 3

# What a model may do. A tool call is (tool, arguments); `peer__ask` is the skill of the other agent.
RIGHT = [("add", '{"a": 1}'), ("fail", "{}"), ("ask", '{"question": "?"}'), ("peer__ask", '{"question": "?"}')]
FATAL = [("interrupt", "{}"), ("misuse", "{}"), ("suspend", "{}")]
WRONG = [("add", "{"), ("add", '{"a": "x"}'), ("nobody", "{}"), ("", "null")]
IDENTIFIERS = ["a", "b", "c", "a", "b", "c", "", None, "call_2_0", "call_4_1", "call_4_1_"]


def random_script(random: Random) -> list[Any]:
    """What a model does, turn after turn; mostly something that a conversation goes on after."""

    def tool_calls() -> Any:
        tools = random.choices([RIGHT, WRONG, FATAL], [10, 3, 1], k=random.choice([1, 1, 2, 3]))
        return [(random.choice(kind), random.choice(IDENTIFIERS)) for kind in tools]

    def failure() -> Any:
        return random.choice([RuntimeError, NetworkError, RefusalError, KeyboardInterrupt])("model")

    kinds = [tool_calls, lambda: "good", lambda: "bad", lambda: "empty", failure]
    return [random.choices(kinds, [12, 6, 3, 1, 1])[0]() for _ in range(random.randint(0, 14))]


scripts = st.builds(random_script, st.builds(Random, st.integers(0, 2**32)))


@dataclasses.dataclass(frozen=True)
class Fault:
    """An exception that comes out of an operation when it is performed the nth time."""

    operation: str
    nth: int
    after: bool
    inside: bool
    error: BaseException


INTERCEPTED = {
    one.__name__: one for one in (call_system, call_user, call_assistant, call_tool, completion, conversation)
}
OF_HISTORY = {one.__name__: one for one in (append_message, get_history)}

operation_faults = st.builds(
    Fault,
    st.sampled_from(["call_agent", *INTERCEPTED, *OF_HISTORY, "append_message", "call_assistant"]),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from([RuntimeError("fault"), KeyboardInterrupt("fault"), Suspended("fault")]),
)


class Saboteur:
    """Let operations fail as a fault says; one stands outside of the handlers of histories, one inside."""

    def __init__(self, *, inside: bool) -> None:
        self.inside = inside
        self.fault: Fault | None = None
        self.count = 0
        self.handlers: dict[Any, Any] = {one: self.of(name) for name, one in INTERCEPTED.items()}
        self.handlers[call_agent] = self.call_agent

    def arm(self, fault: Fault | None) -> None:
        self.fault = fault if fault is not None and fault.inside is self.inside else None
        self.count = 0

    def perform(self, name: str, forward: Callable[[], Any], *, after: bool = True) -> Any:
        fault = self.fault
        if fault is None or fault.operation != name:
            return forward()
        self.count += 1
        due = self.count == fault.nth
        late = fault.after and after
        if due and not late:
            raise fault.error
        value = forward()
        if due:
            raise fault.error
        return value

    def of(self, name: str) -> Callable[..., Any]:
        return lambda *_, **__: self.perform(name, fwd)

    def call_agent(self, skill: Skill, /, *_: Any, **__: Any) -> Any:
        if self.inside:
            # Whoever raises here after the call has its value already, and the messages are kept.
            return self.perform("call_agent", fwd, after=False)

        def with_faulty_history() -> Any:
            with handler({one: self.of(name) for name, one in OF_HISTORY.items()}):
                return fwd()

        return self.perform("call_agent", with_faulty_history)


def two_agents() -> tuple[Any, Any]:
    """Two agents that see each other: `left` and `right`."""

    class Bot(Agent):
        @Skill.define(recursive=True)
        def ask(self, question: str) -> int:
            """{question}"""
            raise NotHandled

        @Tool.define
        def add(self, a: int) -> int:
            """Add."""
            return a + 1

        @Tool.define
        def fail(self) -> int:
            """Fail."""
            raise LookupError("tool")

        @Tool.define
        def interrupt(self) -> int:
            """Interrupt."""
            raise KeyboardInterrupt("tool")

        @Tool.define
        def suspend(self) -> int:
            """Suspend."""
            raise Suspended("tool")

        @Tool.define
        def misuse(self) -> int:
            """Misuse."""
            raise ConfigurationError("tool")

    left, right = Bot(), Bot()
    return left, right


@dataclasses.dataclass
class Call:
    """The account of a running call.

    Attributes:
        agent: Whose skill is called.
        within: The call of the same agent that this one runs in, if there is one.
        prefix: What every request of it must begin with.
        fresh: Whether the next request is the first attempt at a turn.
        own: Its question and the numbers of the replies that count, in order.
        later: The same of calls of the same agent inside it, which come behind its own.
    """

    agent: Any
    within: Call | None
    prefix: str
    fresh: bool = True
    own: list[Any] = dataclasses.field(default_factory=list)
    later: list[Any] = dataclasses.field(default_factory=list)


class Account(ObjectInterpretation[Any, Any]):
    """Play the model, check every request, and keep account of what must come to stand in the histories."""

    def __init__(self, agents: tuple[Any, Any], tool_choice: str | None) -> None:
        self.agents = agents
        self.tool_choice = tool_choice
        self.script: list[Any] = []
        self.running: list[Call] = []
        self.expected: dict[int, list[Any]] = {id(agent): [] for agent in agents}
        self.offered: dict[int, str] = {}
        self.number = 0

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *_: Any, **__: Any) -> Any:
        agent: Any = skill.agent
        within = next((call for call in reversed(self.running) if call.agent is agent), None)
        call = Call(agent, within, lines(agent.__history__) if within is None else within.prefix)
        self.number += 1
        call.own.append(f"question-{self.number}")
        self.running.append(call)
        try:
            value = fwd(skill, call.own[0])
        finally:
            self.running.pop()
        (self.expected[id(agent)] if within is None else within.later).extend([*call.own, *call.later])
        return value

    @implements(completion)
    def completion(self, **request: Any) -> Any:
        call = self.running[-1]
        self.check(call, request)
        move = self.script.pop(0) if self.script else "good"
        if isinstance(move, BaseException):
            raise move
        self.number += 1
        message, call.fresh = self.reply(move, call)
        if call.fresh:
            call.own.append(self.number)
        return {"choices": [{"index": 0, "message": message, "finish_reason": None}]}

    def check(self, call: Call, request: Any) -> None:
        assert faults(request["messages"]) == []
        sent = lines(request["messages"])
        assert sent.startswith(call.prefix)
        if call.fresh:
            call.prefix = sent
        tools = json.dumps(request["tools"])
        assert self.offered.setdefault(id(call.agent), tools) == tools

    def reply(self, move: Any, call: Call) -> tuple[Any, bool]:
        """The message that a move stands for, and whether it is one that counts."""
        message: dict[str, Any] = {"role": "assistant", "content": None, "number": self.number}
        if isinstance(move, str):
            message["content"] = {"good": '{"value": 1}', "bad": "many", "empty": ""}[move]
            return message, move == "good" and self.tool_choice != "required"
        peer = "right" if call.agent is self.agents[0] else "left"
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name.replace("peer", peer), "arguments": arguments}}
            for (name, arguments), id in move
        ]
        return message, self.tool_choice != "none" and any(one not in WRONG for one, _ in move)


def lines(messages: Any) -> str:
    """Messages as they are sent, each on a line."""
    return "".join(json.dumps(message) + "\n" for message in messages)


def marks(history: Any) -> list[Any]:
    """What the account knows a history by: its questions, and the numbers of the replies."""
    return [
        message["content"].split()[-1] if message["role"] == "user" else message["number"]
        for message in history
        if message["role"] in ("user", "assistant")
    ]


def is_expected(error: BaseException) -> bool:
    """Whether an error is one that a script or a fault asks for, and none of the framework's own making."""
    expected = (DecodingError, LimitExceeded, ToolCallExecutionError)
    return isinstance(error, expected) or error.args in (("fault",), ("model",), ("tool",))


class Conversations(RuleBasedStateMachine):
    @initialize(
        tool_choice=st.sampled_from([None, None, None, None, "none", "required"]),
        caught=st.sampled_from([Exception, Exception, RuntimeError]),
    )
    def install(self, tool_choice: str | None, caught: type[Exception]) -> None:
        self.agents = two_agents()
        self.account = Account(self.agents, tool_choice)
        self.saboteurs = [Saboteur(inside=False), Saboteur(inside=True)]
        outside, inside = (one.handlers for one in self.saboteurs)
        self.stack = Layers(
            {completion: self.account.completion},
            AgentLoop(turns=TURNS, system_prompt="brief"),
            outside,
            LexicalToolExtractor(),
            LiteLLMConfigurer(**({} if tool_choice is None else {"tool_choice": tool_choice})),
            HistoryBuilder(),
            TenacityRetryer(caught, stop=tenacity.stop_after_attempt(ATTEMPTS)),
            inside,
            {call_agent: self.account.call_agent},
        )

    @rule(which=st.integers(0, 1), script=scripts, fault=st.one_of(st.none(), st.none(), operation_faults))
    def talk(self, which: int, script: list[Any], fault: Fault | None) -> None:
        self.account.script = list(script)
        for saboteur in self.saboteurs:
            saboteur.arm(fault)
        agent = self.agents[which]
        before = [list(one.__history__) for one in self.agents]
        outside = interpretation()
        error: BaseException | None = None
        try:
            with handler(self.stack):
                agent.ask("?")
        except BaseException as raised:
            error = raised
        assert error is None or is_expected(error), repr(error)
        assert interpretation() is outside
        assert not self.account.running
        for one, old in zip(self.agents, before, strict=True):
            kept = list(one.__history__)
            assert all(new is same for new, same in zip(kept, old, strict=False))
            assert len(kept) >= len(old)
            if error is not None and one is agent:
                assert len(kept) == len(old)

    @invariant()
    def histories_are_valid_and_hold_what_succeeded(self) -> None:
        for agent in getattr(self, "agents", ()):
            history = list(agent.__history__)
            assert faults(history) == []
            assert mended(history) == history
            assert marks(history) == self.account.expected[id(agent)]


Conversations.TestCase.settings = settings(max_examples=60, stateful_step_count=6, deadline=None)
TestConversations = Conversations.TestCase
