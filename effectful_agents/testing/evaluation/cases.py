"""The cases of an evaluation: what a skill is called with, and what is expected of it."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, override

from effectful_agents.encoding import decode
from effectful_agents.errors import AgentsError, OptionError

__all__ = ["Case", "Cases", "read_cases", "signature_of"]

_KEYS = ("name", "input", "args", "kwargs", "expected", "metadata")
_LONGEST_NAME = 40


@dataclasses.dataclass(frozen=True, init=False, repr=False)
class Case:
    """One case: the arguments of a call, and what is known about it. It is written as the call would be.

    Args:
        *args: Arguments of the skill.
        name: What it is called in tables; by default its arguments, where these are short, or else its number.
        expected: What the skill should return, in whatever form the scorers take it.
        metadata: What else is known: a difficulty, a source. Scorers and tables of yours may look at it.
        **kwargs: Arguments by keyword. A parameter that is called like one of the above is given by position.

    Attributes:
        has_expected: Whether `expected` was given; where it was not, it is None.

    >>> case = Case("What is 2 + 2?", expected="4", name="sum")
    >>> case
    Case('What is 2 + 2?', name='sum', expected='4')
    >>> case.args, case.has_expected, Case("Why?").has_expected
    (('What is 2 + 2?',), True, False)
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    name: str
    expected: Any
    metadata: Mapping[str, Any]
    has_expected: bool

    def __init__(
        self,
        /,
        *args: Any,
        name: str = "",
        expected: Any = ...,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(name, str):
            raise OptionError(f"the `name` of a case is {name!r}; it is a text.")
        given = {
            "args": args,
            "kwargs": kwargs,
            "name": name,
            "expected": None if expected is ... else expected,
            "metadata": dict(metadata or {}),
            "has_expected": expected is not ...,
        }
        for attribute, value in given.items():
            object.__setattr__(self, attribute, value)

    @override
    def __repr__(self) -> str:
        parts = [repr(each) for each in self.args]
        parts += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        parts += [f"name={self.name!r}"] if self.name else []
        parts += [f"expected={self.expected!r}"] if self.has_expected else []
        parts += [f"metadata={self.metadata!r}"] if self.metadata else []
        return f"Case({', '.join(parts)})"

    def named(self, name: str) -> Case:
        """The case, by another name."""
        case = Case()
        for field in dataclasses.fields(self):
            object.__setattr__(case, field.name, name if field.name == "name" else getattr(self, field.name))
        return case


type Cases = Iterable[Case | Mapping[str, Any] | tuple[Any, ...] | Any] | str | os.PathLike[str]
"""Cases in any form that `evaluate` takes."""


def read_cases(given: Cases, skill: Callable[..., Any], limit: int | None = None) -> list[Case]:
    """The cases of an evaluation, each with a name of its own.

    Args:
        given: See `evaluate`.
        skill: What they are for: their arguments have to fit it.
        limit: How many of them; None for all.

    Raises:
        OptionError: One of them is no case, or its arguments do not fit.
    """
    signature = signature_of(skill)
    if isinstance(given, str | os.PathLike):
        found = _from_file(Path(given), signature)
    elif isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        found = ((f"case {number}", _case_of(each)) for number, each in enumerate(given, 1))
    else:
        raise OptionError(
            f"`cases` is {type(given).__name__}; give a list of `Case`, or the path of a file of JSON lines."
        )
    cases, taken = [], set()
    for place, case in itertools.islice(found, limit):
        if signature is not None:
            _check(case, signature, place, getattr(skill, "__name__", "the skill"))
        name = _free(" ".join(case.name.split()) or _shown(case) or place, taken)
        taken.add(name)
        cases.append(case.named(name))
    return cases


def signature_of(skill: Callable[..., Any]) -> inspect.Signature | None:
    """What a skill takes; None where nobody knows."""
    for eval_str in (True, False):  # what a type checker alone knows cannot be evaluated
        with contextlib.suppress(Exception):
            return inspect.signature(skill, eval_str=eval_str)
    return None


def _case_of(given: Any) -> Case:
    if isinstance(given, Case):
        return given
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if type(given) is not tuple:  # a named tuple is an argument like any other
        return Case(given)
    if len(given) != 2:
        raise OptionError(
            f"a case is a tuple of {len(given)}; a tuple is `(input, expected)`. Write `Case(…)` for anything else."
        )
    return Case(given[0], expected=given[1])


def _from_mapping(given: Mapping[str, Any]) -> Case:
    if unknown := [key for key in given if key not in _KEYS]:
        raise OptionError(f"a case has the key {unknown[0]!r}; it may have {', '.join(f'`{key}`' for key in _KEYS)}.")
    if "input" in given and ("args" in given or "kwargs" in given):
        raise OptionError("a case has `input`, the only argument, and `args` or `kwargs` as well; give one of them.")
    args, kwargs = given.get("args", ()), given.get("kwargs", {})
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise OptionError("`args` of a case is a list, and `kwargs` has keyword arguments by their names.")
    made = Case(
        *([given["input"]] if "input" in given else args),
        name=given.get("name") or "",
        expected=given.get("expected", ...),
        metadata=given.get("metadata"),
    )
    # Not as keywords of `Case`: the skill may have a parameter that is called `name`.
    object.__setattr__(made, "kwargs", dict(kwargs))
    return made


# --- files ------------------------------------------------------------------------------------------------------------


def _from_file(path: Path, signature: inspect.Signature | None) -> Iterator[tuple[str, Case]]:
    try:
        file = path.open(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"the cases cannot be read: {error}") from error
    with file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    given = json.loads(line)
                    if not isinstance(given, dict):
                        raise OptionError("a case is an object.")
                    yield f"case {number}", _decoded(_from_mapping(given), signature)
                except (AgentsError, ValueError) as error:
                    raise OptionError(f"line {number} of {path.name}: {error}") from error


def _decoded(case: Case, signature: inspect.Signature | None) -> Case:
    """The case with its arguments, and what is expected, as the types of the skill have them."""
    if signature is None:
        return case
    try:
        bound = signature.bind(*case.args, **case.kwargs)
    except TypeError:
        return case  # which is said later
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            bound.arguments[name] = _as_type(value, parameter.annotation, f"`{name}`")
    object.__setattr__(case, "args", bound.args)
    object.__setattr__(case, "kwargs", bound.kwargs)
    if case.has_expected:
        object.__setattr__(case, "expected", _or_as_it_is(case.expected, signature.return_annotation))
    return case


def _as_type(value: Any, tp: Any, what: str) -> Any:
    if tp is inspect.Parameter.empty or tp is Any or isinstance(tp, str):
        return value
    try:
        return decode(json.dumps(value), tp)
    except ValueError as error:
        raise OptionError(f"{what} does not fit: {error}") from error


def _or_as_it_is(value: Any, tp: Any) -> Any:
    # What is expected need not be an answer: words that it should have, say.
    try:
        return _as_type(value, tp, "`expected`")
    except AgentsError:
        return value


# --- names ------------------------------------------------------------------------------------------------------------


def _check(case: Case, signature: inspect.Signature, place: str, skill: str) -> None:
    try:
        signature.bind(*case.args, **case.kwargs)
    except TypeError as error:
        name = f" (`{case.name}`)" if case.name else ""
        raise OptionError(
            f"{place}{name} does not fit `{skill}{signature}`: {error}. Nothing has been asked."
        ) from None


def _shown(case: Case) -> str:
    """The arguments, where they are plain and short enough for a name."""
    values = [*case.args, *case.kwargs.values()]
    if not all(isinstance(value, str | int | float | bool | None) for value in values):
        return ""
    text = " ".join(", ".join(map(str, values)).split())
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(free for number in itertools.count(2) if (free := f"{name} ({number})") not in taken)
