"""What the parts of this family hold their arguments to."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Sequence
from typing import Any

from effectful_agents.errors import EncodingError, OptionError
from effectful_agents.operations.memory import Memory, MemoryScope

__all__ = ["check_forgetting", "check_memories", "check_number", "check_scope", "check_text"]


def check_scope(scope: MemoryScope, memories: Sequence[Memory]) -> None:
    """Refuse memories of another scope than the one that they are written in."""
    for memory in memories:
        if memory.scope != scope:
            raise OptionError(f"the memory `{memory.id}` is of another scope than the one that it is to be written in.")


def check_memories(scope: MemoryScope, memories: Sequence[Memory]) -> None:
    """Refuse memories of another scope, and those that could not be kept as they are."""
    check_scope(scope, memories)
    for memory in memories:
        try:
            kept = json.loads(json.dumps([memory.at, list(memory.tags), memory.metadata], allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise EncodingError(f"what stands beside the memory `{memory.id}` is no plain JSON: {error}.") from error
        if kept != [memory.at, list(memory.tags), memory.metadata]:
            raise EncodingError(f"what stands beside the memory `{memory.id}` is another one when it is read as JSON.")


def check_number(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` is {value!r}; it is a number, at least {least}.")
    if value > sys.maxsize:
        raise OptionError(f"`{name}` is larger than any number of memories.")


def check_text(name: str, value: Any) -> None:
    """Refuse what is neither a text nor None."""
    if not isinstance(value, str | None):
        raise OptionError(f"`{name}` is {value!r}; it is a text.")


def check_forgetting(ids: Collection[str], before: float | None) -> None:
    """Refuse identifiers and times that are none: what is deleted does not come back."""
    if isinstance(ids, str | bytes) or not all(isinstance(id, str) for id in ids):
        raise OptionError(f"what is to be forgotten is {ids!r}; it is identifiers of memories, which are texts.")
    if before is None:
        return
    # SQLite compares a number with a text, too, and every number is less.
    if not isinstance(before, int | float) or isinstance(before, bool) or math.isnan(before):
        raise OptionError(f"`before` is {before!r}; it is a number of seconds since 1970, as `time.time()` gives it.")
