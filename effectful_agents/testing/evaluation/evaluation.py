"""What an evaluation came to."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload, override

from effectful_agents.messages import Usage
from effectful_agents.testing.evaluation import files, tables
from effectful_agents.testing.evaluation.rows import Row

__all__ = ["Evaluation", "Summary", "mean"]


@dataclasses.dataclass(frozen=True)
class Summary:
    """One score, over all cases that have it.

    Attributes:
        mean: The mean over the cases, each by the mean of its trials. Of True and False, the share of True.
        error: The standard error of that mean, of the cases as a sample of those that could have been; None for less
            than two.
        spread: The standard deviation between trials of the same case, over all cases; None where none was repeated.
        cases: How many cases have it. A case at which the skill or the scorer failed has none.
    """

    mean: float
    error: float | None
    spread: float | None
    cases: int


@dataclasses.dataclass(frozen=True)
class Evaluation[T]:
    """What came of a table of cases: `evaluate` makes it. Printed, it is a table, with the failures first.

    Attributes:
        name: What was evaluated.
        rows: A row for each case and trial, in the order of the cases, whatever ended first.
    """

    name: str
    rows: Sequence[Row[T]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row[T]]:
        return iter(self.rows)

    @property
    def failures(self) -> list[Row[T]]:
        """The rows at which the skill or a scorer failed."""
        return [row for row in self.rows if row.failures]

    @property
    def usage(self) -> Usage:
        """The tokens of all calls; those of judges are not counted."""
        return sum((row.usage for row in self.rows), Usage())

    @property
    def cost(self) -> float | None:
        """What all calls cost, in US dollars; None where a price is not known."""
        costs = [row.cost for row in self.rows if row.cost is not None]
        return math.fsum(costs) if len(costs) == len(self.rows) else None

    @functools.cached_property
    def _summary(self) -> Mapping[str, Summary]:
        values: dict[str, dict[str, list[float]]] = {}
        for row in self.rows:
            for name, value in row.scores.items():
                values.setdefault(name, {}).setdefault(row.case.name, []).append(float(value))
        return {name: _summarized(list(by_case.values())) for name, by_case in values.items()}

    def summary(self) -> Mapping[str, Summary]:
        """Each score over all cases, by its name."""
        return self._summary

    def write(self, path: str | os.PathLike[str], *, messages: bool = False) -> None:
        """Write the rows to a file of JSON lines, one a row.

        A value that has no form in JSON is written as its `repr`, marked as that. A file that is there stays whole if
        something goes wrong: it is replaced when all is written.

        Args:
            path: The file; one that is there is replaced.
            messages: Whether the conversations are written too.

        Raises:
            OSError: The file cannot be written.
        """
        files.write(path, self.name, self.rows, messages=messages)

    @overload
    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Evaluation[Any]: ...
    @overload
    @classmethod
    def read[V](cls, path: str | os.PathLike[str], output: type[V]) -> Evaluation[V]: ...
    @overload
    @classmethod
    def read(cls, path: str | os.PathLike[str], output: Any) -> Evaluation[Any]: ...
    @classmethod
    def read(cls, path: str | os.PathLike[str], output: Any = Any) -> Evaluation[Any]:
        """Read what `write` has written.

        Args:
            path: The file.
            output: The type of the outputs; by default they are what JSON has: texts, numbers, lists, dictionaries.

        Raises:
            StorageError: The file cannot be read, or a line of it is no row.
        """
        return cls(*files.read(path, output))

    @override
    def __str__(self) -> str:
        return tables.plain(self)

    def __rich__(self) -> Any:
        return tables.rich(self)


def _summarized(by_case: Sequence[Sequence[float]]) -> Summary:
    means = [mean(trials) for trials in by_case]
    repeated = [trials for trials in by_case if len(trials) > 1]
    spread = None
    if repeated:
        inside = math.hypot(*(off for trials in repeated for off in _deviations(trials)))
        spread = inside / math.sqrt(sum(len(trials) - 1 for trials in repeated))
    count = len(means)
    error = math.hypot(*_deviations(means)) / math.sqrt((count - 1) * count) if count > 1 else None
    return Summary(mean(means), error, spread, count)


def mean(values: Sequence[float]) -> float:
    """The mean of at least one number."""
    return math.fsum(values) / len(values)


def _deviations(values: Sequence[float]) -> list[float]:
    middle = mean(values)
    return [value - middle for value in values]
