"""Random programs that ask, people who answer at random, processes that end anywhere: each mail is sent as was said."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import Suspended, TokenUsed, UncertainEffect
from effectful_agents.handlers.durability.runs import settle
from effectful_agents.handlers.policy import HumanInteraction, MemoryLedger, Policy
from effectful_agents.operations.policy import Answer, Decision, Disposition
from effectful_agents.testing import batch, calls
from tests.handlers.durability.journaling import Crash, plays, running
from tests.handlers.durability.programs import Mortal

# How the mails of a turn are sent: by calls one after the other, by calls that run together, by code, by another skill.
WAYS = st.sampled_from(["send", "post", "code", "deputy"])
TURNS = st.lists(st.tuples(WAYS, st.integers(1, 3)), min_size=1, max_size=3)
ANSWERS = st.lists(st.sampled_from(["approve", "refuse", "amend", "not asked"]), min_size=9, max_size=9)
# Where each process ends: after so many records, and whether the one at which it ends was still written; or not at all.
LIVES = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 14), st.booleans())), max_size=6)


class Office:
    """A program that sends mails, and the outside world in which they arrive."""

    def __init__(self, turns: Any) -> None:
        self.arrived: list[str] = []
        self.marks = [f"m{number}" for number in range(sum(count for _, count in turns))]
        left = iter(self.marks)
        script, deputies = [], []
        for way, count in turns:
            marks = [next(left) for _ in range(count)]
            if way == "code":
                lines = [f"try:\n    print(send('{mark}'))\nexcept Exception:\n    print('no')" for mark in marks]
                script.append(calls("exec_code", code="\n".join(lines)))
            elif way == "deputy":
                job = f"job-{len(deputies)}"
                deputies.append((f"See to {job} dear deputy", [*(calls("send", to=mark) for mark in marks), "done"]))
                script.append(calls("deputy", job=job))
            else:
                script.append(batch(*(calls(way, to=mark, id=mark) for mark in marks)))
        self.replies = (*deputies, ("Help, dear helper", [*script, "helped"]))

    def program(self) -> str:
        arrived = self.arrived

        @Tool.define(risk=Risk.HARD_WRITE)
        def send(to: str) -> str:
            """Send a mail."""
            arrived.append(to)
            return f"sent to {to}"

        @Tool.define(risk=Risk.HARD_WRITE, concurrent=True)
        def post(to: str) -> str:
            """Post a letter."""
            arrived.append(to)
            return f"posted to {to}"

        @Skill.define
        def deputy(job: str) -> str:
            """See to {job} dear deputy."""
            raise NotHandled

        @Skill.define
        def assist() -> str:
            """Help, dear helper."""
            raise NotHandled

        return assist()


def answers_of(office: Office, said: Any) -> dict[str, str]:
    return dict(zip(office.marks, said, strict=False))


def expected(office: Office, said: dict[str, str]) -> Counter[str]:
    """What is to arrive in the end."""
    arrives = {"approve": "{}", "not asked": "{}", "amend": "{} instead"}
    return Counter(arrives[said[mark]].format(mark) for mark in office.marks if said[mark] != "refuse")


def asks(said: dict[str, str]) -> Policy:
    def judge(effect: Any) -> Any:
        if effect.name not in ("send", "post") or said.get(effect.arguments["to"], "") in ("", "not asked"):
            return None  # what was amended is fine as it is
        return Decision(Disposition.REQUIRE_APPROVAL, "mail", f"To {effect.arguments['to']}?")

    return Policy(judge)


def answer_some(people: HumanInteraction, said: dict[str, str], choose: Any) -> None:
    """Somebody answers one of the questions, or several."""
    waiting = list(people.open_questions())
    chosen = choose(st.lists(st.sampled_from(waiting), min_size=1, unique_by=id)) if waiting else []
    for question in chosen:
        mark = question.arguments["to"]
        answer = {
            "approve": Answer(),
            "refuse": Answer(approved=False, reason="no"),
            "amend": Answer(arguments={"to": f"{mark} instead"}),
        }[said[mark]]
        token = people.token_of(question)
        people.redeem(token, "ann", answer)
        with contextlib.suppress(TokenUsed):
            people.redeem(token, "ann", Answer(approved=False, reason="another"))
            raise AssertionError("used twice")


def settle_as_it_was(store: Mortal, step_id: str, office: Office) -> None:
    """Say what came of a step of which only the outside world knows."""
    asked = store.load("run").attempted(step_id)
    assert asked is not None
    to = asked.body["arguments"]["to"]
    # The journal has what the model asked for; a person may have amended it.
    if to in office.arrived or f"{to} instead" in office.arrived:
        settle(store, "run", step_id, done="sent")
    else:
        settle(store, "run", step_id, redo=True)


@given(turns=TURNS, said=ANSWERS, lives=LIVES, data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_mail_arrives_as_it_was_approved_and_once(turns, said, lives, data):
    check_mails(turns, said, lives, data)


@pytest.mark.slow
@given(turns=TURNS, said=ANSWERS, lives=LIVES, data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_mail_of_many_programs_arrives_as_it_was_approved_and_once(turns, said, lives, data):
    check_mails(turns, said, lives, data)


def check_mails(turns: Any, said: Any, lives: Any, data: Any) -> None:
    office = Office(turns)
    said = answers_of(office, said)
    store, people = Mortal(), HumanInteraction(bytes(32), binding="ann", consumption=MemoryLedger())
    processes = [*lives, *[None] * 60]
    for life in processes:
        store.at, store.written = (None, False) if life is None else life
        store.appends = 0
        try:
            with running(store, plays(*office.replies)[0]), handler(asks(said)), handler(people):
                value = office.program()
            break
        except Crash:
            pass
        except Suspended:
            answer_some(people, said, data.draw)
        except UncertainEffect as error:
            store.at = None
            settle_as_it_was(store, error.step_id, office)
        allowed = expected(office, said)
        assert not Counter(office.arrived) - allowed
    else:
        raise AssertionError("it never came to its end")
    assert value == "helped"
    assert Counter(office.arrived) == expected(office, said)
    store.at = None
    with running(store, plays(*office.replies)[0]), handler(asks(said)), handler(people):
        assert office.program() == "helped"
    assert Counter(office.arrived) == expected(office, said)
    assert not people.open_questions()
