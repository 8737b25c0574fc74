"""A tool with which a model asks the user."""

from __future__ import annotations

from effectful_agents.operations.asking import ask_person
from effectful_agents.operations.policy import Question
from effectful_agents.types import Tool

__all__ = ["ask_user"]


# A resumed run comes back to the question, which is a step of its own: hence `rerun`.
@Tool.define(rerun=True)
def ask_user(question: str) -> str:
    """Ask the user for what you need to know and cannot find out by yourself; it may take them days to answer.

    Args:
        question: What they are asked. They may not see the conversation, so it has to say all that is needed.
    """
    answer = ask_person(Question(text=question))
    if answer.approved and not answer.from_nobody:
        return answer.text
    return f"(The user did not answer{f': {answer.reason}' if answer.reason else ''}.)"
