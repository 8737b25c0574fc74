"""Writing the system message to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from effectful_agents.messages import SystemMessage
from effectful_agents.operations.loop import call_system
from effectful_agents.runtime import ObjectInterpretation, fwd, implements

__all__ = ["SystemPromptDumper"]


class SystemPromptDumper(ObjectInterpretation[Any, Any]):
    """Write each system message to a Markdown file, as the model gets it; the file is written anew each time.

    Intercepts `call_system` and forwards first, so put it outside of handlers that change the prompt afterwards, and
    anywhere else otherwise.

    Args:
        path: The file; its folder must exist.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @implements(call_system)
    def call_system(self, *_: Any) -> SystemMessage:
        message: SystemMessage = fwd()
        content = message["content"]
        text = content if isinstance(content, str) else "\n\n".join(str(part.get("text", part)) for part in content)
        self.path.write_text(text, encoding="utf-8", errors="replace")
        return message
