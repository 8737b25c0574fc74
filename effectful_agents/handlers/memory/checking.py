"""What the parts of this family hold their arguments to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from effectful_agents.errors import EncodingError, OptionError
from effectful_agents.operations.memory import Memory, MemoryScope

__all__ = ["check_memories", "check_number", "check_scope"]


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
