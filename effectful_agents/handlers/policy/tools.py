"""Which tools a policy means when it names some."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.operations.policy import EffectKind, ProposedEffect
from effectful_agents.types import Tool
from effectful_agents.types.kinds import bases_of, is_a, names_in

__all__ = ["Tools", "chosen_tools", "is_call_of", "stands_for"]


def stands_for(tool: Tool[..., Any], chosen: Collection[Tool[..., Any]]) -> bool:
    """Whether a tool is one of those that were chosen, or a method that overrides one of them in a derived class.

    A tool that was chosen of an instance (`clerk.post`) stands for that instance; of a class (`Clerk.post`), for all
    instances of it and of classes derived from it.

    >>> class Clerk:
    ...     @Tool.define
    ...     def post(self, to: str) -> str:
    ...         '''Post a letter.'''
    ...         return "posted"
    >>> class Secretary(Clerk):
    ...     @Tool.define
    ...     def post(self, to: str) -> str:
    ...         '''Post a letter, neatly.'''
    ...         return "posted neatly"
    >>> stands_for(Secretary().post, [Clerk.post]), stands_for(Clerk().post, [Secretary.post])
    (True, False)
    """
    if tool in chosen or tool.function in chosen:
        return True
    receiver = tool.receiver
    where = tool.owner if receiver is None else receiver if is_a(receiver, type) else type(receiver)
    if where is None:
        return False
    # A class method that was taken from a class is bound to it, and stands for the classes derived from it.
    written = [one.function for one in chosen if one.receiver is None or one.receiver in bases_of(where)]
    bases = [names_in(base) for base in bases_of(where)]
    names = {name for base in bases for name, value in base.items() if _tool_in(value) == tool.function}
    return any(_tool_in(base[name]) in written for base in bases for name in names & base.keys())


def _tool_in(value: Any) -> Tool[..., Any] | None:
    """The tool that is written in a class, without what is around it."""
    while is_a(value, staticmethod, classmethod):
        value = value.__func__
    return value if is_a(value, Tool) else None


type Tools = Tool[..., Any] | Iterable[Tool[..., Any]] | None
"""What a rule is for: a tool, several, or None for all."""


def chosen_tools(tools: Tools) -> frozenset[Tool] | None:
    """The tools that a rule is for.

    Raises:
        OptionError: They are none.
    """
    if tools is None:
        return None
    chosen = frozenset([tools] if isinstance(tools, Tool) else tools)
    if not all(isinstance(tool, Tool) for tool in chosen):
        raise OptionError(f"`tools` of a rule are tools, made with `Tool.define`; these are {tools!r}.")
    return chosen


def is_call_of(effect: ProposedEffect, chosen: frozenset[Tool] | None) -> bool:
    """Whether an effect is the call of a tool, of one of these if there are any."""
    if effect.kind not in (EffectKind.TOOL_CALL, EffectKind.DELEGATE):
        return False
    return chosen is None or (effect.tool is not None and stands_for(effect.tool, chosen))
