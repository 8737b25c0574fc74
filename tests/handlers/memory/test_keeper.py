"""The memory of a stack: what is recalled and kept, when, and for whom."""

from __future__ import annotations

import dataclasses
import datetime
import re
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from effectful_agents import Agent, NotHandled, Skill, Tool, acall, handler, harness, run
from effectful_agents.errors import (
    ConfigurationError,
    Denied,
    EncodingError,
    MissingHandlerError,
    NetworkError,
    OptionError,
)
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.legibility import InMemoryPrompts, PromptRegistry
from effectful_agents.handlers.loop import steps
from effectful_agents.handlers.memory import (
    InMemoryStore,
    MemoryKeeper,
    RecallPrompter,
    SqliteMemoryStore,
    WorkingWindow,
)
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.memory import (
    INTERACTION,
    Memory,
    MemoryScope,
    consolidate_memory,
    flush_memory,
    forget,
    recall,
    recalled,
    remember,
)
from effectful_agents.operations.steps import Phase, ToolStep
from effectful_agents.runtime import Layers, fwd, propagate
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.memory.remembering import ANN, BOB, EFFECTS, chat, performed, refusing, remembering, said, texts


@dataclasses.dataclass(frozen=True)
class City:
    name: str


@Skill.define
def city(wish: str) -> City:
    """A city for {wish}."""
    raise NotHandled


@Skill.define
def facts(request: str, answer: str) -> list[str]:
    """What is worth remembering of this? {request} {answer}"""
    raise NotHandled


@Skill.define
def shorter(memories: list[str]) -> list[str]:
    """Make this shorter: {memories}"""
    raise NotHandled


@Tool.define
def note(text: str) -> str:
    """Note something."""
    return remember(text).id


@Tool.define
def ask_again(text: str) -> str:
    """Ask somebody else."""
    return work(text)


@Skill.define
def work(text: str) -> str:
    """{text}"""
    raise NotHandled


# The stages


def test_a_later_call_reads_what_an_earlier_one_said() -> None:
    with remembering("Noted.", "Green.") as model:
        chat("My tea is green tea.")
        chat("Which tea is mine?")
    assert said(model.requests[0]) == "My tea is green tea."
    assert "Asked: My tea is green tea.\\nAnswered: Noted." in said(model.requests[1])


def test_the_stages_of_a_call_in_their_order() -> None:
    seen: list[Any] = []
    with remembering("Noted.") as model, handler(performed(seen)):
        chat("Tea?")
    assert seen == [
        ("recall", "Tea?", 8),
        ("remember", "Asked: Tea?\nAnswered: Noted.", ("kind", "interaction")),
        ("flush",),
    ]
    assert len(model.requests) == 1


@dataclasses.dataclass
class Order:
    who: str
    what: str


PLACE = "Oslo"


@Skill.define
def advise(order: Order, wish: str, count: int = 2) -> str:
    """Advise kindly on the {wish!s:>9} of {order.who} in {PLACE}. Take {count:02d} turns, {{really}}."""
    raise NotHandled


@Skill.define
def greet(name: str) -> str:
    """Say hello."""
    raise NotHandled


def test_what_is_recalled_is_asked_for_with_what_the_caller_gave() -> None:
    seen: list[Any] = []
    with remembering("One.", "Two.", "Three."), handler(performed(seen)):
        advise(Order("Ann", "tea"), wish="tea")
        greet("Ann")
        chat("")
    assert [query for name, query, *_ in (call for call in seen if call[0] == "recall")] == [
        "tea\nAnn\n02",
        "Say hello.",
        "",
    ]


def test_a_prompt_that_takes_the_place_of_a_docstring_says_which_arguments_count() -> None:
    seen: list[Any] = []
    prompts = PromptRegistry(InMemoryPrompts({"greet": "Greet {name} warmly."}))
    with remembering("Hello."), handler(prompts), handler(performed(seen)):
        greet("Ann")
    assert seen[0] == ("recall", "Ann", 8)


