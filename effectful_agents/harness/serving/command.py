"""The command `effectful-agents serve`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from effectful_agents.harness.launcher import fail

__all__ = ["main"]

_USAGE = """\
usage: effectful-agents serve gateway [SCRIPT] [options]
       effectful-agents serve mcp SCRIPT [options]

kinds:
  gateway  models and tools for programs that hold no keys
  mcp      the tools, skills and agents of a script for MCP clients

`effectful-agents serve KIND --help` explains the options.
"""

_KINDS = ("gateway", "mcp")


def main(arguments: Sequence[str]) -> int:
    """Serve what the arguments name, until the process is told to end.

    Args:
        arguments: The kind of server, and its words.

    Returns:
        The exit code: 2 where something has to be written otherwise.
    """
    kind, *rest = arguments or [""]
    if kind in _KINDS:
        # Each loads its own kind of server, and needs an extra of its own.
        return importlib.import_module(f"effectful_agents.harness.serving.{kind}.command").main(rest)
    if kind in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    if kind:
        return fail(f"`serve {kind}` is not there; one can serve {', '.join(_KINDS)}.", code=2)
    print(_USAGE, end="", file=sys.stderr)
    return 2
