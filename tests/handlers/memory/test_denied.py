"""Memory under policies: what is not granted does not happen, by whatever way a model or a program comes to it."""

from __future__ import annotations

import contextlib
from typing import Any, override

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import Denied, GovernanceRefused, StepDenied
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.memory import InMemoryStore, MemoryKeeper, MemoryTools, RecallPrompter, WorkingWindow
from effectful_agents.handlers.policy import Governance, GrantEffects, Policy
from effectful_agents.handlers.policy.rules import Redaction, Refuse, Rule
from effectful_agents.operations.memory import Memory, remember
from effectful_agents.operations.policy import Disposition
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.handlers.memory.remembering import ANN, performed, remembering, said, texts

GRANTED = ("model_call", "tool_call", "delegate", "import")


@Tool.define
def keep(text: str) -> str:
    """Keep a text."""
    return remember(text).text


@Tool.define
def carefully(text: str) -> str:
    """Keep a text, whatever happens."""
    with contextlib.suppress(Exception):
        remember(text)
    return "kept"


@Skill.define
def work(text: str) -> str:
    """{text}"""
    raise NotHandled


@Skill.define
def help_out(text: str) -> str:
    """Help: {text}"""
    raise NotHandled


def in_code(code: str) -> Any:
    return calls("exec_code", code=code)


ROUTES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "a tool of the memory": ({}, (calls("remember", text="x"), "done")),
    "a tool of the program": ({}, (calls("keep", text="x"), "done")),
    "a tool that eats errors": ({}, (calls("carefully", text="x"), "done")),
    "a skill": ({}, (calls("help_out", text="x"), calls("keep", text="x"), "ok", "done")),
    "an expression": (
        {"tool_calling": "code", "eval_provider": "restricted"},
        (calls("keep", call="keep('x')"), "done"),
    ),
    "code": ({"eval_provider": "builtin"}, (in_code("keep('x')"), "done")),
    "code that eats errors": (
        {"eval_provider": "builtin"},
        (in_code("try:\n    keep('x')\nexcept Exception:\n    pass"), "done"),
    ),
    "code that has the operation": ({"eval_provider": "builtin"}, (in_code("remember('x')"), "done")),
    "restricted code": ({"eval_provider": "restricted"}, (in_code("list(map(keep, ['x']))"), "done")),
    "a body": (
        {"eval_provider": "builtin"},
        (
            calls("write_and_run_body", implementation={"code": "def work(text: str) -> str:\n    return keep('x')\n"}),
            "done",
        ),
    ),
}


@contextlib.contextmanager
def taking(route: str, store: Any, *policies: Any, end: Any = "done", run: Any = None, resumed: bool = False) -> Any:
    """A stack with a memory, and a model that takes one of the ways; `end` is its last reply, or what it raises."""
    settings, (*replies, _) = ROUTES[route]
    settings = {"eval_provider": "none", "type_checker": "none", **settings}
    journal = [] if run is None else [Journal("monday", run)]
    memory = [MemoryTools(), RecallPrompter(), MemoryKeeper(store, ANN)]
    with handler(harness(**settings)), handler(ScriptedModel(*([] if resumed else replies), end)) as model:
        with handler(Layers(*policies, *journal, *memory)):
            yield model


@pytest.mark.parametrize("route", ROUTES)
def test_every_way_is_one_when_it_is_granted(route: str) -> None:
    store = InMemoryStore()
    with taking(route, store, GrantEffects(*GRANTED, "memory_read", "memory_write", "memory_flush")):
        work("Keep it.")
    assert "x" in texts(store.memories(ANN))


@pytest.mark.parametrize("missing", ["memory_write", "memory_flush"])
@pytest.mark.parametrize("route", ROUTES)
def test_by_no_way_anything_is_kept_that_is_not_granted(route: str, missing: str) -> None:
    store = InMemoryStore()
    granted = {*GRANTED, "memory_read", "memory_write", "memory_flush"} - {missing}
    with taking(route, store, GrantEffects(*granted)):
        with contextlib.suppress(Denied):
            work("Keep it.")
    assert list(store.memories(ANN)) == []


@pytest.mark.parametrize("route", ROUTES)
def test_by_no_way_anything_is_kept_that_is_denied(route: str) -> None:
    """A step that is denied leaves the call to go on; what it had to say is nowhere."""
    store = InMemoryStore()

    def judge(effect: Any) -> Any:
        return Disposition.DENY_STEP if effect.name == "remember" and effect.kind == "memory_write" else None

    with taking(route, store, Policy(judge)), contextlib.suppress(StepDenied):
        work("Keep it.")
    assert list(store.memories(ANN)) == []