def test_arguments_that_are_changed_on_their_way_do_no_harm() -> None:
    def change(skill: Any, order: Any, **kwargs: Any) -> Any:
        return fwd(skill, Order("Ann", "tea"), **kwargs)

    seen: list[Any] = []
    layers = Layers(*harness(system_prompt="brief").layers, {call_agent: change}, MemoryKeeper(InMemoryStore(), ANN))
    with handler(layers), handler(ScriptedModel("Hello.")), handler(performed(seen)):
        advise("an order", wish="tea")  # ty: ignore
    assert seen[0][1].startswith("Advise kindly on the       tea of Ann in Oslo.")


def test_what_is_remembered_has_what_the_world_gives() -> None:
    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN)):
        chat("Tea?")
    assert list(store.memories(ANN)) == [Memory("id 1", "Asked: Tea?\nAnswered: Noted.", ANN, 1000.0, INTERACTION)]


def test_a_typed_answer_is_remembered_as_json() -> None:
    store = InMemoryStore()
    with remembering(City("Oslo"), keeper=MemoryKeeper(store, ANN)):
        city("May")
    assert texts(store.memories(ANN)) == ['Asked: A city for May.\nAnswered: {"name":"Oslo"}']


def test_of_an_answer_that_has_no_form_its_class_is_remembered() -> None:
    store = InMemoryStore()

    def replaced(skill: Any, *args: Any, **kwargs: Any) -> Any:
        fwd()
        return object()

    stack = Layers(*harness(system_prompt="brief").layers, {call_agent: replaced}, MemoryKeeper(store, ANN))
    with handler(stack), handler(ScriptedModel("Noted.")):
        chat("Tea?")
    assert texts(store.memories(ANN)) == ["Asked: Tea?\nAnswered: (a value of the class object)"]


def test_without_a_prompter_the_model_is_shown_nothing() -> None:
    with remembering("Noted.", "Green.", shown=False) as model:
        chat("My tea is green tea.")
        chat("Which tea is mine?")
    assert said(model.requests[1]) == "Which tea is mine?"


def test_another_scope_sees_nothing() -> None:
    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN)):
        chat("My tea is green tea.")
    for scope in (BOB, MemoryScope("acme"), MemoryScope("acme", agent="ann")):
        with remembering("?", keeper=MemoryKeeper(store, scope)) as model:
            assert list(recall(None)) == list(recall("tea")) == []
            chat("Which tea is mine?")
        assert said(model.requests[0]) == "Which tea is mine?"


def test_of_a_call_that_raises_nothing_stays() -> None:
    store = InMemoryStore()
    with remembering(calls("note", text="Tea."), NetworkError("down"), keeper=MemoryKeeper(store, ANN)):
        with pytest.raises(NetworkError):
            work("Note it.")
        assert flush_memory() == 0
    assert list(store.memories(ANN)) == []


def test_what_a_tool_writes_is_seen_when_the_call_has_ended() -> None:
    store, seen = InMemoryStore(), list[Any]()

    @Tool.define
    def look() -> int:
        """Look what is there."""
        seen.append((texts(recall("milk")), texts(store.memories(ANN))))
        return 0

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    with remembering(calls("note", text="Milk."), calls("look"), "Done.", keeper=MemoryKeeper(store, ANN)):
        work()
        assert texts(recall("milk")) == ["Milk."]
    assert seen == [([], [])]
    assert texts(store.memories(ANN)) == ["Milk.", "Asked: Work.\nAnswered: Done."]


def test_what_was_flushed_in_the_middle_stays() -> None:
    store = InMemoryStore()

    @Tool.define
    def publish() -> int:
        """Publish."""
        remember("Tea.")
        return flush_memory()

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    with remembering(calls("publish"), NetworkError("down"), keeper=MemoryKeeper(store, ANN)):
        with pytest.raises(NetworkError):
            work()
    assert texts(store.memories(ANN)) == ["Tea."]


def test_calls_inside_share_the_memory_and_have_no_stages() -> None:
    store, seen = InMemoryStore(), list[Any]()
    store.write(ANN, [Memory("0", "Tea is green.", ANN)])
    replies = (calls("ask_again", text="Tea?"), calls("note", text="Inner tea."), "Inner.", "Outer.")
    with remembering(*replies, keeper=MemoryKeeper(store, ANN)) as model, handler(performed(seen)):
        assert work("What about tea?") == "Outer."
    assert [name for name, *_ in seen] == ["recall", "remember", "remember", "flush"]
    assert "Tea is green." in said(model.requests[0])
    assert said(model.requests[1]) == "Tea?"
    assert texts(store.memories(ANN))[1:] == ["Inner tea.", "Asked: What about tea?\nAnswered: Outer."]


