"""Scorers: functions, and skills, that say how good an output is.

A scorer is called with what its parameters name. That is the whole protocol, and it is the same for a function, an
`async def`, and a skill, whose prompt then has the fields it asks for:

    output     what the skill returned
    expected   what the case expects; a scorer that has no default for it is not asked about cases without one
    case       the `Case`
    row        the `Row` so far: output, messages, usage, seconds
    messages   the conversation of the call
    usage      the tokens of the call
    seconds    how long the call took
    …          an argument of the skill, by the name of its parameter
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import numbers
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from effectful_agents.encoding import encode
from effectful_agents.errors import AgentsError, OptionError
from effectful_agents.handlers.loop.run import completed

if TYPE_CHECKING:
    from effectful_agents.testing.evaluation.cases import Case
    from effectful_agents.testing.evaluation.rows import Row

__all__ = ["LARGEST", "Score", "Scorer", "Scorers", "Scoring", "scorings_of"]

type Score = bool | float | Mapping[str, bool | float | str]
"""What a scorer returns: whether it is right, a number, or several by their names; a text among them is a note."""

type Scorer = Callable[..., Score | Awaitable[Score] | Any]
"""A function or a skill that returns a `Score`, or an object whose fields are one, as a judge's answer may be."""

type Scorers = Scorer | Sequence[Scorer] | Mapping[str, Scorer]
"""Scorers in any form that `evaluate` takes."""

_OF_A_ROW: Mapping[str, Callable[[Row[Any]], Any]] = {
    "output": lambda row: row.output,
    "expected": lambda row: row.case.expected,
    "case": lambda row: row.case,
    "row": lambda row: row,
    "messages": lambda row: row.messages,
    "usage": lambda row: row.usage,
    "seconds": lambda row: row.seconds,
}


LARGEST = 1e300
"""The largest score."""


@dataclasses.dataclass(frozen=True)
class Scoring:
    """A scorer, and how it is called.

    Attributes:
        name: The name of its score.
        function: The scorer.
        wanted: The parameters that are given to it.
    """

    name: str
    function: Scorer
    wanted: tuple[inspect.Parameter, ...]

    def applies_to(self, case: Case) -> bool:
        """Whether the case has what it needs."""
        return case.has_expected or not any(
            each.name == "expected" and each.default is each.empty for each in self.wanted
        )

    def score(self, row: Row[Any], signature: inspect.Signature | None) -> dict[str, bool | float | str]:
        """Ask it about a row.

        Raises:
            Exception: What it raised.
            TypeError: It returned what is no score.
            ValueError: It returned a number that is none.
        """
        given = _arguments(row.case, signature)
        by_position: list[Any] = []
        by_name: dict[str, Any] = {}
        for parameter in self.wanted:
            if parameter.name == "expected" and not row.case.has_expected:
                continue  # it has a default for that
            of_row = _OF_A_ROW.get(parameter.name)
            value = given[parameter.name] if of_row is None else of_row(row)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                by_position.append(value)
            else:
                by_name[parameter.name] = value
        return _read(self.name, completed(self.function, tuple(by_position), by_name))


def scorings_of(given: Scorers, signature: inspect.Signature | None, cases: Iterable[Case]) -> list[Scoring]:
    """How the scorers of an evaluation are called.

    Raises:
        OptionError: One wants what there is not, or has the name of another one.
    """
    if callable(given):
        pairs = [("", given)]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        pairs = [("", scorer) for scorer in given]
    known = {**_OF_A_ROW, **({} if signature is None else signature.parameters)}
    scorings: list[Scoring] = []
    for number, (called, function) in enumerate(pairs, 1):
        if not callable(function):
            raise OptionError(f"a scorer is {function!r}; it is a function or a skill.")
        own = str(getattr(function, "__name__", type(function).__name__))
        name = called or (f"scorer {number}" if own == "<lambda>" else own)
        if any(name == other.name for other in scorings):
            raise OptionError(f"two scorers are called `{name}`; give them names: `scorers={{'{name}': …, …}}`.")
        scorings.append(Scoring(name, function, tuple(_wanted(name, function, known))))
    cases = list(cases)
    for scoring in scorings:
        if cases and not any(map(scoring.applies_to, cases)):
            raise OptionError(f"the scorer `{scoring.name}` wants `expected`, and no case has it.")
    return scorings


def _wanted(name: str, function: Scorer, known: Mapping[str, Any]) -> Iterable[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise OptionError(f"nobody knows what the scorer `{name}` takes; wrap it: `lambda output: …`.") from None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in known:
            yield parameter
        elif parameter.default is parameter.empty:
            near = difflib.get_close_matches(parameter.name, known)
            meant = f" Is `{near[0]}` meant?" if near else ""
            raise OptionError(
                f"the scorer `{name}` wants `{parameter.name}`, which is nothing that is known of a case.{meant} "
                f"There are: {', '.join(f'`{one}`' for one in known)}."
            )


def _arguments(case: Case, signature: inspect.Signature | None) -> Mapping[str, Any]:
    if signature is None:
        return {}
    bound = signature.bind(*case.args, **case.kwargs)
    bound.apply_defaults()
    return bound.arguments


# --- what they return -------------------------------------------------------------------------------------------------


def _read(name: str, value: Any) -> dict[str, bool | float | str]:
    number = _number(value)
    if number is not None:
        return {name: number}
    if not isinstance(value, Mapping):
        value = _fields(value)
    scores: dict[str, bool | float | str] = {}
    for key, part in value.items():
        if not isinstance(key, str) or not key:
            raise TypeError(f"it returned a mapping with the key {key!r}; the names of scores are texts")
        number = part if isinstance(part, str) else _number(part)
        if number is None:
            raise TypeError(f"it returned a mapping in which `{key}` is {type(part).__name__}; {_ALLOWED}")
        scores[f"{name}.{key}"] = number
    return scores


_ALLOWED = "a score is True or False, a number, or a mapping of those by their names"


def _fields(value: Any) -> Mapping[str, Any]:
    """The fields of an object, such as the answer of a judge."""
    try:
        encoded = encode(value)
    except AgentsError:
        encoded = None
    if not isinstance(encoded, dict):
        raise TypeError(f"it returned {_shown(value)}; {_ALLOWED}")
    return encoded


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:39] + '…'!r}"
    return "None" if value is None else f"an object of the class `{type(value).__name__}`"


def _number(value: Any) -> bool | float | None:
    """A score as a number; None where it is none."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, numbers.Real | Decimal):
        if not type(value).__module__.startswith("numpy") or getattr(value, "shape", None) != ():
            return None
        value = value.item()
        if isinstance(value, bool):
            return value
        if not isinstance(value, numbers.Real):
            return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"it returned {number}, which has no place among numbers")
    if abs(number) > LARGEST:
        raise ValueError(f"it returned {number}; a score is at most {LARGEST:g}, or sums of them have no place")
    return number