@pytest.mark.parametrize("route", ["a tool of the program", "a skill", "code"])
def test_a_run_that_is_resumed_without_the_grant_keeps_nothing(route: str) -> None:
    """What its tools had written before is unseen, and stays so."""
    store, journal = InMemoryStore(), MemoryCheckpointer()
    everything = (*GRANTED, "memory_read", "memory_write", "memory_flush")
    with taking(route, store, GrantEffects(*everything), end=ConnectionError("cut off"), run=journal):
        with pytest.raises(ConnectionError):
            work("Keep it.")
    assert list(store.memories(ANN)) == []
    with taking(route, store, GrantEffects(*everything[:-1]), run=journal, resumed=True):
        with pytest.raises(Denied):
            work("Keep it.")
    assert list(store.memories(ANN)) == []


def denying(*names: str) -> Policy:
    return Policy(lambda effect: Disposition.DENY_STEP if effect.name in names else None)


@pytest.mark.parametrize(
    ("denied", "kept"),
    [
        (("recall",), ["Tea is green.", "Asked: Tea?\nAnswered: Done."]),
        (("remember",), ["Tea is green."]),
        (("flush_memory",), ["Tea is green."]),
        (("consolidate_memory",), ["Tea is green.", "Asked: Tea?\nAnswered: Done."]),
    ],
    ids=lambda value: value[0],
)
def test_a_call_goes_on_without_a_stage_that_is_denied(denied: tuple[str, ...], kept: list[str]) -> None:
    store = InMemoryStore()
    store.write(ANN, [Memory("1", "Tea is green.", ANN)])
    options: dict[str, Any] = {"working_window": WorkingWindow(2)}
    if "consolidate_memory" in denied:
        options |= {"consolidator": lambda given: [], "consolidate_after": 2}
    with remembering("Done.", keeper=MemoryKeeper(store, ANN, **options)) as model, handler(denying(*denied)):
        assert work("Tea?") == "Done."
    assert texts(store.memories(ANN)) == kept
    assert ("Tea is green." in said(model.requests[0])) == ("recall" not in denied)


def test_of_facts_each_is_decided_about() -> None:
    def judge(effect: Any) -> Any:
        return Disposition.DENY_STEP if "secret" in str(effect.arguments.get("text")) else None

    store = InMemoryStore()
    keeper = MemoryKeeper(store, ANN, extractor=lambda *_: ["A fact.", "A secret.", "Another."])
    with remembering("Done.", keeper=keeper), handler(Policy(judge)):
        work("Tea?")
    assert texts(store.memories(ANN)) == ["A fact.", "Another."]


CARD = "4111 1111 1111 1111"


@pytest.mark.parametrize("restore", [True, False], ids=["restored", "as it is"])
@pytest.mark.parametrize("inside", [True, False], ids=["rules inside of the keeper", "outside of it"])
def test_what_rules_take_out_of_a_call_is_not_remembered_either(inside: bool, restore: bool) -> None:
    asked: list[str] = []

    class Asked(InMemoryStore):
        @override
        def search(self, scope: Any, query: str, limit: int, kind: str | None = None) -> Any:
            asked.append(query)
            return super().search(scope, query, limit, kind)

    store = Asked()
    keeper = MemoryKeeper(store, ANN, extractor=lambda request, answer: [request, answer])
    rules = Governance([Redaction(restore=restore)])
    layers = [keeper, rules] if inside else [rules, keeper]
    with handler(harness(system_prompt="brief", eval_provider="none")), handler(ScriptedModel(f"It is {CARD}.")):
        with handler(Layers(*layers, RecallPrompter())):
            assert (CARD in work(f"My card is {CARD}.")) == restore
    kept = texts(store.memories(ANN))
    assert len(kept) == 2
    assert CARD not in str([asked, kept])
    assert "My card is" in kept[0]


def test_a_request_that_is_refused_is_neither_recalled_for_nor_remembered() -> None:
    store = InMemoryStore()
    refusing = Rule("no tea", ingress=lambda text: Refuse("No tea.") if "tea" in text else None)
    seen: list[Any] = []
    with remembering(keeper=MemoryKeeper(store, ANN)), handler(Governance([refusing])), handler(performed(seen)):
        with pytest.raises(GovernanceRefused, match="No tea"):
            work("My tea?")
    assert seen == []
    assert list(store.memories(ANN)) == []


def test_an_answer_that_could_not_be_asked_is_given_and_not_remembered() -> None:
    store = InMemoryStore()
    refusing = Rule("no tea", ingress=lambda text: Refuse("No tea.") if "tea" in text else None)
    replies = (calls("keep", text="Milk."), "Have some tea.")
    with remembering(*replies, keeper=MemoryKeeper(store, ANN)), handler(Governance([refusing])):
        assert work("What now?") == "Have some tea."
    assert texts(store.memories(ANN)) == ["Milk."]