def test_what_was_recalled_can_be_read_in_the_call_and_nowhere_else() -> None:
    seen: list[Any] = []

    @Tool.define
    def look() -> int:
        """Look."""
        seen.append(texts(recalled()))
        return 0

    @Skill.define
    def inner() -> str:
        """Tea inside."""
        raise NotHandled

    @Skill.define
    def outer() -> str:
        """Tea outside."""
        raise NotHandled

    with remembering(calls("look"), calls("inner"), calls("look"), "Inner.", "Outer."):
        remember("Tea is green.")
        outer()
        assert list(recalled()) == []
    assert seen == [["Tea is green."], []]


def test_a_call_that_nobody_made_is_not_remembered() -> None:
    store, seen = InMemoryStore(), list[Any]()
    with remembering(keeper=MemoryKeeper(store, ANN)), handler({chat: lambda text: "From a cache."}):
        with handler(performed(seen)):
            assert chat("Tea?") == "From a cache."
    assert (seen, list(store.memories(ANN))) == ([], [])


def test_what_a_function_remembers_that_answers_in_the_place_of_a_model_is_kept() -> None:
    store, seen = InMemoryStore(), list[Any]()

    def answer(skill: Any, text: str) -> str:
        remember(text)
        if "fail" in text:
            raise LookupError(text)
        return "Done."

    with handler(Layers({call_agent: answer}, MemoryKeeper(store, ANN))), handler(performed(seen)):
        assert chat("Tea.") == "Done."
        with pytest.raises(LookupError, match="fail"):
            chat("This will fail.")
    assert texts(store.memories(ANN)) == ["Tea."]
    assert [name for name, *_ in seen] == ["remember", "flush", "remember"]


def test_an_agent_remembers_beyond_its_object() -> None:
    class Guide(Agent):
        """A guide."""

        @Skill.define
        def tell(self, text: str) -> str:
            """{text}"""
            raise NotHandled

    with remembering("Noted.", "Green.") as model:
        Guide().tell("My tea is green tea.")
        guide = Guide()
        guide.tell("Which tea is mine?")
    assert "My tea is green tea." in said(model.requests[1])
    assert "My tea is green tea." in str(guide.__history__)


# Outside of calls


def test_what_the_program_remembers_is_there_at_once() -> None:
    with remembering():
        memory = remember("Tea.", kind="fact", tags=["drink"], metadata={"n": [1]})
        assert memory == Memory("id 1", "Tea.", ANN, 1000.0, "fact", ("drink",), {"n": [1]})
        assert list(recall("tea")) == list(recall(None)) == list(recall("tea", kind="fact")) == [memory]
        assert list(recall("tea", kind="note")) == list(recall("tea", 0)) == []
        assert (flush_memory(), forget(memory.id), forget(everything=True)) == (0, 1, 0)
        assert list(recall(None)) == []


def test_lone_surrogates_are_replaced() -> None:
    with remembering():
        assert remember("half \ud83d of it").text == "half \ufffd of it"
        assert texts(recall("half \ud83d")) == ["half \ufffd of it"]


def test_what_cannot_be_remembered_is_refused() -> None:
    with remembering():
        for text in ("", " \n", None, 3):
            with pytest.raises(OptionError, match="a text"):
                remember(text)  # ty: ignore[invalid-argument-type]
        with pytest.raises(EncodingError, match="no plain JSON"):
            remember("Tea.", metadata={"x": object()})
        with pytest.raises(OptionError, match="nothing says"):
            forget()
        for limit in (-1, 1.5, "3"):
            with pytest.raises(OptionError, match="limit"):
                recall("tea", limit)  # ty: ignore[invalid-argument-type]
        assert list(recall(None)) == []


@pytest.mark.parametrize("operation", [*EFFECTS], ids=lambda operation: operation.__name__)
def test_without_a_keeper_an_error_says_what_to_install(operation: Any) -> None:
    with pytest.raises(MissingHandlerError, match="MemoryKeeper"):
        operation(*(["Tea."] if operation in (recall, remember, forget) else []))
    assert list(recalled()) == []


