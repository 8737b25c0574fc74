"""Memory: what a program and its models keep from one call for later ones.

    recall               what is remembered that fits a text, or the latest       (effect `memory_read`)
    remember             something is to be kept                                  (effect `memory_write`)
    forget               something that is kept is deleted                        (effect `memory_write`)
    flush_memory         what was written becomes visible to later calls          (effect `memory_flush`)
    consolidate_memory   many memories become few                                 (effect `memory_consolidate`)
    recalled             what was recalled at the beginning of the running call
      memory_in_use      what the first five come to, when every handler of them has seen them

`handlers.memory.MemoryKeeper` gives them a meaning, with a `MemoryStore` and a `MemoryScope`. Whatever it does to the
store it does by performing one of the first five, once. Policies decide about each of them; a handler that intercepts
one, wherever it stands, sees all of it.

A memory belongs to one scope. Scopes are exact: another scope never sees it, not even one that is wider or narrower.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from effectful_agents.errors import MissingHandlerError, OptionError
from effectful_agents.operations.amending import declare_arguments
from effectful_agents.operations.authority import authorize
from effectful_agents.operations.policy import EffectKind, ProposedEffect, callers, is_decided
from effectful_agents.runtime import Operation

__all__ = [
    "INTERACTION",
    "MEMORY_EFFECTS",
    "Memory",
    "MemoryRules",
    "MemoryScope",
    "MemoryStore",
    "consolidate_memory",
    "flush_memory",
    "forget",
    "memory_in_use",
    "recall",
    "recalled",
    "remember",
]

INTERACTION = "interaction"
"""The kind of a memory that is what was asked in a call, and what came of it."""

_KEEPER = "Install `MemoryKeeper(store, scope)` of `effectful_agents.handlers.memory`, inside of the stack."


@dataclasses.dataclass(frozen=True)
class MemoryScope:
    """Whose memory it is. What is written in a scope is found in that scope, and in no other.

    Args:
        tenant: The customer, organization or installation; never empty.
        user: The person, where each has a memory of their own.
        agent: The agent, where each has one.
        session: The conversation, where each has one.

    Raises:
        OptionError: A part is no text, or has lone surrogates, or `tenant` is empty.

    >>> MemoryScope("acme", user="ann") == MemoryScope("acme")
    False
    """

    tenant: str
    user: str = ""
    agent: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not isinstance(getattr(self, field.name), str):
                raise OptionError(f"`{field.name}` of a MemoryScope is {getattr(self, field.name)!r}; it is a text.")
            try:
                getattr(self, field.name).encode()
            except UnicodeEncodeError as error:
                # In JSON two halves of a character look like the character, and this scope like another one.
                raise OptionError(
                    f"`{field.name}` of a MemoryScope has half a character (a lone surrogate)."
                ) from error
        if not self.tenant:
            raise OptionError("`tenant` of a MemoryScope is empty; name whose memory it is.")

    @functools.cached_property
    def key(self) -> str:
        """The scope as one text in ASCII, unlike that of any other scope.

        >>> MemoryScope("acme", user="ann").key
        '["acme", "ann", "", ""]'
        """
        return json.dumps([self.tenant, self.user, self.agent, self.session])

    @functools.cached_property
    def digest(self) -> str:
        """What stands for the scope where its names are not to be shown: 32 hexadecimal digits."""
        return hashlib.blake2b(self.key.encode(), digest_size=16).hexdigest()


@dataclasses.dataclass(frozen=True)
class Memory:
    """One thing that is remembered.

    Attributes:
        id: What tells it from the others of its scope.
        text: What is remembered.
        scope: Whose memory it is.
        at: When it was written, in seconds since 1970-01-01 UTC.
        kind: What it is: `interaction`, `fact`, `summary`, `note`, or a word of the program's.
        tags: Words of the program's, to find it by.
        metadata: The rest, as plain JSON.
    """

    id: str
    text: str
    scope: MemoryScope
    at: float = 0.0
    kind: str = "note"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class MemoryRules(Protocol):
    """What the operations of memory do, by their names, where a memory is installed."""

    def recall(self, query: str | None, limit: int | None, *, kind: str | None) -> Sequence[Memory]: ...
    def remember(
        self, text: str, *, kind: str, tags: Collection[str], metadata: Mapping[str, Any] | None
    ) -> Memory: ...
    def flush_memory(self) -> int: ...
    def consolidate_memory(self, at_least: int) -> Sequence[Memory]: ...
    def forget(self, *ids: str, before: float | None, everything: bool) -> int: ...


@Operation.define
def memory_in_use() -> MemoryRules | None:
    """What the operations of memory come to here; by default None, and they raise an error.

    Only their default rules perform it, so that a handler of `recall` is asked wherever it stands. To call a rule of it
    by oneself is to pass by whoever decides about that operation.
    """
    return None


def _performed(operation: Operation[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the rule of an operation comes to, once it has been decided that it may be.

    Raises:
        StepDenied: It may not be.
        Denied: It may not, and the call ends.
    """
    name = operation.__name__
    rules = memory_in_use()
    if rules is None:
        raise MissingHandlerError(name, _KEEPER)
    if is_decided():
        bound = inspect.signature(operation).bind(*args, **kwargs)
        bound.apply_defaults()
        effect = ProposedEffect(
            kind=EffectKind(MEMORY_EFFECTS[operation]), name=name, arguments=dict(bound.arguments), callers=callers()
        )
        bound = inspect.BoundArguments(bound.signature, dict(authorize(effect).arguments))
        args, kwargs = bound.args, bound.kwargs
    return getattr(rules, name)(*args, **kwargs)


