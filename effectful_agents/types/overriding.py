"""Methods that are tools, and those that override them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from effectful_agents.types.kinds import bases_of, is_a, names_in
from effectful_agents.types.tool import Tool

__all__ = ["stands_for"]


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