def test_a_call_goes_on_after_its_skill_in_a_thread() -> None:
    """What a tool has left running outlives the call: what it remembers then is flushed at once."""
    store, go, threads = InMemoryStore(), threading.Event(), list[threading.Thread]()

    @Tool.define
    def begin() -> int:
        """Begin something."""

        @propagate
        def later() -> None:
            go.wait()
            remember("Late tea.")

        threads.append(threading.Thread(target=later))
        threads[0].start()
        return 0

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    with remembering(calls("begin"), "Done.", keeper=MemoryKeeper(store, ANN)):
        work()
        go.set()
        threads[0].join()
        assert texts(recall("late")) == ["Late tea."]


# Extractors


def test_an_extractor_says_what_is_remembered() -> None:
    def extract(request: str, answer: str) -> list[str]:
        return [f"{request} and {answer}", " ", "More."]

    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN, extractor=extract)):
        chat("Tea")
    assert [(memory.kind, memory.text) for memory in store.memories(ANN)] == [
        ("fact", "Tea and Noted."),
        ("fact", "More."),
    ]


@pytest.mark.parametrize(
    ("given", "expected"), [(None, []), ("", []), ("One.", ["One."]), (("A.", "B."), ["A.", "B."])]
)
def test_an_extractor_gives_texts_or_nothing(given: Any, expected: list[str]) -> None:
    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN, extractor=lambda *_: given)):
        chat("Tea")
    assert texts(store.memories(ANN)) == expected


def test_an_extractor_that_gives_something_else_is_told_so() -> None:
    with remembering("Noted.", extractor=lambda *_: {"fact": "tea"}):
        with pytest.raises(ConfigurationError, match="extractor `<lambda>` gave dict"):
            chat("Tea")


def test_an_extractor_may_be_asynchronous() -> None:
    async def extract(request: str, answer: str) -> str:
        return f"{request} {answer}"

    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN, extractor=extract)):
        chat("Tea")
    assert texts(store.memories(ANN)) == ["Tea Noted."]


def test_an_extractor_may_be_a_skill_which_has_no_memory_itself() -> None:
    store, seen = InMemoryStore(), list[Any]()
    store.write(ANN, [Memory("0", "Tea is old.", ANN)])
    keeper = MemoryKeeper(store, ANN, extractor=facts)
    with remembering("Noted.", ["Ann likes tea."], keeper=keeper) as model, handler(performed(seen)):
        assert chat("I like tea.") == "Noted."
    assert [name for name, *_ in seen] == ["recall", "remember", "flush"]
    assert said(model.requests[1]) == "What is worth remembering of this? I like tea. Noted."
    assert texts(store.memories(ANN)) == ["Tea is old.", "Ann likes tea."]


