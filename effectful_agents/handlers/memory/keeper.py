"""The memory of a stack: what it recalls when a call begins, and what it keeps when the call has ended well."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError, GovernanceRefused, OptionError, StepDenied
from effectful_agents.handlers.memory.calls import RememberedCall
from effectful_agents.handlers.memory.checking import check_forgetting, check_memories, check_number, check_text
from effectful_agents.handlers.memory.exchange import answer_text, given_text, request_text
from effectful_agents.handlers.memory.making import Consolidator, Extractor, going_on, made_texts, maker_name
from effectful_agents.handlers.memory.window import WorkingWindow
from effectful_agents.messages import UserMessage
from effectful_agents.messages.text import safe_text, text_for_reading
from effectful_agents.operations.history import admit_message
from effectful_agents.operations.journal import record
from effectful_agents.operations.loop import call_agent, call_user
from effectful_agents.operations.memory import (
    INTERACTION,
    MEMORY_EFFECTS,
    Memory,
    MemoryRules,
    MemoryScope,
    MemoryStore,
    consolidate_memory,
    flush_memory,
    memory_in_use,
    recall,
    recalled,
    remember,
)
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.operations.steps import current_ids
from effectful_agents.operations.world import fresh_id, now
from effectful_agents.runtime import ObjectInterpretation, fwd, implements
from effectful_agents.types import Skill

__all__ = ["MemoryKeeper"]

_log = logging.getLogger(__name__)

_CONSOLIDATED = 200
"""Memories that are consolidated at once, at most: the oldest."""


class MemoryKeeper(ObjectInterpretation[Any, Any]):
    """Remember, from one call to later ones, in a store and a scope that the program chooses.

    Each outermost call of a skill goes through these stages; calls inside it share its memory, and have none of
    their own.

    - `retrieval`, when the call begins: `recall` with what the caller gave, which is the arguments as the prompt shows
      them, or the whole request where it shows none. With a `working_window` the latest calls are recalled as well.
    - `write`, when it has succeeded: `remember` what was asked and answered, or what the extractor makes of it.
    - `flush`, then: `flush_memory`. Later calls see what was written; of a call that raises, nothing stays.
    - `consolidation`, then, if there is a consolidator: `consolidate_memory`.

    What was recalled is not shown to the model: that is for `RecallPrompter`. Tools and the program may perform
    `recall`, `remember` and `forget` themselves, and `MemoryTools` has the model do so. The keeper reaches the store in
    the rules of these operations only, so what a policy refuses, wherever it stands, does not happen: a denied step
    leaves the call without that stage, and a refusal that ends the run ends the call.

    Where the model of an extractor or a consolidator fails, or its reply cannot be decoded, the call ends well all the
    same: what was said is remembered as it is, and the log has a warning. Anything else that they or the store raise
    comes out of the call. The conversation has been kept by then, unless the keeper stands outside of `HistoryBuilder`.
    In a run that has a journal, what was recalled is recalled
    again when the run is resumed, and nothing is written twice; what a call that failed has written stays unseen in the
    store until the run is resumed and the call succeeds.

    Inside `AgentLoop`, anywhere: after `harness(…)`. Of several keepers the innermost is the memory.

    Args:
        store: Keeps the memories.
        scope: Whose they are.
        extractor: Makes memories of a call: a function, `async` or not, or a skill; it takes the text of the request
            and that of the answer, and returns the texts to remember, perhaps none. By default both are remembered as
            they are.
        consolidator: Makes few memories of many: a function or a skill; it takes a list of texts, the oldest first, and
            returns those that take their place. Where it returns none, they stay, and the log has a warning.
        limit: Memories that are recalled at most, unless `recall` says how many; at least 1.
        working_window: Recall the latest calls as well. They are remembered then beside what an extractor makes of
            them.
        consolidate_after: Memories from which on a call that has ended well has them consolidated, at least 2.

    Raises:
        OptionError: An option has a value that it cannot have.

    >>> from effectful_agents import NotHandled, handler, harness
    >>> from effectful_agents.handlers.memory import InMemoryStore, RecallPrompter
    >>> from effectful_agents.testing import ScriptedModel
    >>> @Skill.define
    ... def chat(text: str) -> str:
    ...     '''{text}'''
    ...     raise NotHandled
    >>> model = ScriptedModel("I will remember that.", "Green tea.")
    >>> memory = MemoryKeeper(InMemoryStore(), MemoryScope("acme", user="ann"))
    >>> with handler(harness()), handler(model), handler(memory), handler(RecallPrompter()):
    ...     for text in "My favourite tea is green tea.", "Which tea is my favourite?":
    ...         print(chat(text))
    I will remember that.
    Green tea.
    >>> "My favourite tea is green tea." in model.requests[1]["messages"][-1]["content"]
    True
    """

    def __init__(
        self,
        store: MemoryStore,
        scope: MemoryScope,
        *,
        extractor: Extractor | None = None,
        consolidator: Consolidator | None = None,
        limit: int = 8,
        working_window: WorkingWindow | None = None,
        consolidate_after: int = 50,
    ) -> None:
        if not isinstance(store, MemoryStore):
            raise OptionError(f"`store` is {type(store).__name__}; it is a `MemoryStore`, as `InMemoryStore()` is one.")
        if not isinstance(scope, MemoryScope):
            raise OptionError(f'`scope` is {scope!r}; it is a `MemoryScope("…")`.')
        for name, function in (("extractor", extractor), ("consolidator", consolidator)):
            if function is not None and not callable(function):
                raise OptionError(f"`{name}` is {type(function).__name__}; it is a function, or a skill.")
        if not isinstance(working_window, WorkingWindow | None):
            raise OptionError(f"`working_window` is {working_window!r}; it is a `WorkingWindow(turns)`.")
        check_number("limit", limit, 1)
        check_number("consolidate_after", consolidate_after, 2)
        self.store = store
        self.scope = scope
        self.extractor = extractor
        self.consolidator = consolidator
        self.limit = limit
        self.working_window = working_window
        self.consolidate_after = consolidate_after

    def manifest(self) -> Mapping[str, object]:
        """What it consists of, as plain JSON: the effects that it needs to be granted, and the scope as a digest."""
        consolidates = self.consolidator is not None
        performed = [recall, remember, flush_memory, *([consolidate_memory] if consolidates else [])]
        return {
            "stages": ["retrieval", "write", "flush", *(["consolidation"] if consolidates else [])],
            "effects": [MEMORY_EFFECTS[operation] for operation in performed],
            "store": type(self.store).__name__,
            "scope": self.scope.digest,
            "limit": self.limit,
            "working_window": None if self.working_window is None else self.working_window.turns,
            "extractor": maker_name(self.extractor),
            "consolidator": maker_name(self.consolidator),
            "consolidate_after": self.consolidate_after if consolidates else None,
        }

    @implements(memory_in_use)
    def memory_in_use(self) -> MemoryRules:
        return self

    # --- the stages of a call -----------------------------------------------------------------------------------------

    @implements(call_agent)
    def call_agent(self, skill: Skill, /, *args: Any, **kwargs: Any) -> Any:
        if RememberedCall.running(self) is not None or memory_in_use() is not self:
            return fwd()
        call = RememberedCall.coming(self, lambda: given_text(_as_prompted(skill), args, kwargs))
        with call.entered():
            value = fwd()
            # A call whose request nobody has written was not made here: a journal or a function has answered it.
            if call.request is not None or call.has_written:
                with call.ending():
                    if call.request is not None:
                        self._write(call.request, answer_text(value, skill, args, kwargs))
                    self._publish()
            return value

    @implements(call_user)
    def call_user(self, user_prompt: PromptSection) -> UserMessage:
        call = RememberedCall.running(self)
        if call is not None and call.is_here and call.request is None:
            call.begin(_admitted(request_text(user_prompt)))
            if call.is_in_run:
                call.batch = record(fresh_id, str)
            call.recalled = self._retrieve(_admitted(call.given()) or call.request or "")
        return fwd()

    @implements(recalled)
    def recalled(self) -> Sequence[Memory]:
        call = RememberedCall.running(self)
        return fwd() if call is None else call.recalled if call.is_here else ()

    def _retrieve(self, query: str) -> Sequence[Memory]:
        found, latest = list[Memory](), list[Memory]()
        with _going_without():
            found += recall(query, self.limit)
        if self.working_window is not None:
            with _going_without():
                latest += self.working_window.latest()
        known = {memory.id for memory in found}
        return [*found, *(memory for memory in latest if memory.id not in known)]

    def _write(self, request: str, answer: str) -> None:
        try:
            answer = _admitted(answer)
        except GovernanceRefused:
            return  # it may be answered, and not enter a later conversation
        facts = self._extracted(request, answer)
        if facts is None or self.working_window is not None:
            with _going_without():
                remember(f"Asked: {request}\nAnswered: {answer}", kind=INTERACTION)
        for text in facts or ():
            with _going_without():
                remember(text, kind="fact")

    def _publish(self) -> None:
        with _going_without():
            flush_memory()
        if self.consolidator is not None:
            with _going_without(), going_on("the memories stay as they are, and the next call tries again"):
                consolidate_memory(self.consolidate_after)

    def _extracted(self, request: str, answer: str) -> list[str] | None:
        """What the extractor makes of an exchange; None where there is none, or where its model could not do it."""
        if self.extractor is not None:
            with going_on("what was said is remembered as it is"):
                return made_texts("extractor", self.extractor, request, answer)
        return None

    # --- the rules of the operations, which are all that reaches the store --------------------------------------------

    def recall(
        self, query: str | None = None, limit: int | None = None, *, kind: str | None = None
    ) -> Sequence[Memory]:
        most = self.limit if limit is None else limit
        check_number("limit", most, 0)
        check_text("query", query)
        check_text("kind", kind)

        def recall_memories() -> list[Memory]:
            if query is None:
                return list(self.store.recent(self.scope, most, kind))
            return list(self.store.search(self.scope, safe_text(query), most, kind))

        return record(recall_memories, list[Memory])

    def remember(
        self, text: str, *, kind: str = "note", tags: Collection[str] = (), metadata: Mapping[str, Any] | None = None
    ) -> Memory:
        memory = self._made(text, kind, tags, metadata)
        call = RememberedCall.running(self)
        if call is not None:
            call.write(self.store, self.scope, memory)
            return memory
        call = RememberedCall(self)
        with call.entered():
            call.write(self.store, self.scope, memory)
            flush_memory()
        return memory

    def flush_memory(self) -> int:
        call = RememberedCall.running(self)
        return 0 if call is None else call.flush(self.store, self.scope)

    def consolidate_memory(self, at_least: int = 2) -> Sequence[Memory]:
        if self.consolidator is None:
            raise ConfigurationError(
                "there is nothing that could consolidate memories: give one, `MemoryKeeper(…, consolidator=…)`."
            )

        def read_memories() -> list[Memory]:
            memories = self.store.memories(self.scope, max(at_least, _CONSOLIDATED))
            return list(memories[:_CONSOLIDATED]) if len(memories) >= max(at_least, 1) else []

        old = record(read_memories, list[Memory])
        if not old:
            return []
        # Calls of skills in here are inside of another one, so that they have no stages of their own.
        call = RememberedCall(self)
        with call.entered():
            texts = made_texts("consolidator", self.consolidator, [memory.text for memory in old])
            new = [self._made(text, "summary", (), None) for text in texts]
            if call.has_written:
                flush_memory()
        if not new:
            # A model that is told so by one of them must not make all of them forgotten; for that there is `forget`.
            name = maker_name(self.consolidator)
            _log.warning("the consolidator `%s` gave no text for %d memories, so they stay as they are", name, len(old))
            return []
        return new if self.store.replace(self.scope, [memory.id for memory in old], new) else []

    def forget(self, *ids: str, before: float | None = None, everything: bool = False) -> int:
        if not (ids or before is not None or everything):
            raise OptionError("nothing says what to forget: name identifiers, a time `before`, or `everything=True`.")

        check_forgetting(ids, before)

        def is_meant(memory: Memory) -> bool:
            return everything or memory.id in ids or (before is not None and memory.at < before)

        # Not only where the store is asked: a run that is resumed has remembered them again by now.
        call = RememberedCall.running(self)
        if call is not None:
            call.drop(is_meant)

        def forget_memories() -> int:
            return self.store.forget(self.scope, ids, before=before, everything=everything)

        return record(forget_memories, int)

    def _made(self, text: str, kind: str, tags: Collection[str], metadata: Mapping[str, Any] | None) -> Memory:
        if not isinstance(text, str) or not text.strip():
            raise OptionError(f"what is to be remembered is {text!r}; it is a text, and not an empty one.")
        if not isinstance(kind, str):
            raise OptionError(f"`kind` is {kind!r}; it is a text.")
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
            raise OptionError(f"`tags` is {tags!r}; it is a list of texts.")
        text = safe_text(text)

        def time() -> Any:
            return now()

        at: float = record(time, float)
        # Of the step, and not of what is said: a tool that is called again may say it in other words. It is on disk
        # before anything is written under it, as all that was recorded before.
        id = record(fresh_id, str)
        memory = Memory(id, text, self.scope, at, kind, tuple(tags), dict(metadata or {}))
        check_memories(self.scope, [memory])
        return memory


def _admitted(text: str) -> str:
    """A text as rules for what enters a conversation leave it: what they take out is not to be remembered either."""
    return text_for_reading(admit_message({"role": "user", "content": text})["content"]) if text else ""


def _going_without() -> contextlib.AbstractContextManager[Any]:
    """Have a call go on without a stage that a policy denies; one that is to end the call raises `Denied`."""
    return contextlib.suppress(StepDenied)


def _as_prompted(skill: Skill) -> Skill:
    """A skill whose call is running, with the prompt that it has there."""
    ids = current_ids()
    here = None if ids is None else ids.skill
    return here if here is not None and here == skill else skill
