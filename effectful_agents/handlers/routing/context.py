"""What a router goes by, and the names that it deals in."""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import Any

import pydantic

from effectful_agents.errors import ConfigurationError, OptionError
from effectful_agents.types import Scope, Skill, Tool

__all__ = ["RoutingContext", "check_known", "names_of"]


@dataclasses.dataclass(frozen=True)
class RoutingContext:
    """What is known when the tools of a turn are chosen.

    Attributes:
        text: What the call says: the texts and numbers in its arguments, one after the other; where it has no
            arguments, the prompt of the skill.
        skill: The skill that is called.
        tools: The catalogue: the tools that could be offered, in their order.
        turn: Which turn of the call it is; the first is 1. An attempt that is repeated is the same turn.
        arguments: The arguments of the call by name, without the agent.
    """

    text: str
    skill: Skill[..., Any]
    tools: tuple[Tool, ...]
    turn: int
    arguments: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools of the catalogue."""
        return tuple(dict.fromkeys(tool.__name__ for tool in self.tools))

    @classmethod
    def of_turn(cls, env: Scope, tools: Iterable[Tool], turn: int) -> RoutingContext:
        """What is known in a turn of the call with this scope."""
        skill = env.skill
        receiver = None if skill.receiver is None else next(iter(skill.function.__signature__.parameters))
        arguments = {name: value for name, value in env.arguments.items() if name != receiver}
        text = "\n".join(_texts(arguments, _DEEPEST)) if arguments else skill.prompt
        return cls(text, skill, tuple(tools), turn, arguments)


_DEEPEST = 12
"""How deep texts are looked for. A value may hold itself."""


def _texts(value: Any, depth: int) -> Iterator[str]:
    """The texts and numbers in a value; in any process the same, in the same order."""
    if depth < 0:
        return
    parts: Iterable[Any] = ()
    match value:
        case enum.Enum():
            parts = (value.value,)
        case str():
            yield value
        case int() | float():
            yield str(value)
        case Mapping():
            parts = value.values()
        case list() | tuple():
            parts = value
        case Set():
            yield from sorted(text for part in value for text in _texts(part, depth - 1))
        case pydantic.BaseModel():
            parts = (part for _, part in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = (getattr(value, field.name, None) for field in dataclasses.fields(value))
    for part in parts:
        yield from _texts(part, depth - 1)


def names_of(given: Any, what: str) -> tuple[str, ...]:
    """The names in a collection of tools and of names of tools.

    Raises:
        OptionError: It is something else.
    """
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        names = [one.__name__ if isinstance(one, Tool) else one for one in given]
        if all(isinstance(name, str) for name in names):
            return tuple(dict.fromkeys(names))
    raise OptionError(f"{what} is {given!r}; it is a collection of tools, or of their names.")


def check_known(names: Iterable[str], known: Collection[str], what: str, mend: str) -> None:
    """Refuse names that nobody knows.

    Raises:
        ConfigurationError: There is such a name; it is named, and what it may have been meant for.
    """
    unknown = [name for name in names if name not in known]
    if not unknown:
        return
    alike = difflib.get_close_matches(unknown[0], known, n=1)
    hint = f" Was {alike[0]!r} meant?" if alike else ""
    listed = ", ".join(map(repr, unknown))
    raise ConfigurationError(f"{what} names {listed}, and there is no such tool.{hint} {mend}")
