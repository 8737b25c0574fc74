"""Delegates in a run that is resumed: one that has ended is not begun again, and one that has not is gone on with."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import LimitExceeded, Suspended, UncertainEffect
from effectful_agents.handlers.delegation import Delegate
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.observability import economy, usage
from effectful_agents.handlers.policy import HumanInteraction, Limits, MemoryLedger, RiskPolicy
from effectful_agents.operations.policy import Answer
from effectful_agents.operations.steps import DelegateStep, emit
from effectful_agents.testing import batch, calls
from tests.handlers.delegation.delegate.team import Playing, results_in
from tests.handlers.durability.journaling import Crash, Crashing, running

sent: list[str] = []
"""What is done outside of the program; an object in it would be restored by the journal."""


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@dataclasses.dataclass
class _Clerk(Agent):
    """Writes to people."""

    notes: list[str] = dataclasses.field(default_factory=list)

    @Tool.define(risk=Risk.HARD_WRITE)
    def send(self, to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    @Tool.define
    def note(self, text: str) -> str:
        """Note something."""
        self.notes.append(text)
        return "noted"

    @Skill.define
    def inform(self, whom: str) -> str:
        """clerk: {whom}"""
        raise NotHandled


def program(**options: Any) -> tuple[Any, _Clerk]:
    _clerk = _Clerk()
    clerk = Delegate(_clerk, name="clerk", **options)

    @Skill.define
    def work(topic: str) -> str:
        """boss: {topic}"""
        raise NotHandled

    assert clerk.skill.agent is _clerk
    return work, _clerk


def told(request: Any) -> str:
    return " and ".join(results_in(request))


def to_the_one_in_the_brief(request: Any) -> Any:
    (whom,) = re.findall(r"clerk: (\w+)", str(request["messages"]))
    return calls("send", to=whom)


BOTH = batch(calls("clerk", brief="ann", id="a"), calls("clerk", brief="bob", id="b"))


def model(*, boss: Any = None, clerk: Any = None) -> Playing:
    return Playing(boss=boss or [calls("clerk", brief="ann"), told], clerk=clerk or [to_the_one_in_the_brief, told])


def test_one_that_has_ended_is_not_begun_again():
    store, first = Crashing(), model()
    with running(store, first.handlers):
        assert program()[0]("mail") == "sent to ann"
    whole = store.appends
    sent.clear()
    store = Crashing(whole - 3)  # in the middle of the last turn of the one who delegates
    with pytest.raises(Crash), running(store, first.handlers):
        program()[0]("mail")
    store.at, again, steps = None, model(), []
    with running(store, again.handlers), handler({emit: steps.append}):
        assert program()[0]("mail") == "sent to ann"
    assert sent == ["ann"]
    assert again.of("clerk") == []
    (ended,) = [event for event in steps if isinstance(event, DelegateStep) and event.message]
    assert ended.replayed
    assert not [event for event in steps if getattr(event, "step_id", "").startswith(ended.step_id + "/")]


def killed(at: int | None, written: bool, **options: Any) -> str:
    """What the program comes to that is killed at an append to the journal, and resumed."""
    store, playing = Crashing(at, written), model(boss=[BOTH, told])
    for _ in range(2):
        try:
            with running(store, playing.handlers):
                return program(**options)[0]("mail")
        except Crash:
            store.at = None
    return pytest.fail("it did not come to its end")


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_wherever_it_is_killed_each_mail_is_sent_once(written, concurrent):
    store = Crashing()
    with running(store, model(boss=[BOTH, told]).handlers):
        program(concurrent=concurrent)[0]("mail")
    uncertain = 0
    for at in range(store.appends):
        sent.clear()
        try:
            assert killed(at, written, concurrent=concurrent) == "sent to ann and sent to bob"
        except UncertainEffect as error:  # it may have been sent, and is not declared `idempotent`
            uncertain += error.step_id.endswith("-tool")
        else:
            assert sorted(sent) == ["ann", "bob"]
        assert len(sent) == len(set(sent))
    assert 0 < uncertain <= (4 if concurrent else 2)


def test_what_one_that_has_ended_changed_about_objects_is_changed_again():
    noting = [calls("note", text="she is away"), "noted"]
    store, first = MemoryCheckpointer(), model(clerk=noting)
    with running(store, first.handlers):
        work, _ = program()
        work("mail")
    again = model(clerk=noting)
    with running(store, again.handlers):
        work, clerk = program()
        work("mail")
    assert clerk.notes == ["she is away"]
    assert list(clerk.__history__) == []
    assert again.requests == []


def test_what_it_changed_is_changed_again_wherever_it_was_killed():
    noting = [calls("note", text="she is away"), "noted"]
    store = Crashing()
    with running(store, model(clerk=noting).handlers):
        program()[0]("mail")
    for at in range(2, store.appends, 2):
        store, gone_on = Crashing(at, written=True), 0
        for _ in range(4):
            work, clerk = program()
            try:
                with running(store, model(clerk=noting).handlers):
                    work("mail")
            except (Crash, UncertainEffect) as error:  # in the middle of `note`, which is not idempotent
                store.at, gone_on = None, gone_on + isinstance(error, UncertainEffect)
            else:
                assert clerk.notes == ["she is away"]
        assert gone_on in (0, 3)


@pytest.mark.parametrize(("most", "fits"), [(2, True), (1, False)])
def test_what_happened_in_one_that_is_not_begun_again_counts(most, fits):
    store = Crashing()
    with running(store, model().handlers):
        program()[0]("mail")
    killed_at, store = store.appends - 3, Crashing()
    store.at = killed_at
    with pytest.raises(Crash), running(store, model().handlers):
        program()[0]("mail")
    store.at = None
    with running(store, model().handlers), handler(Limits(tool_calls=most)), usage() as used:
        if fits:
            assert program()[0]("mail") == "sent to ann"
        else:
            with pytest.raises(LimitExceeded, match="`tool_calls` of 1"):
                program()[0]("mail")
    assert used.requests == fits


def test_a_person_is_asked_in_the_middle_of_it():
    store, playing = MemoryCheckpointer(), model(boss=[BOTH, told])
    people = HumanInteraction(bytes(32), binding="ann", consumption=MemoryLedger())
    asks = RiskPolicy(allow=Risk.READ, approve=Risk.HARD_WRITE)

    def go_on() -> Any:
        with running(store, playing.handlers), handler(asks), handler(people):
            return program()[0]("mail")

    asked = []
    for _ in range(9):
        try:
            value = go_on()
            break
        except Suspended as signal:
            asked.append((signal.question.kind, signal.question.name))
            people.redeem(signal.token, "ann", Answer(approved=len(asked) != 4, reason="enough"))
    one = [("delegate", "clerk"), ("tool_call", "send")]
    assert asked == one * 2
    assert "sent to ann and " in value
    assert "A person refused it: enough" in value
    assert sent == ["ann"]
    assert len(playing.of("clerk")) == 4  # each request was made once, in however many sessions


def test_what_ended_the_call_inside_is_no_result_that_is_kept():
    store = MemoryCheckpointer()
    with running(store, model().handlers), handler(Limits(tool_calls=1)):
        with pytest.raises(LimitExceeded):
            program()[0]("mail")
    with running(store, model().handlers):
        assert program()[0]("mail") == "sent to ann"
    assert sent == ["ann"]


def test_one_that_code_calls():
    def code() -> Any:
        to_clerk = Delegate(_Clerk(), name="clerk")

        @Tool.define(rerun=True)
        def ask(brief: str) -> str:
            """Ask the clerk."""
            return to_clerk(brief)

        @Skill.define
        def work(topic: str) -> str:
            """boss: {topic}"""
            raise NotHandled

        assert ask.rerun
        return work

    playing = model(boss=[calls("ask", brief="ann"), told])
    store = Crashing(8)
    with pytest.raises(Crash), running(store, playing.handlers):
        code()("mail")
    store.at = None
    with running(store, playing.handlers):
        assert code()("mail") == "sent to ann"
    assert sent == ["ann"]
    with running(MemoryCheckpointer(), model().handlers):  # by the program, which calls no skill
        assert Delegate(_Clerk())("bob") == "sent to bob"


def test_the_economy_report_of_a_run_has_its_turns():
    store = MemoryCheckpointer()
    with running(store, model().handlers):
        program()[0]("mail")
    report = economy(store.load("run"))
    assert [turn.skill for turn in report.turns] == ["work", "inform", "inform", "work"]
    of_tools = [set(turn.tools) & {"clerk", "send", "note"} for turn in report.turns]
    assert of_tools == [{"clerk"}, {"send", "note"}, {"send", "note"}, {"clerk"}]
