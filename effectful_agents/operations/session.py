"""The operations of a session: code that runs piece by piece in one namespace, which lasts as long as a call."""

from __future__ import annotations

from types import CodeType
from typing import Any

from effectful_agents.errors import MissingHandlerError
from effectful_agents.runtime import Operation

__all__ = ["repl_env", "repl_history", "run_snippet"]

_SESSION = "Install `StatefulReplSynthesizer()` of `effectful_agents.handlers.synthesis`, and an executor."


@Operation.define
def run_snippet(bytecode: CodeType) -> str:
    """Run a piece of code in the session of the running call.

    Returns:
        What it printed, and then what it wrote to the error output.

    Raises:
        Exception: Whatever the code raises; what it had bound by then stays bound.
    """
    raise MissingHandlerError("run_snippet", _SESSION)


@Operation.define
def repl_env() -> dict[str, Any]:
    """The names of the session and their values."""
    raise MissingHandlerError("repl_env", _SESSION)


@Operation.define
def repl_history() -> list[str]:
    """The sources of the pieces that ran without an error, in their order; none where there is no session."""
    return []
