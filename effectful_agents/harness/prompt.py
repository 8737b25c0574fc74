"""The command `prompt`: what a skill of a script sends to a model, and how many tokens that is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from effectful_agents.handlers.observability.report import Report
from effectful_agents.harness.call import Asked, ask_nobody, bind, find
from effectful_agents.harness.loading import NotLoaded, looked_at, opened
from effectful_agents.harness.options import Question, parse_question
from effectful_agents.harness.output import print_text
from effectful_agents.harness.stack import Harness
from effectful_agents.runtime import handler

__all__ = ["main"]


def main(arguments: Sequence[str], *, program: str = "effectful-agents prompt") -> int:
    """Show the first request of a call, without asking a model; the process is the script's afterwards.

    Args:
        arguments: Those of the command line, without the program's name and the command.
        program: How the program is called, for its help.

    Returns:
        The exit code: 1 where the script fails while it is loaded, 2 where something has to be written otherwise.
    """
    question = parse_question(arguments, program)
    try:
        stack, asked = looked_at(lambda: _asked(question), as_json=question.as_json)
    except NotLoaded as ended:
        return ended.code
    if question.as_json:
        print_text(json.dumps(asked.request, ensure_ascii=False, indent=2), json.dumps(asked.request, indent=2))
    else:
        with handler(stack):
            print_text(Report(stack.settings.model, emphasised=_bold).of_request(asked.request, asked.document))
    return 0


def _asked(question: Question) -> tuple[Harness, Asked]:
    stack, module = opened(question.script, question.options)
    skill = find(module, question.skill)
    return stack, ask_nobody(stack, skill, bind(skill, question.arguments))


def _bold(text: str) -> str:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return f"\x1b[1m{text}\x1b[0m" if is_terminal and "NO_COLOR" not in os.environ else text
