"""What is known of a call that the memory goes along with."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Generator, Sequence
from typing import Any

from effectful_agents.operations.memory import Memory, MemoryScope, MemoryStore
from effectful_agents.operations.steps import StepIds, current_ids

__all__ = ["RememberedCall"]

_call: contextvars.ContextVar[RememberedCall | None] = contextvars.ContextVar(
    "effectful_agents_remembered_call", default=None
)
"""The outermost call that the code is in, or what stands for one."""


class RememberedCall:
    """An outermost call of a skill, with what it has recalled and written; calls inside it share it.

    Args:
        keeper: The handler that it belongs to.
        depth: How many calls it is nested in; None for what is no call of a skill.
        given: Says what the caller gave.

    Attributes:
        request: What the user asked; None until that is known, and for good where nobody writes it down.
        recalled: What was recalled for it.
        batch: The name under which the store has what was written, in a run that has a journal.
    """

    def __init__(self, keeper: object, depth: int | None = None, given: Callable[[], str] = str) -> None:
        self.request: str | None = None
        self.recalled: Sequence[Memory] = ()
        self.batch = ""
        self.given = given
        self._keeper = keeper
        self._depth = depth
        self._is_ending = depth is None
        self._ids: StepIds | None = None
        self._pending: list[Memory] = []
        self._outer: RememberedCall | None = None
        self._ended = False

    @classmethod
    def coming(cls, keeper: object, given: Callable[[], str]) -> RememberedCall:
        """The call of a skill that begins next."""
        ids = current_ids()
        return cls(keeper, 0 if ids is None else ids.depth_inside, given)

    @classmethod
    def running(cls, keeper: object) -> RememberedCall | None:
        """The call of a keeper that the code is in; a task or a thread may outlive it."""
        call = _call.get()
        return call if call is not None and call._keeper is keeper and not call._ended else None

    @classmethod
    def is_ending(cls) -> bool:
        """Whether the code makes memories of a call, or of memories; skills may be called for that."""
        call = _call.get()
        return call is not None and call._is_ending and not call._ended

    @contextlib.contextmanager
    def entered(self) -> Generator[None]:
        """Have the code be in it."""
        self._outer = outer = _call.get()
        _call.set(self)
        try:
            yield
        finally:
            self._ended = True
            _call.set(outer)

    @property
    def is_here(self) -> bool:
        """Whether the code is in the call itself, and not in one inside it."""
        ids = current_ids()
        return self._depth == (0 if ids is None else ids.depth)

    def begin(self, request: str) -> None:
        """Note what it is asked."""
        ids = current_ids()
        self.request = request
        # Behind all steps of the call, whatever their number is.
        self._ids = None if ids is None else ids.below(f"{ids.prefix}memory")

    def ending(self) -> contextlib.AbstractContextManager[Any]:
        """Where what is done when it has ended gets its places among the steps; nothing is recalled in there."""
        self.recalled, self._is_ending = (), True
        return contextlib.nullcontext() if self._ids is None else self._ids

    @property
    def is_in_run(self) -> bool:
        """Whether a journal is written of it."""
        return self._ids is not None and self._ids.run_id != ""

    def write(self, store: MemoryStore, scope: MemoryScope, memory: Memory) -> None:
        """Keep a memory, which is not visible before `flush`."""
        if self.batch:
            # A run that is resumed does not call again the tool that has written it: the store has to have it.
            store.write(scope, [memory], batch=self.batch)
        else:
            self._pending.append(memory)

    def drop(self, is_meant: Callable[[Memory], bool]) -> None:
        """Have memories not be kept that wait to be flushed, also those of calls that this one is inside of."""
        call: RememberedCall | None = self
        while call is not None:
            if call._keeper is self._keeper:
                call._pending[:] = [memory for memory in call._pending if not is_meant(memory)]
            call = call._outer

    @property
    def has_written(self) -> bool:
        """Whether something waits to be flushed that the store does not have."""
        return bool(self._pending)

    def flush(self, store: MemoryStore, scope: MemoryScope) -> int:
        """Make visible what was written, and return how many memories that are."""
        memories = list(self._pending)
        if memories:
            store.write(scope, memories)
        del self._pending[: len(memories)]
        return len(memories) + (store.flush(scope, self.batch) if self.batch else 0)
