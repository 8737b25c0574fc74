"""The tools of one request: their definitions, and who is meant by a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from effectful_agents.encoding import tool_codec
from effectful_agents.messages import ToolDefinition
from effectful_agents.types import Skill, Tool
from effectful_agents.types.walk import ToolSet, in_order

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


def offer(tools: Set[Tool], anchor: Skill | None, *, strict: bool = False) -> Offer:
    """Name and describe the tools of a request, in an order that does not depend on that of the set.

    Args:
        tools: The tools.
        anchor: The skill that is being answered: it is not offered to itself, unless it is recursive, nor is
            a delegate that stands for it.
        strict: Whether tools are described in strict form, where they have one.
    """
    if not isinstance(tools, ToolSet):
        return _make(tools, anchor, strict=strict)
    # The extractor hands out the same set from turn to turn, and from call to call where it can.
    key = anchor, strict
    made = tools.memo.get(key)
    if made is None:
        made = tools.memo[key] = _make(tools.order, anchor, strict=strict)
    return made


def _make(tools: Iterable[Tool], anchor: Skill | None, *, strict: bool) -> Offer:
    named: dict[str, Tool] = {}
    for tool in in_order(tools):
        if anchor is not None and anchor in (tool, tool.skill) and not anchor.recursive:
            continue
        named[_free_name(tool.__name__, named)] = tool
    return Offer([tool_codec(tool).definition(name, strict=strict) for name, tool in named.items()], named)


def _free_name(name: str, taken: Mapping[str, Tool]) -> str:
    """A name that providers accept and that is not taken."""
    plain = _cut(_FOREIGN.sub("_", name) or "tool", _LONGEST)
    free, number = plain, 2
    while free in taken:
        suffix = f"_{number}"
        free, number = _cut(plain, _LONGEST - len(suffix)) + suffix, number + 1
    return free


def _cut(name: str, length: int) -> str:
    """A name that is not too long: what is left out is in its middle, since an agent's tool has its name at the end."""
    if len(name) <= length:
        return name
    tail = (length - len(_GAP)) // 2
    return name[: length - len(_GAP) - tail] + _GAP + name[-tail:]


_GAP = "__"
