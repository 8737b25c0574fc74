"""What is said of models and their settings where others read it: names and numbers, no path and no key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["said_of"]

_A_NAME = re.compile(r"local/[\w-]+")

_NUMBERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "seed")
"""Settings that change what a model says, and of which a number says all."""


def said_of(model: str | None, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A model and its settings, for a manifest.

    Args:
        model: Its name. Of a file on this machine only that it is one is said.
        settings: Settings of its requests; those that are numbers by their nature are said.

    >>> said_of("local/weights/mine.gguf", {"temperature": 0, "api_key": "sk-1"})
    {'model': 'local/file', 'settings': {'temperature': 0}}
    """
    on_disk = model is not None and model.startswith("local/") and not _A_NAME.fullmatch(model)
    given = {name: (settings or {}).get(name) for name in _NUMBERS}
    numbers = {name: value for name, value in given.items() if type(value) in (int, float)}
    return {"model": "local/file" if on_disk else model, **({"settings": numbers} if numbers else {})}
