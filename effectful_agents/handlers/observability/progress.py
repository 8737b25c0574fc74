"""Showing on a terminal what a model is doing."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text as Line

from effectful_agents.messages import PromptProgress, Response, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from effectful_agents.operations.loop import completion
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["ProgressDisplay"]


class ProgressDisplay(ObjectInterpretation[Any, Any]):
    """Show one line while a model loads, reads and writes; it is gone when the reply is complete.

    Wraps `completion` and listens to `emit`. Anywhere inside the handler that asks the model. While one request is
    shown, others that run beside it are not. A reply that is text for people, and not a value, is shown until its first
    words come: the program may be printing them.

    Args:
        console: Where to show it; standard error by default, so that a script's output stays clean.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._status: Status | None = None
        self._is_text = False
        self._written = ""

    @implements(completion)
    def completion(self, **request: Any) -> Response:
        if self._status is not None:
            return fwd()
        self._is_text = not request.get("response_format")
        with self._shown(Line(_printable(f"asking {request.get('model') or 'the model'}…"))):
            return fwd()

    @contextlib.contextmanager
    def _shown(self, text: Line) -> Generator[None]:
        self._written = ""
        with self.console.status(text, spinner="dots") as status:
            self._status = status
            try:
                yield
            finally:
                if self._status is status:
                    self._status = None

    @implements(emit)
    def emit(self, event: StreamEvent) -> None:
        status = self._status
        if status is not None and self._is_text and isinstance(event, TextDelta):
            self._status = None
            status.stop()
        elif status is not None:
            status.update(self._line(event))
        fwd()

    def _line(self, event: StreamEvent) -> Line | None:
        match event:
            case PromptProgress("loading"):
                return Line("loading the model…")
            case PromptProgress("reading", done, total):
                return Line(f"reading… {done} of {total} tokens")
            case ToolCallStart(name=name):
                self._written = f"{name} "
            case TextDelta(text=piece) | ToolCallDelta(arguments=piece):
                self._written = (self._written + piece)[-self.console.width :]
            case _:
                return None
        room = max(self.console.width - 16, 20)
        return Line("writing… " + _printable(self._written[-room:]))


def _printable(text: str) -> str:
    """Text on one line, without the characters that steer a terminal."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
