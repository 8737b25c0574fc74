"""People who answer in place: at the terminal, or by a function."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import sys
import threading
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import NotHandled, Risk, Skill, Tool, acall, handler, harness
from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.policy import AskInTerminal, Policy, RiskPolicy
from effectful_agents.operations.code import risk_of_code
from effectful_agents.operations.effects import effect_of_call
from effectful_agents.operations.policy import (
    Answer,
    Disposition,
    EffectKind,
    ProposedEffect,
    Question,
    request_approval,
)
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.durability.asking import CODE, WAYS, Office, Trial

each_way = pytest.mark.parametrize("way", WAYS)


@Tool.define(risk=Risk.HARD_WRITE)
def send(to: str, copies: int = 1) -> str:
    """Send a mail."""
    return f"{copies} sent to {to}"


def asked_in_terminal(lines: str, effect: Any = None, text: str = "May it go?") -> tuple[Answer, str]:
    """What somebody answers who types these lines, and what they were shown."""
    shown = io.StringIO()
    with handler(AskInTerminal(io.StringIO(lines), shown)):
        answer = request_approval(Question(text=text, effect=effect))
    return answer, shown.getvalue()


def effect(**arguments: Any) -> ProposedEffect:
    return effect_of_call(send, send.arguments_of(**arguments))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("y\n", Answer()),
        ("Yes\n", Answer()),
        ("  y  \r\n", Answer()),
        ("n\nnot today\n", Answer(approved=False, reason="not today")),
        ("n\n\n", Answer(approved=False)),
        ("n\n", Answer(approved=False)),
        ("n", Answer(approved=False)),
        ("maybe\n\ny\n", Answer()),
        ('a\n{"copies": 3}\n', Answer(arguments={"copies": 3})),
        ('a\n{"copies": "three"}\na\n{"copies": 3, "to": "bob"}\n', Answer(arguments={"copies": 3, "to": "bob"})),
        ('a\n{"cc": "bob"}\nn\nno\n', Answer(approved=False, reason="no")),
        ("a\nnonsense\ny\n", Answer()),
        ("a\n[1]\ny\n", Answer()),
        ("a\n\ny\n", Answer()),
    ],
)
def test_a_person_approves_refuses_or_amends(lines, expected):
    answer, _ = asked_in_terminal(lines, effect(to="ann"))
    assert answer.by
    assert (answer.approved, answer.reason, answer.arguments) == (
        expected.approved,
        expected.reason,
        expected.arguments,
    )


@pytest.mark.parametrize("lines", ["", "maybe\n", "a\n", 'a\n{"copies": "x"}\n'])
def test_who_says_nothing_refuses(lines):
    answer, shown = asked_in_terminal(lines, effect(to="ann"))
    assert not answer.approved
    assert "ended" in answer.reason
    assert shown.endswith("\n")


def test_a_person_is_shown_what_they_approve():
    _, shown = asked_in_terminal("y\n", effect(to="ann", copies=3))
    told = '  | May it go?\n  send (tool_call, hard_write)\n    to = "ann"\n    copies = 3\n'
    assert shown.startswith(told + "Approve (y), refuse (n), or amend")


@given(text=st.text(), name=st.text(), value=st.text())
@settings(max_examples=50, deadline=None)
def test_nothing_that_is_shown_steers_the_terminal(text, name, value):
    proposed = ProposedEffect(kind="tool_call", name=name, arguments={name or "x": value})  # ty: ignore
    _, shown = asked_in_terminal("y\n", proposed, text)
    assert all(one.isprintable() or one == "\n" for one in shown)
    *lines, asked = shown.splitlines()
    assert asked.startswith("Approve (y)")
    # What others wrote stands behind a bar, but for the one line with the name and those with the arguments.
    assert len([line for line in lines if not line.startswith("  | ")]) == 2
    assert all(width_of(line) <= 80 for line in lines)


def width_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


FRAME = 'hi?\n  send (tool_call, read)\n    to = "ann"\nApprove (y), refuse (n), or amend the arguments (a)? y\n\nMay'


@pytest.mark.parametrize("frame", [FRAME, FRAME.replace("\n", " " * 70)], ids=["lines", "blanks that fill a line"])
@pytest.mark.parametrize("where", ["text", "argument", "name", "wish"])
def test_a_text_draws_no_false_question(frame, where):
    proposed = ProposedEffect(
        kind=EffectKind.TOOL_CALL,
        name=frame if where == "name" else "send",
        arguments={"to": "eve", "text": frame if where == "argument" else ""},
    )
    text = f"Send {frame} to eve?" if where == "text" else "May it go?"
    _, shown = asked_in_terminal("y\n", None if where == "wish" else proposed, frame if where == "wish" else text)
    ours = [line for line in shown.splitlines() if not line.startswith("  | ")]
    assert sum("Approve (y)" in line[:11] for line in ours) == (where != "wish")
    assert [line for line in ours if line.startswith("    to")] == ([] if where == "wish" else ['    to = "eve"'])


@pytest.mark.parametrize("unseen", ["\u3164", "\u2800", "\u115f", "\u200b", "\u202e", "\ufe0f"])
def test_what_nobody_sees_is_shown(unseen):
    _, shown = asked_in_terminal("y\n", effect(to=f"ann{unseen}"))
    assert f'to = "ann\\u{ord(unseen):04x}"' in shown


def test_an_argument_that_a_model_named_is_not_taken_for_another():
    proposed = ProposedEffect(kind=EffectKind.TOOL_CALL, name="send", arguments={'to = "ann" ': "eve"})
    _, shown = asked_in_terminal("y\n", proposed)
    assert '    to = "ann"' not in shown


def test_a_person_who_is_not_there_has_refused_nothing():
    office = Office()
    model = ScriptedModel(calls("send", to="ann"), "done")
    with handler(harness(system_prompt="brief")), handler(model), handler(RiskPolicy(allow=Risk.READ)):
        with handler(AskInTerminal(io.StringIO(), io.StringIO())):
            office.assist("mail")
    told = model.requests[1]["messages"][-1]["content"]
    assert told == "This call was not done: Nobody answered: the input has ended (rule: risk)"
    assert office.sent == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [("In May\n", Answer(text="In May")), ("\n", Answer(text="")), ("", Answer(approved=False))],
    ids=["told", "empty", "ended"],
)
def test_a_question_for_information_is_answered_with_a_line(lines, expected):
    answer, shown = asked_in_terminal(lines, text="When?")
    assert (answer.approved, answer.text) == (expected.approved, expected.text)
    assert shown.startswith("The model wants to know:\n  | When?\nAnswer: ")


def test_what_a_model_asks_does_not_look_like_a_question_about_an_effect():
    _, shown = asked_in_terminal("y\n", text="When?\nMay it go?\n  send (tool_call, read)\nApprove (y)?")
    assert all(line.startswith(("The model", "  | ", "Answer: ")) for line in shown.splitlines())


@each_way
def test_the_program_goes_on_as_they_say(way, monkeypatch, capsys):
    for lines, sent in (("y\n", ["ann"]), ("n\nno\n", []), ('a\n{"to": "bob"}\n', ["bob"])):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        trial = Trial(way)
        value = trial.run(AskInTerminal())
        assert [to for to, _ in trial.office.sent] == sent
        shown = capsys.readouterr().out
        assert "Approve (y)" in shown
        # What code of the model prints is for the model, and what a person is asked is for them.
        assert "Approve (y)" not in str(trial.asked_model)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        assert trial.run(AskInTerminal()) == value
        assert capsys.readouterr().out == ""


def test_code_that_prints_does_not_catch_the_question(monkeypatch, capsys):
    office = Office()
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    model = ScriptedModel(calls("exec_code", code="print('before')\n" + CODE), "done")
    asks = Policy(lambda proposed: Disposition.REQUIRE_APPROVAL if proposed.name == "send" else None, name="asks")
    with handler(harness(system_prompt="brief", eval_provider="builtin", type_checker="none")), handler(model):
        with handler(asks), handler(AskInTerminal()):
            office.assist("mail")
    assert "Approve (y)" in capsys.readouterr().out
    assert model.requests[1]["messages"][-1]["content"] == "before\nsent to ann\n"
    assert office.sent == [("ann", "2026-12-01")]


def test_one_question_at_a_time():
    """Two threads ask; the lines of the one do not stand between those of the other."""
    lines, shown = io.StringIO("n\nfirst\nn\nsecond\n"), io.StringIO()
    terminal, answers = AskInTerminal(lines, shown), list[Answer]()

    def ask() -> None:
        with handler(terminal):
            answers.append(request_approval(Question(text="May it go?", effect=effect(to="ann"))))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.reason for answer in answers) == ["first", "second"]
    assert shown.getvalue().count("Why not?   | May it go?") == 1


def test_a_function_answers():
    asked: list[str] = []

    def person(question: Question) -> Answer:
        asked.append(question.text)
        return Answer(approved=False, reason="not I")

    office = Office()
    model = ScriptedModel(calls("send", to="ann"), "done")
    with handler(harness(system_prompt="brief")), handler(model), handler(RiskPolicy(allow=Risk.READ)):
        with handler({request_approval: person}):
            assert office.assist("mail") == "done"
    assert asked == ["`send` is declared hard write. May it be done?"]
    assert office.sent == []
    assert "not I" in model.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("awaited", [False, True], ids=["called", "awaited"])
@pytest.mark.parametrize("way", ["json", "code"])
def test_an_asynchronous_function_answers(awaited, way):
    async def person(question: Question) -> Answer:
        await asyncio.sleep(0)
        return Answer(arguments={"to": "bob"})

    office = Office()
    reply = calls("send", to="ann") if way == "json" else calls("exec_code", code="x = send('ann')")
    stack = harness(system_prompt="brief", eval_provider="builtin", type_checker="none")
    with handler(stack), handler(ScriptedModel(reply, "done")), handler(RiskPolicy(allow=Risk.READ)):
        with handler({request_approval: person, risk_of_code: lambda: Risk.READ}):
            value = asyncio.run(awaiting(office)) if awaited else office.assist("mail")
    assert value == "done"
    assert [to for to, _ in office.sent] == ["bob"]


async def awaiting(office: Office) -> Any:
    return await acall(office.assist, "mail")


@pytest.mark.parametrize(
    ("amended", "said"),
    [
        ({"copies": "three"}, "`copies` of `send`: Input should be a valid integer"),
        ({"to": None}, "`to` of `send`: Input should be a valid string"),
        ({"cc": "bob"}, "`cc`, which `send` does not have; it has `to`, `copies`"),
    ],
)
@pytest.mark.parametrize("by_code", [False, True], ids=["reply", "code"])
def test_what_a_function_amends_is_held_to_the_types(amended, said, by_code):
    sent: list[Any] = []

    @Tool.define(risk=Risk.HARD_WRITE)
    def send(to: str, copies: int = 1) -> str:
        """Send a mail."""
        sent.append((to, copies))
        return "sent"

    @Skill.define
    def inform(name: str) -> str:
        """Inform {name}."""
        raise NotHandled

    person = handler({request_approval: lambda question: Answer(arguments=amended, by="boss")})
    with handler(harness(system_prompt="brief")), handler(ScriptedModel(calls("send", to="ann"), "done")):
        with handler(RiskPolicy(allow=Risk.READ)), person, pytest.raises(ConfigurationError) as caught:
            send("ann") if by_code else inform("ann")
    assert f"who answered (boss) amended the argument {said}" in str(caught.value)
    assert sent == []


def test_what_a_function_amends_is_held_to_a_schema_written_by_hand():
    @Tool.define(
        risk=Risk.HARD_WRITE, parameters={"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}
    )
    def order(**arguments: Any) -> str:
        """Order."""
        return f"{arguments}"

    for amended, fits in ((3, True), (10, False), ("3", False)):
        person = handler({request_approval: functools.partial(_amending, amended)})
        with handler(RiskPolicy(allow=Risk.READ)), person:
            with contextlib.nullcontext() if fits else pytest.raises(ConfigurationError, match="`n` of `order`"):
                assert order(n=1) == f"{{'n': {amended}}}"


def _amending(value: Any, question: Question) -> Answer:
    return Answer(arguments={"n": value})


def test_what_keeps_somebody_from_answering_is_no_refusal():
    """A model that calls tools, code that eats everything, a tool that does: the call ends, and nobody is told no."""

    @Tool.define
    def careful(to: str) -> str:
        """Send carefully."""
        try:
            return office.send(to)
        except Exception:
            return "refused"

    @Skill.define
    def serve(wish: str) -> str:
        """Serve {wish}."""
        raise NotHandled

    office = Office()
    failure = KeyError("the directory is down")

    def person(question: Question) -> Answer:
        raise failure

    code = "try:\n    careful('ann')\nexcept Exception:\n    pass\n"
    for reply in (calls("careful", to="ann"), calls("exec_code", code=code)):
        stack = harness(system_prompt="brief", eval_provider="builtin", type_checker="none")
        with handler(stack), handler(model := ScriptedModel(reply, "done")):
            asks = Policy(lambda one: Disposition.REQUIRE_APPROVAL if one.name == "send" else None)
            with handler(asks), handler({request_approval: person}), pytest.raises(KeyError) as caught:
                serve("mail")
        assert caught.value is failure
        assert len(model.requests) == 1
    assert office.sent == []