@Operation.define
def recall(query: str | None = None, limit: int | None = None, *, kind: str | None = None) -> Sequence[Memory]:
    """What is remembered that fits a text, the best first.

    In a run that has a journal, what was found is written down, and found again when the run is resumed.

    Args:
        query: The text, whatever is in it. Where nothing fits, nothing is found: never the latest in its place. None
            gives the latest, the newest first.
        limit: How many at most; None leaves it to whoever handles it.
        kind: Of this kind only.

    Raises:
        OptionError: `limit` is no number from 0.
        StorageError: The store cannot be read.
    """
    return _performed(recall, query, limit, kind=kind)


@Operation.define
def remember(
    text: str, *, kind: str = "note", tags: Collection[str] = (), metadata: Mapping[str, Any] | None = None
) -> Memory:
    """Keep something for later calls.

    In a call it becomes visible when the call has ended well, with `flush_memory`; of one that raises, nothing stays.
    Outside of calls it is flushed at once. In a run that has a journal it is written once, however often the run is
    resumed.

    Args:
        text: What is remembered. Lone surrogates in it are replaced.
        kind: What it is.
        tags: Words to find it by.
        metadata: The rest, as plain JSON.

    Returns:
        The memory as it will be found.

    Raises:
        OptionError: The text is empty, or the metadata is no JSON.
        StorageError: The store cannot be written.
    """
    return _performed(remember, text, kind=kind, tags=tags, metadata=metadata)


@Operation.define
def flush_memory() -> int:
    """Make visible to later calls what was written in the running one, and say how many memories that are.

    `MemoryKeeper` performs it when the outermost call has ended well. What was flushed stays, also if the call fails
    afterwards.

    Raises:
        StorageError: The store cannot be written. Nothing of it is visible then.
    """
    return _performed(flush_memory)


@Operation.define
def consolidate_memory(at_least: int = 2) -> Sequence[Memory]:
    """Put few memories in the place of many, all at once or not at all; return the new ones.

    Args:
        at_least: Where there are fewer memories than this, nothing is done.

    Raises:
        ConfigurationError: There is nothing that could do it: see `MemoryKeeper(consolidator=…)`.
        StorageError: The store cannot be read or written.
    """
    return _performed(consolidate_memory, at_least)


@Operation.define
def forget(*ids: str, before: float | None = None, everything: bool = False) -> int:
    """Delete memories, at once and for good, and say how many they were.

    What was forgotten is not written again, even by a run that is resumed from before.

    Args:
        ids: These, as far as they are of this scope.
        before: Those written before this time, in seconds since 1970-01-01 UTC.
        everything: All of the scope.

    Raises:
        OptionError: Nothing says what to forget, or an identifier or the time is none.
        StorageError: The store cannot be written.
    """
    return _performed(forget, *ids, before=before, everything=everything)


@Operation.define
def recalled() -> Sequence[Memory]:
    """What was recalled when the running call began; by default nothing.

    In a call inside another one that is nothing, too: the request that it was recalled for is another one's.
    """
    return ()


MEMORY_EFFECTS: Mapping[Operation[..., Any], str] = {
    recall: "memory_read",
    remember: "memory_write",
    forget: "memory_write",
    flush_memory: "memory_flush",
    consolidate_memory: "memory_consolidate",
}
"""The operations that reach a store, with the effect that each is."""

for _operation, _effect in MEMORY_EFFECTS.items():
    declare_arguments(_effect, _operation)


@runtime_checkable
class MemoryStore(Protocol):
    """What keeps memories. Threads and tasks may use it at the same time.

    It decides nothing: neither what is worth keeping, nor who may read it.
    """

    def write(self, scope: MemoryScope, memories: Sequence[Memory], *, batch: str = "") -> None:
        """Keep memories, all or none, in their order.

        One whose `id` is there already, or was forgotten, is passed over: it has been written before. One that is
        there and not flushed yet goes over to this batch.

        Args:
            scope: The scope, which is that of each memory.
            memories: The memories.
            batch: Keep them unseen until `flush` is called with this name; empty, and they are visible at once.

        Raises:
            OptionError: A memory is of another scope.
            EncodingError: Its metadata, tags or time are no plain JSON.
            StorageError: They could not be kept.
        """
        ...

    def flush(self, scope: MemoryScope, batch: str) -> int:
        """Make a batch visible, at once, and return how many memories that were."""
        ...

    def search(self, scope: MemoryScope, query: str, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The memories of a scope that fit a text, the best first; none where none does. Any text may be asked for."""
        ...

    def recent(self, scope: MemoryScope, limit: int, kind: str | None = None) -> Sequence[Memory]:
        """The latest memories of a scope, the newest first."""
        ...

    def memories(self, scope: MemoryScope, limit: int | None = None) -> Sequence[Memory]:
        """The memories of a scope, the oldest first: by their time, then in the order in which they were written.

        Args:
            scope: The scope.
            limit: How many at most; None gives all.
        """
        ...

    def replace(self, scope: MemoryScope, ids: Collection[str], memories: Sequence[Memory]) -> bool:
        """Put memories in the place of others, all or none.

        Returns:
            Whether it is done, now or already before. False: one of those to be replaced is not there any more, and
            nothing has changed.
        """
        ...

    def forget(
        self, scope: MemoryScope, ids: Collection[str] = (), *, before: float | None = None, everything: bool = False
    ) -> int:
        """Delete memories of a scope, those that are not flushed yet as well; return how many were visible."""
        ...
