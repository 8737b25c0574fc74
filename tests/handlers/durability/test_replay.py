"""What a resumed run does with each step: done, new, denied, uncertain; and what it does where the program differs."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import itertools
import uuid
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, Tool, acall, handler, harness
from effectful_agents.errors import (
    ConfigurationError,
    Denied,
    EncodingError,
    JournalError,
    NetworkError,
    ReplayDivergence,
    RunInUse,
    ToolCallExecutionError,
    UncertainEffect,
)
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.durability.runs import settle
from effectful_agents.handlers.loop import CallControl, steps
from effectful_agents.operations.journal import record
from effectful_agents.operations.loop import call_tool, completion
from effectful_agents.operations.steps import ModelStep, Phase
from effectful_agents.testing import ScriptedModel, calls, says
from tests.handlers.durability.journaling import Crash, Crashing, running


@Skill.define(tools=False)
def limerick(theme: str) -> str:
    """Write a limerick about {theme}."""
    raise NotHandled


def run(store, *replies, program=lambda: limerick("cats"), run_id="run", **options):
    """Run a program with what a model replies; its value, and how often the model was asked."""
    model = ScriptedModel(*replies)
    with running(store, model, run_id, **options):
        value = program()
    return value, len(model.requests)


# --- a journal, not a cache -------------------------------------------------------------------------------------------


def test_equal_calls_have_their_own_answers_in_order():
    store = MemoryCheckpointer()

    def program():
        return limerick("cats"), limerick("cats")

    assert run(store, "one", "two", program=program) == (("one", "two"), 2)
    assert run(store, program=program) == (("one", "two"), 0)


def test_runs_know_nothing_of_each_other():
    store = MemoryCheckpointer()
    assert run(store, "one", run_id="a") == ("one", 1)
    assert run(store, "two", run_id="b") == ("two", 1)
    assert run(store, run_id="a") == ("one", 0)


def test_a_finished_run_that_wants_more_goes_on():
    store = MemoryCheckpointer()
    run(store, "one")
    assert run(store, "two", program=lambda: (limerick("cats"), limerick("dogs"))) == (("one", "two"), 1)


def test_a_run_without_a_name_gets_one():
    store = MemoryCheckpointer()
    names = []
    for reply in "one", "two":
        with handler(harness()), handler(ScriptedModel(reply)), handler(Journal(None, store)) as journal:
            limerick("cats")
            names.append(journal.run_id)
    assert len(set(names)) == 2
    assert {each.run_id for each in store.runs()} == set(names)


@pytest.mark.parametrize("run_id", ["", 3])
def test_a_name_that_is_none_is_refused(run_id):
    with pytest.raises(ConfigurationError, match="run_id"):
        Journal(run_id, MemoryCheckpointer())


def test_what_keeps_no_journal_is_refused():
    with pytest.raises(ConfigurationError, match="append"):
        Journal("run", {})


def test_a_run_is_in_one_place_only():
    store = MemoryCheckpointer()
    with running(store, ScriptedModel("one")), pytest.raises(RunInUse), running(store, ScriptedModel()):
        pass
    assert run(store, "one") == ("one", 1)


# --- a program that is another ----------------------------------------------------------------------------------------


def diverges(store, program, match, **options):
    with pytest.raises(ReplayDivergence, match=match):
        run(store, program=program, **options)


def crashed(*replies, program=lambda: limerick("cats"), at=None, **options):
    """The journal of a run that did not come to its end."""
    store = Crashing(at)

    def begun():
        program()
        raise Crash

    with pytest.raises(Crash):
        run(store, *replies, program=begun, **options)
    store.at = None
    return store


def test_other_arguments_are_told():
    diverges(crashed("one"), lambda: limerick("dogs"), r"arguments.theme was 'cats', and is 'dogs' now")


def test_another_skill_is_told():
    @Skill.define(tools=False)
    def sonnet(theme: str) -> str:
        """Write a sonnet about {theme}."""
        raise NotHandled

    diverges(crashed("one"), lambda: sonnet("cats"), "`?sonnet`?")


def test_another_model_is_told():
    store = crashed("one", model="gpt-5-mini")
    diverges(store, lambda: limerick("cats"), "model was 'gpt-5-mini', and is 'gpt-5' now", model="gpt-5")


def test_another_system_message_is_told():
    store = crashed("one", system_prompt="full")
    diverges(store, lambda: limerick("cats"), "system|messages", system_prompt="brief")


def test_another_tool_is_told():
    def program(description):
        @Tool.define(description=description)
        def rhyme(word: str) -> str:
            """Find a rhyme."""
            return word

        @Skill.define
        def poem(theme: str) -> str:
            """Write a poem about {theme}."""
            raise NotHandled

        return lambda: poem("cats")

    store = crashed("one", program=program("Rhymes."), system_prompt="brief")
    diverges(store, program("Rhymes well."), r"tools.rhyme.function.description", system_prompt="brief")


def test_a_step_more_is_told():
    store = crashed("one", program=lambda: limerick("cats"))

    def program():
        record(lambda: 1)
        return limerick("cats")

    diverges(store, program, "000001-call.*000001-record")


def test_a_program_that_eats_a_divergence_does_not_go_on():
    store = crashed("one")

    def program():
        try:
            limerick("dogs")
        except Exception:
            return limerick("cats")

    diverges(store, program, "dogs")


def test_an_answer_that_is_of_another_type_now_is_told():
    def program(result):
        @Skill.define(tools=False)
        def count(what: str) -> result:
            """Count {what}."""
            raise NotHandled

        return lambda: count("cats")

    store = MemoryCheckpointer()
    run(store, "many", program=program(str))
    with pytest.raises(JournalError, match="`count` cannot be read any more"):
        run(store, program=program(int))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_that_ended_a_run_is_not_kept():
    store = MemoryCheckpointer()
    with pytest.raises(NetworkError):
        run(store, NetworkError("away"))
    assert run(store, "one") == ("one", 1)


def test_a_step_that_is_tried_again_is_told_as_another_attempt():
    store = MemoryCheckpointer()
    with pytest.raises(NetworkError):
        run(store, NetworkError("away"))
    with running(store, ScriptedModel("one")):
        events = [event for event in steps(limerick, "cats") if isinstance(event, ModelStep)]
    assert [(event.attempt, event.replayed) for event in events] == [(2, False), (2, False)]


def test_an_error_after_which_the_run_went_on_is_raised_again():
    def program():
        try:
            return limerick("cats")
        except NetworkError as error:
            return limerick("dogs"), str(error), error.status

    store = crashed(NetworkError("away", status=503), "one", program=program)
    assert run(store, program=program) == (("one", "away", 503), 0)


def paying(fail):
    @Tool.define
    def pay(amount: int) -> int:
        """Pay."""
        return fail(amount)

    @Skill.define
    def shop(what: str) -> str:
        """Buy {what}."""
        raise NotHandled

    return lambda: shop("bread")


def raises(error):
    def fail(amount):
        raise error

    return fail


def test_what_a_tool_raised_is_told_again_and_not_tried_again():
    store = crashed(calls("pay", amount=1), "none", program=paying(raises(ValueError("no money"))))

    def never(amount):
        raise AssertionError

    assert run(store, program=paying(never)) == ("none", 0)


def test_an_error_of_a_tool_that_ended_the_run_is_raised_again_until_it_is_settled():
    store = MemoryCheckpointer()
    options = {"num_retries": 0}  # then nobody tells the model
    with pytest.raises(ToolCallExecutionError, match="no money"):
        run(store, calls("pay", amount=1), program=paying(raises(ValueError("no money"))), **options)
    with pytest.raises(ToolCallExecutionError, match="no money"):
        run(store, program=paying(int), **options)
    settle(store, "run", "000001-call/000002-tool", redo=True)
    assert run(store, "bought", program=paying(int), **options) == ("bought", 1)


def test_a_denied_step_is_asked_for_again():
    store = MemoryCheckpointer()
    with pytest.raises(Denied):
        run(store, calls("pay", amount=1), program=paying(raises(Denied("not today"))))
    paid = []
    program = paying(lambda amount: paid.append(amount) or 1)
    with pytest.raises(Crash):
        run(Crashed(store), "bought", program=program)
    assert run(store, "bought", program=program) == ("bought", 1)
    assert paid == [1]


class Crashed(Crashing):
    """The same journal, of which the process ends at the third append from here on."""

    def __init__(self, store):
        super().__init__(at=3, written=True)
        self.__dict__.update({name: value for name, value in vars(store).items() if name not in vars(self)})
        for name, value in vars(store).items():
            if name not in ("at", "written", "appends"):
                setattr(self, name, value)


# --- what nobody knows ------------------------------------------------------------------------------------------------


def uncertain(program, reply=None):
    """A run that ended in the middle of its first tool."""
    store = MemoryCheckpointer()
    with pytest.raises(Crash):
        run(store, reply or calls("pay", amount=1), program=program(raises(Crash())))
    return store


def test_a_tool_that_may_have_happened_is_not_called_again():
    store = uncertain(paying)
    for _ in range(2):
        with pytest.raises(UncertainEffect, match=r"runs settle run 000001-call/000002-tool") as caught:
            run(store, program=paying(int))
        assert caught.value.step_id == "000001-call/000002-tool"
    assert store.load("run").uncertain() == ["000001-call", "000001-call/000002-tool"]


def test_it_happened_with_a_value():
    store = uncertain(paying)
    settle(store, "run", "000001-call/000002-tool", done=12)
    model = ScriptedModel("bought")
    with running(store, model):
        assert paying(raises(AssertionError()))() == "bought"
    assert model.requests[0]["messages"][-1]["content"] == "12"


def test_it_failed():
    store = uncertain(paying)
    settle(store, "run", "000001-call/000002-tool", fail="the bank is closed")
    model = ScriptedModel("nothing")
    with running(store, model):
        assert paying(raises(AssertionError()))() == "nothing"
    assert "the bank is closed" in model.requests[0]["messages"][-1]["content"]


def test_it_is_to_be_done():
    store = uncertain(paying)
    settle(store, "run", "000001-call/000002-tool", redo=True)
    assert run(store, "bought", program=paying(int)) == ("bought", 1)


def test_the_error_tells_the_program_and_no_model():
    store = uncertain(paying)
    model = ScriptedModel()
    with pytest.raises(UncertainEffect), running(store, model):
        paying(int)()
    assert model.requests == []


# --- values from outside ----------------------------------------------------------------------------------------------

VALUES = [
    *("text", 3, 2.5, True, None, b"\xff\x00", [1, "a", None], {"a": [1]}),
    *(datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC), datetime.date(2026, 5, 1), uuid.UUID(int=7), Path("a/b")),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_from_outside_is_the_same_again(value):
    def program(get):
        return lambda: (record(get), limerick("cats"))

    store = crashed("one", program=program(lambda: value))
    again, asked = run(store, program=program(lambda: pytest.fail("called again")))
    assert again == (value, "one")
    assert type(again[0]) is type(value)
    assert asked == 0


def test_a_value_whose_type_is_named():
    def program(get):
        return lambda: (record(get, list[datetime.date]), limerick("cats"))

    days = [datetime.date(2026, 5, 1)]
    store = crashed("one", program=program(lambda: days))
    assert run(store, program=program(lambda: pytest.fail("called again"))) == ((days, "one"), 0)


def test_a_value_that_would_be_another_is_refused():
    with pytest.raises(EncodingError, match="type"):
        run(MemoryCheckpointer(), program=lambda: record(lambda: [datetime.date(2026, 5, 1)]))


def test_a_value_that_is_awaited():
    called = []

    async def get() -> int:
        called.append(1)
        return 3

    async def program():
        return await record(get)

    store = MemoryCheckpointer()
    for _ in range(2):
        with running(store, ScriptedModel()):
            assert asyncio.run(program()) == 3
    assert called == [1]


def test_without_a_journal_it_is_the_function():
    assert record(lambda: 3) == 3


# --- what the program sees of it --------------------------------------------------------------------------------------


def test_the_steps_of_a_resumed_run_say_that_they_are_told_again():
    store = crashed("one")
    with running(store, ScriptedModel("two")):
        events = [*steps(limerick, "cats"), *steps(limerick, "dogs")]
    told = [(event.run_id, event.phase, event.replayed) for event in events if isinstance(event, ModelStep)]
    assert told == [
        *(("run", Phase.ATTEMPTED, True), ("run", Phase.COMPLETED, True)),
        *(("run", Phase.ATTEMPTED, False), ("run", Phase.COMPLETED, False)),
    ]


def test_calls_that_are_awaited_are_journalled():
    async def program():
        return await acall(limerick, "cats"), await acall(limerick, "dogs")

    store = MemoryCheckpointer()
    for replies in ("one", "two"), ():
        with running(store, ScriptedModel(*replies)):
            assert asyncio.run(program()) == ("one", "two")


def test_asynchronous_tools_are_journalled():
    called = []

    @Tool.define
    async def fetch(what: str) -> str:
        """Fetch something."""
        called.append(what)
        return f"a {what}"

    @Skill.define
    async def bring(what: str) -> str:
        """Bring {what}."""
        raise NotHandled

    async def program():
        return await bring("hat"), await fetch("coat")

    store = MemoryCheckpointer()
    for replies in (calls("fetch", what="hat"), "here"), ():
        with running(store, ScriptedModel(*replies)):
            assert asyncio.run(program()) == ("here", "a coat")
    assert called == ["hat", "coat"]


def test_a_tool_that_asks_an_agent_is_called_again_so_that_the_agent_remembers():
    def program(called):
        class Expert:
            @Skill.define(tools=False)
            def explain(self, what: str) -> str:
                """Explain {what}."""
                raise NotHandled

        expert = Expert()

        @Tool.define
        def ask_expert(what: str) -> str:
            """Ask an expert."""
            called.append(what)
            return expert.explain(what)

        @Skill.define
        def learn(what: str) -> str:
            """Learn about {what}."""
            raise NotHandled

        return lambda: (learn("rain"), expert.explain("snow"), len(expert.__history__))

    replies = calls("ask_expert", what="rain"), "water", "so it is water", "cold water"
    store, called = crashed(*replies, program=program([])), []
    assert run(store, program=program(called)) == (("so it is water", "cold water", 4), 0)
    assert called == ["rain"]


def test_a_tool_that_is_declared_so_is_called_again():
    seen = []

    @Tool.define(rerun=True)
    def remember(what: str) -> str:
        """Remember something."""
        seen.append(what)
        return f"{len(seen)} things"

    @Skill.define
    def tell(what: str) -> str:
        """Tell {what}."""
        raise NotHandled

    def program():
        return tell("all")

    store = crashed(calls("remember", what="one"), "told", program=program)
    assert run(store, program=program) == ("told", 0)
    assert seen == ["one", "one"]


def test_handlers_of_what_a_step_performs_are_not_asked_on_replay():
    store, seen = crashed("one"), []
    with running(store, ScriptedModel()), handler({completion: lambda **_: seen.append(1), call_tool: seen.append}):
        assert limerick("cats") == "one"
    assert seen == []


def test_a_journal_of_a_later_version_is_refused():
    store = crashed("one")
    first = store.load("run").records[0]
    store.append(dataclasses.replace(first, attempt=9, schema=99))
    with pytest.raises(Exception, match="later version"):
        run(store)


def test_reply_as_it_was():
    """The whole reply is there again, its usage too."""
    store = crashed(says("one"))
    with running(store, ScriptedModel()):
        [step] = [each for each in steps(limerick, "cats") if isinstance(each, ModelStep) and each.response]
    assert step.response["usage"]["prompt_tokens"] == 100


def find_another(control):
    assert len(control.unsaid) == 1
    with handler(control):
        return limerick("dogs")


def test_what_a_user_said_meanwhile_is_there_again():
    control = CallControl()

    @Tool.define
    def search(where: str) -> str:
        """Search."""
        control.say("Cheap, please.")
        return "a hotel"

    @Skill.define
    def find(where: str) -> str:
        """Find a hotel in {where}."""
        raise NotHandled

    def program():
        with handler(control):
            return find("Oslo")

    store = crashed(calls("search", where="Oslo"), "found", program=program)
    assert run(store, program=program) == ("found", 0)
    assert control.unsaid == ()
    # Now it waits for a turn that is new.
    control.say("Quick, please.")
    assert run(store, "of dogs", program=lambda: (program(), find_another(control))) == (("found", "of dogs"), 1)


class Keyword(Exception):
    """One whose constructor takes other arguments than its `args`."""

    def __init__(self, *, code):
        super().__init__(f"failed with {code}")
        self.code = code


class Unwritable(Exception):
    """One that is made of what cannot be written down."""

    def __init__(self, cause):
        super().__init__(cause)

    def __str__(self):
        return "unwritable"


class Mistaken(Exception):
    """One whose constructor makes its text of its argument."""

    def __init__(self, code):
        super().__init__(f"code {code}")


@pytest.mark.parametrize(
    "error",
    [
        *(
            KeyError("k"),
            FileNotFoundError(2, "no such file", "a.txt"),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ),
        *(Keyword(code=3), Mistaken(3), Unwritable(object()), Unwritable(float("nan"))),
        ExceptionGroup("several", [ValueError("one"), ExceptionGroup("more", [Mistaken(2)])]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_is_of_its_class_and_says_the_same_again(error):
    @Tool.define
    def fail(why: int) -> str:
        """Fail."""
        raise error

    def program():
        try:
            return fail(1)
        except type(error) as again:
            return type(again), str(again), getattr(again, "code", None), limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program) == ((type(error), str(error), getattr(error, "code", None), "one"), 0)


# --- tools that change their objects ----------------------------------------------------------------------------------


class WithSlots:
    __slots__ = ("__secret", "total")

    def __init__(self, total):
        self.total, self.__secret = total, []

    @Tool.define
    def add(self, amount: int) -> int:
        """Add an amount."""
        self.total += amount
        self.__secret.append(amount)
        return self.total

    @property
    def state(self):
        return self.total, self.__secret


def test_an_object_with_slots_is_changed_again():
    def program():
        one = WithSlots(0)
        return one.add(1), one.add(2), one.state, limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program) == ((1, 3, (3, [1, 2]), "one"), 0)


@dataclasses.dataclass
class Notes:
    notes: list[str]
    seen: dict[str, int]

    @Tool.define
    def note(self, text: str) -> int:
        """Note something."""
        self.notes.append(text)
        self.seen[text] = len(self.notes)
        return len(self.notes)


def test_a_list_that_the_program_has_too_is_changed_in_place():
    def program():
        mine, seen = [], {}
        notes = Notes(mine, seen)
        notes.note("a")
        mine.append("mine")
        notes.note("b")
        return mine, seen, notes.notes is mine, limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program) == ((["a", "mine", "b"], {"a": 1, "b": 3}, True, "one"), 0)


@pytest.mark.parametrize(
    ("options", "paid"), [({}, [1]), ({"idempotent": True}, [1, 1]), ({"rerun": True}, [1, 1])], ids=str
)
def test_a_method_whose_change_cannot_be_written_is_called_again_only_if_it_may_be(options, paid):
    calls_made = []

    class Bank:
        client = None

        @Tool.define(**options)
        def pay(self, amount: int) -> int:
            """Pay."""
            self.client = object()
            calls_made.append(amount)
            return amount

    def program():
        bank = Bank()
        return bank.pay(1), bank.client is not None, limerick("cats")

    store = crashed("one", program=program)
    if options:
        assert run(store, program=program) == ((1, True, "one"), 0)
    else:
        with pytest.raises(JournalError, match="`client`, which cannot be written down"):
            run(store, program=program)
    assert calls_made == paid


# --- what a method changes, and how a run ends ------------------------------------------------------------------------


@dataclasses.dataclass
class Order:
    what: str


class Shop:
    """A class without annotations, whose attributes are of all kinds."""

    def __init__(self):
        self.counts, self.queue = Counter(), deque()
        self.orders = [Order("first")]
        self.one = Order("none")
        self.log = []

    @Tool.define
    def count(self, what: str) -> None:
        """Count it."""
        self.counts[what] += 1
        self.queue.append(what)
        self.one = Order(what)

    @Tool.define
    def order(self, what: str) -> None:
        """Order it."""
        self.orders.append(Order(what))

    @Tool.define
    def refuse(self, what: str) -> None:
        """Refuse it."""
        self.log.append(what)
        raise ValueError(what)

    @Tool.define
    async def slowly(self, what: str, ticks: int) -> None:
        """Note it."""
        for _ in range(ticks):
            await asyncio.sleep(0)
        self.log.append(what)


def test_attributes_without_annotations_are_changed_again_by_their_own_classes():
    def program():
        shop = Shop()
        shop.count("tea")
        return shop.counts, shop.queue, shop.one, limerick("cats")

    store = crashed("one", program=program)
    again, _ = run(store, program=program)
    assert again == (Counter(tea=1), deque(["tea"]), Order("tea"), "one")


def test_a_change_in_place_that_cannot_be_written_is_told_and_never_lost():
    def program():
        shop = Shop()
        shop.order("tea")
        return len(shop.orders), limerick("cats")

    store = crashed("one", program=program)
    with pytest.raises(JournalError, match=r"`orders`.*cannot be written down"):
        run(store, program=program)


def test_what_a_method_changed_before_it_raised_is_changed_again():
    def program():
        shop = Shop()
        with pytest.raises(ValueError, match="tea"):
            shop.refuse("tea")
        return shop.log, limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program) == ((["tea"], "one"), 0)


def test_of_methods_side_by_side_the_last_to_end_has_seen_the_others():
    async def both(shop):
        await asyncio.gather(shop.slowly("slow", 9), shop.slowly("quick", 1))

    def program():
        shop = Shop()
        asyncio.run(both(shop))
        return shop.log, limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program) == ((["quick", "slow"], "one"), 0)


def test_what_a_finished_run_does_beyond_its_end_is_kept():
    store, count = MemoryCheckpointer(), itertools.count()
    run(store, "one")

    def program():
        return limerick("cats"), record(lambda: next(count))

    assert [run(store, program=program) for _ in range(3)] == [(("one", 0), 0)] * 3
    assert [each.status for each in store.runs()] == ["finished"]


def test_a_program_that_leaves_out_a_step_nobody_knows_of_does_not_finish_the_run():
    store = uncertain(paying)
    run(store, program=lambda: None)
    [info] = store.runs()
    assert info.status == "uncertain"
    assert "000001-call/000002-tool" in info.error


def test_a_result_of_a_tool_that_is_not_what_it_declares_reaches_the_code_that_called_it(caplog):
    called = []

    @Tool.define
    def odd() -> int:
        """Return something else."""
        called.append(1)
        return lambda: 3

    def program():
        return odd(), limerick("cats")

    store = crashed("one", program=program)
    assert "cannot be written down" in caplog.text
    with pytest.raises(UncertainEffect):
        run(store, program=program)
    assert called == [1]


@pytest.mark.parametrize("value", [True, "\ud800", Order("tea")], ids=["bool", "surrogate", "dataclass"])
def test_a_result_that_is_of_another_class_than_declared_is_the_same_again(value):
    @Tool.define
    def odd() -> Any:
        """Return something."""
        return value

    @Tool.define
    def number() -> int:
        """Return a number, or so it says."""
        return value

    def program():
        return odd(), number(), limerick("cats")

    store = crashed("one", program=program)
    assert run(store, program=program)[0] == (value, value, "one")


class Failing(MemoryCheckpointer):
    """A store that fails once, before it has written anything."""

    def __init__(self, at, error):
        super().__init__()
        self.left, self.error = at, error

    def lease(self, run_id, *, seconds=30.0):
        lease = super().lease(run_id, seconds=seconds)
        write = lease.append

        def append(*records):
            self.left -= 1
            if self.left == -1:
                raise self.error
            write(*records)

        lease.append = append
        return lease


@pytest.mark.parametrize("error", [JournalError("full"), OSError("full")], ids=["ours", "of the system"])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_store_that_fails_ends_the_run_and_never_makes_a_step_twice(at, error):
    paid = []
    program = paying(lambda amount: paid.append(amount) or 1)
    replies = [calls("pay", amount=1), "bought"]
    store, model = Failing(at, error), ScriptedModel(*replies)
    with contextlib.suppress(JournalError), running(store, model):
        program()
    asked = len(model.requests)
    assert run(store, *replies[asked:], program=program) == ("bought", len(replies) - asked)
    assert paid == [1]
