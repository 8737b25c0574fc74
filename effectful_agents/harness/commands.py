"""The console command `effectful-agents`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from effectful_agents.harness import launcher

__all__ = ["main"]

_USAGE = """\
usage: effectful-agents run SCRIPT [options]
       effectful-agents prompt SCRIPT:SKILL [NAME=JSON ...] [options]
       effectful-agents manifest SCRIPT[:SKILL] [options]
       effectful-agents runs [show ID | settle ID STEP ANSWER] --database PATH
       effectful-agents economy DB RUN [--json] [--svg FILE]
       effectful-agents resume ID SCRIPT --database PATH [options]
       effectful-agents fork ID [--at STEP] [--as NEW] --database PATH
       effectful-agents export ID --database PATH
       effectful-agents delete ID --database PATH
       effectful-agents serve (gateway | mcp) [SCRIPT] [options]
       effectful-agents approvals DB [show ID | approve ID | refuse ID [WHY] | amend ID JSON | answer ID TEXT]

commands:
  run       run a script in the standard stack
  prompt    show what a skill of a script sends to a model, without asking one
  manifest  say how the stack is put together: handlers, tools, limits, and who decides
  runs      list the runs of a database; show the steps of one; settle a step of which nobody knows what came of it
  economy   show what the prompts of a run consisted of, what broke their prefix, and what it cost
  resume    run a script as a run that it was before
  fork      make a run of the beginning of another one
  export    print the journal of a run as lines of JSON
  delete    forget a run
  serve     offer models and tools to programs that hold no keys, a script to MCP clients
  approvals list what runs ask people, and wait with; show one question, or answer it

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
    if command == "manifest":
        from effectful_agents.harness import manifest  # noqa: PLC0415 - loads every handler

        return manifest.main(rest)
    if command in ("runs", "resume", "fork", "export", "delete"):
        from effectful_agents.harness import runs  # noqa: PLC0415 - loads what keeps runs

        return runs.main(rest if command == "runs" else [command, *rest], alone=command != "runs")
    if command == "economy":
        from effectful_agents.harness import economy  # noqa: PLC0415 - loads what keeps runs

        return economy.main(rest)
    if command == "serve":
        from effectful_agents.harness.serving import command as serving  # noqa: PLC0415 - loads a server

        return serving.main(rest)
    if command == "approvals":
        from effectful_agents.harness import approvals  # noqa: PLC0415 - loads what keeps questions

        return approvals.main(rest)
    if command in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    print(
        f"effectful-agents: there is no command `{command}`.\n\n{_USAGE}" if command else _USAGE,
        end="",
        file=sys.stderr,
    )
    return 2
