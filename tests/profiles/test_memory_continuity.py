"""The certification battery of the profile of memory continuity: docs/profiles/memory-continuity.md."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import NotHandled, Skill, fwd, handler, harness
from effectful_agents.errors import Denied, NetworkError
from effectful_agents.handlers.memory import (
    InMemoryStore,
    MemoryKeeper,
    RecallPrompter,
    SqliteMemoryStore,
    WorkingWindow,
)
from effectful_agents.handlers.policy import CompositionManifest, GrantEffects, composition_manifest
from effectful_agents.operations.memory import (
    MemoryScope,
    MemoryStore,
    consolidate_memory,
    flush_memory,
    recall,
    remember,
)
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel
from tests.profiles.ways import WAYS

SCOPE = MemoryScope("acme")
GRANTS = ("model_call", "memory_read", "memory_write", "memory_flush")
STACK = harness(system_prompt="brief", eval_provider="none").layers
FIRST, SECOND = "My tea is green tea.", "Which tea is mine?"


@Skill.define
def chat(text: str) -> str:
    """{text}"""
    raise NotHandled


@pytest.fixture(params=["in memory", "in a file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryStore]:
    kept = InMemoryStore() if request.param == "in memory" else SqliteMemoryStore(tmp_path / "memory.db")
    yield kept
    getattr(kept, "close", lambda: None)()


class Composition:
    """The recipe, and what is observed of it: the stages, the requests, what the store has in the end."""

    def __init__(self, store: MemoryStore, scope: MemoryScope = SCOPE, *, shown: bool = True, **options: Any) -> None:
        self.keeper = MemoryKeeper(store, scope, **options)
        self.layers = Layers(self.keeper, *([RecallPrompter()] if shown else []))
        self.stages: list[str] = []
        self.requests: list[Any] = []

    def _noted(self, stage: str) -> Callable[..., Any]:
        def note(*args: Any, **kwargs: Any) -> Any:
            self.stages.append(stage if args[:1] != (None,) else f"{stage} of the latest")
            return fwd()

        return note

    @contextlib.contextmanager
    def model(self, *replies: Any) -> Iterator[None]:
        observed = {
            recall: self._noted("retrieval"),
            remember: self._noted("write"),
            flush_memory: self._noted("flush"),
            consolidate_memory: self._noted("consolidation"),
        }
        with (
            handler(Layers(*STACK)),
            handler(ScriptedModel(*replies)) as scripted,
            handler(self.layers),
            handler(observed),
        ):
            yield
        self.requests += scripted.requests

    @property
    def messages(self) -> list[str]:
        """The user messages of the requests."""
        return [request["messages"][-1]["content"] for request in self.requests]


def both_calls(composition: Composition, call: Callable[[str], Any] = chat) -> None:
    with composition.model("Noted.", "Green tea."):
        assert [call(text) for text in (FIRST, SECOND)] == ["Noted.", "Green tea."]


def attested(composition: Composition, *policies: Any) -> CompositionManifest:
    return composition_manifest(chat, stack=Layers(*STACK, composition.layers, *policies))


def test_the_manifest_says_what_is_composed_and_nothing_else(store: MemoryStore) -> None:
    manifest = attested(Composition(store))
    assert manifest.stages == ("retrieval", "write", "flush", "prompting")
    assert (manifest.grants, manifest.enforcement) == ((), "nothing decides")  # the keeper grants itself nothing
    (keeper,) = (row["states"] for row in manifest.handlers if row["handler"] == "MemoryKeeper")
    assert keeper["effects"] == ["memory_read", "memory_write", "memory_flush"]
    assert (keeper["extractor"], keeper["consolidator"], keeper["working_window"]) == (None, None, None)
    assert "acme" not in manifest.to_json()


def test_the_digest_changes_with_what_is_composed() -> None:
    store = InMemoryStore()
    compositions: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({}, ()),
        ({"scope": MemoryScope("acme", user="ann")}, ()),
        ({"shown": False}, ()),
        ({"limit": 3}, ()),
        ({"working_window": WorkingWindow(2)}, ()),
        ({"extractor": lambda request, answer: request}, ()),
        ({"consolidator": lambda texts: texts}, ()),
        ({}, (GrantEffects(*GRANTS),)),
    ]
    digests = [attested(Composition(store, **options), *policies).digest for options, policies in compositions]
    assert len(set(digests)) == len(digests)
    assert attested(Composition(InMemoryStore())).digest == digests[0]
    with_consolidator = Composition(store, consolidator=lambda texts: texts)
    assert "consolidation" in attested(with_consolidator).stages


@pytest.mark.parametrize("way", WAYS)
def test_the_stages_happen_and_their_effect_remains(store: MemoryStore, way: str) -> None:
    composition = Composition(store)
    both_calls(composition, functools.partial(WAYS[way], chat))
    assert composition.stages == ["retrieval", "write", "flush"] * 2
    assert composition.messages[0] == FIRST
    assert composition.messages[1].startswith(SECOND + "\n")
    assert f'"Asked: {FIRST}\\nAnswered: Noted."' in composition.messages[1]
    assert [memory.text for memory in store.memories(SCOPE)] == [
        f"Asked: {FIRST}\nAnswered: Noted.",
        f"Asked: {SECOND}\nAnswered: Green tea.",
    ]


def test_another_process_recalls_what_this_one_wrote(tmp_path: Path) -> None:
    messages = []
    for text, reply in [(FIRST, "Noted."), (SECOND, "Green tea.")]:
        kept = SqliteMemoryStore(tmp_path / "memory.db")
        composition = Composition(kept)
        with composition.model(reply):
            chat(text)
        kept.close()
        messages += composition.messages
    assert messages[0] == FIRST
    assert FIRST in messages[1]


# Negative controls: each takes one thing away, and the outcome fails for that reason


def test_control_another_scope_recalls_nothing(store: MemoryStore) -> None:
    first, second = Composition(store), Composition(store, MemoryScope("acme", user="ann"))
    with first.model("Noted."):
        chat(FIRST)
    with second.model("No idea."):
        chat(SECOND)
    assert second.stages == ["retrieval", "write", "flush"]
    assert second.messages == [SECOND]


def test_control_without_a_prompter_the_request_holds_nothing(store: MemoryStore) -> None:
    composition = Composition(store, shown=False)
    both_calls(composition)
    assert composition.stages == ["retrieval", "write", "flush"] * 2
    assert composition.messages == [FIRST, SECOND]
    assert len(store.search(SCOPE, SECOND, 9)) == 2  # it was there to be recalled


def test_control_without_writing_nothing_is_recalled(store: MemoryStore) -> None:
    composition = Composition(store, extractor=lambda request, answer: None)
    both_calls(composition)
    assert composition.stages == ["retrieval", "flush"] * 2
    assert composition.messages == [FIRST, SECOND]


@pytest.mark.parametrize(("missing", "stages"), [("memory_read", 1), ("memory_write", 2), ("memory_flush", 3)])
def test_control_a_missing_grant_ends_the_call_and_is_named(store: MemoryStore, missing: str, stages: int) -> None:
    composition = Composition(store)
    grants = GrantEffects(*(grant for grant in GRANTS if grant != missing))
    with composition.model("Noted."), handler(grants), pytest.raises(Denied, match=missing):
        chat(FIRST)
    assert composition.stages == ["retrieval", "write", "flush"][:stages]
    assert list(store.memories(SCOPE)) == []
    with composition.model("Noted."), handler(GrantEffects(*GRANTS)):
        chat(FIRST)
    assert len(store.memories(SCOPE)) == 1


@pytest.mark.parametrize(
    ("effect", "stages"),
    [
        (recall, []),
        (remember, ["retrieval"]),
        (flush_memory, ["retrieval", "write"]),
    ],
    ids=["memory_read", "memory_write", "memory_flush"],
)
def test_control_without_a_grant_its_effect_does_not_happen(store: MemoryStore, effect: Any, stages: list[str]) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Denied("not granted")

    composition = Composition(store)
    with composition.model("Noted."), handler({effect: refuse}), pytest.raises(Denied, match="not granted"):
        chat(FIRST)
    assert composition.stages == stages
    assert len(composition.requests) == (effect is not recall)
    assert list(store.memories(SCOPE)) == []


def test_control_a_call_that_raises_leaves_nothing(store: MemoryStore) -> None:
    composition = Composition(store)
    with composition.model(NetworkError("down"), "Green tea."):
        with pytest.raises(NetworkError):
            chat(FIRST)
        chat(SECOND)
    assert composition.stages == ["retrieval", "retrieval", "write", "flush"]
    assert composition.messages[1] == SECOND


@pytest.mark.parametrize("window", [None, WorkingWindow(1)], ids=["without", "with"])
def test_control_the_window_is_seen_where_it_is_asked(store: MemoryStore, window: WorkingWindow | None) -> None:
    composition = Composition(store, working_window=window)
    with composition.model("Noted.", "Yes?"):
        chat(FIRST)
        chat("Hello!")
    assert ("retrieval of the latest" in composition.stages) == (window is not None)
    assert (FIRST in composition.messages[1]) == (window is not None)
