"""People who answer in place: at the terminal, or by a function."""

from __future__ import annotations

import io
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import Risk, Tool, handler, harness
from effectful_agents.handlers.policy import AskInTerminal, Policy, RiskPolicy
from effectful_agents.operations.effects import effect_of_call
from effectful_agents.operations.policy import Answer, Disposition, ProposedEffect, Question, request_approval
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
    assert shown.startswith(
        'May it go?\n  send (tool_call, hard_write)\n    to = "ann"\n    copies = 3\nApprove (y), refuse (n), or amend'
    )


@given(text=st.text(), name=st.text(), value=st.text())
def test_nothing_that_is_shown_steers_the_terminal(text, name, value):
    proposed = ProposedEffect(kind="tool_call", name=name, arguments={name or "x": value})  # ty: ignore
    _, shown = asked_in_terminal("y\n", proposed, text)
    assert all(one.isprintable() or one == "\n" for one in shown)
    assert len(shown.splitlines()) == 4 + text.rstrip("\n").count("\n")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [("In May\n", Answer(text="In May")), ("\n", Answer(text="")), ("", Answer(approved=False))],
    ids=["told", "empty", "ended"],
)
def test_a_question_for_information_is_answered_with_a_line(lines, expected):
    answer, shown = asked_in_terminal(lines, text="When?")
    assert (answer.approved, answer.text) == (expected.approved, expected.text)
    assert shown.startswith("The model wants to know:\n  When?\nAnswer: ")


def test_what_a_model_asks_does_not_look_like_a_question_about_an_effect():
    _, shown = asked_in_terminal("y\n", text="When?\nMay it go?\n  send (tool_call, read)\nApprove (y)?")
    assert all(line.startswith(("The model", "  ", "Answer: ")) for line in shown.splitlines())


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
    assert shown.getvalue().count("Why not? May it go?") == 1


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
