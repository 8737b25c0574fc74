"""A run that has to ask somebody ends with a token; answered, it goes on, and what was approved is done once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import pickle
from typing import Annotated, Any

import pydantic
import pytest

from effectful_agents import Agent, NotHandled, Risk, Skill, Tool, acall, handler, harness, steps
from effectful_agents.errors import (
    AnswerError,
    ConfigurationError,
    Denied,
    EncodingError,
    JournalError,
    OptionError,
    QuestionChanged,
    StorageError,
    Suspended,
    TokenExpired,
    TokenScopeMismatch,
    TokenUsed,
)
from effectful_agents.handlers.durability import MemoryCheckpointer
from effectful_agents.handlers.policy import (
    HumanInteraction,
    MemoryLedger,
    Policy,
    SqliteLedger,
)
from effectful_agents.harness.launcher import one_line
from effectful_agents.operations.approvals import ConsumptionLedger
from effectful_agents.operations.policy import Answer, Decision, Disposition
from effectful_agents.operations.records import RunStatus
from effectful_agents.operations.world import now
from effectful_agents.testing import ScriptedModel, batch, calls
from tests.handlers.durability.asking import ASKING, WAYS, Office, Trial
from tests.handlers.durability.journaling import Crash, Crashing, plays, running
from tests.ids import shown

KEY = bytes(range(32))
SENT = [("ann", "2026-12-01")]

each_way = pytest.mark.parametrize("way", WAYS)


def people(ledger: Any = None, **options: Any) -> HumanInteraction:
    return HumanInteraction(KEY, consumption=ledger or MemoryLedger(), **{"binding": "ann", **options})


def at(seconds: float) -> Any:
    return handler({now: lambda: seconds})


def suspension(trial: Trial, interaction: HumanInteraction, *policy: Any) -> Suspended:
    """What a run is suspended with; nothing has happened by then."""
    before = list(trial.office.sent)
    with pytest.raises(Suspended) as caught:
        trial.run(interaction, *policy)
    assert trial.office.sent == before
    assert trial.status is RunStatus.SUSPENDED
    return caught.value


# Approved, refused, amended


@each_way
def test_what_is_approved_is_done_once(way):
    trial, interaction = Trial(way), people()
    signal = suspension(trial, interaction)
    asked = signal.question
    assert (asked.name, asked.kind, asked.risk, asked.reason_code) == ("send", "tool_call", "hard_write", "mail")
    assert asked.arguments == {"to": "ann", "on": "2026-12-01"}
    assert (asked.run_id, asked.scope) == ("run", "ann")
    interaction.redeem(signal.token, "ann", Answer(by="ann"))
    assert trial.office.sent == []
    value = trial.run(interaction)
    assert trial.office.sent == SENT
    assert trial.status is RunStatus.FINISHED
    for _ in range(2):
        assert trial.run(people()) == value  # from the journal: the ledger is not needed any more
        assert trial.office.sent == SENT
    with pytest.raises(TokenUsed):
        interaction.redeem(signal.token, "ann", Answer())


@each_way
def test_what_is_refused_is_not_done_and_the_model_reads_why(way):
    trial, interaction = Trial(way), people()
    signal = suspension(trial, interaction)
    interaction.redeem(signal.token, "ann", Answer(approved=False, reason="not today"))
    value = trial.run(interaction)
    assert trial.office.sent == []
    assert "not today" in f"{value} {trial.asked_model}"
    assert trial.run(people()) == value
    assert trial.office.sent == []


@each_way
def test_what_is_amended_is_done_so(way):
    trial, interaction = Trial(way), people()
    signal = suspension(trial, interaction)
    interaction.redeem(signal.token, "ann", Answer(arguments={"on": "2026-12-24"}))
    value = trial.run(interaction)
    assert trial.office.sent == [("ann", "2026-12-24")]
    assert trial.run(people()) == value
    assert trial.office.sent == [("ann", "2026-12-24")]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(arguments={"on": "some day"}), None),
        (Answer(arguments={"on": 7}), "on"),
        (Answer(arguments={"to": None}), "to"),
        (Answer(arguments={"cc": "bob"}), "`cc`"),
        (Answer(arguments=["ann"]), "JSON object"),
        (Answer(arguments={"to": object()}), "plain JSON"),
        (Answer(arguments={"to": float("nan")}), "plain JSON"),
        (Answer(approved=False, arguments={"to": "bob"}), "approved"),
        (Answer(approved="yes"), "True or False"),
        (Answer(reason=None), "`reason`"),
        (Answer(from_nobody=True), "nobody"),
        (Answer(by=3), "`by`"),
        (True, "bool"),
        ("yes", "str"),
    ],
    ids=shown,
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_not_kept(answer, said):
    trial, interaction = Trial(), people()
    signal = suspension(trial, interaction)
    if said is None:
        interaction.redeem(signal.token, "ann", answer)  # no schema says what a date is: the type will
        again = suspension(trial, interaction)
        assert "could not be used" in again.question.text
        assert again.token != signal.token
        signal = again
    else:
        with pytest.raises(AnswerError, match=said):
            interaction.redeem(signal.token, "ann", answer)
    interaction.redeem(signal.token, "ann", Answer())
    trial.run(interaction)
    assert trial.office.sent == SENT


def test_policies_are_asked_about_what_was_amended():
    def no_bob(effect: Any) -> Any:
        if effect.arguments.get("to") == "bob":
            return Decision(Disposition.DENY_STEP, message="Not to Bob.")
        return Disposition.REQUIRE_APPROVAL if effect.name == "send" else None

    trial, interaction = Trial(), people()
    signal = suspension(trial, interaction, Policy(no_bob))
    interaction.redeem(signal.token, "ann", Answer(arguments={"to": "bob"}))
    trial.run(interaction, Policy(no_bob))
    assert trial.office.sent == []
    assert "Not to Bob." in trial.told()


def even(value: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    return value


def test_what_only_the_type_can_tell_is_asked_again_until_it_fits():
    paid: list[Any] = []

    @Tool.define
    def pay(amount: Annotated[int, pydantic.AfterValidator(even)], note: str = "") -> str:
        """Pay an amount."""
        paid.append((amount, note))
        return "paid"

    @Skill.define
    def shop(wish: str) -> str:
        """Buy {wish}, dear helper."""
        raise NotHandled

    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name == "pay" else None, name="asks")
    store, interaction = MemoryCheckpointer(), people()
    tokens = []

    def run() -> str:
        with running(store, plays(("dear helper", [calls("pay", amount=2), "done"]))[0]):
            with handler(asks), handler(interaction):
                return shop("bread")

    for amount in (3, 5, 8):
        with pytest.raises(Suspended) as caught:
            run()
        tokens.append(caught.value.token)
        interaction.redeem(tokens[-1], "ann", Answer(arguments={"amount": amount}))
    assert run() == "done"
    assert paid == [(8, "")]
    assert len(set(tokens)) == 3
    for token in tokens:
        with pytest.raises(TokenUsed):
            interaction.redeem(token, "ann", Answer())


# Asked again


def test_a_run_that_is_resumed_without_an_answer_waits_with_the_same_token():
    trial, interaction = Trial(), people()
    first, second = (suspension(trial, interaction) for _ in range(2))
    assert (first.token, first.question) == (second.token, second.question)
    assert suspension(trial, people(interaction.ledger)).token == first.token


def test_what_has_expired_is_asked_again_with_another_token():
    trial, interaction = Trial(), people(ttl_seconds=60)
    with at(1000):
        first = suspension(trial, interaction)
    assert (first.question.asked, first.question.expires) == (1000, 1060)
    with at(1060):
        with pytest.raises(TokenExpired):
            interaction.redeem(first.token, "ann", Answer())
        second = suspension(trial, interaction)
        with pytest.raises(TokenExpired):
            interaction.redeem(first.token, "ann", Answer())
        interaction.redeem(second.token, "ann", Answer())
    with at(9999):  # the answer was in time, and counts whenever the run goes on
        trial.run(interaction)
    assert trial.office.sent == SENT


def test_what_has_changed_is_asked_again_with_another_token():
    def to(whom: str) -> Policy:
        def amends(effect: Any) -> Any:
            amended = {**effect.arguments, "to": whom} if effect.name == "send" else None
            return Decision(Disposition.REQUIRE_APPROVAL, arguments=amended) if amended else None

        return Policy(amends)

    trial, interaction = Trial(), people()
    first = suspension(trial, interaction, to("ann"))
    second = suspension(trial, interaction, to("bob"))
    assert second.question.arguments["to"] == "bob"
    with pytest.raises(QuestionChanged):
        interaction.redeem(first.token, "ann", Answer())
    interaction.redeem(second.token, "ann", Answer())
    third = suspension(trial, interaction, to("cid"))  # what was approved is not what would be done
    interaction.redeem(third.token, "ann", Answer(approved=False))
    trial.run(interaction, to("cid"))
    assert trial.office.sent == []


def test_each_of_several_calls_has_its_token():
    posts = [calls("post", to=name, id=name) for name in "ab"]
    trial, interaction = Trial(replies=(("dear helper", [batch(*posts), "done"]),)), people()
    suspension(trial, interaction)
    questions = {one.arguments["to"]: one for one in interaction.open_questions()}
    assert set(questions) == {"a", "b"}
    interaction.redeem(interaction.token_of(questions["b"]), "ann", Answer(arguments={"to": "bea"}))
    with pytest.raises(Suspended) as caught:
        trial.run(interaction)
    assert caught.value.question == questions["a"]
    assert trial.office.sent == [("bea", "posted")]
    interaction.redeem(caught.value.token, "ann", Answer(approved=False))
    assert trial.run(interaction) == "done"
    assert trial.office.sent == [("bea", "posted")]


def test_a_fork_has_questions_of_its_own():
    trial, interaction = Trial(), people()
    signal = suspension(trial, interaction)
    trial.store.fork("run", "other")
    interaction.redeem(signal.token, "ann", Answer())
    trial.run(interaction)
    with pytest.raises(Suspended) as caught:
        with running(trial.store, plays(*WAYS["call"][0])[0], "other"), handler(ASKING), handler(interaction):
            trial.office.assist("mail")
    assert caught.value.question.run_id == "other"
    assert caught.value.token != signal.token
    assert trial.office.sent == SENT


# In whatever way it is called


def test_a_call_that_is_awaited_is_suspended():
    office, store, interaction = Office(), MemoryCheckpointer(), people()

    async def run() -> Any:
        with running(store, plays(*WAYS["call"][0])[0]), handler(ASKING), handler(interaction):
            return await acall(office.assist, "mail")

    with pytest.raises(Suspended) as caught:
        asyncio.run(run())
    interaction.redeem(caught.value.token, "ann", Answer())
    assert asyncio.run(run()) == "done"
    assert office.sent == SENT


def test_a_call_that_is_followed_is_suspended():
    office, store, interaction = Office(), MemoryCheckpointer(), people()

    def run() -> list[str]:
        with running(store, plays(*WAYS["call"][0])[0]), handler(ASKING), handler(interaction):
            return [type(step).__name__ for step in steps(office.assist, "mail")]

    with pytest.raises(Suspended) as caught:
        run()
    interaction.redeem(caught.value.token, "ann", Answer())
    told = run()
    assert told.count("ApprovalStep") == 2
    assert office.sent == SENT


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_signal_survives_a_pickle(protocol):
    signal = suspension(Trial(), people())
    again = pickle.loads(pickle.dumps(signal, protocol))
    assert (str(again), again.question, again.token) == (str(signal), signal.question, signal.token)


def test_the_token_stands_nowhere_but_in_the_signal():
    trial, interaction = Trial(), people()
    signal = suspension(trial, interaction)
    signature = signal.token.rpartition(".")[2]
    assert signature not in str(signal)
    assert signature not in str([record.body for record in trial.store.load("run").records])
    assert signature not in str(trial.store.runs())
    assert signature not in str(interaction.ledger.questions())


# Where it cannot be


def test_outside_of_a_run_it_is_an_error_before_the_effect():
    office, interaction = Office(), people()
    with handler(ASKING), handler(interaction), pytest.raises(ConfigurationError, match="journal"):
        office.send("ann")
    with running(MemoryCheckpointer(), plays(*WAYS["call"][0])[0]):
        pass
    assert office.sent == []
    assert interaction.ledger.questions() == []


def test_in_the_middle_of_a_tool_that_is_not_made_again_it_is_an_error_before_anything_is_asked():
    sent: list[str] = []

    def program(rerun: bool, store: MemoryCheckpointer, interaction: HumanInteraction) -> Any:
        office = Office()

        @Tool.define(rerun=rerun)
        def campaign(names: list[str]) -> str:
            """Write to all."""
            for name in names:
                office.send(name)
            return "all written to"

        @Skill.define
        def advertise(thing: str) -> str:
            """Advertise {thing}, dear helper."""
            raise NotHandled

        replies = (("dear helper", [calls("campaign", names=["ann", "bob"]), "done"]),)
        try:
            with running(store, plays(*replies)[0]), handler(ASKING), handler(interaction):
                return advertise("tea")
        finally:
            sent.extend(to for to, _ in office.sent)

    interaction = people()
    with pytest.raises(ConfigurationError, match=r"`campaign`.*rerun=True"):
        program(False, MemoryCheckpointer(), interaction)
    assert interaction.ledger.questions() == []
    assert sent == []
    store = MemoryCheckpointer()
    for number in range(2):
        with pytest.raises(Suspended) as caught:
            program(True, store, interaction)
        assert len(sent) == number
        interaction.redeem(caught.value.token, "ann", Answer())
    assert program(True, store, interaction) == "done"
    assert sent == ["ann", "bob"]


def test_nobody_can_be_asked_about_what_they_cannot_be_shown():
    class Thing:
        pass

    done: list[Any] = []

    @Tool.define
    def use(thing: Thing) -> str:
        """Use a thing."""
        done.append(thing)
        return "used"

    interaction = people()
    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL, name="asks")
    with running(MemoryCheckpointer(), {}), handler(asks), handler(interaction):
        with pytest.raises(EncodingError, match=r"`use`.*`thing`.*`Thing`"):
            use(Thing())
    assert done == []


# Who may answer


def test_the_binding_may_depend_on_what_is_asked():
    interaction = people(binding=lambda question: f"owner of {question.effect.name}")
    signal = suspension(Trial(), interaction)
    assert signal.question.scope == "owner of send"


def test_an_answer_of_somebody_who_is_asked_no_more_is_none():
    trial, ledger = Trial(), MemoryLedger()
    first = suspension(trial, people(ledger, binding="ann"))
    people(ledger).redeem(first.token, "ann", Answer())
    second = suspension(trial, people(ledger, binding="bob"))
    assert second.question.scope == "bob"
    people(ledger).redeem(second.token, "bob", Answer(approved=False))
    trial.run(people(ledger, binding="bob"))
    assert trial.office.sent == []


@pytest.mark.parametrize("binding", [None, lambda question: None, lambda question: "", lambda question: 7])
def test_somebody_has_to_be_asked(binding):
    trial, interaction = Trial(), people(binding=binding)
    with pytest.raises(ConfigurationError, match="binding"):
        trial.run(interaction)
    assert trial.office.sent == []


@pytest.mark.parametrize(
    "options",
    [
        {"binding": ""},
        {"binding": 7},
        {"ttl_seconds": 0},
        {"ttl_seconds": -1},
        {"ttl_seconds": float("inf")},
        {"ttl_seconds": float("nan")},
        {"ttl_seconds": "7"},
        {"consumption": 7},
        {"signer": object()},
    ],
    ids=shown,
)
def test_an_option_that_cannot_be_is_refused(options):
    with pytest.raises(OptionError):
        HumanInteraction(options.pop("signer", KEY), **{"binding": "ann", "consumption": MemoryLedger(), **options})


def test_a_path_is_a_ledger(tmp_path):
    interaction = people(tmp_path / "runs.db")
    assert isinstance(interaction.ledger, SqliteLedger)
    assert isinstance(interaction.ledger, ConsumptionLedger)
    assert interaction.manifest()["approval"]["ledger"] == "SqliteLedger"


# Questions for information


def asking_program(has_tool: bool = False, uses_tools: bool = True) -> Skill[..., Any]:
    """A program that makes plans; the tool to ask with is in its scope, or is not."""
    if has_tool:
        from effectful_agents.handlers.policy import ask_user  # noqa: F401

    @Skill.define(tools=uses_tools)
    def plan(trip: str) -> str:
        """Plan {trip}, dear helper."""
        raise NotHandled

    return plan


WHEN = calls("ask_user", question="When?")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(text="In May."), "In May."),
        (Answer(approved=False), "(The user did not answer.)"),
        (Answer(approved=False, reason="busy"), "(The user did not answer: busy.)"),
    ],
    ids=["told", "refused", "with a reason"],
)
def test_a_model_asks_for_what_it_needs_to_know(answer, told):
    store, interaction, plan = MemoryCheckpointer(), people(ask_user=True), asking_program()

    def run() -> tuple[Any, Any]:
        model, asked = plays(("dear helper", [WHEN, "planned"]))
        with running(store, model), handler(interaction):
            return plan("a trip"), asked[-1]

    with pytest.raises(Suspended) as caught:
        run()
    question = caught.value.question
    assert (question.text, question.wants_text, question.name) == ("When?", True, "")
    for wrong in (Answer(), Answer(text=" "), Answer(text="May", arguments={"when": "May"})):
        with pytest.raises(AnswerError):
            interaction.redeem(caught.value.token, "ann", wrong)
    interaction.redeem(caught.value.token, "ann", answer)
    value, request = run()
    assert value == "planned"
    assert request["messages"][-1]["content"] == told


def test_two_questions_of_a_turn_are_two():
    both = batch(calls("ask_user", question="When?", id="a"), calls("ask_user", question="When?", id="b"))
    store, interaction, plan = MemoryCheckpointer(), people(ask_user=True), asking_program()
    for text in ("first", "second"):
        with pytest.raises(Suspended) as caught:
            with running(store, plays(("dear helper", [both, "planned"]))[0]), handler(interaction):
                plan("a trip")
        interaction.redeem(caught.value.token, "ann", Answer(text=text))
    model, asked = plays(("dear helper", [both, "planned"]))
    with running(store, model), handler(interaction):
        plan("a trip")
    assert [message["content"] for message in asked[-1]["messages"][-2:]] == ["first", "second"]


def test_it_is_offered_where_it_is_asked_for():
    for interaction, skill, offered in (
        (people(), asking_program(), False),
        (people(ask_user=True), asking_program(), True),
        (people(), asking_program(has_tool=True), True),
        (people(ask_user=True), asking_program(has_tool=True), True),
        (people(ask_user=True), asking_program(uses_tools=False), False),
    ):
        with handler(ScriptedModel("planned")) as model, running(MemoryCheckpointer(), model), handler(interaction):
            skill("a trip")
        names = [tool["function"]["name"] for tool in model.requests[0].get("tools", ())]
        assert names.count("ask_user") == offered


def test_the_date_is_a_date():
    """What was amended is read by the type of the tool: the program gets no text in its place."""
    seen: list[Any] = []

    @Tool.define(risk=Risk.HARD_WRITE)
    def book(on: datetime.date) -> str:
        """Book a day."""
        seen.append(on)
        return "booked"

    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name == "book" else None, name="asks")
    store, interaction = MemoryCheckpointer(), people()
    with pytest.raises(Suspended) as caught, running(store, {}), handler(asks), handler(interaction):
        book(datetime.date(2026, 1, 1))
    interaction.redeem(caught.value.token, "ann", Answer(arguments={"on": "2026-05-01"}))
    with running(store, {}), handler(asks), handler(interaction):
        assert book(datetime.date(2026, 1, 1)) == "booked"
    assert seen == [datetime.date(2026, 5, 1)]


# Runs of the same name


@pytest.mark.parametrize("answer", [Answer(), Answer(approved=False)], ids=["approved", "refused"])
def test_an_answer_is_for_the_run_that_asked_and_for_no_other_of_its_name(answer):
    """The run is deleted, and begun again by the same name: nobody has said anything about that one."""
    trial, interaction = Trial(), people()
    first = suspension(trial, interaction)
    interaction.redeem(first.token, "ann", answer)
    trial.store.delete("run")
    second = suspension(trial, interaction)
    assert second.token != first.token
    assert second.question.arguments == first.question.arguments
    interaction.redeem(second.token, "ann", Answer())
    trial.run(interaction)
    assert trial.office.sent == SENT
    trial.store.delete("run")
    suspension(trial, interaction)


def test_journals_that_share_a_ledger_share_no_answers():
    interaction = people()
    trials = [Trial(), Trial()]
    signals = [suspension(trial, interaction) for trial in trials]
    with pytest.raises(QuestionChanged):  # two runs of one name: the ledger keeps the later one's question
        interaction.redeem(signals[0].token, "ann", Answer())
    interaction.redeem(signals[1].token, "ann", Answer())
    suspension(trials[0], interaction)
    trials[1].run(interaction)
    assert [len(trial.office.sent) for trial in trials] == [0, 1]


def test_the_same_call_twice_is_asked_about_twice():
    replies = (("dear helper", [calls("send", to="ann"), calls("send", to="ann"), "done"]),)
    trial, interaction = Trial(replies=replies), people()
    for number in range(2):
        signal = suspension(trial, interaction)
        assert len(trial.office.sent) == number
        interaction.redeem(signal.token, "ann", Answer())
        with pytest.raises(Suspended) if number == 0 else contextlib.nullcontext():
            trial.run(interaction)
    assert trial.office.sent == SENT * 2


# Every kind of effect


def asks_about(kind: str, name: str = "") -> Policy:
    return Policy(
        lambda effect: (
            Disposition.REQUIRE_APPROVAL if effect.kind == kind and (not name or effect.name == name) else None
        ),
        name="asks",
    )


@pytest.mark.parametrize("approved", [True, False])
def test_a_request_to_the_model_is_asked_about(approved):
    trial, interaction, asks = Trial(replies=(("dear helper", ["done"]),)), people(), asks_about("model_call")
    signal = suspension(trial, interaction, asks)
    assert trial.asked_model == []
    assert "dear helper" in signal.question.arguments["last message"]["content"]
    with pytest.raises(AnswerError, match="amended"):
        interaction.redeem(signal.token, "ann", Answer(arguments={"last message": {}}))
    interaction.redeem(signal.token, "ann", Answer(approved=approved))
    if approved:
        assert trial.run(interaction, asks) == "done"
    else:
        for _ in range(2):
            with pytest.raises(Denied, match="refused"):
                trial.run(interaction, asks)
    assert len(trial.asked_model) == approved


@pytest.mark.parametrize("code", [False, True], ids=["called", "by code"])
@pytest.mark.parametrize("answer", [Answer(), Answer(approved=False), Answer(arguments={"wish": "tea"})], ids=shown)
def test_a_delegation_is_asked_about(code, answer):
    first = calls("exec_code", code="print(deputy('mail'))") if code else calls("deputy", wish="mail")
    replies = (("dear helper", [first, "done"]), ("dear deputy", ["it is seen to"]))
    trial, interaction, asks = Trial(replies=replies), people(), asks_about("delegate")
    signal = suspension(trial, interaction, asks)
    assert (signal.question.name, signal.question.arguments) == ("deputy", {"wish": "mail"})
    interaction.redeem(signal.token, "ann", answer)
    assert trial.run(interaction, asks) == "done"
    wishes = [
        str(request["messages"]) for request in trial.asked_model if "dear deputy" in str(request["messages"][:2])
    ]
    assert len(wishes) == answer.approved
    assert all(("tea" in wish) is (answer.arguments is not None) for wish in wishes)
    assert trial.run(people(), asks) == "done"


@pytest.mark.parametrize("approved", [True, False])
def test_an_import_by_code_is_asked_about(approved):
    code = "try:\n    import fractions\n    print('imported')\nexcept Exception as error:\n    print(error)"
    replies = (("dear helper", [calls("exec_code", code=code), calls("send", to="ann"), "done"]),)
    trial, interaction, asks = Trial(replies=replies), people(), asks_about("import", "fractions")
    signal = suspension(trial, interaction, asks)
    assert (signal.question.kind, signal.question.name) == ("import", "fractions")
    interaction.redeem(signal.token, "ann", Answer(approved=approved))
    assert trial.run(interaction, asks) == "done"
    told = [message["content"] for message in trial.asked_model[-1]["messages"] if message["role"] == "tool"]
    assert ("imported" in told[0]) is approved
    assert trial.run(people(), asks) == "done"
    assert trial.office.sent == SENT


def test_a_policy_that_no_longer_asks_leaves_the_steps_in_their_places():
    """Where nobody is asked any more, what comes after has the same place in the journal."""
    code = "import fractions\nprint(send('ann'))"
    replies = (("dear helper", [calls("exec_code", code=code), calls("send", to="bob"), "done"]),)
    trial, interaction = Trial(replies=replies), people()
    signal = suspension(trial, interaction, asks_about("import", "fractions"))
    interaction.redeem(signal.token, "ann", Answer())
    both = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name in ("fractions", "send") else None)
    second = suspension(trial, interaction, both)
    interaction.redeem(second.token, "ann", Answer())
    never = Policy(lambda effect: None, name="never")
    assert trial.run(interaction, never) == "done"
    assert [to for to, _ in trial.office.sent] == ["ann", "bob"]


# Wherever code of the model runs, and however tools are called


@pytest.mark.parametrize("executor", ["builtin", "restricted"])
@pytest.mark.parametrize("calling", ["json", "auto", "code"])
@pytest.mark.parametrize("approved", [True, False])
def test_whatever_runs_the_code_the_run_waits_in_the_middle_of_it(executor, calling, approved):
    def first() -> Any:
        if calling == "code":
            return calls("send", call="send(to='ann')")
        return calls("exec_code", code="kept = 1\nprint(send('ann'))\nprint(kept)")

    office, store, interaction = Office(), MemoryCheckpointer(), people()
    options = {"eval_provider": executor, "tool_calling": calling}

    def run() -> tuple[Any, Any]:
        model, asked = plays(("dear helper", [first(), "done"]))
        with running(store, model, **options), handler(ASKING), handler(interaction):
            return office.assist("mail"), asked[-1]["messages"][-1]["content"]

    with pytest.raises(Suspended) as caught:
        run()
    assert office.sent == []
    interaction.redeem(caught.value.token, "ann", Answer(approved=approved, reason="" if approved else "no"))
    value, told = run()
    assert value == "done"
    assert office.sent == (SENT if approved else [])
    assert ("sent to ann" in told) is approved
    assert ("refused" in told) is not approved


@dataclasses.dataclass
class Clerk(Agent):
    """You are a clerk."""

    sent: list[str] = dataclasses.field(default_factory=list)

    @Tool.define(risk=Risk.HARD_WRITE)
    def send(self, to: str) -> str:
        """Send a mail."""
        ARRIVED.append(to)
        self.sent.append(to)
        return f"{len(self.sent)} sent"

    @Skill.define
    def serve(self, wish: str) -> str:
        """See to {wish}, dear clerk."""
        raise NotHandled


ARRIVED: list[str] = []


def test_an_agent_that_waits_is_what_it_was_when_it_goes_on():
    """Its history and its fields are those of a run that has never waited; each run begins with a new object."""
    ARRIVED.clear()
    store, interaction = MemoryCheckpointer(), people()
    turns = [calls("send", to="ann"), "first done", calls("send", to="bob"), "second done"]
    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name.endswith("send") else None, name="asks")

    def run() -> Clerk:
        clerk = Clerk()
        with running(store, plays(("dear clerk", turns))[0]), handler(asks), handler(interaction):
            assert [clerk.serve("this"), clerk.serve("that")] == ["first done", "second done"]
        return clerk

    for number, amended in enumerate([None, {"to": "bea"}]):
        with pytest.raises(Suspended) as caught:
            run()
        assert len(ARRIVED) == number
        interaction.redeem(caught.value.token, "ann", Answer(arguments=amended))
    for _ in range(2):
        clerk = run()
        assert (clerk.sent, ARRIVED) == (["ann", "bea"], ["ann", "bea"])
        roles = [message["role"] for message in clerk.__history__]
        assert [role for role in roles if role != "system"] == ["user", "assistant", "tool", "assistant"] * 2


def test_a_call_that_waits_leaves_no_trace_in_the_history_of_its_agent():
    ARRIVED.clear()
    asks = Policy(lambda effect: Disposition.REQUIRE_APPROVAL if effect.name.endswith("send") else None, name="asks")
    clerk = Clerk()
    before = list(clerk.__history__)
    with running(MemoryCheckpointer(), plays(("dear clerk", [calls("send", to="ann")]))[0]), handler(asks):
        with handler(people()), pytest.raises(Suspended):
            clerk.serve("this")
    assert (list(clerk.__history__), clerk.sent, ARRIVED) == (before, [], [])


def test_what_waits_in_a_block_that_goes_on_is_a_run_that_waits():
    """A program that does several things, and notes which of them wait."""
    trial, interaction = Trial(), people()
    model, _ = plays(*WAYS["call"][0])
    with running(trial.store, model), handler(ASKING), handler(interaction):
        waiting = []
        for wish in ("one", "two"):
            try:
                trial.office.assist(wish)
            except Suspended as signal:
                waiting.append(signal)
    assert trial.status is RunStatus.SUSPENDED
    assert len({signal.token for signal in waiting}) == 2
    for signal in waiting:
        interaction.redeem(signal.token, "ann", Answer())
    model, _ = plays(*WAYS["call"][0])
    with running(trial.store, model), handler(ASKING), handler(interaction):
        assert [trial.office.assist(wish) for wish in ("one", "two")] == ["done", "done"]
    assert (trial.office.sent, trial.status) == (SENT * 2, RunStatus.FINISHED)


def test_what_a_policy_makes_of_an_amendment_is_asked_about_with_another_token():
    def to_the_boss(effect: Any) -> Any:
        if effect.name != "send":
            return None
        whom = effect.arguments["to"]
        amended = None if whom.startswith("boss of ") else {**effect.arguments, "to": f"boss of {whom}"}
        return Decision(Disposition.REQUIRE_APPROVAL, arguments=amended)

    trial, interaction, policy = Trial(), people(), Policy(to_the_boss)
    first = suspension(trial, interaction, policy)
    interaction.redeem(first.token, "ann", Answer(arguments={"to": "bob"}))
    second = suspension(trial, interaction, policy)
    assert [one.question.arguments["to"] for one in (first, second)] == ["boss of ann", "boss of bob"]
    assert first.question.step_id == second.question.step_id
    assert suspension(trial, interaction, policy).token == second.token
    interaction.redeem(second.token, "ann", Answer())
    for _ in range(2):
        assert trial.run(interaction, policy) == "done"
        assert trial.office.sent == [("boss of bob", "2026-12-01")]


# The ledger and the journal


class Torn(MemoryLedger):
    """A ledger that ends the process after it has kept the first question: nothing more reaches the journal."""

    def __init__(self, store: Crashing) -> None:
        super().__init__()
        self.store = store
        self.has_ended = False

    def ask(self, question: Any, *, instead_of: str = "") -> Any:
        kept = super().ask(question, instead_of=instead_of)
        if not self.has_ended:
            self.store.at, self.has_ended = 0, True
        return kept


@each_way
def test_what_is_answered_counts_though_the_process_ended_when_the_ledger_had_it(way):
    trial = Trial(way)
    ledger = Torn(trial.store)
    interaction = people(ledger)
    with pytest.raises((Crash, JournalError)):
        trial.run(interaction)
    trial.store.at = None
    [asked] = interaction.open_questions()
    interaction.redeem(interaction.token_of(asked), "ann", Answer())
    trial.run(interaction)
    assert trial.office.sent == SENT
    assert [question.token_id for question in ledger.questions()] == [asked.token_id]


@each_way
def test_a_run_that_cannot_be_written_hands_out_no_token(way):
    class Full(MemoryCheckpointer):
        """A disk that is full once the question is kept."""

        is_full = False

        def lease(self, run_id: str, *, seconds: float = 30.0) -> Any:
            lease, store = super().lease(run_id, seconds=seconds), self

            class Refusing:
                renew, release = lease.renew, lease.release

                def append(self, *records: Any) -> None:
                    if store.is_full:
                        raise OSError("the disk is full")
                    lease.append(*records)

            return Refusing()

    class Filling(MemoryLedger):
        def ask(self, question: Any, *, instead_of: str = "") -> Any:
            store.is_full = True
            return super().ask(question, instead_of=instead_of)

    store = Full()
    trial = Trial(way, store)
    with pytest.raises(JournalError, match="disk is full"):
        trial.run(people(Filling()))
    assert trial.office.sent == []


@pytest.mark.parametrize("raises", [True, False])
def test_a_token_is_never_written_down(raises):
    tokens = []

    def encode(token: str) -> Any:
        tokens.append(token)
        if raises:
            raise ValueError(f"cannot encrypt {token}")
        return token.encode()

    trial, ledger = Trial(), MemoryLedger()
    with pytest.raises(ConfigurationError, match="encode_token") as caught:
        trial.run(people(ledger, encode_token=encode, decode_token=str))
    assert tokens
    written = f"{caught.value} {trial.store.load('run').records}"
    assert not any(token in written for token in tokens)
    assert ledger.questions() == []  # what has no token is not asked


# What a policy makes of an answer


def test_a_policy_that_amends_back_asks_again_and_in_the_end_nobody_has_refused():
    """The person says bob, and the policy ann: each time that is another question, and no refusal of the first one."""
    trial, interaction = Trial(replies=(("dear helper", [calls("send", to="ann"), "done"]),)), people()

    def back_to_ann(effect: Any) -> Any:
        if effect.name != "send":
            return None
        back = {"to": "ann"} if effect.arguments["to"] == "bob" else None
        return Decision(Disposition.REQUIRE_APPROVAL, "mail", "May it go?", arguments=back)

    policy = Policy(back_to_ann)
    tokens = set[str]()
    for _ in range(8):
        signal = suspension(trial, interaction, policy)
        assert signal.question.arguments["to"] == "ann"
        tokens.add(signal.token)
        interaction.redeem(signal.token, "ann", Answer(arguments={"to": "bob"}))
    assert len(tokens) == 8
    trial.run(interaction, policy)
    assert trial.office.sent == []
    assert "A rule changes again what a person had changed" in trial.told()
    # Resumed once more, it is told again.
    trial.run(people(), policy)
    assert trial.office.sent == []


def test_what_a_policy_amends_back_can_be_approved_so():
    trial, interaction = Trial(), people()

    def back_to_ann(effect: Any) -> Any:
        back = {"to": "ann"} if effect.arguments.get("to") == "bob" else None
        return Decision(Disposition.REQUIRE_APPROVAL, arguments=back) if effect.name == "send" else None

    policy = Policy(back_to_ann)
    for answer in (Answer(arguments={"to": "bob"}), Answer()):
        signal = suspension(trial, interaction, policy)
        interaction.redeem(signal.token, "ann", answer)
    trial.run(interaction, policy)
    assert trial.office.sent == SENT
    trial.run(people(), policy)
    assert trial.office.sent == SENT


# Who answers


@pytest.mark.parametrize("answered", [False, True], ids=["waits", "answered"])
def test_an_answer_is_none_to_a_question_that_is_somebody_elses_by_now(answered):
    trial, intern, chief = Trial(), people(binding="intern"), people(binding="chief")
    chief.ledger = intern.ledger
    signal = suspension(trial, intern)
    if answered:
        intern.redeem(signal.token, "intern", Answer())
    other = suspension(trial, chief)
    assert (other.question.scope, other.token == signal.token) == ("chief", False)
    chief.redeem(other.token, "chief", Answer())
    trial.run(chief)
    assert trial.office.sent == SENT


def test_a_scope_is_no_half_of_a_character():
    with pytest.raises(OptionError, match="binding"):
        people(binding="\ud83d\ude00")
    trial, interaction = Trial(), people(binding=lambda question: "\ud83d\ude00")
    with pytest.raises(ConfigurationError, match="who may answer"):
        trial.run(interaction)
    trial, interaction = Trial(), people(binding="\U0001f600")
    signal = suspension(trial, interaction)
    with pytest.raises(TokenScopeMismatch):
        interaction.redeem(signal.token, "\ud83d\ude00", Answer())
    interaction.redeem(signal.token, "\U0001f600", Answer())


# What fails for a moment


class Failing(MemoryLedger):
    """A ledger whose file cannot be reached when one of its methods is called."""

    fails = ""

    def _reached(self, name: str) -> None:
        if name == self.fails:
            raise StorageError("the database is locked", path="runs.db")

    def ask(self, question: Any, *, instead_of: str = "") -> Any:
        self._reached("ask")
        return super().ask(question, instead_of=instead_of)

    def answer_for(self, run_id: str, step_id: str, digest: str) -> Any:
        self._reached("answer_for")
        return super().answer_for(run_id, step_id, digest)


@each_way
@pytest.mark.parametrize("what", ["ask", "answer_for", "binding", "encode_token"])
def test_what_fails_for_a_moment_is_no_refusal(way, what):
    broken: list[str] = []

    def binding(question: Any) -> str:
        if broken:
            raise KeyError("no directory")
        return "ann"

    def encode(token: str) -> str:
        if broken:
            raise OSError("no key")
        return token

    ledger, trial = Failing(), Trial(way)
    options = {"binding": binding} if what == "binding" else {}
    if what == "encode_token":
        options = {"encode_token": encode, "decode_token": lambda token: token}
    interaction = people(ledger, **options)

    def fails() -> None:
        broken.append(what)
        ledger.fails = what
        with pytest.raises((StorageError, KeyError, ConfigurationError)):
            trial.run(interaction)
        broken.clear()
        ledger.fails = ""
        assert trial.office.sent == []
        assert trial.status is RunStatus.FAILED

    fails()
    signal = suspension(trial, interaction)
    if what != "ask":  # which is not done where the question is kept already
        fails()
    interaction.redeem(signal.token, "ann", Answer())
    if what in ("answer_for", "binding"):
        fails()
    trial.run(interaction)
    assert trial.office.sent == SENT
    assert trial.status is RunStatus.FINISHED


def test_what_a_model_asks_steers_no_terminal(capsys):
    @Skill.define
    def greet() -> str:
        """Greet."""
        raise NotHandled

    question = "Your\nname?\x1b[2J\x1b[1;1Hall is approved\u202e"
    people = HumanInteraction(bytes(32), binding="ann", consumption=MemoryLedger(), ask_user=True)
    with handler(harness(journal=MemoryCheckpointer(), run_id="monday")):
        with handler(ScriptedModel(calls("ask_user", question=question))), handler(people):
            with pytest.raises(Suspended) as asked:
                greet()
    assert asked.value.question.text == question
    assert "Your\nname?\\u001b[2J" in str(asked.value)
    assert one_line(asked.value).isprintable()
    with handler(harness(eval_provider="none")), handler(ScriptedModel(calls("ask_user", question=question))):
        with handler(people), pytest.raises(ConfigurationError, match="no run") as nowhere:
            greet()
    assert "\x1b" not in str(nowhere.value)
