"""Tools whose results come from outside: the run waits with the call, and goes on with what it was given."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
from typing import Any, Literal

import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, acall, handler, harness
from effectful_agents.errors import (
    AnswerError,
    ConfigurationError,
    DefinitionError,
    MissingHandlerError,
    Suspended,
    TokenUsed,
)
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.durability import MemoryCheckpointer, SqliteCheckpointer
from effectful_agents.handlers.durability.runs import unsettled
from effectful_agents.handlers.policy import AskInTerminal, HumanInteraction, MemoryLedger, RiskPolicy, SqliteLedger
from effectful_agents.harness.approvals import main as approvals
from effectful_agents.operations.policy import Answer, request_approval
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.durability.journaling import Crash, Crashing, plays, running


@dataclasses.dataclass
class Page:
    """A page of the web."""

    title: str
    length: int


@Tool.define(external=True, risk=Risk.SOFT_WRITE)
def browse(url: str) -> Page:
    """Open a page in the browser of the user."""
    raise NotHandled


@Tool.define(external=True)
async def pick(colours: list[str]) -> Literal["red", "blue"]:
    """Have the user pick a colour."""
    raise NotHandled


@Skill.define
def assist(wish: str) -> str:
    """Help with {wish}."""
    raise NotHandled


PAGE = '{"title": "Snow", "length": 3}'


def told(request: Any) -> str:
    return " and ".join(message["content"] for message in request["messages"] if message["role"] == "tool")


def model(*script: Any) -> Any:
    """A model that is asked again in each session, and tells in the end what it was told."""
    handlers, asked = plays(("Help with", [*script, "the end"]))
    return handlers, asked


def results(asked: list[Any]) -> list[str]:
    return [message["content"] for message in asked[-1]["messages"] if message["role"] == "tool"]


def people(ledger: Any = None) -> HumanInteraction:
    return HumanInteraction(bytes(32), binding="ann", consumption=ledger or MemoryLedger())


class Session:
    """A run that is resumed until it has come to its end."""

    def __init__(self, *script: Any, store: Any = None, ledger: Any = None) -> None:
        self.store = store or MemoryCheckpointer()
        self.people = people(ledger)
        self.playing, self.asked = model(*script)

    def run(self, *policies: Any, call: Any = lambda: assist("it")) -> Any:
        with running(self.store, self.playing), handler(self.people):
            with handler(policies[0] if policies else {}):
                return call()

    def suspended(self, *policies: Any, call: Any = lambda: assist("it")) -> Suspended:
        with pytest.raises(Suspended) as caught:
            self.run(*policies, call=call)
        return caught.value

    def answer(self, signal: Suspended, text: str) -> None:
        self.people.redeem(signal.token, "ann", Answer(text=text))


def test_the_run_waits_with_the_call_and_goes_on_with_the_result():
    session = Session(calls("browse", url="a"))
    signal = session.suspended()
    asked = signal.question
    assert (asked.kind, asked.name, asked.arguments, asked.risk) == ("tool_call", "browse", {"url": "a"}, "soft_write")
    assert asked.returns["properties"].keys() == {"title", "length"}
    assert session.suspended().token == signal.token
    assert unsettled(session.store.load("run")) == []
    session.answer(signal, PAGE)
    assert session.run() == "the end"
    assert [json.loads(result) for result in results(session.asked)] == [json.loads(PAGE)]
    assert session.run() == "the end"
    assert len(session.asked) == 2  # each request once, in however many sessions
    with pytest.raises(TokenUsed):
        session.answer(signal, PAGE)


BAD = [
    ("", "says nothing"),
    ("snow", "is to be JSON"),
    ("NaN", "NaN is no number"),
    ('{"title": "Snow"}', "'length' is a required property"),
    ('{"title": "Snow", "length": "long"}', "length"),
    ('{"title": "Snow", "length": 3, "length": 4}', '"length" stands in an object twice'),
    ("[" * 100_000, "is to be JSON"),
    (f'"{"x" * 4_000_000}"', "4,000,000 are the most"),
]


@pytest.mark.parametrize(("text", "why"), BAD, ids=[why for _, why in BAD])
def test_what_is_no_result_is_refused_to_who_gives_it(text, why):
    session = Session(calls("browse", url="a"))
    signal = session.suspended()
    with pytest.raises(AnswerError, match=why) as caught:
        session.answer(signal, text)
    assert len(str(caught.value)) < 2_000
    session.answer(signal, PAGE)  # nothing is lost
    assert session.run() == "the end"


def test_it_can_neither_be_approved_nor_amended():
    session = Session(calls("browse", url="a"))
    signal = session.suspended()
    with pytest.raises(AnswerError, match="is wanted, as JSON"):
        session.people.redeem(signal.token, "ann", Answer(approved=True))
    with pytest.raises(AnswerError, match="cannot be amended any more"):
        session.people.redeem(signal.token, "ann", Answer(text=PAGE, arguments={"url": "b"}))


def test_one_that_is_refused_is_an_error_of_the_tool():
    session = Session(calls("browse", url="a"))
    session.people.redeem(session.suspended().token, "ann", Answer(approved=False, reason="no browser"))
    assert session.run() == "the end"
    assert "It was refused: no browser" in results(session.asked)[0]


BOTH = batch(calls("browse", url="a", id="a"), calls("pick", colours=["red"], id="b"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_of_one_turn_wait_together_and_are_answered_in_any_order(order):
    session, texts = Session(BOTH), [PAGE, '"blue"']
    session.suspended()
    questions = session.people.open_questions()
    assert sorted(question.name for question in questions) == ["browse", "pick"]
    questions = sorted(questions, key=lambda question: question.name)
    for place in order:
        session.suspended()
        session.people.redeem(session.people.token_of(questions[place]), "ann", Answer(text=texts[place]))
    assert session.run() == "the end"
    assert [json.loads(results(session.asked)[0]), results(session.asked)[1]] == [json.loads(PAGE), "blue"]


@pytest.mark.parametrize("written", [False, True])
def test_wherever_it_is_killed_it_asks_once_and_goes_on(written):
    for at in range(40):
        store = Crashing(at, written)
        session = Session(calls("browse", url="a"), store=store)
        killed = answered = 0
        value = None
        while value is None:
            try:
                value = session.run()
            except Crash:
                killed, store.at = killed + 1, None
            except Suspended as signal:
                assert not answered
                session.answer(signal, PAGE)
                answered += 1
        assert (value, answered) == ("the end", 1)
        assert len(session.people.ledger.questions()) == 1
        if not killed:
            return
    pytest.fail("there are more steps than that")


def test_policies_decide_before_it_waits():
    asks = RiskPolicy(allow=Risk.READ, approve=Risk.SOFT_WRITE)
    session = Session(calls("browse", url="a"))
    first = session.suspended(asks)
    assert first.question.returns is None
    session.people.redeem(first.token, "ann", Answer())
    second = session.suspended(asks)
    assert second.question.returns is not None
    session.answer(second, PAGE)
    assert session.run(asks) == "the end"
    denied = Session(calls("browse", url="a"))
    assert denied.run(RiskPolicy(allow=Risk.READ, approve=Risk.READ)) == "the end"
    assert "not done" in results(denied.asked)[0]


def test_a_method_code_of_the_program_and_a_delegate():
    class Desk(Agent):
        @Tool.define(external=True)
        def look(self, what: str) -> int:
            """Look."""
            raise NotHandled

        @Skill.define
        def ask(self, question: str) -> str:
            """Help with {question}."""
            raise NotHandled

    desk = Desk()
    session = Session(calls("look", what="a"))
    signal = session.suspended(call=lambda: Delegate(desk)("it"))
    assert signal.question.text == "What is the result of `look`? (of Desk)"
    session.answer(signal, "3")
    assert session.run(call=lambda: Delegate(desk)("it")) == "the end"
    assert results(session.asked) == ["3"]
    session = Session()
    signal = session.suspended(call=lambda: desk.look("b") + 1)
    session.answer(signal, "4")
    assert session.run(call=lambda: desk.look("b") + 1) == 5


def test_in_an_event_loop():
    session = Session(calls("pick", colours=[]))

    def call() -> Any:
        return asyncio.run(acall(assist, "it"))

    session.answer(session.suspended(call=call), '"red"')
    assert session.run(call=call) == "the end"
    assert asyncio.run(_picked()) == "red"


async def _picked() -> str:
    with handler({pick: lambda colours: _red()}):
        return await pick(["red"])


async def _red() -> str:
    return "red"


# Without anybody


def test_without_anybody_it_says_what_to_install():
    with handler(harness()), handler(ScriptedModel(calls("browse", url="a"))):
        with pytest.raises(MissingHandlerError, match=r"nothing handles `browse`.*HumanInteraction.*journal"):
            assist("it")


def test_without_a_journal_it_says_so():
    with handler(harness()), handler(ScriptedModel(calls("browse", url="a"))), handler(people()):
        with pytest.raises(ConfigurationError, match="no run that could wait"):
            assist("it")


# At once


def test_a_function_in_the_process_gives_the_result():
    with handler(harness()), handler(ScriptedModel(calls("browse", url="a"), "the end")) as scripted:
        with handler({browse: lambda url: Page(url, 1)}):
            assert assist("it") == "the end"
            assert browse("b") == Page("b", 1)
    assert '"title":"a"' in scripted.requests[-1]["messages"][-1]["content"]


def test_at_the_terminal():
    shown = io.StringIO()
    asks = AskInTerminal(io.StringIO(f"snow\n{PAGE}\n\nno idea\n"), shown)
    script = (calls("browse", url="a"), calls("browse", url="b"), calls("browse", url="c"), "the end")
    with handler(harness()), handler(ScriptedModel(*script)) as scripted, handler(asks):
        assert assist("it") == "the end"
    first, second, third = [m["content"] for m in scripted.requests[-1]["messages"] if m["role"] == "tool"]
    assert json.loads(first) == json.loads(PAGE)
    assert "It was refused: no idea" in second
    assert "Nobody gave a result: the input has ended" in third
    assert "That cannot be used" in shown.getvalue()


def test_a_function_that_answers_questions_has_to_give_a_result_of_the_type():
    asks = {**AskInTerminal(io.StringIO()), request_approval: lambda question: Answer(text='"green"')}
    with handler(harness()), handler(ScriptedModel(calls("pick", colours=[]))), handler(asks):
        with pytest.raises(AnswerError, match="no result of `pick`"):
            assist("it")


# On the command line


@pytest.fixture
def paths(tmp_path):
    return str(tmp_path / "runs.db"), str(tmp_path / "questions.db")


def test_it_is_listed_shown_and_answered_on_the_command_line(paths, capsys):
    runs, questions = paths
    store, ledger = SqliteCheckpointer(runs), SqliteLedger(questions)
    session = Session(calls("browse", url="a"), store=store, ledger=ledger)
    id = session.suspended().question.token_id[:8]
    assert approvals([questions]) == 0
    assert 'browse(url="a")' in capsys.readouterr().out
    assert approvals([questions, "show", id]) == 0
    out = capsys.readouterr().out
    assert "its result is JSON as" in out
    assert f"answer {id} JSON" in out
    assert "approve" not in out
    for command in (["approve", id], ["answer", id, '{"title": 3}'], ["amend", id, '{"url": "b"}']):
        assert approvals([questions, *command]) == 1
        assert "browse" in capsys.readouterr().err
    assert approvals([questions, "answer", id, PAGE]) == 0
    assert session.run() == "the end"
    store.close()
    ledger.close()


# Definitions


def test_what_cannot_be_external():
    class Opaque:
        pass

    with pytest.raises(DefinitionError, match="a model answers it"):
        Skill.define(assist.function.__wrapped__, external=True)  # ty: ignore

    @Tool.define(external=True)
    def fetch() -> Opaque:
        """Fetch."""
        raise NotHandled

    from effectful_agents.encoding import tool_codec
    from effectful_agents.errors import EncodingError

    with pytest.raises(EncodingError, match="external tool `fetch`"):
        tool_codec(fetch)
