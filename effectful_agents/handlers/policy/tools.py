"""Which tools a policy means when it names some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.operations.policy import EffectKind, ProposedEffect
from effectful_agents.types import Tool

__all__ = ["Tools", "chosen_tools", "is_call_of"]


type Tools = Tool[..., Any] | Iterable[Tool[..., Any]] | None
"""What a rule is for: a tool, several, or None for all."""


def chosen_tools(tools: Tools) -> frozenset[Tool] | None:
    """The tools that a rule is for.

    Raises:
        OptionError: They are no tools, or there is not one.
    """
    if tools is None:
        return None
    if not isinstance(tools, Tool | Iterable):
        raise OptionError(f"`tools` of a rule are tools, made with `Tool.define`; this is {tools!r}.")
    chosen = frozenset([tools] if isinstance(tools, Tool) else tools)
    if not chosen:
        raise OptionError("`tools` of a rule is an empty list, so that it would hold no tool; None stands for all.")
    if not all(isinstance(tool, Tool) for tool in chosen):
        raise OptionError(f"`tools` of a rule are tools, made with `Tool.define`; these are {tools!r}.")
    return chosen


def is_call_of(effect: ProposedEffect, chosen: frozenset[Tool] | None) -> bool:
    """Whether an effect is the call of a tool, of one of these if there are any."""
    if effect.kind not in (EffectKind.TOOL_CALL, EffectKind.DELEGATE):
        return False
    return chosen is None or effect.calls(*chosen)
