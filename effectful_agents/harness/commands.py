"""The console command `effectful-agents`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from effectful_agents.harness import launcher

__all__ = ["main"]

_USAGE = """\
usage: effectful-agents run SCRIPT [options]
       effectful-agents prompt SCRIPT:SKILL [NAME=JSON ...] [options]

commands:
  run       run a script in the standard stack
  prompt    show what a skill of a script sends to a model, without asking one

`effectful-agents COMMAND --help` explains the options.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name.

    Args:
        arguments: Those of the command line, without the program's name; None takes the process's own.

    Returns:
        The exit code.
    """
    command, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or [""]
    if command == "run":
        return launcher.main(rest, program="effectful-agents run")
    if command == "prompt":
        from effectful_agents.harness import prompt  # noqa: PLC0415 - loads every handler

        return prompt.main(rest)
    if command in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    print(
        f"effectful-agents: there is no command `{command}`.\n\n{_USAGE}" if command else _USAGE,
        end="",
        file=sys.stderr,
    )
    return 2
