"""Memories that are made of others, or of a call: by a function, or by a skill."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError, DecodingError, ProviderError
from effectful_agents.operations.journal import record
from effectful_agents.runtime import wait
from effectful_agents.types import Skill

__all__ = ["Consolidator", "Extractor", "going_on", "made_texts", "maker_name"]

type Extractor = Callable[[str, str], Any]
"""Takes what was asked and what was answered, and gives the texts to remember: a list, one text, or None."""
type Consolidator = Callable[[list[str]], Any]
"""Takes the texts of memories, the oldest first, and gives those that take their place."""

_log = logging.getLogger(__name__)


def made_texts(what: str, function: Callable[..., Any], *args: Any) -> list[str]:
    """The texts that an extractor or a consolidator gives, without empty ones.

    Args:
        what: What it is.
        function: It.
        args: What it is given.

    Raises:
        ConfigurationError: It gives no texts.
        Exception: What it raises itself.
    """

    def give_texts() -> list[str]:
        given = function(*args)
        if inspect.isawaitable(given):
            given = wait(given)
        if given is None:
            return []
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
            raise ConfigurationError(
                f"the {what} `{maker_name(function)}` gave {type(given).__name__}; it gives a list of texts, a text, "
                "or None."
            )
        return [text for text in texts if text.strip()]

    # The steps of a skill are recorded. A function may say it in other words the next time.
    return give_texts() if isinstance(function, Skill) else record(give_texts, list[str])


def maker_name(function: Any) -> str | None:
    """What it is called; None where there is none."""
    return None if function is None else getattr(function, "__name__", type(function).__name__)


@contextlib.contextmanager
def going_on(then: str) -> Generator[None]:
    """Have the call end well though a model could not do what is done for its memory: it has been answered."""
    try:
        yield
    except (ProviderError, DecodingError) as error:
        _log.warning("no model made memories of a call, so %s: %s", then, error)