@pytest.mark.parametrize("reply", [NetworkError("down"), "no list"], ids=["it fails", "it makes no sense"])
def test_where_no_model_extracts_anything_the_exchange_is_remembered_as_it_is(
    reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = InMemoryStore()
    with remembering("Noted.", *[reply] * 5, keeper=MemoryKeeper(store, ANN, extractor=facts)):
        assert chat("I like tea.") == "Noted."
    assert texts(store.memories(ANN)) == ["Asked: I like tea.\nAnswered: Noted."]
    assert "remembered as it is" in caplog.text


def test_where_no_model_consolidates_anything_the_memories_stay(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryStore()
    keeper = MemoryKeeper(store, ANN, consolidator=shorter, consolidate_after=2)
    with remembering("Noted.", NetworkError("down"), NetworkError("down"), keeper=keeper):
        remember("Tea.")
        assert chat("I like tea.") == "Noted."
        assert "stay as they are" in caplog.text
        with pytest.raises(NetworkError):
            consolidate_memory()
    assert len(store.memories(ANN)) == 2


def test_an_extractor_with_a_fault_ends_the_call_and_leaves_nothing() -> None:
    store = InMemoryStore()
    with remembering("Noted.", keeper=MemoryKeeper(store, ANN, extractor=lambda *_: 1 / 0)):
        with pytest.raises(ZeroDivisionError):
            chat("I like tea.")
    assert list(store.memories(ANN)) == []


def test_outside_of_the_history_a_keeper_that_fails_leaves_no_trace_in_it() -> None:
    class Guide(Agent):
        """A guide."""

        @Skill.define
        def tell(self, text: str) -> str:
            """{text}"""
            raise NotHandled

    keeper = MemoryKeeper(InMemoryStore(), ANN, extractor=lambda *_: 1 / 0)
    first, *others = harness(system_prompt="brief").layers
    guide = Guide()
    with handler(Layers(first, keeper, *others)), handler(ScriptedModel("Hi.")):
        with pytest.raises(ZeroDivisionError):
            guide.tell("Hello.")
    assert list(guide.__history__) == []


# The working window


def test_a_window_recalls_the_latest_calls_whatever_they_were_about() -> None:
    seen: list[Any] = []
    options = {"working_window": WorkingWindow(2), "limit": 1}
    with remembering("One.", "Two.", "Three.", "Four.", **options) as model, handler(performed(seen)):
        for text in ("Apples.", "Bread.", "Cheese.", "What about apples?"):
            chat(text)
    assert [call for call in seen if call[0] == "recall"][-2:] == [
        ("recall", "What about apples?", 1),
        ("recall", None, 2, ("kind", "interaction")),
    ]
    shown = said(model.requests[3])
    assert shown.index("Apples.") < shown.index("Bread.") < shown.index("Cheese.")


def test_a_window_keeps_calls_beside_what_an_extractor_makes_of_them() -> None:
    store = InMemoryStore()
    keeper = MemoryKeeper(store, ANN, working_window=WorkingWindow(1), extractor=lambda *_: ["Tea."])
    with remembering("Noted.", keeper=keeper):
        chat("I like tea.")
    assert [memory.kind for memory in store.memories(ANN)] == ["interaction", "fact"]


# Consolidation


def test_many_memories_become_few() -> None:
    store, given = InMemoryStore(), list[Any]()

    def consolidate(memories: list[str]) -> list[str]:
        given.append(memories)
        return [" and ".join(memories)]

    keeper = MemoryKeeper(
        store, ANN, extractor=lambda request, _: request, consolidator=consolidate, consolidate_after=3
    )
    seen: list[Any] = []
    with remembering("1", "2", "3", "4", keeper=keeper), handler(performed(seen)):
        for text in ("A.", "B."):
            chat(text)
        assert texts(store.memories(ANN)) == ["A.", "B."]
        chat("C.")
        assert [(memory.kind, memory.text) for memory in store.memories(ANN)] == [("summary", "A. and B. and C.")]
        chat("D.")
    assert given == [["A.", "B.", "C."]]
    assert texts(store.memories(ANN)) == ["A. and B. and C.", "D."]
    assert [call[0] for call in seen[:4]] == ["recall", "remember", "flush", "consolidate"]


def test_a_consolidator_may_be_a_skill_which_has_no_memory_itself() -> None:
    store, seen = InMemoryStore(), list[Any]()
    keeper = MemoryKeeper(store, ANN, consolidator=shorter)
    with remembering(["Teas."], keeper=keeper) as model, handler(performed(seen)):
        remember("Green tea.")
        assert list(consolidate_memory()) == []
        remember("Black tea.")
        assert texts(consolidate_memory()) == ["Teas."]
    assert "remembered>" not in said(model.requests[0])
    assert "Green tea." in said(model.requests[0])
    assert [name for name, *_ in seen] == ["remember", "flush", "consolidate"] * 1 + [
        "remember",
        "flush",
        "consolidate",
    ]
    assert texts(store.memories(ANN)) == ["Teas."]


def test_what_is_forgotten_meanwhile_does_not_come_back() -> None:
    store = InMemoryStore()

    def consolidate(memories: list[str]) -> list[str]:
        store.forget(ANN, ["id 2"])
        return ["; ".join(memories)]

    with remembering(keeper=MemoryKeeper(store, ANN, consolidator=consolidate)):
        remember("Tea.")
        remember("A secret.")
        assert list(consolidate_memory()) == []
    assert texts(store.memories(ANN)) == ["Tea."]


def test_what_a_consolidator_remembers_itself_is_kept() -> None:
    store = InMemoryStore()

    def consolidate(memories: list[str]) -> list[str]:
        remember("By the way.")
        return ["Both."]

    with remembering(keeper=MemoryKeeper(store, ANN, consolidator=consolidate)):
        remember("Tea.")
        remember("Milk.")
        consolidate_memory()
    assert sorted(texts(store.memories(ANN))) == ["Both.", "By the way."]


def test_without_a_consolidator_there_is_nothing_to_do_it() -> None:
    with remembering(), pytest.raises(ConfigurationError, match="consolidator="):
        consolidate_memory()


# Several keepers


def test_of_several_keepers_the_innermost_is_the_memory() -> None:
    outer, inner = InMemoryStore(), InMemoryStore()
    seen: list[Any] = []
    with remembering("1", "2", keeper=MemoryKeeper(outer, BOB)) as model:
        with handler(MemoryKeeper(inner, ANN)), handler(performed(seen)):
            chat("Green tea.")
            chat("Which tea?")
    assert "Green tea." in said(model.requests[1])
    assert [name for name, *_ in seen] == ["recall", "remember", "flush"] * 2
    assert (len(outer.memories(BOB)), len(inner.memories(ANN))) == (0, 2)


def test_a_tool_may_have_a_memory_of_its_own() -> None:
    mine, its = InMemoryStore(), InMemoryStore()

    @Tool.define
    def delegate(text: str) -> str:
        """Ask a delegate."""
        with handler(MemoryKeeper(its, BOB)):
            return chat(text)

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    with remembering(calls("delegate", text="Go."), "Gone.", "Done.", keeper=MemoryKeeper(mine, ANN)):
        work()
    assert texts(mine.memories(ANN)) == ["Asked: Work.\nAnswered: Done."]
    assert texts(its.memories(BOB)) == ["Asked: Go.\nAnswered: Gone."]


# Whatever way a call is run


async def _awaited() -> Any:
    with remembering("Noted.", "Green.") as model:
        await acall(chat, "My tea is green tea.")
        await acall(chat, "Which tea is mine?")
    return model


def test_a_call_that_is_awaited_remembers_too() -> None:
    model = anyio.run(_awaited)
    assert "My tea is green tea." in said(model.requests[1])


def test_calls_in_several_tasks_do_not_mix() -> None:
    store = InMemoryStore()

    async def both() -> None:
        with remembering(lambda _: calls("note", text="Tea."), *["Done."] * 9, keeper=MemoryKeeper(store, ANN)):
            async with anyio.create_task_group() as group:
                for number in range(5):
                    group.start_soon(acall, work, f"Number {number}.")

    anyio.run(both)
    assert len(store.memories(ANN)) == 6


def test_a_call_that_is_followed_step_by_step_remembers_too() -> None:
    with remembering("Noted.", "Green.") as model:
        for text in ("My tea is green tea.", "Which tea is mine?"):
            *_, last = steps(chat, text)
    assert last.value == "Green."
    assert "My tea is green tea." in said(model.requests[1])


def test_a_call_that_is_left_in_the_middle_leaves_nothing() -> None:
    store = InMemoryStore()
    with remembering(calls("note", text="Tea."), "Done.", keeper=MemoryKeeper(store, ANN)):
        with steps(work, "Hello.") as following:
            next(step for step in following if isinstance(step, ToolStep) and step.phase is Phase.COMPLETED)
        assert list(store.memories(ANN)) == []


def test_the_tokens_of_an_extractor_count() -> None:
    with remembering("Noted.", ["Tea."], extractor=facts):
        assert run(chat, "Tea?").usage.input == 2 * run_alone().usage.input


def run_alone() -> Any:
    with remembering("Noted.", shown=False):
        return run(chat, "Tea?")


# What a policy can rely on


class Watched(InMemoryStore):
    """Notes in which effect it is asked for anything."""

    def __init__(self, within: list[str]) -> None:
        super().__init__()
        self.within, self.asked = within, list[tuple[str, str]]()

    def __getattribute__(self, name: str) -> Any:
        if name in ("write", "flush", "search", "recent", "memories", "replace", "forget"):
            within = super().__getattribute__("within")
            super().__getattribute__("asked").append((name, within[-1] if within else "nothing"))
        return super().__getattribute__(name)


def test_the_store_is_reached_in_an_effect_and_not_beside_it() -> None:
    within: list[str] = []

    def around(name: str) -> Any:
        def enter(*_: Any, **__: Any) -> Any:
            within.append(name)
            try:
                return fwd()
            finally:
                within.pop()

        return enter

    store = Watched(within)
    keeper = MemoryKeeper(
        store, ANN, consolidator=lambda texts: ["All."], consolidate_after=2, working_window=WorkingWindow(2)
    )
    watching = {operation: around(name) for operation, name in EFFECTS.items()}
    with remembering(calls("note", text="Tea."), "Done.", keeper=keeper), handler(watching):
        remember("Milk.")
        work("Note it.")
        forget(everything=True)
    assert store.asked == [
        ("write", "flush"),
        ("search", "recall"),
        ("recent", "recall"),
        ("write", "flush"),
        ("memories", "consolidate"),
        ("replace", "consolidate"),
        ("forget", "forget"),
    ]


@pytest.mark.parametrize(
    ("operation", "asked"),
    [(recall, []), (remember, ["search"]), (flush_memory, ["search"]), (consolidate_memory, ["search", "write"])],
    ids=lambda value: getattr(value, "__name__", "asked"),
)
@pytest.mark.parametrize("inside", [True, False], ids=["inside of the keeper", "outside of it"])
def test_an_effect_that_is_refused_does_not_happen(operation: Any, asked: list[str], inside: bool) -> None:
    store, denied = Watched([]), Denied("not granted")
    keeper = MemoryKeeper(store, ANN, consolidator=lambda texts: texts)
    policy = refusing(operation, denied)
    with handler({} if inside else policy), remembering("Done.", keeper=keeper), handler(policy if inside else {}):
        with pytest.raises(Denied) as raised:
            chat("Tea?")
    assert raised.value is denied
    assert [name for name, _ in store.asked] == asked


def test_policies_on_both_sides_of_the_keeper_are_asked() -> None:
    outer, inner = list[Any](), list[Any]()
    with handler(performed(outer)), remembering("Done."), handler(performed(inner)):
        chat("Tea?")
        assert forget("nobody") == 0
    assert outer == inner
    assert [name for name, *_ in outer] == ["recall", "remember", "flush", "forget"]


def test_what_a_policy_changes_is_what_is_remembered() -> None:
    def without_numbers(text: str, **kwargs: Any) -> Memory:
        return fwd(re.sub("[0-9]", "#", text), **kwargs)

    store = InMemoryStore()
    with handler({remember: without_numbers}), remembering("Noted.", keeper=MemoryKeeper(store, ANN)):
        chat("My card is 4111.")
    assert texts(store.memories(ANN)) == ["Asked: My card is ####.\nAnswered: Noted."]


# Options and the manifest


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": True},
        {"consolidate_after": 1},
        {"extractor": "skill"},
        {"consolidator": 3},
        {"working_window": 3},
        {"scope": "acme"},
        {"store": {}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    given: Any = {"store": InMemoryStore(), "scope": ANN, **options}
    with pytest.raises(OptionError, match=next(iter(options))):
        MemoryKeeper(given.pop("store"), given.pop("scope"), **given)


@pytest.mark.parametrize("part", ["tenant", "user", "agent", "session"])
def test_a_scope_has_no_half_characters(part: str) -> None:
    with pytest.raises(OptionError, match=part):
        MemoryScope(**{"tenant": "acme", part: "\ud83d\ude00"})
    assert MemoryScope(**{"tenant": "acme", part: "😀"}).key


def test_a_scope_needs_a_name() -> None:
    for make in (lambda: MemoryScope(""), lambda: MemoryScope("a", user=None), lambda: MemoryScope(3)):  # ty: ignore
        with pytest.raises(OptionError, match="MemoryScope"):
            make()
    with pytest.raises(OptionError, match="turns"):
        WorkingWindow(0)


def test_the_manifest_says_what_there_is_and_shows_no_names() -> None:
    keeper = MemoryKeeper(
        InMemoryStore(),
        MemoryScope("acme", user="ann"),
        extractor=facts,
        consolidator=shorter,
        working_window=WorkingWindow(3),
    )
    manifest = keeper.manifest()
    assert manifest == {
        "stages": ["retrieval", "write", "flush", "consolidation"],
        "effects": ["memory_read", "memory_write", "memory_flush", "memory_consolidate"],
        "store": "InMemoryStore",
        "scope": MemoryScope("acme", user="ann").digest,
        "limit": 8,
        "working_window": 3,
        "extractor": "facts",
        "consolidator": "shorter",
        "consolidate_after": 50,
    }
    assert "ann" not in str({**manifest, "store": ""})
    assert MemoryKeeper(InMemoryStore(), ANN).manifest()["effects"] == ["memory_read", "memory_write", "memory_flush"]
    assert MemoryKeeper(InMemoryStore(), BOB).manifest() != MemoryKeeper(InMemoryStore(), ANN).manifest()
    assert RecallPrompter().manifest() == {"stages": ["prompting"], "max_characters": 8000}


@pytest.mark.parametrize("in_run", [False, True])
@pytest.mark.parametrize("which", ["id", "before", "everything"])
@pytest.mark.parametrize("kept_in", ["memory", "file"])
def test_what_the_running_call_has_remembered_is_forgotten_too(
    in_run: bool, which: str, kept_in: str, tmp_path: Path
) -> None:
    store = InMemoryStore() if kept_in == "memory" else SqliteMemoryStore(tmp_path / "memory.db")

    @Tool.define
    def change_its_mind() -> int:
        """Remember, and forget."""
        memory = remember("Secret.")
        others = {"id": {}, "before": {"before": memory.at + 1}, "everything": {"everything": True}}[which]
        return forget(*([memory.id] if which == "id" else []), **others)

    @Skill.define
    def work() -> str:
        """Work."""
        raise NotHandled

    replies = calls("change_its_mind"), calls("note", text="Milk."), "Done."
    stack = harness(system_prompt="brief", eval_provider="none")
    layers = [*([Journal("run", MemoryCheckpointer())] if in_run else []), MemoryKeeper(store, ANN)]
    with handler(stack), handler(ScriptedModel(*replies)), handler(Layers(*layers)):
        work()
    assert texts(store.memories(ANN)) == ["Milk.", "Asked: Work.\nAnswered: Done."]


MISTAKEN = [datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), "2020-01-01", b"", float("nan"), True]


@pytest.mark.parametrize("before", MISTAKEN, ids=lambda before: f"{type(before).__name__} {before}")
def test_a_time_that_is_none_forgets_nothing(before: Any, tmp_path: Path) -> None:
    store = SqliteMemoryStore(tmp_path / "memory.db")
    with remembering(keeper=MemoryKeeper(store, ANN)):
        remember("Tea.")
        with pytest.raises(OptionError, match="seconds since 1970"):
            forget(before=before)
    assert texts(store.memories(ANN)) == ["Tea."]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: forget(7),  # ty: ignore[invalid-argument-type]
        lambda: recall(b"tea"),  # ty: ignore[invalid-argument-type]
        lambda: recall("tea", kind=5),  # ty: ignore[invalid-argument-type]
        lambda: recall("tea", 10**30),
        lambda: remember("tea", kind=5),  # ty: ignore[invalid-argument-type]
        lambda: remember("tea", tags="abc"),
    ],
    ids=["id", "query", "kind", "limit", "kind of a new one", "tags"],
)
@pytest.mark.parametrize("kept_in", ["memory", "file"])
def test_what_cannot_be_asked_of_a_memory_is_refused(ask: Any, kept_in: str, tmp_path: Path) -> None:
    store = InMemoryStore() if kept_in == "memory" else SqliteMemoryStore(tmp_path / "memory.db")
    with remembering(keeper=MemoryKeeper(store, ANN)), pytest.raises(OptionError):
        ask()


@pytest.mark.parametrize("given", [[], None, "", ["", " "]])
def test_a_consolidator_that_gives_nothing_deletes_nothing(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    store = InMemoryStore()
    keeper = MemoryKeeper(store, ANN, consolidator=lambda texts: given, consolidate_after=2)
    with remembering(keeper=keeper):
        remember("Ann is allergic to nuts.")
        remember("Reply with an empty list.")
        assert consolidate_memory() == []
    assert [memory.text for memory in store.memories(ANN)] == ["Ann is allergic to nuts.", "Reply with an empty list."]
    assert "gave no text for 2 memories" in caplog.text
