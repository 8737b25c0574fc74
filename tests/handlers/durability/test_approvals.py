"""Questions to people in a run: asked and answered once; and what was denied never hides what happens later."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import (
    ConfigurationError,
    Denied,
    MissingHandlerError,
    ReplayDivergence,
    Suspended,
)
from effectful_agents.handlers.durability import MemoryCheckpointer, forked_records
from effectful_agents.handlers.policy import Policy, RiskPolicy
from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.policy import Answer, Decision, Disposition, Question, request_approval
from effectful_agents.operations.records import Phase, RunState, RunStatus
from effectful_agents.operations.steps import ApprovalStep, emit
from effectful_agents.testing import batch, calls
from tests.handlers.durability.asking import ASKING, NO, WAIT, WAYS, YES, Office, Person, Trial
from tests.handlers.durability.journaling import Crash, Crashing, plays, running

each_way = pytest.mark.parametrize("way", WAYS)


# Nobody to be asked


@each_way
def test_with_nobody_to_be_asked_nothing_happens_and_the_run_goes_on_when_there_is_somebody(way):
    trial = Trial(way)
    with pytest.raises(MissingHandlerError, match="request_approval"):
        trial.run()
    assert trial.office.sent == []
    assert trial.status is RunStatus.FAILED
    trial.run(Person(YES))
    assert trial.office.sent == [("ann", "2026-12-01")]
    assert trial.status is RunStatus.FINISHED


def test_who_answers_gives_an_answer():
    trial = Trial()
    with pytest.raises(ConfigurationError, match="returns an `Answer`"):
        trial.run(lambda question: True)
    assert trial.office.sent == []


@each_way
@pytest.mark.parametrize("failure", [OSError("disk full"), KeyError("nobody of this name")], ids=["disk", "directory"])
def test_what_keeps_somebody_from_answering_is_no_answer(way, failure):
    """Code that eats the error does not make a denial of it: the run fails, and asks again when it is resumed."""
    trial, person = Trial(way), Person(failure, failure, YES)
    for _ in range(2):
        with pytest.raises(type(failure)):
            trial.run(person)
        assert trial.office.sent == []
        assert trial.status is RunStatus.FAILED
    trial.run(person)
    assert trial.office.sent == [("ann", "2026-12-01")]
    assert trial.status is RunStatus.FINISHED
    assert len(person.asked) == 3


@pytest.mark.parametrize("declared", [{"rerun": True}, {"idempotent": True}], ids=["rerun", "idempotent"])
def test_a_tool_that_eats_what_kept_somebody_from_answering_has_no_result(declared):
    office, store, person = Office(), MemoryCheckpointer(), Person(OSError("disk full"), YES)

    @Tool.define(**declared)
    def careful(to: str) -> str:
        """Send carefully."""
        try:
            return office.send(to)
        except Exception:
            return "refused"

    @Skill.define
    def serve(wish: str) -> str:
        """Serve {wish}, dear server."""
        raise NotHandled

    assert careful
    for number in range(2):
        model, asked = plays(("dear server", [calls("careful", to="ann"), "served"]))
        with running(store, model), handler(ASKING), handler({request_approval: person}):
            with pytest.raises(OSError, match="full") if number == 0 else contextlib.nullcontext():
                serve("mail")
    assert office.sent == [("ann", "2026-12-01")]
    assert asked[-1]["messages"][-1]["content"] == "sent to ann"


def test_what_only_counts_as_true_approves_nothing():
    trial = Trial()
    trial.run(lambda question: Answer(approved="no"))  # ty: ignore
    assert trial.office.sent == []


# Suspended, then resumed


@each_way
def test_a_run_waits_for_somebody_and_goes_on_when_they_have_answered(way):
    trial, person = Trial(way), Person(WAIT, WAIT, YES)
    for _ in range(2):
        with pytest.raises(Suspended, match="wait"):
            trial.run(person)
        assert trial.status is RunStatus.SUSPENDED
        assert trial.office.sent == []
    value = trial.run(person)
    assert trial.office.sent == [("ann", "2026-12-01")]
    assert trial.status is RunStatus.FINISHED
    assert trial.run(Person(AssertionError("asked again"))) == value
    assert len(person.asked) == 3
    assert {question.effect.name for question in person.asked if question.effect} == {"send"}
    assert {(question.run_id, question.step_id) for question in person.asked} == {("run", person.asked[0].step_id)}
    assert trial.office.sent == [("ann", "2026-12-01")]


@each_way
def test_a_refusal_is_told_and_kept(way):
    trial, person = Trial(way), Person(WAIT, NO)
    with pytest.raises(Suspended):
        trial.run(person)
    value = trial.run(person)
    assert trial.office.sent == []
    if way != "program":
        assert "not today" in (trial.told() if way in ("call", "session") else f"{value} {trial.asked_model}")
    assert trial.run(Person(AssertionError("asked again"))) == value
    assert trial.office.sent == []


@each_way
def test_amended_arguments_are_what_happens_live_and_told_again(way):
    later = datetime.date(2026, 12, 24)
    trial, person = Trial(way), Person(Answer(arguments={"to": "bob", "on": later}))
    value = trial.run(person)
    assert trial.office.sent == [("bob", "2026-12-24")]
    assert trial.run(Person(AssertionError("asked again"))) == value
    assert trial.office.sent == [("bob", "2026-12-24")]
    assert len(person.asked) == 1


def test_some_of_the_arguments_can_be_amended_and_no_others():
    trial = Trial()
    trial.run(Person(Answer(arguments={"to": "bob"})))
    assert trial.office.sent == [("bob", "2026-12-01")]
    with pytest.raises(ConfigurationError, match="`too`"):
        Trial().run(Person(Answer(arguments={"too": "bob"})))


def test_policies_are_asked_about_what_was_amended():
    def no_bob(effect: Any) -> Any:
        if effect.arguments.get("to") == "bob":
            return Decision(Disposition.DENY_STEP, message="Not to Bob.")
        return Disposition.REQUIRE_APPROVAL if effect.name == "send" else None

    trial, person = Trial(), Person(Answer(arguments={"to": "bob"}))
    trial.run(person, Policy(no_bob))
    assert trial.office.sent == []
    assert "Not to Bob." in trial.told()
    value = trial.run(Person(AssertionError("asked again")), Policy(no_bob))
    assert (value, trial.office.sent) == ("done", [])


def test_policies_amend_what_was_amended_and_do_so_again():
    def to_the_boss(effect: Any) -> Any:
        if effect.name != "send":
            return None
        whom = effect.arguments["to"]
        amended = None if whom.startswith("boss of ") else {**effect.arguments, "to": f"boss of {whom}"}
        return Decision(Disposition.REQUIRE_APPROVAL, arguments=amended)

    trial, person = Trial(), Person(Answer(arguments={"to": "bob"}), YES, AssertionError("asked again"))
    for _ in range(2):
        trial.run(person, Policy(to_the_boss))
        assert trial.office.sent == [("boss of bob", "2026-12-01")]
    # What a policy has made of what was amended is another question.
    asked = [question.effect.arguments["to"] for question in person.asked if question.effect]
    assert asked == ["boss of ann", "boss of bob"]


@each_way
@pytest.mark.parametrize("answer", [YES, NO], ids=["approved", "refused"])
@pytest.mark.parametrize("written", [False, True], ids=["lost", "written"])
def test_a_run_that_ends_anywhere_has_the_effect_once_and_asks_once(way, answer, written):
    whole = Trial(way)
    whole.run(Person(answer))
    appends = whole.store.appends
    for at in range(appends):
        trial, person = Trial(way, Crashing(at, written)), Person(answer)
        with pytest.raises(Crash):
            trial.run(person)
        trial.store.at = None
        asked, sent = len(person.asked), list(trial.office.sent)
        attempted = trial.store.load("run").uncertain()
        if any(step.endswith("tool") and _is_send(trial.store, step) for step in attempted):
            continue  # whether it was sent nobody knows, and `test_journal` has what is done then
        trial.run(person)
        assert trial.office.sent == whole.office.sent, at
        # Only an answer that was not written down is asked for again.
        assert len(person.asked) == 1 or (asked == 1 and not sent), at
        assert len(person.asked) <= 2


def _is_send(store: Any, step_id: str) -> bool:
    return store.load("run").attempted(step_id).name == "send"


# Policies that change


@each_way
@pytest.mark.parametrize("first", [NO, WAIT], ids=["refused", "waited"])
def test_what_was_denied_never_takes_the_place_of_what_happens_later(way, first):
    """The process ends right after the refusal was written down; the policy is another one then."""
    whole = Trial(way)
    with contextlib.suppress(Suspended):
        whole.run(Person(first))
    for at in range(whole.store.appends):
        trial = Trial(way, Crashing(at, True))
        with contextlib.suppress(Suspended, Crash):
            trial.run(Person(first))
        trial.store.at = None
        trial.run(Person(AssertionError("nobody is asked")), RiskPolicy(allow=Risk.DESTRUCTIVE))
        sent = list(trial.office.sent)
        assert len(sent) <= 1
        value = trial.run(Person(AssertionError("nobody is asked")), RiskPolicy(allow=Risk.DESTRUCTIVE))
        assert trial.office.sent == sent
        assert trial.run(Person(NO)) == value
        assert trial.office.sent == sent


def test_what_a_policy_denied_is_approved_later():
    def denies(effect: Any) -> Any:
        return Disposition.TERMINATE_RUN if effect.name == "send" else None

    trial = Trial()
    with pytest.raises(Denied):
        trial.run(Person(YES), Policy(denies))
    assert trial.office.sent == []
    for _ in range(3):
        trial.run(Person(YES))
        assert trial.office.sent == [("ann", "2026-12-01")]


def test_an_answer_is_for_what_was_asked():
    """The policy amends otherwise when the run is resumed: what was approved is not what would happen."""

    def to(whom: str) -> Policy:
        def amends(effect: Any) -> Any:
            amended = {**effect.arguments, "to": whom} if effect.name == "send" else None
            return Decision(Disposition.REQUIRE_APPROVAL, arguments=amended) if amended else None

        return Policy(amends)

    whole = Trial()
    whole.run(Person(YES), to("ann"))
    trial = Trial(store=Crashing(next(_appends_until_approved(whole)), True))
    with pytest.raises(Crash):
        trial.run(Person(YES), to("ann"))
    trial.store.at = None
    person = Person(NO)
    trial.run(person, to("bob"))
    assert [question.effect.arguments["to"] for question in person.asked if question.effect] == ["bob"]
    assert trial.office.sent == []


def _appends_until_approved(trial: Trial) -> Any:
    count = 0
    for record in trial.store.load("run").records:
        if record.durability.value == "durable":
            if record.kind == "approval" and record.phase is Phase.COMPLETED:
                yield count
            count += 1


def test_the_text_may_be_another_one_each_time():
    times = iter(range(9))

    def asks(effect: Any) -> Any:
        text = f"It is {next(times)} o'clock. Send it?"
        return Decision(Disposition.REQUIRE_APPROVAL, "sends", text) if effect.name == "send" else None

    whole = Trial()
    whole.run(Person(YES), Policy(asks))
    trial, person = Trial(store=Crashing(next(_appends_until_approved(whole)), True)), Person(YES)
    with pytest.raises(Crash):
        trial.run(person, Policy(asks))
    trial.store.at = None
    trial.run(person, Policy(asks))
    assert (len(person.asked), trial.office.sent) == (1, [("ann", "2026-12-01")])


def test_another_tool_at_the_place_of_a_question_is_another_program():
    trial = Trial("program")
    with pytest.raises(Suspended):
        trial.run(Person(WAIT))
    office = Office()
    with pytest.raises(ReplayDivergence, match="send"), running(trial.store, {}), handler(ASKING):
        with handler({request_approval: Person(YES)}):
            office.post("ann")
    assert office.sent == []
    assert trial.status is RunStatus.DIVERGED


# Several calls


def test_several_calls_of_a_turn_wait_one_after_the_other():
    replies = (("dear helper", [batch(*(calls("send", to=name, id=name) for name in "abc")), "done"]),)
    trial, person = Trial(replies=replies), Person(YES, WAIT, NO, YES)
    with pytest.raises(Suspended):
        trial.run(person)
    assert [to for to, _ in trial.office.sent] == ["a"]
    trial.run(person)
    assert [to for to, _ in trial.office.sent] == ["a", "c"]
    assert [question.effect.arguments["to"] for question in person.asked if question.effect] == ["a", "b", "b", "c"]
    trial.run(Person(AssertionError("asked again")))
    assert [to for to, _ in trial.office.sent] == ["a", "c"]


def test_calls_that_run_together_come_to_their_ends_when_one_of_them_waits():
    posts = [calls("post", to=name, id=name) for name in "ab"]
    replies = (("dear helper", [batch(posts[0], calls("look", where="c", id="c"), posts[1]), "done"]),)
    trial = Trial(replies=replies)
    answers: dict[str, Answer] = {}
    asked: list[str] = []

    def person(question: Question) -> Answer:
        assert question.effect
        name = question.effect.arguments["to"]
        asked.append(name)
        if name in answers:
            return answers[name]
        raise Suspended(f"wait for {name}")

    with pytest.raises(Suspended, match="wait for a"):
        trial.run(person)
    assert (sorted(asked), trial.office.sent) == (["a", "b"], [("c", "looked")])
    answers["b"] = YES
    with pytest.raises(Suspended, match="wait for a"):
        trial.run(person)
    assert sorted(trial.office.sent) == [("b", "posted"), ("c", "looked")]
    answers["a"] = YES
    assert trial.run(person) == "done"
    assert sorted(trial.office.sent) == [("a", "posted"), ("b", "posted"), ("c", "looked")]
    assert [m["content"] for m in trial.asked_model[-1]["messages"][-3:]] == ["posted to a", "nothing", "posted to b"]
    assert trial.status is RunStatus.FINISHED


# Questions in the middle of a tool


def tool_that_asks(office: Office, rerun: bool) -> Skill[..., Any]:
    send = office.send

    @Tool.define(rerun=rerun)
    def survey(names: list[str]) -> list[str]:
        """Ask about each, and write to each before."""
        said = []
        for name in names:
            send(name)
            said.append(ask_person(Question(text=f"What about {name}?")).text)
        return said

    @Skill.define
    def poll(topic: str) -> str:
        """Find out about {topic}, dear helper."""
        raise NotHandled

    return poll


def test_a_tool_that_asks_in_a_loop_has_each_effect_once():
    office, store, person = Office(), MemoryCheckpointer(), Person(*[WAIT, Answer(text="a"), WAIT, Answer(text="b")])
    replies = (("dear helper", [calls("survey", names=["ann", "bob"]), "done"]),)
    for _ in range(4):
        model, asked = plays(*replies)
        try:
            with running(store, model), handler({request_approval: person}):
                assert tool_that_asks(office, rerun=True)("tea") == "done"
            break
        except Suspended:
            continue
    assert [to for to, _ in office.sent] == ["ann", "bob"]
    assert asked[-1]["messages"][-1]["content"] == '["a","b"]'
    assert [question.text for question in person.asked] == [*["What about ann?"] * 2, *["What about bob?"] * 2]
    assert len({question.step_id for question in person.asked}) == 2
    assert {question.run_id for question in person.asked} == {"run"}


# What is told


def test_a_question_is_told_as_a_step():
    events: list[Any] = []
    trial = Trial(store=Crashing(6, True))
    for ends in (pytest.raises(Crash), contextlib.nullcontext()):
        with ends, handler({emit: events.append}):
            trial.run(Person(YES))
        trial.store.at = None
    told = [event for event in events if isinstance(event, ApprovalStep)]
    assert [(event.phase.value, event.replayed) for event in told] == [
        *[("attempted", False), ("completed", False)],
        *[("attempted", True), ("completed", True)],
    ]
    assert {event.step_id for event in told} == {"000001-call/000002-tool/approval/000001-approval"}
    assert [event.decision for event in told] == [None, YES, None, YES]


def test_a_run_whose_program_eats_the_signal_has_not_come_to_its_end():
    trial = Trial()
    model, _ = plays(*WAYS["call"][0])
    with running(trial.store, model), handler(ASKING), handler({request_approval: Person(WAIT)}):
        with pytest.raises(Suspended):
            trial.office.assist("mail")
    assert trial.status is RunStatus.SUSPENDED


# Amended values of all kinds


@dataclasses.dataclass
class Address:
    street: str
    since: datetime.date | None = None


VALUES: dict[str, Any] = {
    "amount": st.decimals(allow_nan=False, allow_infinity=False, places=2),
    "on": st.dates(),
    "data": st.binary(max_size=20),
    "pairs": st.lists(st.tuples(st.integers(), st.text(max_size=5)), max_size=3),
    "address": st.builds(Address, st.text(max_size=5), st.none() | st.dates()),
    "kind": st.sampled_from(["a", "b"]),
    "rest": st.lists(st.integers(), max_size=3).map(tuple),
    "z": st.integers(),
}


@given(amended=st.fixed_dictionaries({}, optional=VALUES))
@settings(max_examples=60, deadline=None)
def test_what_is_told_again_is_what_was_live(amended):
    seen: list[Any] = []

    @Tool.define(rerun=True)
    def order(
        amount: decimal.Decimal,
        on: datetime.date,
        data: bytes,
        pairs: list[tuple[int, str]],
        address: Address,
        kind: Literal["a", "b"],
        *rest: int,
        **more: int,
    ) -> str:
        """Order something."""
        seen.append((amount, on, data, pairs, address, kind, rest, more))
        return "ordered"

    first = decimal.Decimal(1), datetime.date(2026, 1, 1), b"", [(1, "")], Address("Main"), "a", 1, 2
    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name == "order" else None, name="asks")
    store = MemoryCheckpointer()
    for person in (Person(Answer(arguments=amended)), Person(AssertionError("asked again"))):
        with running(store, {}), handler(asks), handler({request_approval: person}):
            assert order(*first, z=3) == "ordered"
    live, again = seen
    assert live == again
    given = dict(zip(VALUES, [*live[:-1], live[-1]["z"]], strict=True))
    assert {name: given[name] for name in amended} == amended
    assert [type(value) for value in live] == [type(value) for value in again]


def test_a_fork_does_not_share_the_approval_of_what_has_not_happened() -> None:
    trial = Trial()
    trial.run(Person(YES))
    whole = trial.store.load("run")
    sending = next(step for step in whole.steps() if step.endswith("-tool"))
    until = next(
        index for index, one in enumerate(whole.records) if (one.step_id, one.phase) == (sending, Phase.ATTEMPTED)
    )
    assert any("/approval/" in one.step_id and one.phase is Phase.COMPLETED for one in whole.records[:until])
    before, after = (forked_records(RunState("run", part), "fork") for part in (whole.records[:until], whole.records))
    assert not any("/approval/" in one.step_id for one in before)
    assert any("/approval/" in one.step_id for one in after)  # it has happened, and does not happen again
    trial.office.sent.clear()
    for name, records, asked, sent in (("fork", before, 1, 1), ("fork", after, 0, 0)):
        store = MemoryCheckpointer()
        store.append(*(dataclasses.replace(one, run_id="run") for one in records))
        fork, person = Trial(store=store), Person(YES)
        fork.run(person)
        assert (len(person.asked), len(fork.office.sent)) == (asked, sent), name
