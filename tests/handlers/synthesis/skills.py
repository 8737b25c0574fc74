"""Skills and a tool that tests have a model answer by writing a body."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import annotated_types

from effectful_agents import Agent, NotHandled, Skill, Tool

__all__ = ["HERE", "double", "pick", "through_helper"]


LIMIT = 3
"""Seen by code that a model writes for them, as is what follows."""


def through_helper(n: int) -> int:
    return HERE.factorial(n)


def defined() -> Any:
    # Not in the module itself, where pytest would run their examples.
    @Skill.define
    def factorial(n: int) -> int:
        """The factorial of {n}.

        >>> factorial(3)
        6
        >>> factorial(0)
        1
        """
        raise NotHandled

    class Walker(Agent):
        """A walker."""

        def __init__(self, step: int = 1) -> None:
            self.step = step

        @Skill.define
        def distance(self, steps: int) -> int:
            """How far it is after {steps} steps.

            >>> Walker().distance(3)
            3
            >>> Walker(2).distance(3)
            6
            """
            raise NotHandled

        @classmethod
        @Skill.define
        def count(cls, word: str) -> int:
            """Count {word}."""
            raise NotHandled

        @staticmethod
        @Skill.define
        def length(word: str) -> int:
            """The length of {word}."""
            raise NotHandled

    return SimpleNamespace(factorial=factorial, Walker=Walker)


HERE = defined()


@Skill.define
def pick(numbers: list[int], least: int = 2) -> Annotated[int, annotated_types.Gt(0)]:
    """A number of {numbers} of at least {least}."""
    raise NotHandled


@Tool.define
def double(n: int) -> int:
    """Twice a number."""
    return 2 * n
