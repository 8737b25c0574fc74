"""The latest calls, as they were, beside what a search finds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from effectful_agents.handlers.memory.checking import check_number
from effectful_agents.operations.memory import INTERACTION, Memory, recall

__all__ = ["WorkingWindow"]


@dataclasses.dataclass(frozen=True)
class WorkingWindow:
    """Recall the latest calls of the scope as well, whatever they were about.

    Args:
        turns: How many calls, at least 1.

    Raises:
        OptionError: `turns` is no such number.

    >>> WorkingWindow(3).turns
    3
    """

    turns: int

    def __post_init__(self) -> None:
        check_number("turns", self.turns, 1)

    def latest(self) -> Sequence[Memory]:
        """The latest calls that are remembered, the newest first."""
        return recall(None, self.turns, kind=INTERACTION)
