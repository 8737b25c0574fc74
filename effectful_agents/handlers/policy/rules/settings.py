"""What rules are made with, as plain JSON, and its digest."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from effectful_agents.types import Tool

__all__ = ["named", "settings_digest", "tool_names"]


def named(thing: Any) -> str:
    """The qualified name of a function, a tool or a class, or of the class of another object."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if not hasattr(thing, "__qualname__"):
        thing = type(thing)
    return f"{thing.__module__}.{thing.__qualname__}"


def tool_names(tools: Iterable[Tool] | None) -> list[str] | None:
    """The qualified names of tools, sorted; None for all tools."""
    return None if tools is None else sorted(map(named, tools))


def settings_digest(settings: Mapping[str, Any]) -> str:
    """The SHA-256 of settings, as JSON with sorted keys."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=named)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
