"""Writing the system message to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.handlers.observability.report import Report
from effectful_agents.messages import SystemMessage
from effectful_agents.operations.loop import call_system, write_system
from effectful_agents.operations.prompt import PromptSection
from effectful_agents.runtime import ObjectInterpretation, fwd, handler, implements

__all__ = ["SystemPromptDumper"]


class SystemPromptDumper(ObjectInterpretation[Any, Any]):
    """Write each system message to a Markdown file, with the tokens of its sections.

    The file is written anew each time. It has the lines that `effectful-agents prompt` prints of the message: a title
    with its tokens, a table of its sections with theirs, and the message as the model gets it. What `count_tokens` only
    estimates is marked.

    Intercepts `call_system` and forwards first, so put it outside of handlers that change the finished message, and
    anywhere else otherwise. Where a handler writes a message without the sections there is no table.

    Args:
        path: The file; its folder must exist.
        model: The model whose tokens are counted; None for the one that requests go to if they name none.

    Raises:
        OptionError: The folder of the file is missing, or the path is that of a folder or of no file; or from a call:
            the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], model: str | None = None) -> None:
        self.path = Path(path)
        self.model = model
        self._check(os.fspath(path))

    def _check(self, shown: str) -> None:
        if not shown or "\0" in shown:
            raise _unwritable(shown, "that is the path of no file")
        if self.path.is_dir():
            raise _unwritable(shown, "that is a folder")
        if not self.path.parent.is_dir():
            raise _unwritable(shown, f"there is no folder `{self.path.parent}`")

    @implements(call_system)
    def call_system(self, *_: Any) -> SystemMessage:
        documents: list[PromptSection] = []

        def see(document: PromptSection) -> SystemMessage:
            documents.append(document)
            return fwd()

        with handler({write_system: see}):
            message: SystemMessage = fwd()
        report = Report(self.model).of_system_message(message, documents[-1] if documents else None)
        try:
            self.path.write_text(f"{report}\n", encoding="utf-8", errors="replace")
        except OSError as error:
            raise _unwritable(str(self.path), error.strerror or type(error).__name__) from error
        return message


def _unwritable(path: str, why: str) -> OptionError:
    return OptionError(
        f"the system message cannot be written to {path!r} (`SystemPromptDumper(path)`, "
        f"`harness(dump_system_prompt=…)`): {why}."
    )
