"""Copies of what is evaluated: so that no call finds what another one has left.

An agent is copied wherever it is found: as the receiver of what is called, among what a `functools.partial` holds, and
among the arguments of a case. What a function knows by a name of its own, in a closure or a module, is not seen here.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from collections.abc import Callable, Iterable
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.testing.evaluation.cases import Case
from effectful_agents.testing.evaluation.rows import Row
from effectful_agents.types import Agent, Tool

__all__ = ["check_agents", "own_case", "own_row", "own_skill", "prepared"]

type _Memo = dict[int, Any]


def prepared(skill: Any) -> Callable[..., Any]:
    """The skill as it is called: a method of an agent as that of a copy, which stays as the agent is now.

    The copy of an agent that is kept somewhere is not kept: no case writes to what others read.

    Raises:
        OptionError: It cannot be called, or is a method of an agent that cannot be copied.
    """
    if not callable(skill):
        raise OptionError(f"`evaluate` takes a skill, or a function that calls skills; this is {type(skill).__name__}.")
    return _checked(own_skill, skill)


def own_skill(skill: Any, memo: _Memo | None = None) -> Any:
    """What is called, for one call: with its own agents.

    Raises:
        Exception: An agent cannot be copied.
    """
    memo = {} if memo is None else memo
    if isinstance(skill, functools.partial):
        args = [_part(each, memo) for each in skill.args]
        return functools.partial(
            own_skill(skill.func, memo), *args, **{name: _part(each, memo) for name, each in skill.keywords.items()}
        )
    return _copied(skill, memo) if _agent_of(skill) is not None else skill


def own_case(case: Case) -> Case:
    """The case with its own arguments, and what it expects.

    What cannot be copied, as a lock or a connection, stays what it is, and is shared.

    >>> case = Case([1, 2], expected=[2])
    >>> own_case(case) == case, own_case(case).args[0] is case.args[0]
    (True, False)
    """
    return _own_case(case, {})


def own_row(row: Row[Any]) -> Row[Any]:
    """The row for one scorer: with its own case, output and conversation, where they can be copied."""
    memo: _Memo = {}
    messages = tuple(_part(each, memo) for each in row.messages)
    return dataclasses.replace(row, case=_own_case(row.case, memo), output=_part(row.output, memo), messages=messages)


def check_agents(cases: Iterable[Case]) -> None:
    """Look whether the agents among the arguments can be copied, before anything is asked.

    Raises:
        OptionError: One cannot.
    """
    for case in cases:
        for value in (*case.args, *case.kwargs.values()):
            if _agent_of(value) is not None:
                _checked(own_skill, value)


def _own_case(case: Case, memo: _Memo) -> Case:
    own = case.named(case.name)
    object.__setattr__(own, "args", tuple(_part(each, memo) for each in case.args))
    object.__setattr__(own, "kwargs", {name: _part(each, memo) for name, each in case.kwargs.items()})
    object.__setattr__(own, "expected", _part(case.expected, memo))
    object.__setattr__(own, "metadata", _part(case.metadata, memo))
    return own


def _part(value: Any, memo: _Memo) -> Any:
    if _agent_of(value) is not None or isinstance(value, functools.partial):
        return own_skill(value, memo)
    try:
        return _copied(value, memo)
    except Exception:
        return value  # shared, as the page says: a lock, a connection, an open file


def _agent_of(value: Any) -> Agent | None:
    """The agent that a value is, or is a method of."""
    if isinstance(value, Agent):
        return value
    receiver = value.receiver if isinstance(value, Tool) else None
    if isinstance(value, types.MethodType):
        receiver = value.__self__
    return receiver if isinstance(receiver, Agent) else None


def _copied(value: Any, memo: _Memo) -> Any:
    own = copy.deepcopy(value, memo)
    # Of agents, those too that stand deep in a value: what is kept of them is read, and stays as it is.
    for original, agent in [(key, each) for key, each in memo.items() if isinstance(each, Agent)]:
        if agent.__persistent__ and original != id(agent):
            len(agent.__history__)  # loads what is kept
            object.__setattr__(agent, "__agent_id__", None)
    return own


def _checked(copying: Callable[[Any], Any], value: Any) -> Any:
    try:
        return copying(value)
    except Exception as error:
        agent = _agent_of(value)
        name = "Bot" if agent is None else type(agent).__name__
        raise OptionError(
            f"each case is asked of its own copy of the agent, and a `{name}` cannot be copied "
            f"({type(error).__name__}: {error}). Give a function that makes it: `lambda text: Bot().send(text)`."
        ) from error
