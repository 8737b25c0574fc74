"""The tools of one request: their definitions, and who is meant by a name."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, MutableMapping, Set
from typing import NamedTuple

from effectful_agents.encoding import tool_codec
from effectful_agents.messages import ToolDefinition
from effectful_agents.types import Skill, Tool

__all__ = ["Offer", "offer"]

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64


class Offer(NamedTuple):
    """What a request offers.

    Attributes:
        definitions: The tools as the model is shown them.
        tools: The tools by the names in the definitions.
    """

    definitions: list[ToolDefinition]
    tools: Mapping[str, Tool]


# By the very set: the extractor hands out the same one from turn to turn, and from call to call where it can.
_offers: MutableMapping[frozenset[Tool], dict[Skill | None, Offer]] = weakref.WeakKeyDictionary()


def offer(tools: Set[Tool], anchor: Skill | None) -> Offer:
    """Name and describe the tools of a request, in an order that does not depend on that of the set.

    Args:
        tools: The tools.
        anchor: The skill that is being answered: it is not offered to itself, unless it is recursive.
    """
    if not isinstance(tools, frozenset):
        return _make(tools, anchor)
    offers = _offers.setdefault(tools, {})
    made = offers.get(anchor)
    if made is None:
        made = offers[anchor] = _make(tools, anchor)
    return made


def _make(tools: Set[Tool], anchor: Skill | None) -> Offer:
    named: dict[str, Tool] = {}
    for tool in sorted(tools, key=_order):
        if anchor is not None and tool == anchor and not anchor.recursive:
            continue
        named[_free_name(tool.__name__, named)] = tool
    return Offer([tool_codec(tool).definition(name) for name, tool in named.items()], named)


def _order(tool: Tool) -> tuple[str, str, str]:
    return tool.__name__, tool.__module__ or "", tool.__qualname__


def _free_name(name: str, taken: Mapping[str, Tool]) -> str:
    """A name that providers accept and that is not taken."""
    plain = _FOREIGN.sub("_", name)[:_LONGEST] or "tool"
    free, number = plain, 2
    while free in taken:
        suffix = f"_{number}"
        free, number = plain[: _LONGEST - len(suffix)] + suffix, number + 1
    return free
